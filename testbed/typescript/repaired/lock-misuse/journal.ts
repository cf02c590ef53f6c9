// A lock file, which every process on this file respects.
import { randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import lockfile from "proper-lockfile";

const FILE = join(process.env.TESTBED_DATA ?? ".", "journal.json");

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
  const release = await lockfile.lock(FILE, {
    realpath: false, // the file may not exist yet
    retries: { retries: 200, minTimeout: 5, maxTimeout: 50, randomize: true },
  });
  try {
    const list = await entries();
    await save([...list, text]);
  } finally {
    await release();
  }
}
