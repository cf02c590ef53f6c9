import { randomUUID } from "node:crypto";
import { access, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

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

  // The rename keeps readers from seeing half a file. It does not keep one
  // writer from undoing the other.
  async save(book: Book): Promise<void> {
    const temporary = `${this.file}.${randomUUID()}`;
    await writeFile(temporary, JSON.stringify(book, null, 2));
    await rename(temporary, this.file);
  }

  async exported(name: string): Promise<boolean> {
    try {
      await access(join(this.folder, `${name}.txt`));
      return true;
    } catch {
      return false;
    }
  }

  async writeExport(name: string, text: string): Promise<void> {
    await writeFile(join(this.folder, `${name}.txt`), text);
  }
}
