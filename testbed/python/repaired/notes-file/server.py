import asyncio

from mcp.server.fastmcp import FastMCP

import service

mcp = FastMCP("notes")


@mcp.tool()
async def add_note(text: str) -> str:
    return f"{await service.add(text)} notes"


@mcp.tool()
async def delete_note(text: str) -> str:
    return f"{await service.remove(text)} notes"


@mcp.tool()
async def export_note(name: str, text: str) -> str:
    return await asyncio.to_thread(service.export, name, text)


if __name__ == "__main__":
    mcp.run()
