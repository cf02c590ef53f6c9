import { randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import lockfile from "proper-lockfile";

export interface Book {
  notes: { title: string; text: string }[];
}

export class NoteStore {
  private readonly file: string;

  constructor(private readonly folder: string) {
    this.file = join(folder, "notes.json");
  }

  async load(): Promise<Book> {
    try {
      return JSON.parse(await readFile(this.file, "utf8")) as Book;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { notes: [] };
      throw error;
    }
  }

  // One lock, which other processes respect too, from the read to the write.
  async update(change: (book: Book) => void): Promise<void> {
    const release = await lockfile.lock(this.file, {
      realpath: false, // the file may not exist yet
      retries: { retries: 200, minTimeout: 5, maxTimeout: 50, randomize: true },
    });
    try {
      const book = await this.load();
      change(book);
      await this.save(book);
    } finally {
      await release();
    }
  }

  private async save(book: Book): Promise<void> {
    const temporary = `${this.file}.${randomUUID()}`;
    await writeFile(temporary, JSON.stringify(book, null, 2));
    await rename(temporary, this.file);
  }

  // The file system decides who creates the file.
  async writeExport(name: string, text: string): Promise<void> {
    await writeFile(join(this.folder, `${name}.txt`), text, { flag: "wx" });
  }
}
