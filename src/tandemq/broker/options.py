"""What a queue, a client and its way back to the broker can be told; every value is checked.

Spans are seconds, or ``timedelta``s, and are kept as seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from math import isfinite

from tandemq.broker.names import DeliveryMode, OverflowStrategy
from tandemq.model.broker import DEFAULT_POLICY, UNBOUNDED, Policy

Span = float | timedelta  # s, where it is a number
LARGEST = UNBOUNDED  # of the numbers that a queue has, as its wires know them
LONGEST = 365 * 86_400.0  # s
DOUBLINGS = 1_000  # of a wait; more would be too much for a float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How a queue behaves.

    Raises:
        ValueError: a value makes no sense.
    """

    mode: DeliveryMode = DeliveryMode.ROUND_ROBIN
    max_queue_size: int = DEFAULT_POLICY.max_size  # messages that wait
    message_ttl: Span | None = None  # from acceptance on; None: for ever
    enable_dead_letter_queue: bool = False
    dead_letter_queue_name: str | None = None  # None: the queue's name and ``.dlq``
    overflow_strategy: OverflowStrategy = OverflowStrategy.DROP_OLDEST
    max_retry_attempts: int = DEFAULT_POLICY.max_attempts  # deliveries in all
    ack_timeout: Span = 30.0  # until the first delivery is repeated
    retry_delay: Span = 2.0  # half of the wait for the next one; each further one is twice as long
    retry_delay_max: Span = 120.0
    full_ack_timeout: bool = False  # every delivery may take ``ack_timeout``

    def __post_init__(self) -> None:
        _set(self, mode=DeliveryMode(self.mode))
        _set(self, overflow_strategy=OverflowStrategy(self.overflow_strategy))
        _check_number("max_queue_size", self.max_queue_size, 1)
        _check_number("max_retry_attempts", self.max_retry_attempts, 0)
        _set_spans(self, 0.001, "ack_timeout", "retry_delay", "retry_delay_max")
        if self.message_ttl is not None:
            _set_spans(self, 0.001, "message_ttl")
        redirects = self.overflow_strategy is OverflowStrategy.REDIRECT_TO_DLQ
        if redirects and not self.enable_dead_letter_queue:
            raise ValueError("overflow_strategy REDIRECT_TO_DLQ needs enable_dead_letter_queue")

    @property
    def policy(self) -> Policy:
        """The same as the engine has it."""
        ttl = self.message_ttl
        return Policy(
            mode=self.mode,
            max_size=self.max_queue_size,
            ttl=None if ttl is None else _exact_ms(ttl),
            dead_letters=self.enable_dead_letter_queue,
            dead_letter_queue=self.dead_letter_queue_name,
            overflow=self.overflow_strategy,
            max_attempts=self.max_retry_attempts,
            ack_wait=_ms(self.ack_timeout),
            retry_base=_ms(self.retry_delay),
            retry_cap=_ms(self.retry_delay_max),
            full_wait=self.full_ack_timeout,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectPolicy:
    """When a client that has lost its connection tries again.

    Raises:
        ValueError: a value makes no sense.
    """

    max_attempts: int | None = None  # None: for ever, 0: never
    initial_delay: Span = 1.0
    max_delay: Span = 300.0
    use_exponential_backoff: bool = True  # else every wait is the first one
    jitter: float = 0.0  # by which part a wait is longer at most, by chance

    def __post_init__(self) -> None:
        if self.max_attempts is not None:
            _check_number("max_attempts", self.max_attempts, 0)
        _set_spans(self, 0.0, "initial_delay", "max_delay")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be from 0 to 1, not {self.jitter:g}")

    def allows(self, attempt: int) -> bool:
        """Whether the so-manieth attempt, counted from 1, is made."""
        return self.max_attempts is None or attempt <= self.max_attempts

    def get_delay(self, attempt: int) -> float:
        """Return the wait before the so-manieth attempt, counted from 1, in s, without its jitter.

        Raises:
            ValueError: there is no attempt of that number.
        """
        if attempt < 1:
            raise ValueError(f"attempts are counted from 1, there is none of number {attempt}")
        first = _seconds(self.initial_delay)
        if not self.use_exponential_backoff:
            return first
        return min(first * 2.0 ** min(attempt - 1, DOUBLINGS), _seconds(self.max_delay))


class OnConflict(Enum):
    """What to do about a declared queue that exists with other settings."""

    IGNORE = "ignore"  # log it: a warning, or an error where messages would go elsewhere
    FAIL = "fail"
    OVERRIDE = "override"  # delete it, with its messages, and make it anew


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDeclaration:
    """A queue that has to be there when a client has connected."""

    options: QueueOptions = field(default_factory=QueueOptions)
    on_conflict: OnConflict = OnConflict.IGNORE
    fail_on_provisioning_error: bool = True  # else what goes wrong is logged, but for conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How a client connects to a broker and stays connected.

    Raises:
        ValueError: a value makes no sense.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    reconnect_policy: ReconnectPolicy = field(default_factory=ReconnectPolicy)
    keep_alive_interval: Span = 30.0
    command_timeout: Span = 10.0
    use_tls: bool = False
    skip_certificate_validation: bool = False  # whoever answers is believed: for tests only
    certificate_authority: str | None = None  # a file with certificates to trust instead
    preferred_compressions: tuple[str, ...] = ("brotli", "gzip")  # of the binary wire
    compression_threshold: int = 1_024  # bytes
    queue_declarations: Mapping[str, QueueOptions | QueueDeclaration] = field(default_factory=dict)
    binary: bool = False  # speak the binary wire
    give_back: bool = True  # offer to give messages back; False: leave them to the ack time-out
    max_message_size: int = 1_048_576  # bytes of a frame, either way; as the server has it

    def __post_init__(self) -> None:
        if (self.username is None) != (self.password is None):
            raise ValueError("Both username and password must be set together.")
        _check_number("compression_threshold", self.compression_threshold, 0)
        _check_number("max_message_size", self.max_message_size, 1)
        _set_spans(self, 0.001, "keep_alive_interval", "command_timeout")


def _set(options: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(options, name, value)


def _set_spans(options: object, least: float, *names: str) -> None:
    """Keep spans as seconds."""
    for name in names:
        seconds = _seconds(getattr(options, name))
        if not (isfinite(seconds) and least <= seconds <= LONGEST):
            raise ValueError(f"{name} must be from {least:g} to {LONGEST:g} s, not {seconds:g}")
        _set(options, **{name: seconds})


def _check_number(name: str, value: int, least: int) -> None:
    if not least <= value <= LARGEST:
        raise ValueError(f"{name} must be from {least} to {LARGEST}, not {value}")


def _seconds(span: Span) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def _ms(span: Span) -> int:
    return round(_seconds(span) * 1_000)


def _exact_ms(span: Span) -> float:
    """Return a span in ms with its fraction, where it has one that the wires can tell."""
    ms = round(_seconds(span) * 1_000, 4)
    return int(ms) if ms == int(ms) else ms
