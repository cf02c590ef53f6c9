import asyncio
import json

import aiofiles
import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("settings")
lock = asyncio.Lock()
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
    settings = await read("settings.json")
    settings[name] = value
    async with lock:
        await write("settings.json", settings)
    return "set"


@mcp.tool()
async def add_entry(name: str, text: str) -> str:
    async with lock:
        journal = await read("journal.json")
        journal[name] = text
        await write("journal.json", journal)
    return "added"


@mcp.tool()
async def run_job(url: str) -> str:
    await jobs.acquire()
    async with httpx.AsyncClient() as client:
        answer = await client.get(url)
    jobs.release()
    return answer.text


if __name__ == "__main__":
    mcp.run()
