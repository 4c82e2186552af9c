"""A function that runs jobs: where it runs, what it takes, and how it is found in a process."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, get_args

from tandemq.client.context import Context, Leased
from tandemq.client.depends import Needs, Scope, is_dependency, needs_of, signature_of
from tandemq.client.errors import BadOption
from tandemq.client.payload import Payload

Place = Literal["loop", "thread", "process"]


class Routine:
    """One handler.

    Attributes:
        place: where it runs.
        payload: how its arguments travel; None: it takes the context itself, and nothing else.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        pool: Place | None = None,
        *,
        as_task: bool = False,
        path: str | None = None,
    ) -> None:
        """``as_task``: its parameters are the job's data, by their names.

        Raises:
            TypeError: its signature cannot be that of a handler.
            BadOption: it cannot run there.
        """
        self.function = function
        self.is_async = _is_async(function)
        self.place = _place(function, pool, self.is_async)
        self.needs = needs_of(function) if as_task else _needs_of_handler(function)
        self.payload = Payload(function, self.needs) if as_task else None
        self._path = path
        if not as_task and not self.needs:
            _check_single(function)
        if self.place == "process":
            _ = self.path  # better now than with the first job

    @property
    def title(self) -> str:
        """What people call it."""
        return getattr(self.function, "__qualname__", None) or repr(self.function)

    @property
    def path(self) -> str:
        """Where another process finds it: ``module:name``.

        Raises:
            BadOption: it cannot be found by a name.
        """
        if self._path is None:
            self._path = path_of(self.function)
        return self._path

    def arguments(self, job: Leased, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the job gives to the function.

        Raises:
            Misfit: the job's data is not what the function takes.
        """
        if self.payload is not None:
            return (), self.payload.read(job.data)
        return ((), {}) if self.needs.contexts else ((context,), {})

    async def run(
        self,
        job: Leased,
        context: Context,
        scope: Scope | None,
        call: Callable[[Callable[[], Any]], Any],
    ) -> Any:
        """Run a job; ``call`` runs what is not asynchronous, ``scope`` makes what is wanted.

        Raises:
            Misfit: the job's data is not what the function takes.
            Others: what the function raises.
        """
        args, kwargs = self.arguments(job, context)
        if self.needs.values and scope is not None:
            kwargs.update(await scope.fill(self.needs, context))
        else:
            kwargs.update(dict.fromkeys(self.needs.contexts, context))
        if self.is_async:
            return await self.function(*args, **kwargs)
        return await call(lambda: self.function(*args, **kwargs))


def path_of(function: Callable[..., Any]) -> str:
    """Return where another process finds a function.

    Raises:
        BadOption: it cannot be found by a name.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        module = spec.name if spec is not None else None
    if not module or not name or "<" in name:
        raise BadOption(
            f"{name or function!r} cannot be found by other processes: define it at the top of a"
            " module that can be imported, not in the script that is run nor inside a function"
        )
    return f"{module}:{name}"


def load(path: str) -> Any:
    """Return what stands at ``module:name``.

    Raises:
        BadOption: there is nothing; ImportError and others if the module cannot be imported.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise BadOption(f"{path!r} is no path: write module:name, such as app:queue")
    found: Any = import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise BadOption(f"the module {module} has no {name}")
        found = getattr(found, part)
    return found


def _is_async(function: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _place(function: Callable[..., Any], pool: Place | None, is_async: bool) -> Place:
    if not callable(function):
        raise BadOption(f"{function!r} is no handler: give a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadOption(f"{function.__qualname__} is a generator: return the result instead")
    if pool is None:
        return "loop" if is_async else "thread"
    if pool not in get_args(Place):
        raise BadOption(f"pool is {pool!r}: there are 'loop', 'thread' and 'process'")
    if is_async and pool == "thread":
        raise BadOption("an asynchronous handler runs in the loop, or with pool='process' apart")
    if not is_async and pool == "loop":
        raise BadOption("this handler would block the loop: write it as async def, or leave pool")
    return pool


def _needs_of_handler(function: Callable[..., Any]) -> Needs:
    """Return what a handler needs beside the job in hand.

    One that takes nothing else may be annotated with a name that is local to where it was made.
    """
    try:
        return needs_of(function)
    except TypeError:
        if any(is_dependency(each.default) for each in signature_of(function).parameters.values()):
            raise
        return Needs()


def _check_single(function: Callable[..., Any]) -> None:
    """See to it that a handler takes the one argument it gets.

    Raises:
        TypeError: it does not.
    """
    try:
        signature_of(function).bind(None)
    except TypeError:
        raise TypeError(
            f"{getattr(function, '__qualname__', function)} must take one argument, the job in"
            " hand (a Context); functions with arguments of their own are tasks: @queue.task()"
        ) from None
