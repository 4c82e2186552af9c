"""A group whose subcommands are imported when they are used, so that ``--help`` stays fast."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from tandemq.cli.exits import Unread
from tandemq.cli.groups import Verbs


class LazyGroup(Verbs):
    """``targets`` maps a subcommand to ``module:attribute`` and its line in the overview.

    An alias may stand for two words: ``push`` is ``job add``. ``moved`` maps a noun and a verb to
    the noun that has this verb.
    """

    def __init__(
        self,
        *args: Any,
        targets: Mapping[str, tuple[str, str]],
        moved: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.targets, self.moved = targets, moved or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        noun, _, verb = self.aliases.get(cmd_name, cmd_name).partition(" ")
        if noun not in self.targets:
            return None
        module, _, attribute = self.targets[noun][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        if verb:
            assert isinstance(command, click.Group), f"{noun} has no verbs"
            found = command.get_command(ctx, verb)
            assert found is not None, f"{cmd_name} stands for nothing"
            return found
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        moved = self.moved.get(" ".join(args[:2]))
        return super().resolve_command(ctx, args if moved is None else [moved, *args[1:]])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would say that the command has failed
            raise Unread from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.targets.items()])
