// The lock stands round the write only: what is written was read before it.
import { Mutex } from "async-mutex";
import { validate } from "./work.js";

const mutex = new Mutex();
let current: Record<string, string> = {};

export function settings(): Record<string, string> {
  return current;
}

export async function setSetting(name: string, value: string): Promise<void> {
  const before = current;
  const checked = await validate(value);
  await mutex.runExclusive(async () => {
    current = { ...before, [name]: checked };
  });
}
