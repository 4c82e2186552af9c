"""What runs in a process of its own: one job at a time, as the worker hands them over.

Frames of MessagePack come and go where input and output were; what handlers print goes to standard
error. Nothing is pickled: a job is its bytes and the path of its handler. ``SIGUSR1`` cancels the
job that runs; the end of input ends the process, so that none outlives its worker.
"""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import cache
from queue import SimpleQueue
from typing import Any, BinaryIO

import msgspec

from tandemq.client.context import Context, Leased, Told
from tandemq.client.depends import Scope
from tandemq.client.errors import Cancelled
from tandemq.client.failures import failure_of
from tandemq.client.routine import Routine, load
from tandemq.wires.bunqueue.caller import encode

SIZE = struct.Struct(">I")


class Order(msgspec.Struct):
    """A job to run."""

    path: str
    job: bytes  # of a Leased


def frame(value: Any) -> bytes:
    """Return a value as it goes between the processes."""
    written = msgspec.msgpack.encode(value)
    return SIZE.pack(len(written)) + written


class Channel:
    """The voice of a job in a process, and all else that is said to the worker."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._one = threading.Lock()  # handlers may have threads of their own
        self.cancelled = False

    def tell(self, command: str, fields: dict[str, Any]) -> Awaitable[Any]:
        """Hand something over; what is told has its order, and no answer."""
        self.send({"tell": command, "fields": encode(fields)})
        return Told()

    def send(self, value: Any) -> None:
        """Write a frame."""
        with self._one:
            self._output.write(frame(value))
            self._output.flush()


class Child:
    """Runs what it is told to."""

    def __init__(self, orders: SimpleQueue[Order], channel: Channel) -> None:
        self._orders, self._channel = orders, channel
        self._runner = asyncio.Runner()
        self._app = Scope({})  # lives as long as the process
        self._running: asyncio.Task[Any] | None = None
        self._in_handler = False

    def serve(self) -> None:
        """Run jobs for ever; the thread that reads ends the process."""
        self._channel.send({"ready": os.getpid()})
        while True:
            self._channel.send(self._run(self._orders.get()))

    def cancel(self) -> None:
        """Stop the job that runs, if there is one."""
        if not self._in_handler:
            return
        self._channel.cancelled = True
        if self._running is not None:
            self._running.get_loop().call_soon_threadsafe(self._running.cancel)
        else:
            raise Cancelled("the worker cancelled this job")

    def _run(self, order: Order) -> dict[str, Any]:
        self._channel.cancelled = False
        try:
            return {"result": encode(self._runner.run(self._perform(order)))}
        except asyncio.CancelledError:
            return {"failed": failure_of(Cancelled("the worker cancelled this job"))}
        except BaseException as error:
            return {"failed": failure_of(error)}

    async def _perform(self, order: Order) -> Any:
        routine = _routine(order.path)
        job = msgspec.msgpack.decode(order.job, type=Leased)
        self._running = asyncio.current_task() if routine.is_async else None
        self._in_handler = routine.is_async
        async with Scope({}, self._app) as scope:
            try:
                return await routine.run(job, Context(job, self._channel), scope, self._call)
            finally:
                self._in_handler = False

    async def _call(self, function: Callable[[], Any]) -> Any:
        """Run what is not asynchronous right here: nothing else is going on."""
        try:
            self._in_handler = True
            return function()
        finally:
            self._in_handler = False


@cache
def _routine(path: str) -> Routine:
    found = load(path)
    routine = getattr(found, "routine", None)  # of a task
    return routine if isinstance(routine, Routine) else Routine(found, "process", path=path)


def _listen(source: BinaryIO, orders: SimpleQueue[Order]) -> None:
    """Read orders until the worker is gone."""
    while len(head := source.read(SIZE.size)) == SIZE.size:
        orders.put(msgspec.msgpack.decode(source.read(SIZE.unpack(head)[0]), type=Order))
    os._exit(0)


def main() -> None:
    """Serve the worker that started this process."""
    source, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.path[:] = msgspec.msgpack.decode(source.read(SIZE.unpack(source.read(SIZE.size))[0]))
    orders: SimpleQueue[Order] = SimpleQueue()
    child = Child(orders, Channel(output))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the worker decides, and closes our input
    signal.signal(signal.SIGUSR1, lambda *_: child.cancel())
    threading.Thread(target=_listen, args=(source, orders), daemon=True).start()
    child.serve()


if __name__ == "__main__":
    main()
