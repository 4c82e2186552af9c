"""``tandemq worker app:queue``: the queues of a program in, a worker that obeys signals out.

It is meant to be the first process of a container: it waits for its children, and passes nothing
through a shell. What a signal does: TERM and INT drain, a second one gives everything back at once,
as QUIT does; HUP drains and starts anew; USR1 writes down what every task does; USR2 switches the
debug log.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tandemq.cli.exits import Exit, Refused
from tandemq.cli.link import failures
from tandemq.cli.types import DURATION

if TYPE_CHECKING:
    from tandemq.client.worker import Worker

log = logging.getLogger("tandemq.worker")

LAST = 3.0  # s beyond the drain time, after which the process ends, whatever still holds it
AGAIN = -1  # the code of a run that is to be followed by another one


@click.command()
@click.argument("apps", nargs=-1, required=True, metavar="MODULE:QUEUE...")
@click.option(
    "--concurrency", type=click.IntRange(1), default=10, show_default=True, help="Jobs at a time."
)
@click.option(
    "--drain-timeout", type=DURATION, default="25s", show_default=True,
    help="What running jobs have left when told to stop.",
)  # fmt: skip
@click.option(
    "--lease", type=DURATION, default="30s", show_default=True,
    help="Silence after which the jobs go to others.",
)  # fmt: skip
@click.option("--name", help="What the list of workers shows.")
@click.option("--url", help="The server, instead of the one that the queue names.")
@click.option("--app-dir", default=".", help="Where modules are looked for first.")
@click.option("--reload", is_flag=True, help="Drain and start anew when a file changes.")
@click.option(
    "--log-level", default="info", show_default=True, help="debug, info, warning or error."
)
@click.option("--log-format", default="console", show_default=True, help="console, json or logfmt.")
def worker(
    apps: tuple[str, ...],
    app_dir: str,
    reload: bool,
    log_level: str,
    log_format: str,
    url: str | None,
    **options: Any,
) -> None:
    """Run the tasks of one or more queues until told to stop; code 6: jobs were given back.

    Example: tandemq worker app:queue --concurrency 20
    """
    from tandemq.server.log import set_up

    set_up(log_level, log_format)
    sys.path.insert(0, os.path.abspath(app_dir))
    if reload:
        from tandemq.cli.reload import supervise

        sys.exit(supervise(app_dir))
    for span in ("drain_timeout", "lease"):
        options[span] /= 1000
    chosen = url or click.get_current_context().find_root().params.get("url")
    with failures(), asyncio.Runner(loop_factory=_faster_loop()) as runner:
        code = runner.run(_run(_workers(apps, chosen, options), options["drain_timeout"]))
    if code == AGAIN:
        _start_anew()
    sys.exit(code)


def _start_anew() -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-m", "tandemq", *sys.argv[1:]])


def _faster_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop, where there is a faster one than asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


def _workers(apps: tuple[str, ...], url: str | None, options: dict[str, Any]) -> list[Worker]:
    """Return a worker for each queue that is named.

    Raises:
        UsageError: there is no such queue.
    """
    from tandemq.client.errors import BadOption
    from tandemq.client.pool import Pool
    from tandemq.client.routine import load
    from tandemq.client.task_queue import TaskQueue

    made = []
    for app in apps:
        try:
            found = load(app)
        except (BadOption, ImportError) as problem:
            raise click.UsageError(f"{app}: {problem}") from problem
        if not isinstance(found, TaskQueue):
            raise click.UsageError(f"{app} is of type {type(found).__name__}, not a tandemq.Queue")
        if url:
            found.pool = Pool(url)  # schedules, and what its tasks enqueue, go there as well
        made.append(found.worker(**options))
    return made


async def _run(workers: list[Worker], patience: float) -> int:
    """Run workers until a signal ends them, within ``patience`` s; return the exit code.

    Raises:
        NotAuthorized, Refused, PoolGaveUp: one of them cannot work.
    """
    from tandemq.client.processes import PoolGaveUp

    signals = _Signals(workers, patience)
    signals.watch()
    running = [asyncio.create_task(worker.run(), name=repr(worker)) for worker in workers]
    for worker in workers:
        log.info("working on %s, %d at a time", worker.queue, worker.concurrency)
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
    try:
        for task in done:
            task.result()
    except PoolGaveUp as problem:
        raise Refused(str(problem)) from None
    finally:
        with suppress(Exception):
            await asyncio.gather(*(worker.close() for worker in workers))
    log.info("stopped")
    return signals.code(all(worker.drained for worker in workers))


class _Signals:
    """What signals have asked for."""

    def __init__(self, workers: list[Worker], patience: float) -> None:
        self._workers, self._patience = workers, patience
        self._stopped = self._again = False
        self._forced: int | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def watch(self) -> None:
        """Obey from now on."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            loop.add_signal_handler(number, self._told, number)
        loop.add_signal_handler(signal.SIGUSR1, _write_down_tasks)
        loop.add_signal_handler(signal.SIGUSR2, _switch_debug)

    def code(self, drained: bool) -> int:
        """Return the exit code for the end that came."""
        if self._forced is not None:
            return 128 + self._forced
        if self._again:
            return AGAIN
        return Exit.DONE if drained else Exit.PARTLY

    def _told(self, number: int) -> None:
        force = self._stopped or number == signal.SIGQUIT
        if self._stopped:
            self._forced = number
        self._again = number == signal.SIGHUP and not self._stopped
        self._stopped = True
        log.info("giving jobs back" if force else "draining: a second signal gives jobs back")
        longest = LAST if force else self._patience + LAST
        asyncio.get_running_loop().call_later(longest, self._give_up)
        for worker in self._workers:
            closing = asyncio.ensure_future(worker.close(force=force))
            self._closing.add(closing)
            closing.add_done_callback(self._closed)

    def _give_up(self) -> None:
        """End without what ends neither by itself nor when it is cancelled."""
        log.error("the process ends, though something that was cancelled has not ended:")
        _write_down_tasks()
        if (code := self.code(drained=False)) == AGAIN:
            _start_anew()
        os._exit(code)

    def _closed(self, closing: asyncio.Task[None]) -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # whoever runs the worker gets it too


def _write_down_tasks() -> None:
    for task in asyncio.all_tasks():
        stack = [f"{f.f_code.co_filename}:{f.f_lineno}" for f in task.get_stack()]
        log.warning("%s: %s", task.get_name(), " < ".join(reversed(stack)) or "not begun")


def _switch_debug() -> None:
    logger = logging.getLogger("tandemq")
    debug = logger.level == logging.DEBUG
    logger.setLevel(logging.INFO if debug else logging.DEBUG)
    log.warning("debug log %s", "off" if debug else "on")
