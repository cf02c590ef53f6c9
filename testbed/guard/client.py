"""A session of the Python SDK's client, through the guard.

Usage: client.py stdio COMMAND ARG…   or   client.py http|sse URL
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

CALLS = 50


async def session(read, write) -> None:
    async with ClientSession(read, write) as client:
        await client.initialize()
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert "read_graph" in tools, tools
        entity = lambda n: {"name": f"python-{n}", "entityType": "test", "observations": []}
        calls = (client.call_tool("create_entities", {"entities": [entity(n)]}) for n in range(CALLS))
        for answer in await asyncio.gather(*calls):
            assert not answer.isError, answer
        graph = await client.call_tool("read_graph", {})
        count = len(json.loads(graph.content[0].text)["entities"])
        assert count == CALLS, count
        print(f"{count} of {CALLS} left")


async def main() -> None:
    kind, *rest = sys.argv[1:]
    if kind == "stdio":
        server = StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            await session(read, write)
    elif kind == "sse":
        async with sse_client(rest[0]) as (read, write):
            await session(read, write)
    else:
        async with streamablehttp_client(rest[0]) as (read, write, _):
            await session(read, write)


asyncio.run(main())
