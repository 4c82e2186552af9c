"""``tandemq completion``: the script that lets a shell complete commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tandemq.cli.groups import Verbs
from tandemq.cli.output import Shown, Text
from tandemq.cli.verb import verb

_group = Verbs()


@verb(_group, link=None)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> Shown:
    """Print a script for a shell; it goes into the shell's start file.

    Example: tandemq completion bash > ~/.local/share/bash-completion/completions/tandemq
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    made = kind(ctx.find_root().command, {}, "tandemq", "_TANDEMQ_COMPLETE")
    variables = {
        "complete_func": made.func_name,
        "complete_var": made.complete_var,
        "prog_name": made.prog_name,
    }
    return Text(made.source_template % variables, "script")
