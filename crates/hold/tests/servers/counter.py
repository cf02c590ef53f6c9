"""Adds to a number in a file: reads it, then writes it. Racy on purpose."""
import os
import sys

ways = {}


def way(f):
    ways[f.__name__] = f
    return f


def read():
    with open("counter") as f:
        # Empty while another is writing.
        return int(f.read() or 0)


@way
def add():
    value = read() + 1
    with open("counter", "w") as f:
        f.write(str(value))


@way
def replace():
    value = read() + 1
    new = f"counter.{os.getpid()}"
    with open(new, "w") as f:
        f.write(str(value))
    os.rename(new, "counter")


@way
def locked():
    import fcntl

    with open("counter.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        add()


@way
def in_thread():
    import threading

    thread = threading.Thread(target=add)
    thread.start()
    thread.join()


@way
def in_child():
    import subprocess

    subprocess.run(["sh", "-c", "n=$(cat counter); echo $((n + 1)) > counter"], check=True)


@way
def value():
    return read()


print("ready", flush=True)
for line in sys.stdin:
    result = ways[line.strip()]()
    print("done" if result is None else result, flush=True)
