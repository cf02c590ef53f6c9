import sqlite3

import aiosqlite
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("bank")


@mcp.tool()
async def withdraw(account: str, amount: int) -> str:
    async with aiosqlite.connect("bank.db") as db:
        db.row_factory = aiosqlite.Row
        cursor = await db.execute("SELECT balance FROM accounts WHERE id = ?", (account,))
        row = await cursor.fetchone()
        if row["balance"] < amount:
            return "not enough"
        await db.execute("UPDATE accounts SET balance = balance - ? WHERE id = ?", (amount, account))
        await db.commit()
    return "paid out"


@mcp.tool()
async def add_tag(account: str, tag: str) -> str:
    async with aiosqlite.connect("bank.db") as db:
        db.row_factory = aiosqlite.Row
        cursor = await db.execute("SELECT tags FROM accounts WHERE id = ?", (account,))
        row = await cursor.fetchone()
        tags = row["tags"] + "," + tag
        await db.execute("UPDATE accounts SET tags = ? WHERE id = ?", (tags, account))
        await db.commit()
    return tags


def prepare() -> None:
    with sqlite3.connect("bank.db") as db:
        db.execute("CREATE TABLE IF NOT EXISTS accounts (id TEXT PRIMARY KEY, balance INTEGER, tags TEXT)")
        db.execute("INSERT OR IGNORE INTO accounts VALUES ('alice', 100, 'new'), ('bob', 100, 'new')")


if __name__ == "__main__":
    prepare()
    mcp.run()
