"""How an asynchronous method becomes one that waits, with the same signature for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


class Twin(Protocol):
    """A sync object that stands for an asynchronous one."""

    @property
    def inner(self) -> Any:
        """The asynchronous object."""

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run work to its end; return its result, or the twin of it."""


class Blocking(Generic[P, R]):
    """A method of a twin: it calls the method of the same name of the asynchronous object."""

    def __init__(self, method: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self._name = method.__name__
        self.__doc__ = method.__doc__
        self.__wrapped__ = method

    @overload
    def __get__(self, twin: None, owner: type) -> Blocking[P, R]: ...
    @overload
    def __get__(self, twin: Twin, owner: type) -> Callable[P, R]: ...
    def __get__(self, twin: Twin | None, owner: type) -> Blocking[P, R] | Callable[P, R]:
        """Return the method of one twin, or what stands for it in the class."""
        if twin is None:
            return self
        method = getattr(twin.inner, self._name)

        def waits(*args: P.args, **kwargs: P.kwargs) -> R:
            result: R = twin.wait(method(*args, **kwargs))
            return result

        return waits


def blocking(method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]]) -> Blocking[P, R]:
    """Return the twin of a method whose result needs no twin."""
    return Blocking(method)
