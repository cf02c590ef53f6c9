import { open, type FileHandle } from "node:fs/promises";

export async function sizes(paths: string[]): Promise<number[]> {
  const files: FileHandle[] = [];
  for (const path of paths) {
    // If this one fails, those before it stay open.
    files.push(await open(path, "r"));
  }
  try {
    const stats = await Promise.all(files.map((file) => file.stat()));
    return stats.map((stat) => stat.size);
  } finally {
    for (const file of files) await file.close();
  }
}
