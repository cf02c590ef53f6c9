import os

import redis.asyncio as redis
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("search")
store = redis.Redis.from_url(os.environ["REDIS_URL"])
LIMIT = 10


async def allowed(user: str) -> bool:
    used = int(await store.get(f"limit:{user}") or 0)
    if used >= LIMIT:
        return False
    await store.set(f"limit:{user}", used + 1)
    return True


@mcp.tool()
async def ask(user: str, query: str) -> str:
    if not await allowed(user):
        return "try again later"
    return query


if __name__ == "__main__":
    mcp.run()
