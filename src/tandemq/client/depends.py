"""What handlers want besides their payload: the job's context, and dependencies.

A dependency is made by a provider: a function, or a generator that cleans up after its ``yield``,
asynchronous or not. Providers may want the context and further dependencies themselves. A value
lives as long as its scope: a job, or the whole run of a worker.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import (
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from tandemq.client.context import Context
from tandemq.client.errors import Misused

T = TypeVar("T")
Provider = Callable[..., Any]
Overrides = Mapping[Provider, Provider]
Kept = Literal["job", "app"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """A value that somebody else makes."""

    provider: Provider
    scope: Kept = "job"


@overload
def Depends(provider: Callable[..., AsyncIterator[T]], *, scope: Kept = ...) -> T: ...
@overload
def Depends(provider: Callable[..., Iterator[T]], *, scope: Kept = ...) -> T: ...
@overload
def Depends(provider: Callable[..., Coroutine[Any, Any, T]], *, scope: Kept = ...) -> T: ...
@overload
def Depends(provider: Callable[..., T], *, scope: Kept = ...) -> T: ...
def Depends(provider: Provider, *, scope: Kept = "job") -> Any:  # noqa: N802 - reads as a type does
    """Let a parameter be filled by a provider: ``mailer: Mailer = Depends(get_mailer)``.

    It is made for each job and given up with it; with ``scope="app"`` once for the run of a
    worker (or of each process that runs handlers). ``Depends(Context)`` is the job in hand.

    Raises:
        TypeError, ValueError: the provider cannot be called, or there is no such scope.
    """
    if not callable(provider):
        raise TypeError(f"Depends({provider!r}): give a function that makes the value")
    if scope not in get_args(Kept):
        raise ValueError(f"scope is {scope!r}: there are 'job' and 'app'")
    return Dependency(provider, scope)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a function wants that is no payload: names of parameters, and what fills them."""

    contexts: tuple[str, ...] = ()
    values: dict[str, Dependency] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.contexts or self.values)

    @property
    def names(self) -> set[str]:
        return {*self.contexts, *self.values}


@lru_cache(maxsize=1024)
def needs_of(function: Callable[..., Any], *above: Provider) -> Needs:
    """Return what a function needs, by the annotations and defaults of its parameters.

    Raises:
        TypeError: an annotation, its own or that of a provider below it, cannot be resolved, or a
            provider needs itself; ``above`` are those that need it.
    """
    if function is Context:
        return Needs()
    if function in above:
        raise TypeError(f"{getattr(function, '__qualname__', function)} depends on itself")
    hints = hints_of(function)
    contexts, values = [], {}
    for name, parameter in signature_of(function).parameters.items():
        dependency = _dependency(hints.get(name), parameter.default)
        if _is_context(hints.get(name)) or (dependency and dependency.provider is Context):
            contexts.append(name)
        elif dependency is not None:
            needs_of(dependency.provider, *above, function)
            values[name] = dependency
    return Needs(tuple(contexts), values)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature; what has none, as some classes of C, takes nothing."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature()


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function as types.

    Raises:
        TypeError: one names what is not there at run time.
    """
    is_class = isinstance(function, type)
    target: Any = vars(function).get("__init__", int) if is_class else inspect.unwrap(function)
    if not inspect.isroutine(target) and not is_class:
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as missing:
        raise TypeError(
            f"an annotation of {getattr(function, '__qualname__', function)} cannot be resolved:"
            f" {missing}. Define it at module level, and import it outside TYPE_CHECKING"
        ) from None
    except TypeError:
        return {}  # built in: nothing is annotated


def is_dependency(value: object) -> bool:
    """Whether a default stands for a value that somebody else makes."""
    return isinstance(value, Dependency)


class Scope:
    """Values that were made, each once, and what gives them up."""

    def __init__(self, overrides: Overrides, outer: Scope | None = None) -> None:
        """``outer`` holds what lives longer than this."""
        self._overrides, self._outer = overrides, outer
        self._made: dict[Provider, Any] = {}
        self._ends = AsyncExitStack()
        self._one = asyncio.Lock()  # two jobs may want the first value at once

    async def fill(self, needs: Needs, context: Context | None) -> dict[str, Any]:
        """Return the values for the parameters of a function.

        Raises:
            Misused: something that lives with the worker wants the context of a job.
        """
        if needs.contexts and context is None:
            raise Misused("a dependency of scope 'app' cannot want the Context of one job")
        found: dict[str, Any] = dict.fromkeys(needs.contexts, context)
        for name, dependency in needs.values.items():
            found[name] = await self._value(dependency, context)
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give everything up, the last first; ``error`` is raised at the ``yield`` of each."""
        await self._ends.__aexit__(kind, error, trace)

    async def _shared(self, dependency: Dependency) -> Any:
        async with self._one:
            return await self._value(dependency, None)

    async def _value(self, dependency: Dependency, context: Context | None) -> Any:
        if dependency.scope == "app" and self._outer is not None:
            return await self._outer._shared(dependency)
        provider = dependency.provider
        if provider not in self._made:
            chosen = self._overrides.get(provider, provider)
            self._made[provider] = await self._make(chosen, context)
        return self._made[provider]

    async def _make(self, provider: Provider, context: Context | None) -> Any:
        given = await self.fill(needs_of(provider), context)
        if inspect.isasyncgenfunction(provider):
            return await self._ends.enter_async_context(asynccontextmanager(provider)(**given))
        if inspect.isgeneratorfunction(provider):
            return self._ends.enter_context(contextmanager(provider)(**given))
        value = provider(**given)
        return await value if inspect.isawaitable(value) else value


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run something that does not have to wait, outside any loop.

    Raises:
        Misused: it has to wait all the same.
    """
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise Misused("a dependency has to wait for something: give that argument yourself")


def awaits(needs: Needs, overrides: Overrides) -> bool:
    """Whether what a function needs is made asynchronously, or what that needs, and so on."""
    for dependency in needs.values.values():
        provider = overrides.get(dependency.provider, dependency.provider)
        if inspect.isasyncgenfunction(provider) or inspect.iscoroutinefunction(provider):
            return True
        if awaits(needs_of(provider), overrides):
            return True
    return False


def _dependency(hint: Any, default: Any) -> Dependency | None:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((mark for mark in (default, *marks) if isinstance(mark, Dependency)), None)


def _is_context(hint: Any) -> bool:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return isinstance(plain, type) and issubclass(plain, Context)
