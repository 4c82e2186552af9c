"""``tandemq user`` and ``tandemq token``: who may do what."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Done, Rows, Shown, columns
from tandemq.cli.types import STDIN
from tandemq.cli.verb import present, verb
from tandemq.model.permission import Operation

USERS = columns("name", "superuser", "permissions", "tokens", "createdAt")
TOKENS = columns("id", "name", "note", "createdAt")


@click.group(cls=Verbs, aliases={"add": "create", "remove": "delete", "show": "list"})
def user() -> None:
    """Add and remove users, and say what each may do. Superusers only."""


@click.group(cls=Verbs, aliases={"add": "create", "delete": "revoke"})
def token() -> None:
    """Make and revoke tokens that stand for users. Superusers only."""


def password_option(command: Any) -> Any:
    """Add the way to give a password that others cannot read from the command line."""
    return click.option(
        "--password-file",
        metavar="FILE",
        help="File that holds the password, - for standard input. [default: ask]",
    )(command)


def password(file: str | None) -> str:
    """Read a password from a file, or ask for it twice; its last line end does not count.

    Raises:
        UsageError: there is no terminal to ask on, or the file cannot be read.
    """
    if file is None:
        if not sys.stdin.isatty():
            raise click.UsageError("There is no terminal to ask on: give --password-file.")
        said: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return said
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"--password-file {file} cannot be read: {problem}") from None
    return text.removesuffix("\n").removesuffix("\r")


@verb(user, "list")
def list_users(server: Server) -> Shown:
    """List the users and what was granted to each.

    Example: tandemq user list --json
    """
    return Rows(USERS, server.call("ListUsers")["users"], "There is no user.")


@verb(user)
@click.argument("name")
@password_option
@click.option("--superuser", is_flag=True, help="May do everything.")
def create(server: Server, name: str, password_file: str | None, superuser: bool) -> Shown:
    """Add a user, who may do nothing yet.

    Example: tandemq user create shop --password-file ./shop.password
    """
    secret = password(password_file)
    server.call("CreateUser", name=name, password=secret, superuser=superuser)
    kind = "superuser" if superuser else "user"
    return Done(f"Made {kind} {name}.", {"name": name, "superuser": superuser})


@verb(user, asks="Delete user {name}, with its tokens, and end its connections?")
@click.argument("name")
def delete(server: Server, name: str) -> Shown:
    """Remove a user; its connections end.

    Example: tandemq user delete shop --yes
    """
    server.call("DeleteUser", name=name)
    return Done(f"Deleted user {name}.", {"name": name})


@verb(user, "password")
@click.argument("name")
@password_option
def change_password(server: Server, name: str, password_file: str | None) -> Shown:
    """Give a user another password; the user's other connections end.

    Example: tandemq user password shop --password-file -
    """
    server.call("SetPassword", name=name, password=password(password_file))
    return Done(f"{name} has another password.", {"name": name})


@verb(user)
@click.argument("name")
@click.argument("pattern")
@click.argument("operations", nargs=-1, type=click.Choice([str(each) for each in Operation], False))
def grant(server: Server, name: str, pattern: str, operations: tuple[str, ...]) -> Shown:
    """Allow a user operations, or all, with the queues that fit a pattern; * is any text.

    Example: tandemq user grant shop 'orders.*' Publish GetQueueInfo
    """
    asked = present({"operations": operations})
    held = server.call("GrantPermission", name=name, pattern=pattern, **asked)["operations"]
    text = f"{name} may do with {pattern}: {', '.join(held)}."
    return Done(text, {"name": name, "pattern": pattern, "operations": held})


@verb(user)
@click.argument("name")
@click.argument("pattern")
def revoke(server: Server, name: str, pattern: str) -> Shown:
    """Take back what was granted to a user for a pattern.

    Example: tandemq user revoke shop 'orders.*'
    """
    said = server.call("RevokePermission", name=name, pattern=pattern)["revoked"]
    text = f"Revoked {pattern} of {name}." if said else f"{name} has no grant for {pattern}."
    return Done(text, {"name": name, "pattern": pattern, "revoked": said})


@verb(token, "list")
@click.argument("name", required=False)
def list_tokens(server: Server, name: str | None) -> Shown:
    """List the tokens of a user, or of all, without their secrets.

    Example: tandemq token list shop
    """
    return Rows(
        TOKENS, server.call("ListTokens", **present({"name": name}))["tokens"], "There is no token."
    )


@verb(token, "create")
@click.argument("name")
@click.option("--note", help="What it is for.")
def create_token(server: Server, name: str, note: str | None) -> Shown:
    """Make a token for a user and print it; it is never shown again.

    Example: tandemq token create shop --note 'web server'
    """
    made = server.call("CreateToken", name=name, **present({"note": note}))
    return Done(made["token"], {key: made[key] for key in ("token", "id", "name", "note")})


@verb(token, "revoke", asks="Revoke token {id} of {name}?")
@click.argument("name")
@click.argument("id")
def revoke_token(server: Server, name: str, id: str) -> Shown:
    """Let a token stand for nobody any more; connections that came by it end.

    Example: tandemq token revoke shop 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --yes
    """
    server.call("RevokeToken", name=name, id=id)
    return Done(f"Revoked {id}.", {"id": id, "name": name})
