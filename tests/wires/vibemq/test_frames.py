"""How a message is handed out: in the form of its peer, if that peer can read it."""

from __future__ import annotations

import json
import re

import pytest

from tandemq.wires.vibemq.binary_codec import form
from tandemq.wires.vibemq.frames import MAX_MESSAGE, Form, Frame, Unreadable, Unsendable, fresh_id
from tandemq.wires.vibemq.json_codec import CAMEL, PASCAL
from tandemq.wires.vibemq.kinds import Kind

FORMS = {
    "json": PASCAL,
    "json camel": CAMEL,
    "binary": form(),
    "binary 1.0": form(flagged=False),
    "gzip": form(algorithm="gzip", threshold=1024),
}
EACH = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def message(payload: bytes | None, headers: dict[str, str] | None = None, id: str = "m") -> Frame:
    return Frame(Kind.DELIVER, id, "q", payload, headers)


def test_an_id_is_as_the_reference_makes_them() -> None:
    assert re.fullmatch("[0-9a-f]{32}", fresh_id())
    assert len({fresh_id() for _ in range(1000)}) == 1000


def test_what_is_unreadable_says_whom_to_tell() -> None:
    assert (Unreadable("why").id, Unreadable("why").lost) == (None, False)
    assert str(Unreadable("why", "m", lost=True)) == "why"


@EACH
def test_a_message_is_a_frame_like_any_other(form: Form) -> None:
    assert form.deliver(message(b"[1]", {"a": "b"})) == form.write(message(b"[1]", {"a": "b"}))


def test_equal_peers_have_one_form() -> None:
    assert form(True, "gzip", 5) is form(True, "gzip", 5)
    assert len({form(), form(True), form(False), form(True, "gzip", 5), form(True, "gzip", 6)}) == 5


@pytest.mark.parametrize("name", [name for name in FORMS if name != "gzip"])
def test_a_frame_of_the_largest_size_fits_and_one_byte_more_does_not(name: str) -> None:
    form = FORMS[name]
    room = MAX_MESSAGE - (len(form.write(message(b'""'))) - form.head)
    said = form.deliver(message(b'"%b"' % (b"x" * room)))
    assert len(said) - form.head == MAX_MESSAGE == int.from_bytes(said[:4], "big")
    assert form.fits(said)
    assert not form.fits(said + b"x")
    with pytest.raises(Unsendable, match="1048577 bytes, more than 1048576"):
        form.deliver(message(b'"%b"' % (b"x" * (room + 1))))


def test_a_large_message_that_compresses_well_can_be_handed_out() -> None:
    payload = b'"%b"' % (b"x" * 2 * MAX_MESSAGE)
    assert len(FORMS["gzip"].deliver(message(payload))) < 10_000
    with pytest.raises(Unsendable):
        FORMS["binary"].deliver(message(payload))


@EACH
def test_a_payload_is_as_deep_as_its_reader_goes_and_no_deeper(form: Form) -> None:
    deepest = b"[" * form.depth + b"]" * form.depth
    form.deliver(message(deepest))
    with pytest.raises(Unsendable, match=f"deeper than {form.depth}"):
        form.deliver(message(b"[%b]" % deepest))


def test_the_frame_around_a_json_payload_counts() -> None:
    assert (PASCAL.depth, form().depth) == (63, 64)


@EACH
@pytest.mark.parametrize(
    "frame",
    [
        message(None, id="\ud800"),
        message(None, {"k": "v\udc00"}),
        message(None, {"\ud800": "v"}),
        Frame(Kind.DELIVER, "m", "\ud800"),
    ],
    ids=["id", "value", "key", "queue"],
)
def test_half_a_character_cannot_be_handed_out(form: Form, frame: Frame) -> None:
    with pytest.raises(Unsendable, match="surrogate"):
        form.deliver(frame)


def test_a_payload_passes_through_byte_for_byte() -> None:
    payload = '{"n":12345678901234567890.10,"é":"\\u0041", "x" : [ ]}'.encode()
    assert payload in PASCAL.deliver(message(payload))
    assert payload in form().deliver(message(payload))
    assert json.loads(PASCAL.deliver(message(b"null"))[4:])["payload"] is None
