"""The files of the web page: what is served, with which headers, and what is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

from tandemq.server.http import ui

pytestmark = pytest.mark.skipif(not is_own(), reason="the page of this server is tested")

FILES = ui.files()
FOLDER = Path(ui.__file__).parent


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def test_the_page_is_served_with_what_keeps_it_safe(web: Web) -> None:
    status, text = web.get("/ui/")
    assert (status, text.startswith("<!doctype html>")) == (200, True)
    policy = web.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert web.headers["content-type"] == "text/html; charset=utf-8"
    assert web.headers["x-content-type-options"] == "nosniff"
    assert web.headers["x-frame-options"] == "DENY"
    assert web.headers["referrer-policy"] == "no-referrer"


def test_without_the_slash_it_leads_there_whatever_stands_before_it(web: Web) -> None:
    status, _ = web.get("/ui")
    assert (status, web.headers["location"]) == (307, "ui/")


@pytest.mark.parametrize("path", sorted(FILES))
def test_every_file_is_served_as_it_is(web: Web, path: str) -> None:
    status, text = web.get(f"/ui/{path}")
    assert (status, text.encode()) == (200, FILES[path].body)
    assert web.headers["content-type"] == FILES[path].type
    assert web.headers["etag"] == FILES[path].tag
    assert len(FILES[path].body) < 200_000


def test_what_has_not_changed_is_not_sent_again(web: Web) -> None:
    web.get("/ui/style.css")
    tag = web.headers["etag"]
    status, text = web.get("/ui/style.css", {"If-None-Match": tag})
    assert (status, text, web.headers["etag"]) == (304, "", tag)
    assert web.headers["cache-control"] == "no-cache"
    assert web.get("/ui/style.css", {"If-None-Match": '"other"'})[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "__init__.py",
        "vendor/README.md",
        "../face.py",
        "..%2fface.py",
        "%2e%2e/face.py",
        "app/../../face.py",
        "app",
        "app/",
        "vendor//preact.js",
        "/etc/passwd",
        "style.css%00",
        "index.html/",
    ],
)
def test_nothing_else_can_be_reached(web: Web, path: str) -> None:
    status, told = web.get(f"/ui/{path}")
    assert (status, told) == (404, {"ok": False, "error": "Not found"})


def test_the_page_holds_no_script_and_no_style_of_its_own() -> None:
    text = FILES["index.html"].body.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)", text) == []
    assert re.findall(r"<style|style=|\bon\w+=|javascript:", text) == []


def test_everything_that_is_imported_is_there_and_from_here() -> None:
    for path, file in FILES.items():
        if not path.endswith(".js"):
            continue
        text = file.body.decode()
        for name in re.findall(r"""(?:\bfrom|\bimport\(?)\s*["']([\w@./-]+)["']""", text):
            assert name.startswith("."), f"{path} imports {name}"
            found = (FOLDER / path).parent.joinpath(name).resolve()
            assert found.is_file(), f"{path} imports {name}"


def test_every_library_has_its_licence() -> None:
    told = (FOLDER / "vendor" / "README.md").read_text()
    for file in (FOLDER / "vendor").glob("*.js"):
        [row] = [line for line in told.splitlines() if f"`{file.name}`" in line]
        [licence] = re.findall(r"LICENSE-\w+\.txt", row)
        assert (FOLDER / "vendor" / licence).is_file()


@pytest.mark.parametrize("path", sorted(p for p in FILES if p.startswith("app/")))
def test_a_module_of_the_page_says_what_it_is_for_and_fits_on_a_screen_or_three(path: str) -> None:
    lines = FILES[path].body.decode().splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) <= 220
    assert max(map(len, lines)) <= 140
