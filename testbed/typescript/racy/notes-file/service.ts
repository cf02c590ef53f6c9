import type { NoteStore } from "./store.js";

export class NoteService {
  constructor(private readonly store: NoteStore) {}

  async add(title: string, text: string): Promise<void> {
    const book = await this.store.load();
    book.notes.push({ title, text });
    await this.store.save(book);
  }

  async remove(title: string): Promise<void> {
    const book = await this.store.load();
    book.notes = book.notes.filter((note) => note.title !== title);
    await this.store.save(book);
  }

  async exportNote(name: string, text: string): Promise<void> {
    if (await this.store.exported(name)) {
      throw new Error(`${name} exists already`);
    }
    await this.store.writeExport(name, text);
  }

  async titles(): Promise<string[]> {
    const book = await this.store.load();
    return book.notes.map((note) => note.title);
  }
}
