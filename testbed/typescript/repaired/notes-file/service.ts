import type { NoteStore } from "./store.js";

export class NoteService {
  constructor(private readonly store: NoteStore) {}

  async add(title: string, text: string): Promise<void> {
    await this.store.update((book) => {
      book.notes.push({ title, text });
    });
  }

  async remove(title: string): Promise<void> {
    await this.store.update((book) => {
      book.notes = book.notes.filter((note) => note.title !== title);
    });
  }

  async exportNote(name: string, text: string): Promise<void> {
    await this.store.writeExport(name, text);
  }

  async titles(): Promise<string[]> {
    const book = await this.store.load();
    return book.notes.map((note) => note.title);
  }
}
