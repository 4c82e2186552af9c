"""Tasks: functions that keep their shape and run as jobs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import BaseModel
from tests.support.peer import Peer

from tandemq import Context, Depends, Queue, Retry
from tandemq.client.errors import BadOption, JobFailed, Misused, NotSent
from tandemq.client.task_queue import TaskQueue
from tandemq.testing import Stage

LONG = 10.0
steps: list[str] = []


@dataclass
class Address:
    city: str


class Order(msgspec.Struct):
    number: int
    address: Address


class Person(BaseModel):
    name: str
    born: datetime


class Mailer:
    def send(self, to: int) -> str:
        return f"sent to {to}"


async def get_mailer() -> AsyncIterator[Mailer]:
    steps.append("open")
    await asyncio.sleep(0)
    yield Mailer()
    steps.append("close")


def number() -> int:
    steps.append("number")
    return 7


def shared() -> Iterator[list[int]]:
    steps.append("open shared")
    yield []
    steps.append("close shared")


def counted(
    numbers: Annotated[list[int], Depends(shared, scope="app")], ctx: Context
) -> Iterator[int]:
    numbers.append(len(numbers))
    yield len(numbers)
    steps.append(f"{ctx.name} done")


@pytest.fixture(autouse=True)
def fresh() -> None:
    steps.clear()


@pytest.fixture
def queue(tandemq_server: Stage) -> Iterator[TaskQueue]:
    made = Queue("emails", "tandemq://127.0.0.1:1")
    with tandemq_server.serves(made):
        yield made


Run = Callable[..., Any]


def test_a_task_is_still_the_function(queue: TaskQueue) -> None:
    @queue.task(name="other")
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert add(1) == 3
    assert add(1, b=5) == 6
    assert (add.__name__, add.__doc__, add.name) == ("add", "Add.", "other")
    assert list(inspect.signature(add).parameters) == ["a", "b"]


def test_the_example_of_the_conventions_runs(queue: TaskQueue, tandemq_server: Stage) -> None:
    @queue.task(
        retry=Retry(5, backoff="exponential", jitter=True), timeout="30s", key="user:{user_id}"
    )
    async def welcome(
        user_id: int, *, mailer: Mailer = Depends(get_mailer), ctx: Context = Depends(Context)
    ) -> str:
        await ctx.progress(50, "rendered")
        return mailer.send(user_id)

    first = welcome.enqueue_sync(7)
    assert welcome.enqueue_sync(7).id == first.id, "its key is taken"
    later = welcome.options(delay=timedelta(hours=1), id="welcome-8").enqueue_sync(8)
    assert later.id == "welcome-8"
    job = tandemq_server.jobs(queue)[0]
    assert (job.data, job.max_attempts) == ({"user_id": 7}, 5)
    assert job.fields["timeout"] == 30_000
    assert job.fields["uniqueKey"] == "welcome:user:7"
    tandemq_server.run_until_idle(queue)
    assert first.result(timeout=LONG) == "sent to 7"
    assert steps == ["open", "close"]


async def test_a_plain_call_needs_no_queue(queue: TaskQueue) -> None:
    @queue.task
    async def welcome(
        user_id: int, *, mailer: Mailer = Depends(get_mailer), ctx: Context = Depends(Context)
    ) -> str:
        await ctx.progress(50)
        assert not ctx.cancelled
        return mailer.send(user_id)

    @queue.task
    def plain(factor: int, seven: int = Depends(number)) -> int:
        return factor * seven

    @queue.task
    def cannot(mailer: Mailer = Depends(get_mailer)) -> None: ...

    assert await welcome(3) == "sent to 3"
    assert steps == ["open", "close"]
    assert (plain(2), plain(2, 5)) == (14, 10)
    with pytest.raises(Misused, match="asynchronous dependency"):
        cannot()


def test_arguments_arrive_as_what_they_were(queue: TaskQueue, tandemq_worker: Run) -> None:
    got: list[Any] = []

    @queue.task
    def take(order: Order, who: Person, when: datetime, big: int, blob: bytes, note: str = "-"):  # type: ignore[no-untyped-def]
        got.extend((order, who, when, big, blob, note))

    when = datetime(2030, 1, 2, tzinfo=UTC)
    order, who = Order(1, Address("Rome")), Person(name="Ada", born=when)
    take.enqueue_sync(order, who, when, 2**40, b"\0\xff")
    tandemq_worker(queue)
    assert got == [order, who, when, 2**40, b"\0\xff", "-"]


def test_wrong_arguments_fail_where_they_are_given(queue: TaskQueue) -> None:
    @queue.task
    def take(a: int, *, b: int = 1) -> None: ...

    for wrong in ({}, {"a": 1, "c": 2}):
        with pytest.raises(TypeError, match="take"):
            take.enqueue_sync(**wrong)


@pytest.mark.parametrize("data", [{"a": "one"}, {}, {"a": 1, "b": 2}, None, [1]])
def test_data_that_does_not_fit_is_a_dead_letter_at_once(
    queue: TaskQueue, tandemq_server: Stage, data: Any
) -> None:
    @queue.task
    def take(a: int) -> None:
        steps.append("ran")

    job = tandemq_server.client.queue(queue.name).add("take", data)
    tandemq_server.run_until_idle(queue)
    with pytest.raises(JobFailed, match="does not fit"):
        job.result(timeout=LONG)
    assert not steps


def test_a_dependency_lives_as_long_as_its_scope(queue: TaskQueue, tandemq_worker: Run) -> None:
    @queue.task
    def use(count: int = Depends(counted), same: int = Depends(counted)) -> None:
        assert count == same
        steps.append(f"count {count}")

    use.enqueue_sync()
    use.enqueue_sync()
    tandemq_worker(queue, concurrency=1)
    assert steps == [
        "open shared", "count 1", "use done", "count 2", "use done", "close shared",
    ]  # fmt: skip


def test_a_provider_sees_the_failure_of_the_handler(queue: TaskQueue, tandemq_worker: Run) -> None:
    def session() -> Iterator[int]:
        try:
            yield 1
        except ValueError as error:
            steps.append(f"rolled back: {error}")
            raise

    @queue.task(retry=Retry(1))
    def use(one: int = Depends(session)) -> None:
        raise ValueError("oh")

    use.enqueue_sync()
    assert tandemq_worker(queue).figures.failed == 1
    assert steps == ["rolled back: oh"]


def test_what_lives_with_the_worker_cannot_want_a_job(
    queue: TaskQueue, tandemq_server: Stage
) -> None:
    def wants(ctx: Context) -> str:
        return ctx.id

    @queue.task(retry=Retry(1))
    def use(it: str = Depends(wants, scope="app")) -> None: ...

    job = use.enqueue_sync()
    tandemq_server.run_until_idle(queue)
    with pytest.raises(JobFailed, match="cannot want the Context"):
        job.result(timeout=LONG)


def test_an_override_stands_for_a_provider(queue: TaskQueue, tandemq_worker: Run) -> None:
    @queue.task
    def use(seven: int = Depends(number)) -> int:
        steps.append(str(seven))
        return seven

    use.enqueue_sync()
    with queue.override(number, lambda: 8):
        tandemq_worker(queue)
        assert use() == 8
    assert use() == 7
    assert steps == ["8", "8", "number", "7"]


def test_middleware_and_lifespan_go_around(queue: TaskQueue, tandemq_worker: Run) -> None:
    @queue.lifespan
    async def life() -> AsyncIterator[None]:
        steps.append("start")
        yield
        steps.append("stop")

    @queue.middleware
    async def outer(ctx: Context) -> AsyncIterator[None]:
        steps.append(f"before {ctx.name}")
        try:
            yield
        except ValueError as error:
            steps.append(f"saw {error}")
            raise

    @queue.task(retry=Retry(1))
    def fails() -> None:
        raise ValueError("oh")

    fails.enqueue_sync()
    tandemq_worker(queue)
    assert steps == ["start", "before fails", "saw oh", "stop"]
    with pytest.raises(BadOption, match="cannot be called"):
        queue.middleware(5)  # type: ignore[type-var]


def test_schedules_are_declared_when_a_worker_starts(
    queue: TaskQueue, tandemq_server: Stage
) -> None:
    @queue.cron(
        "0 9 * * *", tz="Europe/Rome", missed="once", max_lateness="2h", retry=Retry(4), timeout=5
    )
    def report() -> None: ...

    tandemq_server.run_until_idle(queue)
    (cron,) = tandemq_server.client.queue(queue.name).schedules.list()
    assert cron["name"] == "emails:report"
    assert (cron["schedule"], cron["timezone"], cron["jobName"]) == (
        "0 9 * * *", "Europe/Rome", "report",
    )  # fmt: skip
    with pytest.raises(TypeError, match="who gives it"):

        @queue.every("1h")
        def wants(a: int) -> None: ...


async def test_a_worker_waits_for_the_server_that_takes_its_schedules() -> None:
    async with Peer(lambda asked: {"ok": True, "cron": {}}) as peer:
        await peer.stop()
        queue = TaskQueue("late", peer.url, command_timeout=0.1, reconnect_delay=0.01)

        @queue.every("1h")
        def sweep() -> None: ...

        with pytest.raises(NotSent):
            await queue.declare()
        (declared,) = queue.repertoire.lifespans
        async with asyncio.timeout(20):
            server = asyncio.create_task(later(0.3, peer.listen))
            async with declared():  # type: ignore[attr-defined]
                assert server.done()
        await queue.close()


async def later(seconds: float, what: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await what()


def variadic(*args: int) -> None: ...


def positional(a: int, /) -> None: ...


@pytest.mark.parametrize(
    ("options", "function", "words"),
    [
        ({"key": "user:{who}"}, number, "has no 'who'"),
        ({"key": 5}, number, "key is 5"),
        ({"retry": 5}, number, "retry is 5"),
        ({"timeout": "soon"}, number, "timeout"),
        ({"prio": 1}, number, "did you mean priority"),
        ({}, variadic, "by name"),
        ({}, positional, "by name"),
        ({"name": ""}, lambda: None, "cannot be found|name"),
    ],
)
def test_what_a_task_cannot_be_is_refused(
    queue: TaskQueue, options: Any, function: Any, words: str
) -> None:
    if options.get("name") == "":
        queue.task(name="taken")(number)
        options = {"name": "taken"}
        words = "a name of its own"
    with pytest.raises((BadOption, TypeError), match=words):
        queue.task(**options)(function)


def test_depends_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match="give a function"):
        Depends(5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="'job' and 'app'"):
        Depends(number, scope="world")  # type: ignore[call-overload]


def test_what_a_provider_needs_is_looked_at_when_the_task_is_made(queue: TaskQueue) -> None:
    def missing(it: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def use(it: None = Depends(missing)) -> None: ...

    with pytest.raises(TypeError, match="name 'Nowhere' is not defined"):
        queue.task(use)

    def circle(it: int = 1) -> int:
        return it

    circle.__defaults__ = (Depends(circle),)
    with pytest.raises(TypeError, match="depends on itself"):
        queue.task(name="circle")(circle)
