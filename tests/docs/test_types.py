"""Type checkers accept every Python example, as they would in a reader's editor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.page import FILE, blocks
from tests.docs.test_examples import PAGES, name

LENIENT = ("--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls")
TYPED = [
    page for page in PAGES if any(b.kind == "python" and b.reason is None for b in blocks(page))
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one run of the checker knows is of use to the next."""
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize("page", TYPED, ids=name)
def test_the_examples_of_a_page_have_right_types(page: Path, tmp_path: Path, cache: Path) -> None:
    for block in blocks(page):
        if block.kind == "python" and block.reason is None:
            match = FILE.match(block.text)
            file = tmp_path / (match["name"] if match else f"line_{block.line}.py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
    settings = ("--strict", *LENIENT, "--config-file=", f"--cache-dir={cache}")
    # In a process of its own: the checker would leave a higher recursion limit to other tests.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "."], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
