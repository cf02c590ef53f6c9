"""Notes in one JSON file, behind a lock that other processes respect."""

import asyncio
import json
from pathlib import Path

import aiofiles
from filelock import AsyncFileLock

FILE = Path("notes.json")
EXPORTS = Path("exports")
# The file lock lets in who is in this process already; it keeps the other processes out.
turn = asyncio.Lock()
lock = AsyncFileLock("notes.json.lock")


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
    async with turn, lock:
        notes = await load()
        notes.append({"text": text})
        await save(notes)
    return len(notes)


async def remove(text: str) -> int:
    async with turn, lock:
        notes = await load()
        kept = [note for note in notes if note["text"] != text]
        await save(kept)
    return len(kept)


def export(name: str, text: str) -> str:
    EXPORTS.mkdir(exist_ok=True)
    try:
        with open(EXPORTS / name, "x") as file:
            file.write(text)
    except FileExistsError:
        return "there is one already"
    return "exported"
