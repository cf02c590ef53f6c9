"""Loaded by Python before the server, from PYTHONPATH. Tells the supervisor of each completion of
asynchronous work, and delivers it when the supervisor says so. Meanwhile the event loop goes on,
so that others run between an `await` and what follows it.

A supervisor that is gone holds nothing: what waits is delivered.
"""


def _hand_on():
    """There may be another module of this name, which this one hides."""
    import importlib.machinery
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec and spec.loader:
        import importlib.util

        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _install(address):
    import asyncio
    import asyncio.base_events
    import asyncio.subprocess
    import contextvars
    import functools
    import json
    import os
    import socket
    import sys
    import threading

    # ---- the line to the supervisor

    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    lock = threading.RLock()
    waiting = {}
    count = 0
    is_open = True

    def lost():
        nonlocal is_open
        with lock:
            is_open = False
            left = list(waiting.values())
            waiting.clear()
        for deliver in left:
            deliver()

    def listen():
        try:
            for word in line.makefile("r"):
                with lock:
                    deliver = waiting.pop(int(word), None)
                if deliver:
                    deliver()
        except (OSError, ValueError):
            pass
        lost()

    def tell(**message):
        line.sendall(json.dumps(message).encode() + b"\n")

    def gate(kind, name, deliver):
        """Calls `deliver` when it may be, from some thread."""
        nonlocal count
        with lock:
            if is_open:
                count += 1
                waiting[count] = deliver
                try:
                    tell(id=count, kind=kind, name=name)
                    return
                except OSError:
                    if waiting.pop(count, None) is None:
                        return
        deliver()

    def in_child():
        # The line is the parent's. The child is seen by its system calls only.
        nonlocal is_open
        is_open = False
        waiting.clear()
        line.close()

    tell(hello="python", pid=os.getpid(), main=True)
    threading.Thread(target=listen, name="toctou-hold", daemon=True).start()
    os.register_at_fork(after_in_child=in_child)

    # ---- what other threads bring into an event loop: files, databases, tools without `async`

    loops = asyncio.base_events.BaseEventLoop
    deliver_safely = loops.call_soon_threadsafe

    def is_standard(value):
        """Whether this is a file, or a method of one, that the client is at the other end of."""
        value = getattr(value, "__self__", value)
        try:
            return value.fileno() in (0, 1, 2)
        except Exception:
            return False

    def called(frame):
        """What the thread has run, and with what, if its runner keeps it where it can be seen."""
        for _ in range(8):
            if frame is None:
                break
            values = frame.f_locals
            item = values.get("self")
            if type(item).__name__ == "_WorkItem":  # concurrent.futures
                task = getattr(item, "task", None) or (getattr(item, "fn", None), item.args)
                return plain(task[0], task[1])
            function = values.get("func") or values.get("function")
            if callable(function):  # anyio, aiosqlite
                return plain(function, values.get("args") or ())
            frame = frame.f_back
        return None, ()

    def plain(function, args):
        while True:
            if isinstance(function, functools.partial):
                function, args = function.func, (*function.args, *args)
            elif isinstance(getattr(function, "__self__", None), contextvars.Context) and args:
                function, *args = args
            else:
                return function, args

    def name_of(function):
        module = getattr(function, "__module__", None)
        name = getattr(function, "__qualname__", None) or type(function).__name__
        return f"{module}.{name}" if module else name

    @functools.wraps(deliver_safely)
    def call_soon_threadsafe(self, callback, *args, context=None):
        own = threading.current_thread()
        if not is_open or own.name == "toctou-hold" or self._thread_id in (None, own.ident):
            return deliver_safely(self, callback, *args, context=context)
        if getattr(callback, "__name__", "") == "_child_watcher_callback":
            # Who waits for the child is told below.
            return deliver_safely(self, callback, *args, context=context)
        function, with_args = called(sys._getframe(1))
        if function and (is_standard(function) or any(map(is_standard, with_args))):
            return deliver_safely(self, callback, *args, context=context)
        # The handle that is given back can be cancelled, and the delivery then is.
        handle = asyncio.Handle(callback, args, self, context)

        def deliver():
            try:
                deliver_safely(self, lambda: None if handle.cancelled() else handle._run())
            except RuntimeError:
                pass  # The loop has ended meanwhile.

        gate("thread", name_of(function or callback), deliver)
        return handle

    loops.call_soon_threadsafe = call_soon_threadsafe

    # ---- timers

    async def pause(kind, name):
        loop = asyncio.get_running_loop()
        go = loop.create_future()

        def deliver():
            try:
                deliver_safely(loop, lambda: go.done() or go.set_result(None))
            except RuntimeError:
                pass

        gate(kind, name, deliver)
        await go

    def is_idling():
        """A server of HTTP that looks at its clock: no call's work, and never done."""
        module = sys._getframe(2).f_globals.get("__name__", "")
        return module.partition(".")[0] in ("uvicorn", "hypercorn")

    def after(kind, name, original):
        @functools.wraps(original)
        async def patched(*args, **kwargs):
            if is_idling():
                return await original(*args, **kwargs)
            try:
                return await original(*args, **kwargs)
            finally:
                # A task that is cancelled is not kept waiting.
                if not isinstance(sys.exc_info()[1], asyncio.CancelledError):
                    await pause(kind, name)

        return patched

    asyncio.sleep = asyncio.tasks.sleep = after("timer", "asyncio.sleep", asyncio.sleep)

    # ---- other processes

    process = asyncio.subprocess.Process
    for method in ("wait", "communicate"):
        original = getattr(process, method)
        setattr(process, method, after("process", f"Process.{method}", original))

    # ---- the network: what comes in on connections that the server has made

    class InOrder(asyncio.Protocol):
        """Stands before a protocol and hands on what comes, in its order."""

        def __init__(self, inner, loop):
            self.inner = inner
            self.loop = loop
            self.queue = None

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def hand_on(self, *event):
            if self.queue is not None:
                self.queue.append(event)
            elif event[0] != "data_received":
                return getattr(self.inner, event[0])(*event[1:])
            else:
                self.queue = [event]
                gate("network", "connection data", self.deliver_soon)

        def deliver_soon(self):
            try:
                deliver_safely(self.loop, self.deliver)
            except RuntimeError:
                pass

        def deliver(self):
            events, self.queue = self.queue, None
            for event in events:
                getattr(self.inner, event[0])(*event[1:])

        def connection_made(self, transport):
            self.inner.connection_made(transport)

        def data_received(self, data):
            self.hand_on("data_received", data)

        def eof_received(self):
            # The answer says whether to stay open. Until there is one, it does.
            held = self.queue is not None
            return self.hand_on("eof_received") or held

        def connection_lost(self, error):
            self.hand_on("connection_lost", error)

        def pause_writing(self):
            self.inner.pause_writing()

        def resume_writing(self):
            self.inner.resume_writing()

    connect = loops.create_connection

    @functools.wraps(connect)
    async def create_connection(self, protocol_factory, *args, **kwargs):
        made = []

        def factory():
            inner = protocol_factory()
            made.append(inner)
            if isinstance(inner, asyncio.BufferedProtocol):
                return inner
            return InOrder(inner, self)

        transport, _ = await connect(self, factory, *args, **kwargs)
        return transport, made[-1]

    loops.create_connection = create_connection


def _start():
    import os

    address = os.environ.get("TOCTOU_HOLD_SOCKET")
    if address:
        try:
            _install(address)
        except OSError:
            pass  # Nobody listens: the server runs as without this.


_start()
_hand_on()
