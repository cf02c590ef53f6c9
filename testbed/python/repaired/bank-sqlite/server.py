import sqlite3

import aiosqlite
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("bank")


@mcp.tool()
async def withdraw(account: str, amount: int) -> str:
    async with aiosqlite.connect("bank.db") as db:
        cursor = await db.execute(
            "UPDATE accounts SET balance = balance - ? WHERE id = ? AND balance >= ?",
            (amount, account, amount),
        )
        await db.commit()
    return "paid out" if cursor.rowcount == 1 else "not enough"


@mcp.tool()
async def add_tag(account: str, tag: str) -> str:
    async with aiosqlite.connect("bank.db") as db:
        await db.execute("UPDATE accounts SET tags = tags || ',' || ? WHERE id = ?", (tag, account))
        await db.commit()
    return "added"


def prepare() -> None:
    with sqlite3.connect("bank.db") as db:
        db.execute("CREATE TABLE IF NOT EXISTS accounts (id TEXT PRIMARY KEY, balance INTEGER, tags TEXT)")
        db.execute("INSERT OR IGNORE INTO accounts VALUES ('alice', 100, 'new'), ('bob', 100, 'new')")


if __name__ == "__main__":
    prepare()
    mcp.run()
