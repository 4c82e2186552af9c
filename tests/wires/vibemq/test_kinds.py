"""Types of frames: read in any spelling, and each has its row in the protocol page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tandemq.wires.vibemq.kinds import NAMES, SHOWN, Kind, number_of, shown

PAGE = Path(__file__).parents[3] / "docs" / "protocol" / "vibemq.md"


def test_names_are_those_of_the_reference() -> None:
    assert NAMES[Kind.CONNECT_ACK] == "ConnectAck"
    assert NAMES[Kind.ADMIN_GET_USER_PERMISSIONS] == "AdminGetUserPermissions"
    assert len(set(NAMES.values())) == len(Kind)


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "spell",
    [
        str,
        str.lower,
        str.upper,
        str.swapcase,
        lambda name: name[0].lower() + name[1:],
        " {} ".format,
    ],
    ids=["pascal", "lower", "upper", "swapped", "camel", "spaced"],
)
def test_a_name_is_known_in_any_letter_case(kind, spell) -> None:
    assert number_of(spell(NAMES[kind])) == kind


@pytest.mark.parametrize(
    "name", ["", "Publis", "Publish,Ack", "20", "Connect_Ack", "CONNECT ACK", "é"]
)
def test_what_is_no_name_is_unknown(name: str) -> None:
    assert number_of(name) is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Kind.PUBLISH_ACK, "PublishAck"), (77, "77"), (0, "Connect"), (-1, "-1"), ("tele", "tele")],
)
def test_a_type_is_shown_by_its_name_or_as_it_came(kind, words) -> None:
    assert shown(kind) == words


@pytest.mark.parametrize("kind", ["x" * 100_000, 10**4000])
def test_an_absurd_type_is_shown_in_part(kind) -> None:
    assert len(shown(kind)) == SHOWN


def test_the_protocol_page_has_every_type_with_its_number() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {name: str(number) for number, name in NAMES.items()}
