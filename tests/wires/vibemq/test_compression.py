"""Compressed bodies: what was agreed, what comes out, and where it stops."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import io
import resource
import sys
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.wires.vibemq import compression
from tandemq.wires.vibemq.compression import (
    AVAILABLE,
    BROTLI,
    FLAGS,
    GZIP,
    MEMBERS,
    Damaged,
    agreed,
    deflate,
    inflate,
)

pytestmark = pytest.mark.skipif(AVAILABLE != (GZIP, BROTLI), reason="brotli is not installed")

LIMIT = 1 << 20
BOTH = pytest.mark.parametrize("algorithm", [GZIP, BROTLI])


@BOTH
@given(body=st.binary(max_size=3000), times=st.integers(1, 100))
def test_what_went_in_comes_out(algorithm, body, times) -> None:
    packed = deflate(algorithm, body * times)
    assert inflate(FLAGS[algorithm], packed, LIMIT) == body * times


@BOTH
def test_the_limit_itself_comes_out_and_one_more_does_not(algorithm) -> None:
    fits, over = deflate(algorithm, bytes(1000)), deflate(algorithm, bytes(1001))
    assert inflate(FLAGS[algorithm], fits, 1000) == bytes(1000)
    with pytest.raises(Damaged, match=r"exceeds maximum allowed size \(1000 bytes\)"):
        inflate(FLAGS[algorithm], over, 1000)


@BOTH
@pytest.mark.parametrize("size", [0, 1, 5, 20, 40])
def test_what_is_cut_is_damaged(algorithm, size) -> None:
    packed = deflate(algorithm, bytes(range(256)))
    with pytest.raises(Damaged, match="Body is not"):
        inflate(FLAGS[algorithm], packed[:size], LIMIT)


@given(st.sampled_from(sorted(FLAGS.values())), st.binary(max_size=200))
def test_random_bytes_come_out_or_are_damaged(flag, packed) -> None:
    with contextlib.suppress(Damaged):
        assert len(inflate(flag, packed, 1000)) <= 1000


@BOTH
@given(body=st.binary(max_size=500), at=st.integers(0, 499), bit=st.integers(0, 7))
def test_a_turned_bit_makes_no_other_trouble(algorithm, body, at, bit) -> None:
    packed = bytearray(deflate(algorithm, body))
    packed[at % len(packed)] ^= 1 << bit
    with contextlib.suppress(Damaged):
        assert len(inflate(FLAGS[algorithm], bytes(packed), LIMIT)) <= LIMIT


@BOTH
def test_a_bomb_is_stopped_at_the_limit(algorithm) -> None:
    packed = deflate(algorithm, bytes(64 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match="exceeds"):
            inflate(FLAGS[algorithm], packed, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 5 * LIMIT
    finally:
        tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KiB


# -- gzip ----------------------------------------------------------------------------------------


def named(body: bytes) -> bytes:
    """A member with a file name and a moment in its header."""
    file = io.BytesIO()
    with gzip.GzipFile("name.txt", "wb", fileobj=file, mtime=0x12345678) as member:
        member.write(body)
    return file.getvalue()


def test_any_gzip_header_and_level_is_read() -> None:
    assert inflate(1, named(b"abc"), LIMIT) == b"abc"
    assert inflate(1, gzip.compress(b"abc" * 999, 9), LIMIT) == b"abc" * 999


def test_members_in_a_row_are_one_body() -> None:
    assert inflate(1, gzip.compress(b"ab") + named(b"c"), LIMIT) == b"abc"
    assert inflate(1, gzip.compress(b"") * (MEMBERS - 1) + gzip.compress(b"c"), LIMIT) == b"c"


def test_members_share_one_limit() -> None:
    with pytest.raises(Damaged, match="exceeds"):
        inflate(1, gzip.compress(bytes(600)) * 2, 1000)


def test_members_without_end_are_refused() -> None:
    with pytest.raises(Damaged, match="more than 64"):
        inflate(1, gzip.compress(b"") * (MEMBERS + 1), LIMIT)


def test_what_follows_the_last_member_is_ignored() -> None:
    assert inflate(1, gzip.compress(b"abc") + b"\0\0junk", LIMIT) == b"abc"


def test_a_wrong_sum_is_noticed() -> None:
    packed = bytearray(gzip.compress(b"abc"))
    packed[-6] ^= 1
    with pytest.raises(Damaged):
        inflate(1, bytes(packed), LIMIT)


def test_other_containers_are_not_gzip() -> None:
    with pytest.raises(Damaged):
        inflate(1, zlib.compress(b"abc"), LIMIT)


# -- what is agreed upon -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offer", "ours", "name"),
    [
        ("brotli,gzip", (GZIP, BROTLI), BROTLI),
        ("gzip,brotli", (BROTLI, GZIP), GZIP),
        (" BROTLI , gzip", (GZIP, BROTLI), BROTLI),
        ("zstd, none", (GZIP, BROTLI), None),
        ("zstd,none,GZip", (GZIP, BROTLI), GZIP),
        ("brotli", (GZIP,), None),
        ("brotli,gzip", (GZIP,), GZIP),
        ("brotli,gzip", (), None),
        ("", (GZIP,), None),
        (",,", (GZIP,), None),
        (None, (GZIP,), None),
        ("gzip brotli", (GZIP, BROTLI), None),
    ],
)
def test_the_first_name_that_both_know_is_taken(offer, ours, name) -> None:
    assert agreed(offer, ours) == name


def test_without_the_package_there_is_gzip_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    spec = importlib.util.spec_from_file_location("bare", compression.__file__)
    assert spec is not None
    assert spec.loader is not None
    bare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bare)
    assert bare.AVAILABLE == (GZIP,)
    assert bare.agreed("brotli,gzip", (GZIP, BROTLI)) == GZIP
    with pytest.raises(bare.Damaged, match="pip install"):
        bare.inflate(FLAGS[BROTLI], b"", LIMIT)
