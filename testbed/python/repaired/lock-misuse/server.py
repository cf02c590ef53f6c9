import asyncio
import json

import aiofiles
import httpx
from filelock import AsyncFileLock
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("settings")
# The file lock lets in who is in this process already; it keeps the other processes out.
turn = asyncio.Lock()
lock = AsyncFileLock("settings.lock")
jobs = asyncio.Lock()


async def read(path: str) -> dict:
    try:
        async with aiofiles.open(path) as file:
            return json.loads(await file.read())
    except FileNotFoundError:
        return {}


async def write(path: str, data: dict) -> None:
    async with aiofiles.open(path, "w") as file:
        await file.write(json.dumps(data))


@mcp.tool()
async def set_setting(name: str, value: str) -> str:
    async with turn, lock:
        settings = await read("settings.json")
        settings[name] = value
        await write("settings.json", settings)
    return "set"


@mcp.tool()
async def add_entry(name: str, text: str) -> str:
    async with turn, lock:
        journal = await read("journal.json")
        journal[name] = text
        await write("journal.json", journal)
    return "added"


@mcp.tool()
async def run_job(url: str) -> str:
    async with jobs:
        async with httpx.AsyncClient() as client:
            answer = await client.get(url)
    return answer.text


if __name__ == "__main__":
    mcp.run()
