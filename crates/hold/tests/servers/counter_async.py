"""Adds to a number in memory, with an `await` between reading and writing. Racy on purpose.
Answers in the order in which calls end."""
import asyncio
import sys
import time

value = 0


async def add(pause):
    global value
    seen = value
    await pause
    value = seen + 1


async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def over_network():
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"ping\n")
    assert await reader.readline() == b"ping\n"
    writer.close()


async def child():
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()


async def executor():
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0)


ways = {
    "sleep": lambda: add(asyncio.sleep(0.001)),
    "thread": lambda: add(asyncio.to_thread(time.sleep, 0)),
    "executor": lambda: add(executor()),
    "network": lambda: add(over_network()),
    "child": lambda: add(child()),
}


async def call(name):
    if name == "value":
        print(value, flush=True)
    else:
        await ways[name]()
        print(name, flush=True)


async def main():
    global port
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    calls = set()
    while line := await reader.readline():
        task = asyncio.create_task(call(line.decode().strip()))
        calls.add(task)
        task.add_done_callback(calls.discard)


asyncio.run(main())
