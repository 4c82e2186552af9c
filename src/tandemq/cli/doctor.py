"""``tandemq doctor``: what could keep a server from running well here, before it does."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from tandemq import __version__
from tandemq.cli import output
from tandemq.cli.exits import Exit
from tandemq.cli.groups import Verbs
from tandemq.cli.options import configured, setting_options
from tandemq.cli.output import Rows, columns
from tandemq.cli.verb import current, verb
from tandemq.config import BadSetting, Settings

_group = Verbs()
OK, WARNING, ERROR = "ok", "warning", "error"
ROOM = 1 << 30  # bytes that should be free beside the data
BORN = 1_767_225_600  # s: 2026-01-01, before which no clock that is right stands
RECOMMENDED = "--requests-per-minute 60000 --messages-per-second 1000 --connections-per-minute 600"


class Finding(NamedTuple):
    """What was looked at, how it is, and what to do about it."""

    check: str
    status: str
    text: str


@verb(_group, link=None)
@setting_options
def doctor(file: str | None, compat_env: bool, **flags: object) -> None:
    """Check this machine and these settings; exit code 1 when something is wrong.

    It takes the flags of tandemq serve, reads the same file and variables, and changes nothing.

    Example: tandemq doctor --data ./tandemq.db --host 0.0.0.0 --token-file ./tokens
    """
    settings = configured(file, compat_env, flags).settings
    found = [finding for check in CHECKS for finding in check(settings)]
    output.show(
        Rows(columns("check", "status", "text"), [each._asdict() for each in found]),
        current().style,
    )
    if any(each.status == ERROR for each in found):
        click.get_current_context().exit(Exit.FAILED)


def _versions(_: Settings) -> Iterator[Finding]:
    python = f"tandemq {__version__} on Python {platform.python_version()}"
    yield Finding("versions", OK, f"{python}, {platform.system()} {platform.machine()}.")
    if platform.system() != "Linux":
        yield Finding("system", WARNING, "Linux is the platform for production.")
    if find_spec("uvloop") is None:
        text = "uvloop is not installed: pip install 'tandemq[fast]' makes a server faster."
        yield Finding("loop", WARNING, text)


def _sqlite(_: Settings) -> Iterator[Finding]:
    from tandemq.stores.sqlite.connection import OLDEST

    if sqlite3.sqlite_version_info < OLDEST:
        text = f"SQLite {sqlite3.sqlite_version} is too old; {OLDEST[0]}.{OLDEST[1]} is needed."
        yield Finding("sqlite", ERROR, text)
    else:
        yield Finding("sqlite", OK, f"SQLite {sqlite3.sqlite_version}.")


def _data(settings: Settings) -> Iterator[Finding]:
    """Look at the data file and its folder."""
    from tandemq.cli.backup import checked, reader
    from tandemq.stores.base import StoreUnusable
    from tandemq.stores.sqlite.connection import check_place

    if settings.data == "memory":
        yield Finding("data", WARNING, "Nothing is kept: --data FILE keeps it.")
        return
    path = Path(settings.data)
    try:
        check_place(path)
    except StoreUnusable as problem:
        yield Finding("data", ERROR, str(problem))
        return
    yield _folder(path.absolute().parent)
    if not path.exists():
        yield Finding("data", OK, f"{path} does not exist yet; the server makes it.")
        return
    try:
        with closing(reader(path)) as db:
            facts = checked(db, path, quick=True)
    except (click.ClickException, sqlite3.Error) as problem:
        said = problem.message if isinstance(problem, click.ClickException) else str(problem)
        yield Finding("data", ERROR, said)
        return
    messages = output.counted(facts["messages"], "message")
    yield Finding("data", OK, f"{path} is whole: {messages}, schema {facts['schemaVersion']}.")
    if path.stat().st_mode & 0o004:
        text = f"{path} can be read by everybody on this machine: chmod o-r {path}."
        yield Finding("permissions", WARNING, text)


def _folder(folder: Path) -> Finding:
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("folder", ERROR, f"{folder} is not writable for this user.")
    free = shutil.disk_usage(folder).free
    status = OK if free >= ROOM else WARNING
    return Finding("folder", status, f"{output.amount(free)} are free in {folder}.")


def _descriptors(settings: Settings) -> Iterator[Finding]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most, wanted = hard * 8 // 10, settings.max_connections
    if hard == resource.RLIM_INFINITY or most >= wanted:
        yield Finding("descriptors", OK, f"Enough for {output.counted(wanted, 'connection')}.")
        return
    text = (
        f"The limit of {hard:,} descriptors allows {most:,} connections instead of {wanted:,}: "
        "raise it (LimitNOFILE of systemd, ulimit -Hn), or lower --max-connections."
    )
    yield Finding("descriptors", WARNING, text)


def _ports(settings: Settings) -> Iterator[Finding]:
    named = {"port": settings.port, "http-port": settings.http_port}
    named |= {"broker-port": settings.broker_port, "health-port": settings.health_port}
    for name, port in named.items():
        if port:
            yield _port(name, settings.host, port)


def _port(name: str, host: str, port: int) -> Finding:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as problem:
        return Finding(name, ERROR, f"{host} is no address of this machine: {problem}.")
    with closing(socket.socket(family, kind)) as each:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            each.bind(address)
        except OSError as problem:
            text = f"{host}:{port} cannot be had: {problem.strerror}. A server may run already."
            return Finding(name, WARNING, text)
    return Finding(name, OK, f"{host}:{port} is free.")


def _public(settings: Settings) -> Iterator[Finding]:
    """Look at what everybody can reach who reaches this machine."""
    if settings.on_loopback:
        yield Finding("address", OK, f"Only this machine reaches {settings.host}.")
        return
    if settings.insecure and not (settings.tokens or settings.token_file):
        text = "Everybody who reaches this address may do everything: give --token-file."
        yield Finding("access", ERROR, text)
    else:
        yield Finding("access", OK, "Whoever comes has to prove who it is.")
    if settings.tls_cert is None:
        text = "Tokens and data travel unencrypted: give --tls-cert and --tls-key."
        yield Finding("tls", WARNING, text)
    limits = (settings.requests_per_minute, settings.messages_per_second)
    if not all((*limits, settings.connections_per_minute)):
        text = f"Nothing limits how much one client asks for; sensible values: {RECOMMENDED}."
        yield Finding("rates", WARNING, text)


def _certificate(settings: Settings) -> Iterator[Finding]:
    from tandemq.server.tls import ServerCertificate

    try:
        certificate = ServerCertificate.of(settings)
    except BadSetting as problem:
        yield Finding("certificate", ERROR, str(problem))
        return
    if certificate is not None:
        yield Finding("certificate", OK, f"{settings.tls_cert} can be used.")


def _clock(settings: Settings) -> Iterator[Finding]:
    now = time.time()
    if now < BORN:
        text = f"It is not {output.local(now * 1000)}: set the clock, or run a time service."
        yield Finding("clock", ERROR, text)
        return
    written = 0.0
    with suppress(OSError):
        written = Path(settings.data).stat().st_mtime
    if written > now + 60:
        text = f"The data was written at {output.local(written * 1000)}, which is yet to come."
        yield Finding("clock", WARNING, text)
        return
    yield Finding("clock", OK, f"It is {output.rfc3339(now * 1000)}.")


def _memory(settings: Settings) -> Iterator[Finding]:
    from tandemq.server.bounds import memory

    most = memory()
    if settings.max_memory > most * 8 // 10:
        text = (
            f"--max-memory {output.amount(settings.max_memory)} is more than 80 % of "
            f"{output.amount(most)}: the system may end the server first."
        )
        yield Finding("memory", WARNING, text)
        return
    used = settings.max_memory or most // 2
    yield Finding("memory", OK, f"Messages may take {output.amount(used)}.")


CHECKS = (
    _versions, _sqlite, _data, _descriptors, _memory, _ports, _public, _certificate, _clock,
)  # fmt: skip
