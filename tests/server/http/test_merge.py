"""Path, query and body as the fields of a command."""

from __future__ import annotations

import pytest

from tandemq.model.errors import Malformed
from tandemq.server.http.merge import QUERY_FIELDS, queried, segment


@pytest.mark.parametrize(
    ("raw", "meant"),
    [("plain", "plain"), ("a%3Ab", "a:b"), ("%C3%A4", "ä"), ("%2525", "%25"), ("50%", "50%")],
)
def test_a_part_of_a_path_is_decoded_once(raw: str, meant: str) -> None:
    assert segment(raw) == meant


def test_a_part_of_a_path_that_is_no_text_is_refused() -> None:
    with pytest.raises(Malformed, match="no UTF-8"):
        segment("%ff")


def test_numbers_of_a_query_are_numbers_and_names_stay_names() -> None:
    query = "limit=5&offset=-1&id=007&big=12345678901234567890&name=a%20b&empty="
    assert queried(query) == {
        "limit": 5,
        "offset": -1,
        "id": "007",
        "big": "12345678901234567890",
        "name": "a b",
        "empty": "",
    }


def test_what_a_query_gives_repeatedly_is_a_list_with_commas() -> None:
    assert queried("state=waiting&state=delayed,active") == {"state": "waiting,delayed,active"}


@pytest.mark.parametrize("query", ["a=%ff", "&".join(f"a{n}=1" for n in range(QUERY_FIELDS + 1))])
def test_a_query_that_is_none_is_refused(query: str) -> None:
    with pytest.raises(Malformed, match="query"):
        queried(query)
