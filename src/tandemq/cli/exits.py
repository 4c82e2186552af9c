"""Exit codes, and which failure ends the process with which one."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from enum import IntEnum

import click

from tandemq.config import BadSetting
from tandemq.stores.base import StoreFailed, StoreUnusable


class Exit(IntEnum):
    """As in ``sysexits.h`` from 64 on; 2 is click's own."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 69
    INTERNAL = 70
    IO = 74
    CONFIG = 78


_OCCUPIED = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM)


class Misconfigured(click.ClickException):
    """A setting cannot be used."""

    exit_code = Exit.CONFIG


class Unavailable(click.ClickException):
    """A port cannot be had."""

    exit_code = Exit.UNAVAILABLE


class StoreTrouble(click.ClickException):
    """The store cannot be opened, read or written."""

    exit_code = Exit.IO


def failure(problem: BaseException) -> click.ClickException | None:
    """What a failed start or run means for the process; None for a defect of ours."""
    for cause in _causes(problem):
        kind = _kind(cause)
        if kind is not None:
            return kind(str(cause))
    return None


def _causes(problem: BaseException) -> Iterator[BaseException]:
    if isinstance(problem, BaseExceptionGroup):
        for part in problem.exceptions:
            yield from _causes(part)
    else:
        yield problem


def _kind(cause: BaseException) -> type[click.ClickException] | None:
    if isinstance(cause, BadSetting | socket.gaierror):
        return Misconfigured
    if isinstance(cause, StoreFailed | StoreUnusable):
        return StoreTrouble
    if isinstance(cause, OSError):
        return Unavailable if cause.errno in _OCCUPIED else StoreTrouble
    return None
