"""The client's side of one VibeMQ connection, without its socket.

Make one for each connection, so that no byte of an old one is ever read as part of a new one:

* ``connect(...)`` is the first frame; no other may be sent before its answer has come, and
  ``welcome(answer)`` takes in what was agreed.
* ``ask(kind, ...)`` returns the id of a request and its bytes; its answer has the same id. The id
  of a publish becomes that of the message.
* ``ack(id)`` and ``give_back(id)`` settle a message; nothing ever answers them.
* ``receive(data)`` returns the frames that the bytes complete. One that is whole but holds nothing
  that we can read comes as an Error with the id that it names, so that who waits for it is told.
  Once ``broken`` says why, nothing that follows can be read: close the connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tandemq.wires.framing import FrameDecoder
from tandemq.wires.vibemq import binary_codec, compression, json_codec
from tandemq.wires.vibemq.compression import THRESHOLD
from tandemq.wires.vibemq.frames import MAX_MESSAGE, NACK, Form, Frame, Unreadable, fresh_id
from tandemq.wires.vibemq.kinds import Kind

OFFER: Final = (compression.BROTLI, compression.GZIP)  # falling in preference
UNREADABLE: Final = "UNREADABLE"  # the code of an Error that is ours, not the server's


class Caller:
    """One connection's protocol state.

    Attributes:
        form: how frames are written.
        nack: the server takes messages back.
        compressed: the algorithm that was agreed on.
        broken: why nothing more can be read; None while all is well.
    """

    def __init__(
        self,
        *,
        binary: bool = False,
        compressions: Sequence[str] = OFFER,
        threshold: int = THRESHOLD,
        limit: int = MAX_MESSAGE,
        nack: bool = True,
    ) -> None:
        """``limit`` in bytes is for a body as it comes and for what it is compressed from.

        ``compressions`` and ``nack`` are what is offered to the server.
        """
        self._binary, self._threshold, self._limit = binary, threshold, limit
        self._offer = [name for name in compressions if name in compression.AVAILABLE]
        self._offers_nack = nack
        self._frames = FrameDecoder(limit, 2 if binary else 1, int(binary))
        self._decode = binary_codec.decode if binary else json_codec.decode
        self.form: Form = binary_codec.form() if binary else json_codec.PASCAL
        self.nack = False
        self.compressed: str | None = None
        self.broken: str | None = None

    # -- to the server -------------------------------------------------------------------------

    def connect(
        self, *, token: str | None = None, username: str | None = None, password: str | None = None
    ) -> tuple[str, bytes]:
        """Return the frame that introduces us, never compressed, and its id."""
        said = {
            "authToken": token,
            "authUsername": username,
            "authPassword": password,
            "supported-compression": ",".join(self._offer) if self._binary else None,
            "supported-extensions": NACK if self._offers_nack else None,
        }
        return self.ask(Kind.CONNECT, headers={k: v for k, v in said.items() if v} or None)

    def welcome(self, answer: Frame) -> None:
        """Take in what a ConnectAck agrees to."""
        headers = answer.headers or {}
        self.nack = self._offers_nack and headers.get("negotiated-extensions") == NACK
        algorithm = headers.get("negotiated-compression")
        if self._binary and algorithm in self._offer:
            self.compressed = algorithm
            self.form = binary_codec.form(True, algorithm, self._threshold)

    def ask(
        self,
        kind: Kind,
        queue: str | None = None,
        payload: bytes | None = None,
        headers: dict[str, str] | None = None,
        id: str | None = None,
    ) -> tuple[str, bytes]:
        """Return the id of a request and its bytes; ``payload`` is JSON text.

        Raises:
            Unsendable: a text in it has no form on this wire.
        """
        id = id or fresh_id()
        return id, self.form.write(Frame(kind, id, queue, payload, headers))

    def ack(self, id: str) -> bytes:
        """Return the frame that says that a message is done."""
        return self.form.write(Frame(Kind.ACK, id))

    def give_back(self, id: str, delay_ms: int = 0) -> bytes:
        """Return the frame that gives a message back for another try, at the soonest after a while.

        Only for a server that knows it (``nack``).
        """
        headers = {"delay": str(delay_ms)} if delay_ms else None
        return self.form.write(Frame(Kind.NACK, id, headers=headers))

    # -- from the server -----------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Frame]:
        """Return the frames that ``data`` completes, in order."""
        found: list[Frame] = []
        if self.broken is not None:
            return found
        for body in self._frames.feed(data):
            try:
                found.append(self._read(body))
            except (Unreadable, compression.Damaged) as why:
                text = f"The server sent a frame that cannot be read: {why}"
                if isinstance(why, compression.Damaged) or why.lost:
                    self.broken = text
                    return found
                found.append(Frame(Kind.ERROR, why.id or "", code=UNREADABLE, text=text))
        if (size := self._frames.refused) is not None:
            bytes_ = f"{size} bytes (max {self._limit}) with {data[:12]!r}"
            self.broken = f"The server announced a frame of {bytes_}."
        return found

    def _read(self, body: bytes) -> Frame:
        if not self._binary:
            return self._decode(body)
        flag, body = body[0], body[1:]
        if not flag:
            return self._decode(body)
        if flag not in compression.FLAGS.values():
            raise Unreadable(f"unknown compression 0x{flag:02X}.", lost=True)
        return self._decode(compression.inflate(flag, body, self._limit))
