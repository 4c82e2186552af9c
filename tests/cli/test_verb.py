"""What holds for every verb: help with an example, one JSON document, questions, mistakes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.cli.shell import Shell
from tests.support.server import Server

from tandemq.cli.main import ALIASES, tandemq

SILENT = {"serve", "worker", "dev"}  # they run until they are stopped


def verbs() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its words."""

    def below(words: list[str], command: click.Command) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for name in command.list_commands(context):
                    inner = command.get_command(context, name)
                    assert inner is not None
                    yield from below([*words, name], inner)
        else:
            yield " ".join(words), command

    return below([], tandemq)


VERBS = dict(verbs())
each = pytest.mark.parametrize("name", VERBS)
asking = {name: c for name, c in VERBS.items() if name not in SILENT}

ID = "{job}"
WALK: dict[str, str] = {
    "job add": "walk 1",
    "job add-many": "walk [1,2]",
    "job get": ID,
    "job state": ID,
    "job result": ID,
    "job list": "walk",
    "job search": "--queue walk",
    "job explain": ID,
    "job logs": ID,
    "job wait": "{done}",
    "job cancel": "{job} -y",
    "job discard": "{job} -y",
    "job retry": "{dead}",
    "job promote": "{delayed}",
    "job delay": "{delayed} 5m",
    "job priority": "{job} 5",
    "job update": "{job} 2",
    "job pull": "walk",
    "job ack": "{active} 1",
    "job fail": "{active} oops",
    "job progress": "{active} 50",
    "job log": "{job} hello",
    "queue list": "",
    "queue show": "walk",
    "queue pause": "walk",
    "queue resume": "walk",
    "queue paused": "walk",
    "queue jobs": "walk",
    "queue drain": "walk -y",
    "queue clean": "walk -y",
    "queue obliterate": "walk -y",
    "queue promote": "walk",
    "queue limits": "walk",
    "queue set": "walk --concurrency 1000",
    "dlq list": "walk",
    "dlq show": "walk",
    "dlq replay": "walk",
    "dlq edit": "walk {dead} 3",
    "dlq purge": "walk -y",
    "dlq remove": "walk {dead} -y",
    "dlq config": "walk",
    "cron list": "",
    "cron show": "{cron}",
    "cron next": "{cron}",
    "cron add": "walk-cron walk --every 1d",
    "cron delete": "{cron} -y",
    "workers list": "",
    "workers stats": "",
    "workers register": "me walk",
    "workers unregister": "{worker}",
    "broker queues": "",
    "broker info": "{letters}",
    "broker create": "walk-made",
    "broker delete": "walk-made -y",
    "broker publish": "{letters} 1",
    "broker subscribe": "{letters} --for 200ms",
    "webhook list": "",
    "webhook add": "https://example.org/",
    "webhook remove": "{webhook} -y",
    "webhook enable": "{webhook}",
    "webhook disable": "{webhook}",
    "user list": "",
    "user create": "walker --password-file {password}",
    "user delete": "{user} -y",
    "user password": "{user} --password-file {password}",
    "user grant": "{user} *",
    "user revoke": "{user} *",
    "token list": "",
    "token create": "{user}",
    "token revoke": "{user} {token} -y",
    "stats": "",
    "metrics": "",
    "top": "",
    "ping": "",
    "health": "",
    "compact": "",
    "bench": "--jobs 10 --concurrency 2",
    "doctor": "--data memory --port 0 --http-port 0",
    "backup create": "{folder}/walk.db --data {data}",
    "backup verify": "{data}",
    "backup restore": "{copy} --data {folder}/restored.db",
    "config show": "",
    "config check": "",
    "config init": "",
    "commands": "",
    "completion": "bash",
    "version": "",
    "rate-limit set": "walk 1000000",
    "rate-limit clear": "walk",
    "concurrency set": "walk 1000",
    "concurrency clear": "walk",
}
"""How each verb is called once; words in braces are made for it by ``Made``."""


