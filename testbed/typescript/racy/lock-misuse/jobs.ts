// A job that fails keeps the lock, and nobody gets it again.
import { Mutex } from "async-mutex";
import { validate } from "./work.js";

const mutex = new Mutex();

export async function runJob(job: string): Promise<string> {
  const release = await mutex.acquire();
  const done = await validate(job);
  release();
  return `ran ${done}`;
}
