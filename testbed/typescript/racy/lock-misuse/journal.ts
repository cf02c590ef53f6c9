// The lock lives in this process; the file is shared with every other one.
import { Mutex } from "async-mutex";
import { randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = join(process.env.TESTBED_DATA ?? ".", "journal.json");
const mutex = new Mutex();

export async function entries(): Promise<string[]> {
  try {
    return JSON.parse(await readFile(FILE, "utf8")) as string[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

async function save(list: string[]): Promise<void> {
  const temporary = `${FILE}.${randomUUID()}`;
  await writeFile(temporary, JSON.stringify(list));
  await rename(temporary, FILE);
}

export async function addEntry(text: string): Promise<void> {
  await mutex.runExclusive(async () => {
    const list = await entries();
    await save([...list, text]);
  });
}