class Made:
    """Things for verbs to work on, each made when a verb asks for it."""

    def __init__(self, shell: Shell, server: Server, folder: Path) -> None:
        self.shell, self.folder, self.data = shell, folder, server.data
        self._made = {"folder": str(folder), "data": str(server.data)}

    def __getitem__(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = getattr(self, name)()
        return self._made[name]

    def job(self) -> str:
        return self.shell.add("walk")

    def delayed(self) -> str:
        return self.shell.add("walk", "1", "--delay", "1h")

    def active(self) -> str:
        self.shell.add("walk-active")
        taken: dict[str, Any] = self.shell.json("job", "pull", "walk-active")
        return str(taken["id"])

    def done(self) -> str:
        id = self.active()
        self.shell.text("job", "ack", id, "7")
        return id

    def dead(self) -> str:
        id = self.shell.add("walk")
        self.shell.text("job", "discard", id, "--yes")
        return id

    def cron(self) -> str:
        self.shell.text("cron", "add", "made", "walk", "--every", "1d")
        return "made"

    def worker(self) -> str:
        self.shell.text("workers", "register", "made", "walk")
        workers = self.shell.json("workers", "list")
        return str(workers[0]["id"]) if workers else "none"

    def webhook(self) -> str:
        return str(self.shell.json("webhook", "add", "https://example.org/made")["webhookId"])

    def letters(self) -> str:
        self.shell.text("broker", "publish", "letters", '{"n": 1}')
        return "letters"

    def password(self) -> str:
        (self.folder / "password").write_text("secret\n")
        return str(self.folder / "password")

    def user(self) -> str:
        self.shell.run("user", "create", "root", "--superuser", "--password-file", self["password"])
        self.shell.run("user", "create", "made", "--password-file", self["password"])
        return "made"

    def token(self) -> str:
        return str(self.shell.json("token", "create", self["user"])["id"])

    def copy(self) -> str:
        copy = str(self.folder / "copy.db")
        self.shell.text("backup", "create", copy, "--data", str(self.data))
        return copy


@each
def test_every_verb_has_a_help_that_ends_with_an_example_that_can_be_typed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("addresses.json", "tokens"):
        (tmp_path / file).write_text("[1]")
    told = re.search(r"^\s*Example: (.*)\Z", VERBS[name].help or "", re.MULTILINE | re.DOTALL)
    assert told is not None, "no example"
    example = shlex.split(re.split(r" [|>] ", " ".join(told[1].split()))[0])
    words = name.split()
    assert example[: len(words) + 1] == ["tandemq", *words]
    VERBS[name].make_context(name, example[len(words) + 1 :], resilient_parsing=False).close()


@each
def test_every_option_says_what_it_is_for(name: str) -> None:
    unsaid = {
        param.opts[0]
        for param in VERBS[name].params
        if isinstance(param, click.Option) and not param.help
    }
    assert not unsaid


def test_the_walk_leaves_no_verb_out() -> None:
    assert asking.keys() == WALK.keys()


@pytest.mark.parametrize("name", WALK)
def test_every_verb_prints_one_json_document(name: str, closed: Server, tmp_path: Path) -> None:
    shell = Shell(closed.port, token="sesame")
    made = Made(shell, closed, tmp_path)
    arguments = [
        re.sub(r"\{(\w+)\}", lambda m: made[m[1]], word) for word in shlex.split(WALK[name])
    ]
    done = shell.run(*name.split(), *arguments, "--json")
    if name == "workers unregister":  # a registration lasts as long as its connection
        assert (done.exit_code, done.stderr) == (1, "Error: Worker not found\n")
        return
    if name == "user create" and done.exit_code == 1:
        assert "first user has to be a superuser" in done.stderr or "exists" in done.stderr
        return
    assert done.exit_code == 0, done.output
    json.loads(done.stdout)
    quiet = shell.run(*name.split(), *arguments, "--quiet")
    assert quiet.stdout == ""


destroying = {name: line for name, line in WALK.items() if line.endswith("-y")}


@pytest.mark.parametrize("name", destroying)
def test_what_destroys_is_not_done_without_being_asked(name: str, shell: Shell) -> None:
    words = destroying[name].removesuffix("-y").format_map(dict.fromkeys(_names(), "x"))
    said = shell.fails(2, *name.split(), *words.split())
    assert "There is no terminal to ask on: add --yes to do it." in said


def _names() -> list[str]:
    return [name for name in vars(Made) if not name.startswith("_")]


def test_flags_may_stand_before_the_noun_and_later_ones_count(server: Server) -> None:
    here = f"127.0.0.1:{server.port}"
    nowhere = ["--url", "127.0.0.1:1"]
    runner = CliRunner()
    early = runner.invoke(tandemq, ["--url", here, "--json", "ping"])
    assert json.loads(early.stdout)["ok"] is True
    late = runner.invoke(tandemq, [*nowhere, "ping", "--url", here, "--quiet"])
    assert (late.exit_code, late.stdout) == (0, "")
    by_variable = runner.invoke(tandemq, ["ping"], env={"TANDEMQ_URL": here})
    assert by_variable.exit_code == 0


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_lead_somewhere(alias: str) -> None:
    done = CliRunner().invoke(tandemq, [alias, "--help"])
    assert done.exit_code == 0
    assert "Usage:" in done.output


MISTAKES = {
    "jbo list q": "Did you mean 'job'",
    "job lst q": "Did you mean 'list'",
    "job list q --sate failed": "--state",
    "job list q --state faild": "is not one of",
    "job list": "Missing argument 'QUEUE'",
    "job list a b": "unexpected extra argument",
    "job add q {": "is no JSON",
    "job add q hello": "A text is written in quotes",
    "job add q 1 --delay soon": "write one like 500ms",
    "job add q 1 --size-limit big": "write one like 1024",
    "job add-many q 1": "must be a JSON array",
    "job add-many q [] --id x": "cannot be given for many",
    "job progress x 200": "200 is not in the range",
    "queue set q": "Nothing to set",
    "queue set q --rate 1 --no-rate": "exclude each other",
    "cron add c q": "--pattern or --every",
    "cron add c q --every 1s --pattern x": "--pattern or --every",
    "user create bob": "give --password-file",
    "user create bob --password-file /nowhere": "cannot be read",
    "user grant bob * Fly": "is not one of",
    "webhook add http://x --event job.lost": "is not one of",
    "completion powershell": "is not one of",
    "ping --url ftp://x": "no scheme of ours",
    "ping --url tandemq://x:port": "write tandemq://",
    "ping --url 127.0.0.1:1/?pol=3": "there is no option pol",
    "ping --timeout never": "write one like 500ms",
    "ping --color blue": "is not one of",
    "bench --jobs 0": "is not in the range",
    "broker publish q 1 --priority urgent": "is not one of",
    "broker publish q 1 --header source": "write NAME=VALUE",
    "broker create q --mode all": "is not one of",
    "broker create q --overflow redirect-to-dlq": "needs enable_dead_letter_queue",
    "broker subscribe q --json": "add --count or --for",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_told_in_a_line_that_helps(typed: str, shell: Shell) -> None:
    said = shell.fails(2, *typed.split())
    assert MISTAKES[typed] in said


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("job get nobody", "Job not found"),
        ("job state nobody", "There is no job nobody"),
        ("job cancel nobody -y", "cannot be cancelled"),
        ("job retry nobody", "Job not found"),
        ("job ack nobody", "Job not found"),
        ("job pull nothing-there", "No job of nothing-there can be had"),
        ("job add a/b 1", "invalid characters"),
        ("dlq replay q nobody", "is no dead letter of q"),
        ("dlq show q nobody", "is no dead letter of q"),
        ("dlq edit q nobody 1", "is no dead letter of q"),
        ("dlq remove q nobody -y", "is no dead letter of q"),
        ("cron show nobody", "Cron job not found"),
        ("cron add c q --pattern nonsense", "Invalid cron expression"),
        ("cron add c q --pattern 0_0_*_*_* --tz Mars/Base", "Mars/Base"),
        ("webhook add http://127.0.0.1/", "cannot point to"),
        ("token create nobody", "not found"),
        ("user delete nobody -y", "not found"),
    ],
)
def test_what_the_server_refuses_is_one_line_and_code_1(
    typed: str, says: str, shell: Shell
) -> None:
    words = [word if word != "0_0_*_*_*" else "0 0 * * *" for word in typed.split()]
    said = shell.fails(1, *words)
    assert says in said
    assert said.count("\n") == 1
