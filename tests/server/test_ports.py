"""What is said of a port that cannot be had."""

from __future__ import annotations

import errno
import socket

import pytest

from tandemq.server.ports import bound


def test_the_address_and_the_flag_are_named() -> None:
    said = r"port 80 of 10\.0\.0\.1 cannot be had: Permission denied\. .* --port gives another"
    with pytest.raises(PermissionError, match=said), bound("10.0.0.1", 80, "--port"):
        raise PermissionError(errno.EACCES, "error while attempting to bind")


def test_a_host_that_is_not_known_is_named() -> None:
    said = "host 'nowhere': not known"
    with pytest.raises(socket.gaierror, match=said), bound("nowhere", 80, "--port"):
        raise socket.gaierror(-2, "not known")


def test_other_failures_stay_as_they_are() -> None:
    with pytest.raises(OSError, match=r"^odd$"), bound("127.0.0.1", 80, "--port"):
        raise OSError("odd")
