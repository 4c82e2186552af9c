"""What a failed attempt to connect is called, for both clients."""

from __future__ import annotations

import socket
import ssl

import pytest

from tandemq.client.broker import Broker
from tandemq.client.dialing import explained
from tandemq.client.errors import BadOption, ConnectFailed, WrongServer
from tandemq.client.url import Target

PLAIN = ssl.SSLError(1, "wrong version number")
PLAIN.reason = "WRONG_VERSION_NUMBER"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (PLAIN, WrongServer, "db:6789 does not speak TLS .* tls=1"),
        (TimeoutError(), ConnectFailed, r"db:6789 did not answer within 0\.5 s"),
        (socket.gaierror(-2, "unknown"), ConnectFailed, r"cannot connect to db:6789: unknown$"),
        (
            OSError(111, "refused"),
            ConnectFailed,
            r"db:6789: Connection refused; is the server running\?",
        ),
        (UnicodeError("label too long"), BadOption, "db cannot be the name of a host"),
    ],
)
def test_a_failure_says_what_to_do(error: Exception, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        raise explained(error, Target(host="db"), 0.5)


def test_what_is_ours_stays() -> None:
    ours = BadOption("as it is")
    assert explained(ours, Target(), 0.5) is ours


async def test_a_broker_whose_name_cannot_be_is_an_option_that_cannot_be() -> None:
    with pytest.raises(BadOption, match="cannot be the name of a host"):
        await Broker(f"tandemq://{'a' * 70}:2925").connect()
