"""Processes for handlers that keep a core busy, or that may have to be killed.

Each is a fresh interpreter, never a fork, so nothing of the worker's locks, sockets and threads is
in it. One that dies is replaced; its job is told of it, and so is everybody when none comes up.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from tandemq.client.child import SIZE, Order, frame
from tandemq.client.context import Leased, Voice
from tandemq.client.errors import TandemqError

START = 30.0  # s until a process has to be ready
GRACE = 5.0  # s a cancelled handler may take to clean up before its process is killed
PATIENCE = 3  # processes in a row that may end before they are ready


class ProcessDied(TandemqError):
    """The process that ran a handler ended before the handler did."""


class PoolGaveUp(TandemqError):
    """Processes for handlers end before they are ready; what they said is on standard error."""


class Failed(Exception):
    """A handler in a process raised; ``fields`` are what its worker says of that."""

    def __init__(self, fields: dict[str, Any] | None) -> None:
        super().__init__((fields or {}).get("error"))
        self.fields = fields


class Said(msgspec.Struct):
    """A frame of a process: one of these is there."""

    ready: int | None = None
    result: bytes | None = None
    failed: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    tell: str | None = None
    fields: bytes = b""


class Apart:
    """One process, and the conversation with it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._hearing: asyncio.Task[Said] | None = None

    @classmethod
    async def start(cls) -> Apart:
        """Start a fresh interpreter, which finds the modules that this one finds."""
        words = sys.executable, "-m", "tandemq.client.child"
        process = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None, "it was asked for"
        process.stdin.write(frame(sys.path))
        return cls(process)

    @property
    def ended(self) -> int | None:
        """The code it ended with, None while it runs."""
        return self._process.returncode

    def order(self, path: str, job: Leased) -> None:
        """Hand a job over."""
        assert self._process.stdin is not None, "it was asked for"
        self._process.stdin.write(frame(Order(path, msgspec.msgpack.encode(job))))

    async def hear(self) -> Said:
        """Return the next thing it says; whoever is cancelled meanwhile tears no frame apart.

        Raises:
            ProcessDied
        """
        self._hearing = self._hearing or asyncio.create_task(self._read())
        try:
            said = await asyncio.shield(self._hearing)
        except asyncio.IncompleteReadError:
            code = await self._process.wait()
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            raise ProcessDied(f"the process that ran the handler ended {how}") from None
        self._hearing = None
        return said

    def cancel(self) -> None:
        """Tell the handler to end."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)

    async def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        if self._hearing is not None:
            await asyncio.gather(self._hearing, return_exceptions=True)

    async def _read(self) -> Said:
        source = self._process.stdout
        assert source is not None, "it was asked for"
        size = SIZE.unpack(await source.readexactly(SIZE.size))[0]
        return msgspec.msgpack.decode(await source.readexactly(size), type=Said)


class Processes:
    """Runs handlers in at most ``size`` processes, which start when they are needed.

    Attributes:
        broken: resolved when no process comes up any more.
    """

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._idle: list[Apart] = []
        self._all: set[Apart] = set()
        self._failures = 0
        self.broken: asyncio.Future[PoolGaveUp] = asyncio.get_running_loop().create_future()

    async def run(self, path: str, job: Leased, voice: Voice) -> Raw:
        """Run the handler at a path and return its result, encoded.

        Raises:
            Failed: the handler raised.
            ProcessDied: its process ended.
            PoolGaveUp: no process comes up.
        """
        async with self._free:
            process = await self._ready()
            try:
                process.order(path, job)
                while (said := await process.hear()).tell is not None:
                    await voice.tell(said.tell, msgspec.msgpack.decode(said.fields))
            except asyncio.CancelledError:
                await self._cancel(process)
                raise
            finally:
                self._put_back(process)
        if said.failed is not msgspec.UNSET:
            raise Failed(said.failed)
        return Raw(said.result or b"\xc0")

    async def close(self) -> None:
        """End every process at once."""
        await asyncio.gather(*(process.kill() for process in self._all))
        self._all.clear()

    async def _ready(self) -> Apart:
        while self._idle:
            process = self._idle.pop()
            if process.ended is None:
                return process
            self._all.discard(process)
        while self._failures < PATIENCE:
            process = await Apart.start()
            self._all.add(process)
            with suppress(ProcessDied, TimeoutError):
                async with asyncio.timeout(START):
                    await process.hear()
                self._failures = 0
                return process
            self._failures += 1
            self._all.discard(process)
            await process.kill()
        gave_up = PoolGaveUp(f"{PATIENCE} processes in a row ended before they were ready")
        if not self.broken.done():
            self.broken.set_result(gave_up)
        raise gave_up

    async def _cancel(self, process: Apart) -> None:
        """Let the handler clean up, but not for ever."""
        process.cancel()
        try:
            async with asyncio.timeout(GRACE):
                while (await process.hear()).tell is not None:
                    pass
        except (ProcessDied, TimeoutError):
            await process.kill()

    def _put_back(self, process: Apart) -> None:
        if process.ended is None:
            self._idle.append(process)
        else:
            self._all.discard(process)
