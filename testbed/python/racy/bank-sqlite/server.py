import aiosqlite
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("bank")


@mcp.tool()
async def withdraw(account: str, amount: int) -> str:
    async with aiosqlite.connect("bank.db") as db:
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
        cursor = await db.execute("SELECT tags FROM accounts WHERE id = ?", (account,))
        row = await cursor.fetchone()
        tags = row["tags"] + "," + tag
        await db.execute("UPDATE accounts SET tags = ? WHERE id = ?", (tags, account))
        await db.commit()
    return tags


if __name__ == "__main__":
    mcp.run()
