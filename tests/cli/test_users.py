"""Users and tokens from the shell, and what they may do then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Shell
from tests.support.server import Server


@pytest.fixture
def root(closed: Server, tmp_path: Path) -> Iterator[Shell]:
    """Somebody who may do everything, on a server with a superuser."""
    shell = Shell(closed.port, token="sesame")
    if not shell.json("user", "list"):
        create(shell, "root", tmp_path, "--superuser")
    yield shell
    for user in shell.json("user", "list"):
        if not user["superuser"]:
            shell.text("user", "delete", user["name"], "--yes")


def create(shell: Shell, name: str, folder: Path, *options: str, secret: str = "secret") -> None:
    (folder / "secret").write_text(f"{secret}\n")
    shell.text("user", "create", name, "--password-file", str(folder / "secret"), *options)


def as_user(closed: Server, name: str, secret: str = "secret") -> Shell:
    shell = Shell(closed.port)
    shell._early = ["--url", f"tandemq://{name}:{secret}@127.0.0.1:{closed.port}"]
    return shell


def test_a_user_may_do_what_was_granted(root: Shell, closed: Server, tmp_path: Path) -> None:
    create(root, "shop", tmp_path)
    shop = as_user(closed, "shop")
    assert "Access denied" in shop.fails(4, "job", "add", "orders.new", "1")
    root.text("user", "grant", "shop", "orders.*", "Publish", "getqueueinfo")
    id = shop.add("orders.new")
    assert shop.json("job", "get", id)["queue"] == "orders.new"
    assert "Access denied" in shop.fails(4, "job", "cancel", id, "--yes")
    assert "Access denied" in shop.fails(4, "job", "add", "mail", "1")
    root.text("user", "revoke", "shop", "orders.*")
    shop.fails(4, "job", "add", "orders.new", "1")
    assert "no grant" in root.text("user", "revoke", "shop", "orders.*")


def test_a_password_is_asked_for_or_read_and_can_be_changed(
    root: Shell, closed: Server, tmp_path: Path
) -> None:
    create(root, "bob", tmp_path)
    root.text("user", "password", "bob", "--password-file", "-", input="other\n")
    as_user(closed, "bob").fails(4, "ping")
    assert as_user(closed, "bob", "other").run("ping").exit_code == 0


def test_a_token_stands_for_its_user_until_it_is_revoked(
    root: Shell, closed: Server, tmp_path: Path
) -> None:
    create(root, "bob", tmp_path)
    root.text("user", "grant", "bob", "*")
    made = root.json("token", "create", "bob", "--note", "of the build")
    assert root.text("token", "create", "bob").startswith("tq_")
    shell = Shell(closed.port, token=made["token"])
    shell.add("by-token")
    listed = root.json("token", "list", "bob")
    assert listed[0].items() >= {"id": made["id"], "note": "of the build"}.items()
    assert made["token"] not in str(listed)
    root.text("token", "revoke", "bob", made["id"], "--yes")
    shell.fails(4, "ping")


def test_only_superusers_administer(root: Shell, closed: Server, tmp_path: Path) -> None:
    create(root, "bob", tmp_path)
    root.text("user", "grant", "bob", "*")
    bob = as_user(closed, "bob")
    for command in ("user list", "token list", "token create bob", "stats", "workers list"):
        assert "Superuser" in bob.fails(4, *command.split())


def test_users_survive_in_a_table_for_people(root: Shell, tmp_path: Path) -> None:
    create(root, "bob", tmp_path)
    root.text("user", "grant", "bob", "mail", "Publish")
    lines = root.text("user", "list").splitlines()
    assert lines[0].split() == ["NAME", "SUPERUSER", "PERMISSIONS", "TOKENS", "CREATED", "AT"]
    assert '{"pattern":"mail","operations":["Publish"]}' in lines[-1]


def test_an_open_server_makes_no_users(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    arguments = (
        "user",
        "create",
        "eve",
        "--superuser",
        "--password-file",
        str(tmp_path / "secret"),
    )
    assert "open to everybody" in shell.fails(1, *arguments)
