"""Notes in one JSON file."""

import json
from pathlib import Path

import aiofiles

FILE = Path("notes.json")
EXPORTS = Path("exports")


async def load() -> list[dict]:
    try:
        async with aiofiles.open(FILE) as file:
            return json.loads(await file.read())
    except FileNotFoundError:
        return []


async def save(notes: list[dict]) -> None:
    async with aiofiles.open(FILE, "w") as file:
        await file.write(json.dumps(notes))


async def add(text: str) -> int:
    notes = await load()
    notes.append({"text": text})
    await save(notes)
    return len(notes)


async def remove(text: str) -> int:
    notes = await load()
    kept = [note for note in notes if note["text"] != text]
    await save(kept)
    return len(kept)


def export(name: str, text: str) -> str:
    EXPORTS.mkdir(exist_ok=True)
    path = EXPORTS / name
    if path.exists():
        return "there is one already"
    path.write_text(text)
    return "exported"
