"""The examples of the page on messages print what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.server import Server

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "messages.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def printed(example: str) -> list[str]:
    """The lines that an example says it prints."""
    said = re.findall(r"print\(.*\)  # (.*)", example)
    return [line for each in said for line in each.split(" | ")]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_says(
    number: int, server: Server, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setenv("TANDEMQ_URL", f"tandemq://127.0.0.1:{server.port}")
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == printed(EXAMPLES[number])
