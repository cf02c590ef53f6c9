"""A server that is reached by HTTP, in as many ways as there are kinds. Usage: over_http.py PORT FOLDER KIND"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, folder, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
path = os.path.join(folder, "notes.json")
lock = threading.Lock()
TITLE = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}
TOOLS = [
    {"name": "add_note", "inputSchema": TITLE},
    {"name": "list_notes", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "clear_all", "inputSchema": {"type": "object"}},
]


def load():
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return []


def save(notes):
    new = f"{path}.{os.getpid()}.{threading.get_ident()}"
    with open(new, "w") as file:
        json.dump(notes, file)
    os.replace(new, path)


def call(name, arguments):
    if name == "list_notes":
        return json.dumps(load())
    if name == "clear_all":
        save([])
        return "cleared"
    # The racy one looks, waits a little, and writes what it has seen.
    with lock if kind == "locked" else threading.Lock():
        notes = load()
        time.sleep(0.2)
        save(notes + [arguments["title"]])
    return "added " + arguments["title"]


def answer(message):
    method = message["method"]
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": kind, "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    params = message["params"]
    if kind == "dies" and params["name"] == "add_note":
        os._exit(3)
    return {"content": [{"type": "text", "text": call(params["name"], params["arguments"])}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", content="application/json"):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", content)
        self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if kind == "refuses":
            return self.say(401)
        if kind == "garbage":
            return self.say(200, b"<html>")
        if kind == "mute":
            time.sleep(3600)
        if message["method"] != "initialize" and self.headers.get("Mcp-Session-Id") != "one":
            return self.say(400)
        if "id" not in message:
            return self.say(202)
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)})
        self.say(200, f"event: message\ndata: {body}\n\n".encode(), "text/event-stream")

    def do_DELETE(self):
        with open(path + ".left", "a") as file:
            file.write("left\n")
        self.say(200)


if kind == "deaf":
    time.sleep(3600)
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
