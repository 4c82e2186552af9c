"""Exit codes, and which failure ends the process with which one.

Imported by every command, so what is heavy is imported where something has failed.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from enum import IntEnum
from signal import SIGPIPE

import click


class Exit(IntEnum):
    """As in ``sysexits.h`` from 64 on; 2 is click's own; 128 + n is the end by signal n."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNAUTHORISED = 4
    TIMED_OUT = 5
    PARTLY = 6  # a worker gave jobs back
    UNAVAILABLE = 69
    INTERNAL = 70
    IO = 74
    CONFIG = 78


_OCCUPIED = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM)


class Refused(click.ClickException):
    """The server refused, or what was asked for does not exist."""

    exit_code = Exit.FAILED


class Unreachable(click.ClickException):
    """There is no connection to a server, or it broke."""

    exit_code = Exit.UNREACHABLE


class Unauthorised(click.ClickException):
    """The server wants to know who asks, or who asks may not do this."""

    exit_code = Exit.UNAUTHORISED


class TimedOut(click.ClickException):
    """The answer did not come in time."""

    exit_code = Exit.TIMED_OUT


class Unread(click.ClickException):
    """Whoever read the output has gone; there is nobody to tell."""

    exit_code = 128 + SIGPIPE

    def __init__(self) -> None:
        super().__init__("nobody reads the output any more")

    def show(self, file: object = None) -> None:
        """Say nothing, and let nothing be left to write when the process ends."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
            return kind(_text(cause))
    return None


def _text(cause: BaseException) -> str:
    """What to print: the number of an error says nothing that its words do not."""
    if isinstance(cause, OSError) and cause.strerror and cause.filename is None:
        return cause.strerror
    return str(cause)


def _causes(problem: BaseException) -> Iterator[BaseException]:
    if isinstance(problem, BaseExceptionGroup):
        for part in problem.exceptions:
            yield from _causes(part)
    else:
        yield problem


def _kind(cause: BaseException) -> type[click.ClickException] | None:
    from socket import gaierror

    from tandemq.config import BadSetting
    from tandemq.stores.base import StoreFailed, StoreUnusable

    if isinstance(cause, BadSetting | gaierror):
        return Misconfigured
    if isinstance(cause, StoreFailed | StoreUnusable):
        return StoreTrouble
    if isinstance(cause, OSError):
        return Unavailable if cause.errno in _OCCUPIED else StoreTrouble
    return None
