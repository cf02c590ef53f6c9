// The lock is given back whatever happens.
import { Mutex } from "async-mutex";
import { validate } from "./work.js";

const mutex = new Mutex();

export async function runJob(job: string): Promise<string> {
  const release = await mutex.acquire();
  try {
    const done = await validate(job);
    return `ran ${done}`;
  } finally {
    release();
  }
}
