"""A loop in a thread: what threads ask of it is done, told, and given up when they are."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tandemq.client.errors import Closed, Misused
from tandemq.client.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    running = Portal()
    yield running
    running.close()
    running.close()


async def double(n: int) -> int:
    await asyncio.sleep(0)
    return 2 * n


async def fail() -> None:
    raise KeyError("no")


def test_results_and_failures_come_back(portal: Portal) -> None:
    assert portal.call(double(4)) == 8
    with pytest.raises(KeyError, match="no"):
        portal.call(fail())


def test_many_threads_ask_at_once_and_nobody_is_forgotten(portal: Portal) -> None:
    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(lambda n: portal.call(double(n)), range(5_000)))
    assert found == [2 * n for n in range(5_000)]


def test_work_that_is_cancelled_inside_is_told(portal: Portal) -> None:
    async def give_up() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(10)

    with pytest.raises(Closed, match="cancelled"):
        portal.call(give_up())


def test_who_still_waits_at_the_end_is_told() -> None:
    portal = Portal()
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(portal.call, asyncio.sleep(60)) for _ in range(8)]
        while len(asyncio.all_tasks(portal.loop)) < 8:
            time.sleep(0.001)
        portal.close()
        for each in waiting:
            with pytest.raises(Closed):
                each.result(10)


def test_nobody_hangs_who_asks_while_it_ends() -> None:
    for _ in range(30):
        portal = Portal()
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(portal.call, double(n)) for n in range(40)]
            portal.close()
            for n, each in enumerate(asked):
                try:
                    assert each.result(10) == 2 * n
                except Closed:
                    continue


def test_a_closed_portal_says_so() -> None:
    portal = Portal()
    portal.close()
    with pytest.raises(Closed):
        portal.call(double(1))


async def test_a_thread_with_a_loop_is_not_blocked() -> None:
    portal = Portal()
    with pytest.raises(Misused):
        portal.call(double(1))
    await asyncio.to_thread(portal.close)


def test_interrupting_who_waits_cancels_the_work() -> None:
    program = """
import asyncio, sys
from tandemq.client.portal import Portal

async def work():
    print("working", flush=True)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise

portal = Portal()
try:
    portal.call(work())
except KeyboardInterrupt:
    portal.close()
    print("interrupted", flush=True)
"""
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert running.stdout is not None
    with running, contextlib.closing(running.stdout) as said:
        assert said.readline() == "working\n"
        os.kill(running.pid, signal.SIGINT)
        assert said.read().splitlines() == ["cancelled", "interrupted"]
    assert running.returncode == 0


def test_a_call_while_the_interpreter_ends_is_refused() -> None:
    program = """
import asyncio
from tandemq.client.errors import Closed
from tandemq.client.portal import Portal

class Late:
    portal = Portal()
    def __del__(self, closed=Closed, sleep=asyncio.sleep, portal=portal):
        try:
            portal.call(sleep(0))
        except closed:
            print("refused", flush=True)

late = Late()
"""
    ran = subprocess.run([sys.executable, "-c", program], stdout=-1, text=True, timeout=30)
    assert (ran.returncode, ran.stdout) == (0, "refused\n")


def test_its_thread_does_not_keep_a_program_alive() -> None:
    assert all(thread.daemon for thread in threading.enumerate() if "tandemq" in thread.name)
    program = "from tandemq.client.portal import Portal; Portal(); print('end')"
    ran = subprocess.run([sys.executable, "-c", program], stdout=-1, text=True, timeout=30)
    assert (ran.returncode, ran.stdout) == (0, "end\n")
