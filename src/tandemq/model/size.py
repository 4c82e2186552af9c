"""About how many bytes things take in an answer, so that none gets longer than a peer can read.

Counted is what clients can make long; an allowance stands for the rest. Nothing is less than it
takes, and little is much more.
"""

from __future__ import annotations

from collections.abc import Iterable

from tandemq.model.message import DEFAULTS, Letter, Links, Message, Options, Repeat, Run

ITEM = 5  # bytes: the longest head of a text or a list
NUMBER = 9  # of any number
MESSAGE = 900  # of all fields of a message that cannot be long
STEP = 160  # of an entry of its timeline, or of an attempt, besides the error
REPEAT = 200  # of how it comes again, besides the texts
DIGITS = 4  # of JSON, the shortest that are as long as a number here: a comma and 0.5


def text_bytes(value: str | None) -> int:
    """Return the length of a text in UTF-8."""
    if value is None:
        return 0
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def texts_bytes(values: Iterable[str | None]) -> int:
    """Return the length of a list of texts."""
    total = 0
    for value in values:
        total += text_bytes(value) + ITEM
    return total


def short_options(m: Message) -> bool:
    """Whether what a publisher asked for is surely short, its body excepted: cheap to ask."""
    o = m.options
    if o.tags:
        return False
    long = len(m.id) + len(o.unique_key or "") + len(o.group or "") + len(o.debounce_id or "")
    return long < MESSAGE


def message_bytes(m: Message) -> int:
    """Return the length of a message as it is shown, with its result and its last error."""
    size = MESSAGE + len(m.body) + text_bytes(m.id) + text_bytes(m.queue) + text_bytes(m.name)
    if m.options is not DEFAULTS:
        size += _options(m, m.options)
    if m.run is not None:
        size += _run(m.run)
    if m.links is not None:
        size += _links(m.links)
    if m.letter is not None:
        size += _letter(m, m.letter)
    return size if m.repeat is None else size + _repeat(m.repeat)


def _options(m: Message, o: Options) -> int:
    size = text_bytes(m.id) if o.custom_id else 0  # it is shown twice
    if o.tags:
        size += texts_bytes(o.tags)
    if o.unique_key or o.group or o.debounce_id:
        size += texts_bytes((o.unique_key, o.group, o.debounce_id))
    return size


def _run(run: Run) -> int:
    size = 0 if run.result is None else len(run.result)
    if run.error or run.progress_message:
        size += texts_bytes((run.error, run.progress_message))
    if run.history:
        size += sum(STEP + text_bytes(step.error) for step in run.history)
    return size if run.stack is None else size + texts_bytes(run.stack)


def _links(links: Links) -> int:
    return text_bytes(links.parent) + texts_bytes(links.depends_on) + texts_bytes(links.children)


def _letter(m: Message, letter: Letter) -> int:
    headers = letter.headers or {}
    texts = text_bytes(letter.id) + texts_bytes(headers) + texts_bytes(headers.values())
    return texts + len(m.body) * NUMBER // DIGITS - len(m.body)  # as MessagePack


def _repeat(repeat: Repeat) -> int:
    return REPEAT + texts_bytes((repeat.pattern, repeat.tz, repeat.job_id))
