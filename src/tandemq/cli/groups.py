"""Groups of verbs: with aliases, and with a suggestion for what was mistyped."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click
from click.exceptions import NoSuchCommand


class Verbs(click.Group):
    """A noun; ``aliases`` are other words for its verbs, such as those of other products."""

    def __init__(self, *args: Any, aliases: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.aliases = dict(aliases or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which they are written

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(self.aliases.get(cmd_name, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as unknown:
            known = [*self.list_commands(ctx), *self.aliases]
            known = get_close_matches(unknown.command_name, known, 1) or known
            raise NoSuchCommand(unknown.command_name, possibilities=known, ctx=ctx) from None
