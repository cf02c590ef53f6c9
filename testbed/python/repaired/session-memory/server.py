import asyncio
import os

import asyncpg
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("shop")


class Shop:
    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.pool = None
        self.lock = asyncio.Lock()

    async def connection(self):
        async with self.lock:
            if self.pool is None:
                self.pool = await asyncpg.create_pool(os.environ["DATABASE_URL"])
        return self.pool

    async def price(self, item: str) -> int:
        pool = await self.connection()
        return await pool.fetchval("SELECT price FROM items WHERE name = $1", item)

    async def add(self, session: str, item: str) -> int:
        price = await self.price(item)
        self.totals[session] = self.totals.get(session, 0) + price
        return self.totals[session]


shop = Shop()


@mcp.tool()
async def cart_add(session: str, item: str) -> str:
    return str(await shop.add(session, item))


if __name__ == "__main__":
    asyncio.run(mcp.run_stdio_async())
