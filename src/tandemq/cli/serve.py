"""``tandemq serve``: settings in, a running server, an exit code out."""

from __future__ import annotations

import sys
import traceback

import click

from tandemq.cli.exits import Exit, failure
from tandemq.cli.options import configured, setting_options


@click.command()
@setting_options
def serve(file: str | None, compat_env: bool, **flags: object) -> None:
    """Run the server until it is told to stop.

    SIGTERM and Ctrl-C finish what is running, a second one stops at once. Settings come from
    flags, then TANDEMQ_* variables, then the TOML file; durations may be written 30s, sizes 64MiB.

    Example: tandemq serve --data ./jobs.db --token-file ./tokens
    """
    settings = configured(file, compat_env, flags).settings

    from tandemq.server import app, log

    log.set_up(settings.log_level, settings.log_format)
    try:
        code = app.serve(settings)
    except Exception as problem:
        known = failure(problem)
        if known is not None:
            raise known from problem
        traceback.print_exception(problem)
        code = Exit.INTERNAL
    sys.exit(code)
