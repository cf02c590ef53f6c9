import { open, type FileHandle } from "node:fs/promises";

export async function sizes(paths: string[]): Promise<number[]> {
  const files: FileHandle[] = [];
  try {
    for (const path of paths) {
      files.push(await open(path, "r"));
    }
    const stats = await Promise.all(files.map((file) => file.stat()));
    return stats.map((stat) => stat.size);
  } finally {
    for (const file of files) await file.close();
  }
}
