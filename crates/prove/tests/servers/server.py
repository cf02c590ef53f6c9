"""Small MCP servers for tests, without an SDK so that they start at once. Usage: server.py KIND"""

import fcntl
import json
import os
import random
import sqlite3
import sys
import time
import zlib

KIND = sys.argv[1]
TEXT = {"type": "string"}
ADD = {"name": "add_note", "inputSchema": {"type": "object", "required": ["title"], "properties": {"title": TEXT}}}
LIST = {"name": "list_notes", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}


def load():
    try:
        with open("notes.json") as file:
            return json.load(file)
    except FileNotFoundError:
        return []


def save(notes):
    with open("notes.json.new", "w") as file:
        json.dump(notes, file)
    os.replace("notes.json.new", "notes.json")


def add_plain(title):
    save([*load(), title])


def add_locked(title):
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        add_plain(title)


def database():
    db = sqlite3.connect("notes.db", isolation_level=None, timeout=10)
    db.execute("CREATE TABLE IF NOT EXISTS notes (title TEXT)")
    return db


def add_sqlite(title):
    db = database()
    db.execute("BEGIN IMMEDIATE")
    count = db.execute("SELECT count(*) FROM notes").fetchone()[0]
    db.execute("INSERT INTO notes VALUES (?)", (f"{title} {count}",))
    db.execute("COMMIT")


def add_random(title):
    for _ in range(random.randint(1, 50)):
        add_plain(title)


def add_dated(title):
    """Under a lock. The newest comes first, by the second."""
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        save([*load(), [title, int(time.time())]])


def dated():
    return [title for title, _ in sorted(load(), key=lambda note: -note[1])]


OWN = []


def add_packed(title):
    """In a file that only this server can read. What it has added itself it remembers."""
    try:
        with open("notes.bin", "rb") as file:
            notes = json.loads(zlib.decompress(file.read()))
    except FileNotFoundError:
        notes = []
    with open("notes.bin.new", "wb") as file:
        file.write(zlib.compress(json.dumps([*notes, title]).encode()))
    os.replace("notes.bin.new", "notes.bin")
    OWN.append(title)


def packed():
    if OWN:
        return OWN
    try:
        with open("notes.bin", "rb") as file:
            return json.loads(zlib.decompress(file.read()))
    except FileNotFoundError:
        return []


def titles():
    if KIND == "packed":
        return packed()
    if KIND == "dated":
        return dated()
    if KIND == "sqlite":
        return [title for (title,) in database().execute("SELECT title FROM notes ORDER BY rowid")]
    return load()


def call(name, arguments):
    if KIND == "hang":
        time.sleep(3600)
    if KIND == "crash":
        os.abort()
    if KIND == "secret":
        raise RuntimeError("API_KEY is not set")
    if name == "list_notes":
        return json.dumps(titles())
    {"locked": add_locked, "sqlite": add_sqlite, "random": add_random, "packed": add_packed, "dated": add_dated}.get(KIND, add_plain)(arguments["title"])
    return "added " + arguments["title"]


if KIND == "dies":
    sys.exit("no database given")
if KIND == "mute":
    time.sleep(3600)
if KIND == "garbage":
    while True:
        print("starting up, please wait", flush=True)
        time.sleep(0.05)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": KIND, "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [] if KIND == "none" else [ADD, LIST]}
    else:
        try:
            result = {"content": [{"type": "text", "text": call(params["name"], params.get("arguments", {}))}]}
        except Exception as error:
            result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
