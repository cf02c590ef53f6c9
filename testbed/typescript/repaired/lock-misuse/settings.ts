// One acquisition, from the read to the write.
import { Mutex } from "async-mutex";
import { validate } from "./work.js";

const mutex = new Mutex();
let current: Record<string, string> = {};

export function settings(): Record<string, string> {
  return current;
}

export async function setSetting(name: string, value: string): Promise<void> {
  await mutex.runExclusive(async () => {
    const before = current;
    const checked = await validate(value);
    current = { ...before, [name]: checked };
  });
}
