import os

import redis.asyncio as redis
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("search")
store = redis.Redis.from_url(os.environ["REDIS_URL"])
LIMIT = 10


async def allowed(user: str) -> bool:
    return await store.incr(f"limit:{user}") <= LIMIT


@mcp.tool()
async def ask(user: str, query: str) -> str:
    if not await allowed(user):
        return "try again later"
    return query


if __name__ == "__main__":
    mcp.run()
