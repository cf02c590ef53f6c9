"""Adds to a number in an SQLite database, in one statement or in two."""
import sqlite3
import sys

db = sqlite3.connect("data.db", isolation_level=None, timeout=20)


def one():
    db.execute("UPDATE counter SET value = value + 1")


def two():
    (value,) = db.execute("SELECT value FROM counter").fetchone()
    db.execute("UPDATE counter SET value = ?", (value + 1,))


def immediate():
    db.execute("BEGIN IMMEDIATE")
    two()
    db.execute("COMMIT")


ways = {"one": one, "two": two, "immediate": immediate}
db.execute("CREATE TABLE IF NOT EXISTS counter (value INTEGER)")
if db.execute("SELECT count(*) FROM counter").fetchone() == (0,):
    db.execute("INSERT INTO counter VALUES (0)")
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "value":
        print(*db.execute("SELECT value FROM counter").fetchone(), flush=True)
    else:
        ways[line.strip()]()
        print("done", flush=True)
