"""Makes the calls of a replay.json meet, without toctou. Usage: driver.py replay.json [ROUNDS]

Runs the calls in every serial order, then all at once again and again, each time on a fresh folder,
until what is left equals none of the serial outcomes. Exit code 1 if that happens, 0 if it does not.
"""

import itertools
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?|\b1\d{9}(\d{3})?\b")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


class Server:
    """A server on its standard input and output."""

    def __init__(self, target, folder):
        port = free_port() if target.get("http") else ""
        fill = lambda text: text.replace("{workspace}", folder).replace("{port}", port)
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment.update(HOME=os.path.join(folder, ".home"), TMPDIR=os.path.join(folder, ".tmp"))
        environment.update({name: fill(value) for name, value in target.get("env", {}).items()})
        for name in (".home", ".tmp"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        self.process = subprocess.Popen(
            [fill(part) for part in target["argv"]],
            cwd=target.get("cwd") or folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.address = fill(target.get("http") or "")
        self.next = 0
        self.answers = {}
        self.buffer = b""
        self.start()

    def start(self):
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "driver", "version": "1"}}
        self.wait(self.send([("initialize", params)]), 60)
        self.write([{"jsonrpc": "2.0", "method": "notifications/initialized"}])

    def write(self, messages):
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def send(self, requests):
        """All of them in one write."""
        messages = []
        for method, params in requests:
            self.next += 1
            messages.append({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        self.write(messages)
        return [message["id"] for message in messages]

    def call(self, calls):
        return self.send([("tools/call", {"name": call["tool"], "arguments": call.get("arguments") or {}}) for call in calls])

    def wait(self, ids, seconds=20):
        deadline = time.monotonic() + seconds
        while any(id not in self.answers for id in ids) and time.monotonic() < deadline:
            if not select.select([self.process.stdout], [], [], 0.05)[0]:
                continue
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            self.buffer += chunk
            *lines, self.buffer = self.buffer.split(b"\n")
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if "id" in message and "method" not in message:
                    self.answers[message["id"]] = message
        return [answer(self.answers.get(id)) for id in ids]

    def close(self):
        self.process.kill()
        self.process.wait()


class HttpServer(Server):
    """A server that is reached by HTTP: each request on a connection of its own."""

    def start(self):
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        # What it says there is for people, and nobody may wait for it to be read.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        place = urllib.parse.urlsplit(self.address)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection((place.hostname, place.port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        super().start()

    def write(self, messages):
        threads = [threading.Thread(target=self.post, args=(message,), daemon=True) for message in messages]
        for thread in threads:
            thread.start()
        # What follows a notification comes after it.
        if any("id" not in message for message in messages):
            for thread in threads:
                thread.join(10)

    def post(self, message):
        request = urllib.request.Request(self.address, json.dumps(message).encode(), self.headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                session = response.headers.get("Mcp-Session-Id")
                if session:
                    self.headers = {**self.headers, "Mcp-Session-Id": session}
                stream = response.headers.get("Content-Type", "").startswith("text/event-stream")
                body = response.read().decode(errors="replace")
        except OSError as error:
            stream, body = False, json.dumps({"id": message.get("id"), "error": {"message": str(error)}})
        texts = [line[5:] for line in body.splitlines() if line.startswith("data:")] if stream else [body]
        for text in texts:
            try:
                answer = json.loads(text)
            except ValueError:
                continue
            if "method" not in answer:
                self.answers[answer.get("id")] = answer

    def wait(self, ids, seconds=20):
        deadline = time.monotonic() + seconds
        while any(id not in self.answers for id in ids) and time.monotonic() < deadline:
            time.sleep(0.001)
        return [answer(self.answers.get(id)) for id in ids]


def answer(message):
    if message is None:
        return "no answer"
    if "error" in message:
        return "error: " + str(message["error"].get("message"))
    result = message.get("result", {})
    text = "\n".join(part.get("text", "") for part in result.get("content", []))
    return ("error: " if result.get("isError") else "") + text


def resolve(value, replies):
    if isinstance(value, dict):
        return {key: resolve(item, replies) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, replies) for item in value]
    found = re.fullmatch(r"\$\{setup\[(\d+)\]([^|]*)(\|text)?\}", value) if isinstance(value, str) else None
    if not found:
        return value
    here = replies[int(found[1])]
    if found[2].startswith("#"):
        words = [word for word in re.findall(r"[\w-]+", here) if re.search(r"\d", word)]
        return words[int(found[2][1:])]
    here = json.loads(here)
    for part in found[2].split("/")[1:]:
        here = here[int(part)] if isinstance(here, list) else here[part.replace("~1", "/").replace("~0", "~")]
    return str(here) if found[3] else here


def plain(text):
    """Without what differs from run to run."""
    text = TIME.sub("<time>", UUID.sub("<id>", text))
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


def files(folder):
    found = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".home", ".tmp")]
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                content = file.read()
            if b"\0" not in content:
                found[plain(os.path.relpath(path, folder))] = plain(content.decode(errors="replace"))
    return found


