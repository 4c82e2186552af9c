"""How an asynchronous method becomes one that waits, with the same signature for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from tandemq.client.portal import LoopThread

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
I = TypeVar("I")  # noqa: E741


class Waits(Generic[I]):
    """What every twin is: an asynchronous object and the thread that runs it."""

    def __init__(self, inner: I, thread: LoopThread) -> None:
        self.inner, self._thread = inner, thread

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run work to its end and return its result."""
        return self._thread.run(work)

    def __repr__(self) -> str:
        return repr(self.inner)


class Blocking(Generic[P, R]):
    """A method of a twin: it calls the method of the same name of the asynchronous object."""

    def __init__(
        self,
        method: Callable[..., Coroutine[Any, Any, Any]],
        made: Callable[[Any, LoopThread], R] | None = None,
    ) -> None:
        """``made`` turns what the method returns into its twin, where it has one."""
        self._name, self._made = method.__name__, made
        self.__doc__ = method.__doc__
        self.__wrapped__ = method

    @overload
    def __get__(self, twin: None, owner: type) -> Blocking[P, R]: ...
    @overload
    def __get__(self, twin: Waits[Any], owner: type) -> Callable[P, R]: ...
    def __get__(self, twin: Waits[Any] | None, owner: type) -> Blocking[P, R] | Callable[P, R]:
        """Return the method of one twin, or what stands for it in the class."""
        if twin is None:
            return self
        method = getattr(twin.inner, self._name)

        def waits(*args: P.args, **kwargs: P.kwargs) -> R:
            found: Any = twin.wait(method(*args, **kwargs))
            result: R = found if self._made is None else self._made(found, twin._thread)
            return result

        return waits


def blocking(method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]]) -> Blocking[P, R]:
    """Return the twin of a method whose result needs no twin."""
    return Blocking(method)
