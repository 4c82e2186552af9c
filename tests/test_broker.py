"""The broker's public names: that they are there, light, and what they refuse."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import pytest
from tests.test_house import SOURCE

import tandemq.broker
from tandemq.broker import (
    BrokerMessage,
    BrokerOptions,
    ClientOptions,
    CommandType,
    DeliveryMode,
    FailureReason,
    HealthStatus,
    MessagePriority,
    OverflowStrategy,
    QueueInfo,
    QueueOptions,
    ReconnectPolicy,
)
from tandemq.config import Settings
from tandemq.model.broker import Policy
from tandemq.model.health import members

# The names of the second founding document; I before an interface is that language's manner.
OF_THE_SEED = [
    "BrokerMessage",
    "QueueInfo",
    "BrokerOptions",
    "QueueOptions",
    "ClientOptions",
    "QueueManager",
    "MessageStore",
    "AuthenticationService",
    "BrokerMetrics",
    "DeliveryMode",
    "MessagePriority",
    "OverflowStrategy",
    "FailureReason",
    "CommandType",
    "BrokerServer",
    "BrokerBuilder",
    "ReconnectPolicy",
    "HealthCheckServer",
    "HealthStatus",
]

# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_THE_SEED)
def test_every_name_of_the_founding_document_is_a_documented_type(name: str) -> None:
    found = getattr(tandemq.broker, name)
    assert isinstance(found, type)
    assert found.__doc__
    assert not found.__doc__.startswith(f"{found.__name__}("), "a docstring of its own"


def test_all_names_are_listed_and_no_others_exist() -> None:
    assert sorted(OF_THE_SEED) == tandemq.broker.__all__
    assert set(OF_THE_SEED) <= set(dir(tandemq.broker))
    with pytest.raises(AttributeError, match="no attribute 'Borker'"):
        _ = tandemq.broker.Borker


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


HEAVY = {"asyncio", "argon2", "click", "prometheus_client", "sqlite3", "ssl", "logging", "uvloop"}


@pytest.mark.parametrize(
    "code",
    [
        "import tandemq",
        "import tandemq.broker",
        "from tandemq.broker import ReconnectPolicy, QueueOptions, CommandType, HealthStatus",
        "from tandemq.broker import BrokerOptions",
    ],
)
def test_what_needs_no_server_imports_none(code: str) -> None:
    loaded = modules_after(code)
    assert not HEAVY & loaded
    ours = {name.split(".")[1] for name in loaded if name.startswith("tandemq.")}
    assert ours <= {"amounts", "broker", "model", "wires", "config"}


def test_enumerations_have_the_values_of_the_wires() -> None:
    assert [mode.name for mode in DeliveryMode] == [
        "ROUND_ROBIN", "FAN_OUT_WITH_ACK", "FAN_OUT_WITHOUT_ACK", "PRIORITY_BASED",
    ]  # fmt: skip
    assert [level.name for level in MessagePriority] == ["LOW", "NORMAL", "HIGH", "CRITICAL"]
    assert [strategy.name for strategy in OverflowStrategy] == [
        "DROP_OLDEST", "DROP_NEWEST", "BLOCK_PUBLISHER", "REDIRECT_TO_DLQ",
    ]  # fmt: skip
    assert [reason.name for reason in FailureReason][:4] == [
        "MAX_RETRIES_EXCEEDED", "MESSAGE_EXPIRED", "DESERIALIZATION_ERROR", "HANDLER_EXCEPTION",
    ]  # fmt: skip
    for values in (DeliveryMode, MessagePriority, OverflowStrategy, FailureReason):
        assert [value.value for value in values] == list(range(len(values)))
    assert (CommandType.PUBLISH, CommandType.DELIVER, CommandType.ERROR) == (20, 26, 99)


def test_the_options_of_a_broker_are_the_settings_of_a_server() -> None:
    assert BrokerOptions is Settings


# -- queues ----------------------------------------------------------------------------------------


def test_a_queue_is_by_default_what_the_engine_makes() -> None:
    assert QueueOptions().policy == Policy()


def test_every_option_of_a_queue_reaches_the_engine() -> None:
    options = QueueOptions(
        mode=DeliveryMode.PRIORITY_BASED,
        max_queue_size=5,
        message_ttl=1.5,
        enable_dead_letter_queue=True,
        dead_letter_queue_name="graves",
        overflow_strategy=OverflowStrategy.REDIRECT_TO_DLQ,
        max_retry_attempts=7,
        ack_timeout=timedelta(seconds=10),
        retry_delay=0.5,
        retry_delay_max=60,
        full_ack_timeout=True,
    )
    assert options.policy == Policy(
        mode=DeliveryMode.PRIORITY_BASED,
        max_size=5,
        ttl=1_500,
        dead_letters=True,
        dead_letter_queue="graves",
        overflow=OverflowStrategy.REDIRECT_TO_DLQ,
        max_attempts=7,
        ack_wait=10_000,
        retry_base=500,
        retry_cap=60_000,
        full_wait=True,
    )


def test_numbers_stand_for_modes_and_strategies_as_on_the_wires() -> None:
    options = QueueOptions(mode=2, overflow_strategy=1)  # type: ignore[arg-type]
    assert options.mode is DeliveryMode.FAN_OUT_WITHOUT_ACK
    assert options.overflow_strategy is OverflowStrategy.DROP_NEWEST


def test_redirecting_without_a_place_to_redirect_to_is_refused() -> None:
    with pytest.raises(ValueError, match="REDIRECT_TO_DLQ needs enable_dead_letter_queue"):
        QueueOptions(overflow_strategy=OverflowStrategy.REDIRECT_TO_DLQ)


# -- what makes no sense ---------------------------------------------------------------------------

NUMBERS = [
    (QueueOptions, "max_queue_size", (0, -1, 2**31)),
    (QueueOptions, "max_retry_attempts", (-1, 2**31)),
    (ReconnectPolicy, "max_attempts", (-1, 2**31)),
    (ClientOptions, "compression_threshold", (-1, 2**31)),
]
SPANS = [
    (QueueOptions, ("message_ttl", "ack_timeout", "retry_delay", "retry_delay_max")),
    (ReconnectPolicy, ("initial_delay", "max_delay")),
    (ClientOptions, ("keep_alive_interval", "command_timeout")),
]
NO_SPANS = (-1, -0.001, math.nan, math.inf, 1e300, timedelta(seconds=-1), timedelta.max)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [(options, name, value) for options, name, values in NUMBERS for value in values],
)
def test_numbers_that_make_no_sense_are_refused(options: Any, name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        options(**{name: value})


@pytest.mark.parametrize("value", NO_SPANS, ids=str)
@pytest.mark.parametrize(
    ("options", "name"), [(options, name) for options, names in SPANS for name in names]
)
def test_spans_that_make_no_sense_are_refused(options: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        options(**{name: value})


@pytest.mark.parametrize(
    ("options", "name"), [(options, name) for options, names in SPANS for name in names]
)
def test_spans_may_be_given_either_way(options: Any, name: str) -> None:
    given = options(**{name: timedelta(minutes=2)})
    assert getattr(given, name) == 120.0
    assert given == options(**{name: 120})


@pytest.mark.parametrize("options", [QueueOptions, ReconnectPolicy, ClientOptions])
def test_options_cannot_be_changed_behind_their_checks(options: Any) -> None:
    made = options()
    with pytest.raises(FrozenInstanceError):
        setattr(made, options.__dataclass_fields__.popitem()[0], 1)


@pytest.mark.parametrize("half", [{"username": "ada"}, {"password": "secret"}])
def test_a_client_has_both_halves_of_a_login_or_neither(half: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Both username and password must be set together"):
        ClientOptions(**half)


def test_secrets_are_not_shown() -> None:
    shown = repr(ClientOptions(username="ada", password="hunter2", auth_token="t0ken"))
    assert "ada" in shown
    assert "hunter2" not in shown
    assert "t0ken" not in shown


def test_a_client_is_by_default_as_the_reference_s() -> None:
    options = ClientOptions()
    assert (options.keep_alive_interval, options.command_timeout) == (30, 10)
    assert options.preferred_compressions == ("brotli", "gzip")
    assert options.compression_threshold == 1_024
    assert options.reconnect_policy == ReconnectPolicy()
    assert dict(options.queue_declarations) == {}


# -- reconnecting ----------------------------------------------------------------------------------


def test_the_waits_are_those_of_the_founding_document() -> None:
    policy = ReconnectPolicy()
    waits = [policy.get_delay(n) for n in range(1, 13)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


@pytest.mark.parametrize("attempt", [31, 32, 64, 1_024, 1_025, 1_000_000, 10**30])
@pytest.mark.parametrize("first", [1e-9, 1, 1e7])
def test_no_attempt_and_no_first_wait_is_too_much(first: float, attempt: int) -> None:
    policy = ReconnectPolicy(initial_delay=first)
    assert 0 < policy.get_delay(attempt) <= 300
    assert policy.get_delay(10**30) == 300


def test_without_back_off_every_wait_is_the_first_one() -> None:
    policy = ReconnectPolicy(initial_delay=2, use_exponential_backoff=False)
    assert {policy.get_delay(n) for n in (1, 2, 100)} == {2}


@pytest.mark.parametrize(
    ("most", "allowed"), [(None, [True] * 4), (0, [False] * 4), (2, [True, True, False, False])]
)
def test_so_many_attempts_are_made(most: int | None, allowed: list[bool]) -> None:
    policy = ReconnectPolicy(max_attempts=most)
    assert [policy.allows(n) for n in range(1, 5)] == allowed


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_are_counted_from_one(attempt: int) -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        ReconnectPolicy().get_delay(attempt)


# -- what is told ----------------------------------------------------------------------------------


def test_messages_and_queues_have_the_members_of_the_reference() -> None:
    assert list(BrokerMessage.__dataclass_fields__) == [
        "id", "queue_name", "payload", "timestamp", "headers", "version", "priority",
        "delivery_attempts",
    ]  # fmt: skip
    assert list(QueueInfo.__dataclass_fields__) == [
        "name", "message_count", "subscriber_count", "delivery_mode", "max_size", "created_at",
        "message_ttl", "enable_dead_letter_queue", "dead_letter_queue_name", "overflow_strategy",
        "max_retry_attempts",
    ]  # fmt: skip


def test_health_is_the_type_that_the_health_port_writes() -> None:
    fields = {name: 0 for name in HealthStatus.__struct_fields__ if name != "reasons"}
    assert "isHealthy" in members(HealthStatus(**fields))


def test_every_module_of_the_package_is_light_but_those_for_programs_with_a_server() -> None:
    for module in sorted((SOURCE / "broker").glob("*.py")):
        if module.stem in ("__init__", "queues", "interfaces"):
            continue
        assert not HEAVY & modules_after(f"import tandemq.broker.{module.stem}"), module.stem
