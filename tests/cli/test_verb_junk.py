"""Whatever is typed, a verb ends with one of its exit codes and never with a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest
from tests.cli.shell import Shell
from tests.cli.test_verb import VERBS
from tests.support.server import Server, figure

ENDLESS = {"serve", "worker", "top", "bench"}
JUNK = (
    "", "q", "-1", "0", "1e999", "NaN", "\ud800", "a/b", "../x", "{}", "[1]", "null", "{", "@/etc",
    "@", "-", "x" * 3000, "é", "\x1b[2J", "1s", "9" * 30, "P1D", "*", "127.0.0.1", "true", "\n",
)  # fmt: skip
CODES = {0, 1, 2, 5, 74, 78}


def typed(chance: random.Random, name: str) -> list[str]:
    """A verb with arguments and options that may make sense."""
    words = name.split()
    for param in VERBS[name].params:
        if isinstance(param, click.Argument):
            words += [chance.choice(JUNK)] if chance.random() < 0.95 else []
        elif param.name not in ("url", "token", "timeout") and chance.random() < 0.25:
            words.append(chance.choice(param.opts + param.secondary_opts))
            if isinstance(param, click.Option) and not param.is_flag and param.nargs:
                words.append(value(chance, param))
    if name in ("broker subscribe", "job wait"):
        words += ["--for", "20ms"]
    return words


def value(chance: random.Random, option: click.Option) -> str:
    if isinstance(option.type, click.Choice) and chance.random() < 0.8:
        return str(chance.choice(list(option.type.choices)))
    return chance.choice(JUNK)


def test_nothing_that_is_typed_breaks_a_verb(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell, chance = Shell(server.port), random.Random(7)
    names = sorted(VERBS.keys() - ENDLESS)
    for _ in range(figure("TANDEMQ_JUNK", short=200, long=5_000)):
        words = typed(chance, chance.choice(names))
        done = shell.run(*words, "--timeout", "2s", input="")
        assert done.exit_code in CODES, (words, done.output)
        assert "Internal server error" not in done.output, words
