"""A server of the Python SDK that offers HTTP+SSE and nothing else, and loses entries that come at once.

Usage: sse_server.py FILE    writes its address to standard output
"""

import asyncio
import json
import pathlib
import socket
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent

FILE = pathlib.Path(sys.argv[1])
server = FastMCP("old", log_level="ERROR")


def load() -> list:
    return json.loads(FILE.read_text()) if FILE.exists() else []


@server.tool()
async def create_entities(entities: list[dict]) -> str:
    known = load()
    await asyncio.sleep(0.002)
    FILE.write_text(json.dumps(known + entities))
    return f"{len(entities)}"


@server.tool()
async def read_graph() -> str:
    return json.dumps({"entities": load()})


@server.tool()
async def clear() -> str:
    FILE.unlink(missing_ok=True)
    return "clear"


@server.tool()
async def ask(question: str, context: Context) -> str:
    await context.report_progress(1, 2)
    text = TextContent(type="text", text=question)
    messages = [SamplingMessage(role="user", content=text)]
    said = await context.session.create_message(messages, max_tokens=1, related_request_id=context.request_id)
    await context.report_progress(2, 2)
    # The SDK's client drops progress that comes in one breath with the answer.
    await asyncio.sleep(0.2)
    return said.content.text


@server.tool()
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/sse", flush=True)
uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="error")).run(sockets=[listener])
