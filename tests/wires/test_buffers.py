"""A pool of buffers: so many, of one size, used again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tandemq.wires import framing
from tandemq.wires.buffers import LARGE, MOST, POOL, SIZE, MessageObjectPool
from tandemq.wires.framing import PREFIX, FrameDecoder, frame

# -- the pool --------------------------------------------------------------------------------------


def test_what_was_given_back_is_rented_again() -> None:
    pool = MessageObjectPool(2, 10)
    first = pool.rent()
    assert first is not None
    assert (len(first), pool.rented, len(pool)) == (10, 1, 0)
    pool.give_back(first)
    assert (pool.rented, len(pool)) == (0, 1)
    assert pool.rent() is first


def test_no_more_are_rented_than_there_may_be() -> None:
    pool = MessageObjectPool(2, 10)
    one, two = pool.rent(), pool.rent()
    assert one is not two
    assert pool.rent() is None
    assert two is not None
    pool.give_back(two)
    assert pool.rent() is two
    assert pool.rent() is None


def test_what_was_not_rented_is_not_taken() -> None:
    pool = MessageObjectPool(2, 10)
    with pytest.raises(AssertionError):
        pool.give_back(bytearray(10))
    buffer = pool.rent()
    assert buffer is not None
    buffer.append(1)
    with pytest.raises(AssertionError):
        pool.give_back(buffer)


def test_the_pool_of_the_process_takes_little_and_fits_what_vibemq_clients_send() -> None:
    assert MOST * SIZE < 20 << 20
    assert POOL.size >= PREFIX + 1 + (1 << 20)


# -- frames that are put together in it ------------------------------------------------------------


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessageObjectPool]:
    """A small pool in the place of the one of the process; everything comes back to it."""
    made = MessageObjectPool(2, 1_000)
    monkeypatch.setattr(framing, "POOL", made)
    monkeypatch.setattr(framing, "LARGE", 100)
    yield made
    assert made.rented == 0


def body_of(size: int) -> bytes:
    return bytes(n % 251 for n in range(size))


SIZES = (1, 90, 95, 96, 97, 100, 101, 500, 990, 995, 996, 997, 1_000, 5_000)


@pytest.mark.parametrize("step", [1, 3, 64, 99, 500, 10_000])
@pytest.mark.parametrize("uncounted", [0, 1])
def test_frames_of_all_sizes_come_out_as_they_were_sent(
    pool: MessageObjectPool, step: int, uncounted: int
) -> None:
    bodies = [body_of(size) for size in SIZES + SIZES[::-1]]
    flag = b"\x07" * uncounted
    sent = b"".join(frame(body)[:PREFIX] + flag + body for body in bodies)
    decoder = FrameDecoder(10_000, uncounted=uncounted)
    got = [f for at in range(0, len(sent), step) for f in decoder.feed(sent[at : at + step])]
    assert got == [flag + body for body in bodies]
    assert not decoder.mid_frame


def test_only_large_frames_that_fit_take_a_buffer(pool: MessageObjectPool) -> None:
    for size, taken in ((95, 0), (96, 1), (996, 1), (997, 0)):
        decoder = FrameDecoder(10_000)
        decoder.feed(frame(body_of(size))[:-1])
        assert pool.rented == taken, size
        assert decoder.mid_frame
        assert decoder.pending_bytes == PREFIX + size - 1
        assert decoder.feed(b"\0")
        assert pool.rented == 0


def test_frames_that_arrive_at_the_same_time_do_not_mix(pool: MessageObjectPool) -> None:
    bodies = [bytes([n]) * (200 + n) for n in range(5)]  # more than there are buffers
    decoders = [FrameDecoder(10_000) for _ in bodies]
    for at in range(0, 300, 50):
        got = [d.feed(frame(body)[at : at + 50]) for d, body in zip(decoders, bodies, strict=True)]
        assert pool.rented == (2 if at < 200 else 0)
        if at == 200:
            assert got == [[body] for body in bodies]


def test_nothing_of_an_older_message_is_seen(pool: MessageObjectPool) -> None:
    decoder = FrameDecoder(10_000)
    for body in (b"secret" * 100, b"x" * 200):
        decoder.feed(frame(body)[:150])
        assert decoder.feed(frame(body)[150:]) == [body]


def test_who_leaves_in_the_middle_of_a_frame_gives_its_buffer_back(pool: MessageObjectPool) -> None:
    decoder = FrameDecoder(10_000)
    decoder.feed(frame(body_of(500))[:300])
    assert pool.rented == 1
    del decoder
    assert (pool.rented, len(pool)) == (0, 1)


def test_a_stream_that_is_refused_behind_a_large_frame_gives_it_back(
    pool: MessageObjectPool,
) -> None:
    decoder = FrameDecoder(900)
    decoder.feed(frame(body_of(500))[:300])
    assert decoder.feed(frame(body_of(500))[300:] + b"\xff" * 8) == [body_of(500)]
    assert decoder.refused == 0xFFFFFFFF
    assert decoder.feed(b"more") == []


@pytest.mark.parametrize("size", [LARGE - PREFIX, 300_000, SIZE - PREFIX, SIZE])
def test_frames_of_real_sizes_pass_through_the_pool_of_the_process(size: int) -> None:
    sent, decoder = frame(b"x" * size), FrameDecoder(1 << 26)
    got = [f for at in range(0, len(sent), 65_536) for f in decoder.feed(sent[at : at + 65_536])]
    assert got == [b"x" * size]
