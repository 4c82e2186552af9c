"""What makes a queue a broker's: its mode, its bounds, and when it asks again.

A queue without such a policy is a job queue: unbounded, it keeps what has ended, and its dead
letters stay where they are. Sources: VibeMQ semantics 1 (options), 2 (modes), 4 (time-outs and
retries), 6 (overflow); rulings 11, 12 and 14.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from tandemq.model.message import Options

MAX_SIZE: Final = 10_000  # messages that wait in a queue, unless its policy says otherwise
UNBOUNDED: Final = 2_147_483_647  # shown as the size of a queue without a bound
ENDLESS: Final = 2_147_483_647  # attempts of what must never be dropped for want of an answer
NAME: Final = "default"  # of the jobs that letters are for workers
NORMAL: Final = 1  # of the four levels low, normal, high and critical, counted from 0
WINDOW: Final = 1_000  # messages that a subscriber may hold unanswered


class Mode(IntEnum):
    """To whom a message goes."""

    ROUND_ROBIN = 0  # to one subscriber after the other
    FAN_OUT_WITH_ACK = 1  # to all, each must acknowledge
    FAN_OUT_WITHOUT_ACK = 2  # to all that are there, and that is that
    PRIORITY_BASED = 3  # as round robin, the most urgent first


class Overflow(IntEnum):
    """What becomes of a message for a full queue."""

    DROP_OLDEST = 0
    DROP_NEWEST = 1
    BLOCK_PUBLISHER = 2
    REDIRECT_TO_DLQ = 3


class Reason(IntEnum):
    """Why a message became a dead letter."""

    MAX_RETRIES_EXCEEDED = 0
    MESSAGE_EXPIRED = 1
    DESERIALIZATION_ERROR = 2  # what was pushed as a job cannot be said in JSON
    HANDLER_EXCEPTION = 3  # its consumer said that it failed for good
    QUEUE_OVERFLOW = 4  # ours, as those below
    WORKER_LOST = 5

    @property
    def title(self) -> str:
        """The name as headers and reports show it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class Policy(Struct, frozen=True, omit_defaults=True):
    """How one broker queue behaves; a fact of that queue. Spans in ms."""

    mode: Mode = Mode.ROUND_ROBIN
    max_size: int = MAX_SIZE  # messages that may wait
    ttl: float | None = None  # from acceptance on; may have a fraction, as it was given
    dead_letters: bool = False  # kept in a queue of their own, else dropped
    dead_letter_queue: str | None = None  # None: the queue's name and ``.dlq``
    overflow: Overflow = Overflow.DROP_OLDEST
    max_attempts: int = 3  # deliveries in all
    ack_wait: int = 30_000  # until the first delivery is repeated
    retry_base: int = 2_000
    retry_cap: int = 120_000
    full_wait: bool = False  # every delivery has ``ack_wait``, not only the first
    created: int = 0  # when the queue was made
    decided: bool = True  # False: somebody subscribed, and the first message may be a job yet

    @property
    def fans_out(self) -> bool:
        """Whether everybody gets every message."""
        return self.mode in (Mode.FAN_OUT_WITH_ACK, Mode.FAN_OUT_WITHOUT_ACK)


DEFAULT_POLICY: Final = Policy()
JOBS: Final = Policy(max_size=UNBOUNDED, dead_letters=True)  # how a job queue is shown


def wait_for_ack(policy: Policy, failed: int) -> int:
    """Return the ms that a delivery may go unanswered after ``failed`` that did.

    30 s for the first one, then 4, 8, 16 s and so on, at most two minutes.
    """
    if not failed or policy.full_wait:
        return policy.ack_wait
    return min(policy.retry_base << min(failed, 30), policy.retry_cap)


def most_attempts(policy: Policy) -> int:
    """Return how often a message is delivered at the most; nothing is delivered less than once."""
    return max(1, policy.max_attempts)


def dead_letter_queue(policy: Policy, queue: str) -> str:
    """Return the name of the queue in which the dead letters of ``queue`` are."""
    return policy.dead_letter_queue or f"{queue}.dlq"


@lru_cache(maxsize=4096)
def options_of(policy: Policy) -> Options:
    """Return the options of what is published into a queue: equal ones are one object."""
    return Options(
        max_attempts=most_attempts(policy),
        ttl=policy.ttl,
        remove_on_complete=True,
    )