def run(recipe, order):
    """One run on a fresh folder: by `order`, or all at once."""
    folder = tempfile.mkdtemp(prefix="driver-")
    fill = lambda call: json.loads(json.dumps(call).replace("{workspace}", folder))
    scenario, assignment = recipe["scenario"], recipe["assignment"]
    servers = []
    try:
        for word in ("alpha", "bravo"):
            with open(os.path.join(folder, word + ".txt"), "w") as file:
                file.write(f"text of {word}\n")
        target = recipe["target"]["command"]
        kind = HttpServer if target.get("http") else Server
        servers = [kind(target, folder) for _ in range(max(assignment) + 1)]
        replies = []
        for call in scenario.get("setup", []):
            call = fill({**call, "arguments": resolve(call.get("arguments"), replies)})
            replies += servers[0].wait(servers[0].call([call]))
        calls = [fill({**call, "arguments": resolve(call.get("arguments"), replies)}) for call in scenario["calls"]]
        answers = [None] * len(calls)
        if order is None:
            sent = []
            for number, server in enumerate(servers):
                mine = [index for index, process in enumerate(assignment) if process == number]
                sent.append((server, mine, server.call([calls[index] for index in mine])))
            for server, mine, ids in sent:
                for index, text in zip(mine, server.wait(ids)):
                    answers[index] = text
        else:
            for index in order:
                server = servers[assignment[index]]
                answers[index] = server.wait(server.call([calls[index]]))[0]
        seen = []
        for server in servers:
            for call in scenario.get("observers", []):
                call = fill({**call, "arguments": resolve(call.get("arguments"), replies)})
                seen += server.wait(server.call([call]))
        for server in servers:
            server.close()
        left = files(folder)
        clean = lambda texts: [plain(text.replace(folder, "{workspace}")) for text in texts]
        return {"answers": clean(answers), "tools": clean(seen), "files": left}
    finally:
        for server in servers:
            server.close()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    with open(sys.argv[1]) as file:
        recipe = json.load(file)
    if "command" not in recipe["target"]:
        sys.exit("this server was not started for the proof: only `toctou prove --replay` can call it again")
    if "state" in recipe:
        sys.exit("this server keeps its state in a database: only `toctou prove --replay` with `--state` can reset it")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    count = len(recipe["scenario"]["calls"])
    orders = list(itertools.permutations(range(count))) if count <= 4 else [tuple(range(count))]
    serial = {order: run(recipe, order) for order in orders}
    for order, outcome in serial.items():
        print("serial", " then ".join(LETTERS[index] for index in order) + ":", outcome["answers"])
    sort = lambda outcome: {**outcome, "answers": sorted(outcome["answers"])} if count > 4 else outcome
    for number in range(1, rounds + 1):
        outcome = run(recipe, None)
        if all(sort(outcome) != sort(other) for other in serial.values()):
            print(f"round {number}: all at once, and no serial order leaves this:")
            print(json.dumps(outcome, indent=2))
            return 1
    print(f"{rounds} rounds, each explained by a serial order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
