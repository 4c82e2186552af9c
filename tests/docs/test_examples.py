"""Every example of the documentation works."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.page import Reader, blocks, data_file
from tests.support.server import Server, clean_environment

from tandemq.cli.commands import page as page_of_commands

ROOT = Path(__file__).parents[2]
SHOWN_ELSEWHERE = {"messages.md"}  # tests/client/broker/test_broker_page.py runs it
FOLDERS = ("docs", "docs/how-to", "docs/migrate", "docs/explain")
PAGES = [ROOT / "README.md", *(p for f in FOLDERS for p in sorted((ROOT / f).glob("*.md")))]
RUN = [
    page
    for page in PAGES
    if page.name not in SHOWN_ELSEWHERE and any(b.reason is None for b in blocks(page))
]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_examples_of_a_page_work(
    page: Path, tmp_path: Path, new_server: Callable[..., Server]
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    server = new_server()
    file = data_file(page)
    if file is not None and file != "memory":
        server.data = folder / file
    server.start()
    url = f"tandemq://127.0.0.1:{server.port}"
    places = {"TANDEMQ_URL": url, "PORT": str(server.port), "HTTP_PORT": str(server.http_port)}
    reader = Reader(folder, {**clean_environment(), **places})
    try:
        for block in blocks(page):
            if block.reason is None:
                try:
                    reader.read(block)
                except AssertionError as wrong:
                    raise AssertionError(f"{name(page)}:{block.line}: {wrong}") from None
    finally:
        reader.close()


def test_the_page_of_commands_is_that_of_the_table() -> None:
    said = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert said == page_of_commands(), "run: tandemq commands --markdown > docs/commands.md"


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    folders = ("how-to", "explain", "migrate", "protocol")
    pages = [f"{f}/{p.name}" for f in folders for p in (ROOT / "docs" / f).glob("*.md")]
    assert not [page for page in pages if f"({page})" not in index]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_pages_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    broken = [t for t in targets if not os.path.exists(page.parent / t)]
    assert not broken
