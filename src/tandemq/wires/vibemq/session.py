"""The server's side of one VibeMQ connection, without its socket.

Make one with the wire that ``sniff`` found, and give it every byte from the first one on:

* ``receive(data)`` returns what the bytes complete, in order: requests (``requests.py``; acks that
  follow each other are one), ``Refusal``s, and ``Packed`` frames. Hand the latter to ``unpack``
  when their turn comes, not before: whether they may be opened depends on what came earlier, and
  opened they may be a thousand times as large. A refusal whose error is fatal is the last item;
  tell it, then close.
* ``answer(reply, ticket)`` is the good answer of the request with that ticket (its ``req_id``),
  ``reply`` being what its command returned. That of a Connect accepts it: from then on frames are
  written as was agreed, and compressed ones are read. Again for every further Connect that is
  accepted. ``late(effect)`` is the answer of a request that had waited.
* ``refuse(error, ticket)`` is the Error for a request or a ``Refusal``.
* ``goodbye(reason)`` is the Disconnect of a server.
* ``form.deliver(frame)`` is a message for this peer, ``frame`` coming from ``delivery``. It depends
  on nothing else, so a message for many is written once for each form::

      said = {form: form.deliver(frame) for form in {session.form for session in sessions}}

  It raises ``Unsendable`` for what no peer of that form can read: a dead letter, with that reason.

The server itself decides who may do what, and tells an unknown peer so: see ``Refusal``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import msgspec

from tandemq.commands.broker import Ack
from tandemq.commands.call import QueueShown
from tandemq.commands.table import BrokerRequest
from tandemq.model.body import well_formed
from tandemq.model.errors import (
    FrameTooLarge,
    Malformed,
    TandemqError,
    TooLarge,
    Undecodable,
)
from tandemq.model.outcome import Late
from tandemq.wires.framing import FrameDecoder
from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import binary_codec, compression, json_codec, requests, usual
from tandemq.wires.vibemq.compression import THRESHOLD
from tandemq.wires.vibemq.frames import MAX_MESSAGE, NACK, Form, Frame, Unreadable, fresh_id
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.queues import facts
from tandemq.wires.vibemq.requests import Refusal, Ticket
from tandemq.wires.wording import in_vibemq

LONGEST_ERROR: Final = 1000  # characters of its text
NOBODY: Final = Ticket(None)

_value = msgspec.json.Encoder().encode
_CONNECT_ACK, _DELIVER = Kind.CONNECT_ACK, Kind.DELIVER  # to look them up takes a moment


class Packed(NamedTuple):
    """A compressed frame that has not been looked into."""

    frame: bytes  # flag and body


def delivery(id: str, queue: str, payload: bytes, headers: dict[str, str] | None = None) -> Frame:
    """Return the fields of a message that is handed out; ``payload`` is JSON text, b"" for none."""
    return Frame(_DELIVER, id, queue, payload or None, headers)


class Session:
    """One connection's protocol state.

    Attributes:
        form: how frames are written to the peer.
        welcomed: a Connect was accepted.
        opened: the ticket of the frame that was unpacked last.
        nack: the peer may give messages back.
    """

    def __init__(
        self,
        wire: Wire,
        limit: int = MAX_MESSAGE,
        compressions: Collection[str] = compression.AVAILABLE,
        threshold: int = THRESHOLD,
    ) -> None:
        """``limit`` in bytes holds for a body as it is sent and for what it is compressed from."""
        self._json = wire is Wire.JSON
        self._flagged = wire is Wire.BINARY
        self._limit, self._compressions, self._threshold = limit, compressions, threshold
        self._frames = FrameDecoder(limit, 1 if self._json else 2, int(self._flagged))
        self._decode = json_codec.decode if self._json else binary_codec.decode
        self.form: Form = json_codec.PASCAL if self._json else binary_codec.form(self._flagged)
        self.welcomed = self.nack = False
        self.opened = NOBODY
        self._heard = False  # a first frame
        self._usual = False  # most frames are probably of the usual kinds
        self._lost = False  # nothing that follows can be trusted

    # -- from the peer -------------------------------------------------------------------------

    @property
    def mid_frame(self) -> bool:
        """Part of a frame has arrived."""
        return self._frames.mid_frame and not self._lost

    def receive(self, data: bytes) -> list[BrokerRequest | Refusal | Packed]:
        """Return what ``data`` completes, in order; a refusal whose error is fatal comes last."""
        found: list[BrokerRequest | Refusal | Packed] = []
        if self._lost:
            return found
        acknowledged: list[str] | None = None  # by what came last, if these were acks
        usually, look, ack = self._usual, usual.look, usual.UsualAck
        for body in self._frames.feed(data):
            said = look(body) if usually else None
            if acknowledged is not None and isinstance(said, ack):
                acknowledged.append(said.id)
                continue
            item = self._look(body) if said is None else usual.request(said)
            if type(item) is not Ack or not self.welcomed:
                acknowledged = None
            elif acknowledged is None:
                acknowledged = item.messages
            else:
                acknowledged += item.messages
                continue
            found.append(item)
            if type(item) is Refusal and item.error.fatal:
                return found
        if (size := self._frames.refused) is not None:
            self._lost = True
            small = Undecodable(f"Invalid frame: body length must be positive, not {size}.")
            large = FrameTooLarge(size, self._limit)
            found.append(Refusal(large if size > self._limit else small, Ticket(None)))
        return found

    def unpack(self, packed: Packed) -> BrokerRequest | Refusal:
        """Return what a compressed frame holds."""
        item = self._unpack(packed)
        self.opened = item.req_id
        return item

    def _unpack(self, packed: Packed) -> BrokerRequest | Refusal:
        if not self.welcomed:
            return self._give_up("Compressed frames are not read before a Connect is accepted.")
        flag, body = packed.frame[0], packed.frame[1:]
        try:
            return self._read(compression.inflate(flag, body, self._limit))
        except compression.Damaged as damage:
            return self._give_up(str(damage))

    def _look(self, body: bytes) -> BrokerRequest | Refusal | Packed:
        if not self._heard:
            self._heard = True
            self._usual = self._json
            if self._json and json_codec.is_camel(body):
                self.form = json_codec.CAMEL
        if not self._flagged:
            return self._read(body)
        if not body[0]:
            return self._read(body[1:])
        if body[0] in compression.FLAGS.values():
            return Packed(body)
        return self._give_up(f"Unknown compression algorithm in frame flags: 0x{body[0]:02X}.")

    def _read(self, body: bytes) -> BrokerRequest | Refusal:
        try:
            frame = self._decode(body)
        except Unreadable as why:
            if why.lost:
                return self._give_up(str(why), why.id)
            return Refusal(Malformed(str(why)), Ticket(why.id or None))
        return requests.read(frame, nack=self.nack)

    def _give_up(self, text: str, id: str | None = None) -> Refusal:
        self._lost = True
        return Refusal(Undecodable(text), Ticket(id))

    # -- to the peer ---------------------------------------------------------------------------

    def _welcome(self, connect: Ticket) -> bytes:
        """Accept a Connect; return its answer, written in the form that was agreed upon."""
        agreed = {}
        if self._flagged:
            algorithm = compression.agreed(connect.compressions, self._compressions)
            self.form = binary_codec.form(True, algorithm, self._threshold if algorithm else 0)
            if algorithm is not None:
                agreed["negotiated-compression"] = algorithm
        offered = (connect.extensions or "").lower().split(",")
        self.nack = NACK in map(str.strip, offered)
        if self.nack:
            agreed["negotiated-extensions"] = NACK
        self.welcomed = True
        return self.form.write(Frame(Kind.CONNECT_ACK, connect.id or "", headers=agreed or None))

    def answer(self, reply: Any, req: Ticket) -> bytes:
        """Return the good answer of a request; ``reply`` is anything that JSON can carry.

        Raises:
            TooLarge: no peer would read it.
        """
        kind, id = req.reply, req.id
        assert kind is not None, "there is no answer to this"
        assert id is not None, "what is answered had an id"
        if kind is _CONNECT_ACK:
            return self._welcome(req)
        if reply is None:
            return self.form.accept(kind, id, req.queue)
        value = facts(reply) if isinstance(reply, QueueShown) else reply
        said = self.form.write(Frame(kind, id, req.queue, _value(value)))
        if not self.form.fits(said):
            raise TooLarge(f"The answer is too large (max {MAX_MESSAGE} bytes).")
        return said

    def late(self, effect: Late) -> tuple[bytes, Ticket]:
        """Return the frame that answers a request which had waited, and its ticket."""
        reply, req = effect.reply, effect.req
        if isinstance(reply, TandemqError):
            return self.refuse(reply, req), req
        return self.answer(None if reply is True else reply, req), req

    def refuse(self, error: BaseException, req: Ticket = NOBODY) -> bytes:
        """Return the frame that tells of an error, with an id of its own where none is known."""
        code, text = in_vibemq(error)
        text = well_formed(text[:LONGEST_ERROR])
        return self.form.write(Frame(Kind.ERROR, req.id or fresh_id(), code=code, text=text))

    def goodbye(self, reason: str) -> bytes:
        """Return the frame that ends the connection from our side."""
        return self.form.write(Frame(Kind.DISCONNECT, fresh_id(), headers={"reason": reason}))
