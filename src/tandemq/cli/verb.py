"""A verb: one function of a server and parsed arguments that returns what there is to show.

``verb`` adds the flags that every verb has, asks before something is destroyed, connects, prints
the result in the wanted shape, and turns every failure into one line and an exit code. Those flags
may also stand before the noun: ``tandemq --url ... job list``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import click

from tandemq.cli import output
from tandemq.cli.exits import Refused
from tandemq.cli.types import DURATION

Link = Literal["jobs", "broker"] | None
EVERYWHERE = ("url", "token", "timeout", "style", "colour", "sure")  # in the order of the help


class Common(NamedTuple):
    """The flags that every verb has."""

    url: str | None
    token: str | None
    timeout: int  # ms
    style: str  # people, json, jsonl or quiet
    colour: str  # auto, always or never
    sure: bool  # nothing is to be asked


def several(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return one decorator for several options, in the order in which the help lists them."""

    def added(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return added


def _style(flag: str, line: str) -> Callable[[Any], Any]:
    return click.option(f"--{flag}", "style", flag_value=flag, default=None, help=line)


style_options = several(
    _style("json", "Print one JSON document."),
    _style("jsonl", "Print JSON, one line for each row."),
    _style("quiet", "Print nothing but errors."),
    click.option(
        "--color",
        "colour",
        type=click.Choice(("auto", "always", "never")),
        default=None,
        help="Colour the output; auto looks at the terminal, NO_COLOR and FORCE_COLOR.",
    ),
)
link_options = several(
    click.option("--url", metavar="URL", help="Server, as tandemq://host:6789 or TANDEMQ_URL."),
    click.option("--token", metavar="TOKEN", help="Proof of who asks, or TANDEMQ_TOKEN."),
    click.option("--timeout", type=DURATION, help="Longest wait for an answer. [default: 30s]"),
)
sure_option = click.option(
    "-y", "--yes", "sure", is_flag=True, default=None, help="Do not ask before destroying."
)


class Verb(click.Command):
    """A command whose help keeps its own options apart from those that every verb has."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        every: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            line = param.get_help_record(ctx)
            if line is not None and isinstance(param, click.Option):
                (every if param.name in EVERYWHERE else own).append(line)
        for title, lines in (("Options", own), ("Options of every verb", every)):
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def verb(
    group: click.Group,
    name: str | None = None,
    *,
    asks: str = "",
    link: Link = "jobs",
) -> Callable[[Callable[..., Any]], click.Command]:
    """Register a function as a verb of a group.

    ``asks`` is the question before it, with the names of arguments in braces. The first argument
    of the function is a ``Server``; with ``link="broker"`` it is a coroutine function, and that is
    a connected ``Broker``; with ``link=None`` there is no such argument. A function that has
    nothing to show, since it has printed already, returns None.
    """

    def register(run: Callable[..., Any]) -> click.Command:
        body = click.pass_context(partial(_invoke, run, asks, link))
        body.__doc__ = run.__doc__
        body.__click_params__ = list(getattr(run, "__click_params__", ()))  # type: ignore[attr-defined]
        body = style_options(sure_option(body))
        if link:
            body = link_options(body)
        body.__click_params__.sort(key=lambda p: p.name not in EVERYWHERE)
        word = name or run.__name__.rstrip("_").replace("_", "-")
        command = click.command(word, cls=Verb)(body)
        group.add_command(command)
        return command

    return register


def _invoke(
    run: Callable[..., Any], asks: str, link: Link, ctx: click.Context, /, **given: Any
) -> None:
    common = common_of(ctx, given)
    ctx.color = output.wants_colour(common.colour)
    ctx.meta["tandemq.common"] = common
    if asks and not given.get("dry_run"):
        confirm(asks.format(**given), sure=common.sure)
    if link is None:
        shown = run(**given)
    else:
        from tandemq.cli import link as links

        shown = (links.asked if link == "jobs" else links.talked)(common, run, given)
    if shown is not None:
        output.show(shown, common.style)


def common_of(ctx: click.Context, given: dict[str, Any]) -> Common:
    """Take the common flags out of what was given; those before the noun count where none are."""
    early = ctx.find_root().params
    said = {}
    for name in EVERYWHERE:
        value = given.pop(name, None)
        said[name] = early.get(name) if value is None else value
    return Common(
        url=said["url"],
        token=said["token"],
        timeout=30_000 if said["timeout"] is None else said["timeout"],
        style=said["style"] or "people",
        colour=said["colour"] or "auto",
        sure=bool(said["sure"]),
    )


def present(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, under the names of the wire."""
    said = {key.rstrip("_"): value for key, value in options.items()}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in said.items()
        if value is not None and value != ()
    }


def current() -> Common:
    """Return the common flags of the verb that runs."""
    common: Common = click.get_current_context().meta["tandemq.common"]
    return common


def confirm(question: str, *, sure: bool) -> None:
    """Ask before something is destroyed; without a terminal nothing is.

    Raises:
        Refused: the answer was no.
        UsageError: there is nobody to ask.
    """
    if sure:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{question} There is no terminal to ask on: add --yes to do it.")
    if not click.confirm(output.printable(question), err=True):
        raise Refused("Nothing was changed.")
