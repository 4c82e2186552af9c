"""The settings of a server: every one with its default, its unit and one line of documentation."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from tandemq.config.fields import BadSetting, about, fields_of
from tandemq.config.secrets import tokens_from

Durability = Literal["memory", "buffered", "commit", "sync"]
Loop = Literal["auto", "uvloop", "asyncio"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["console", "json", "logfmt"]
DeliveryMode = Literal["RoundRobin", "FanOutWithAck", "FanOutWithoutAck", "PriorityBased"]

MIB = 2**20
MANY = 1_000_000_000
DEFAULT_SUPERUSER = "vibemq"  # as programs written for that broker expect
YEAR_S = 365 * 86_400
YEAR_MS = YEAR_S * 1_000


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one server runs. A value that exists is valid: a bad one raises ``BadSetting``."""

    host: Annotated[str, about("Address to listen on; others than loopback need a token.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int, about("Port of the wire protocols; 0 takes a free one.", low=0, high=65_535)
    ] = 6789
    http_port: Annotated[int, about("Port of HTTP; 0 takes a free one.", low=0, high=65_535)] = 6790
    http: Annotated[bool, about("Serve HTTP.")] = True
    cors_origins: Annotated[
        tuple[str, ...], about("Origins whose pages may read HTTP answers; * is all.")
    ] = ()
    trusted_proxy: Annotated[
        tuple[str, ...], about("Networks of proxies that say by X-Forwarded-For who asks.")
    ] = ()
    data: Annotated[str, about("File that keeps the messages; 'memory' keeps none.")] = (
        "./tandemq.db"
    )
    durability: Annotated[
        Durability, about("What an answer survives: nothing, a clean stop, kill -9, power loss.")
    ] = "commit"
    tokens: Annotated[
        tuple[str, ...], about("Accepted tokens; none means no authentication.", secret=True)
    ] = ()
    token_file: Annotated[
        str | None, about("File of accepted tokens, one a line; read again on SIGHUP.")
    ] = None
    superuser: Annotated[
        str | None, about("Name of the superuser that the first start makes, vibemq if none is.")
    ] = None
    superuser_password: Annotated[
        str | None, about("Password of the superuser that the first start makes.", secret=True)
    ] = None
    superuser_password_file: Annotated[
        str | None, about("File that holds this password; read by the first start only.")
    ] = None
    password_hash_bytes: Annotated[
        int, about("Memory that hashing a password needs.", unit="bytes", low=8_192, high=2**30)
    ] = 19 * MIB
    password_hash_rounds: Annotated[
        int, about("Times that hashing a password goes through it.", low=1, high=1_000)
    ] = 2
    insecure: Annotated[
        bool, about("Listen beyond this machine although nobody has to authenticate.")
    ] = False
    tls_cert: Annotated[str | None, about("Certificate chain, PEM; read again on SIGHUP.")] = None
    tls_key: Annotated[str | None, about("Private key of the certificate, PEM, unencrypted.")] = (
        None
    )
    tls_optional: Annotated[
        bool, about("Take connections without TLS too, on the same ports of the wire protocols.")
    ] = False
    max_connections: Annotated[int, about("Most connections at a time.", low=1, high=1_000_000)] = (
        10_000
    )
    requests_per_minute: Annotated[
        int, about("Most requests of one client in a window; 0 is no limit.", low=0, high=MANY)
    ] = 0
    request_window_ms: Annotated[
        int, about("Length of the window of requests_per_minute.", unit="ms", low=1, high=YEAR_MS)
    ] = 60_000
    login_limit: Annotated[
        int, about("Failed logins until a connection is closed; 0 is no limit.", low=0, high=MANY)
    ] = 10
    half_frame_timeout: Annotated[
        float, about("Longest time for the rest of a frame.", unit="s", low=0.001, high=YEAR_S)
    ] = 60.0
    max_frame_bytes: Annotated[
        int, about("Largest frame that is read.", unit="bytes", low=1_024, high=64 * MIB)
    ] = 64 * MIB
    max_unread_bytes: Annotated[
        int,
        about(
            "Output that a client may leave unread before it is cut.",
            unit="bytes",
            low=1_024,
            high=2**40,
        ),
    ] = 64 * MIB
    max_buffered_bytes: Annotated[
        int,
        about(
            "Unread output and unfinished input of all clients; who has most is cut.",
            unit="bytes",
            low=1_024,
            high=2**40,
        ),
    ] = 512 * MIB
    in_flight: Annotated[
        int, about("Requests that one connection may have unanswered.", low=1, high=MANY)
    ] = 50
    broker_port: Annotated[
        int, about("Another port of the wire protocols; 0 opens none.", low=0, high=65_535)
    ] = 0
    health_port: Annotated[
        int, about("Port of /health/ and /metrics/ for probes; 0 opens none.", low=0, high=65_535)
    ] = 0
    compression: Annotated[
        tuple[str, ...], about("What VibeMQ clients may have compressed; empty is nothing.")
    ] = ("gzip", "brotli")
    compression_threshold: Annotated[
        int, about("Size from which on it is.", unit="bytes", low=1, high=MIB)
    ] = 1_024
    default_mode: Annotated[
        DeliveryMode, about("Mode of queues that a VibeMQ client makes by using them.")
    ] = "RoundRobin"
    default_queue_size: Annotated[
        int, about("Most messages that may wait in them.", low=1, high=MANY)
    ] = 10_000
    auto_create: Annotated[bool, about("VibeMQ clients make queues by using them.")] = True
    max_message_size: Annotated[
        int, about("Largest frame of a VibeMQ client.", unit="bytes", low=1_024, high=64 * MIB)
    ] = MIB
    messages_per_second: Annotated[
        int,
        about(
            "Most frames of a VibeMQ connection, answers not counted; 0 is no limit.",
            low=0,
            high=MANY,
        ),
    ] = 0
    connections_per_minute: Annotated[
        int, about("Most new connections from one address; 0 is no limit.", low=0, high=MANY)
    ] = 0
    idle_timeout: Annotated[
        float,
        about(
            "Silence after which a VibeMQ client is gone; 0 is no limit.",
            unit="s",
            low=0,
            high=YEAR_S,
        ),
    ] = 90.0
    slow_timeout: Annotated[
        float,
        about(
            "Time after which a subscriber that does not read is gone.",
            unit="s",
            low=0.001,
            high=YEAR_S,
        ),
    ] = 30.0
    ack_timeout: Annotated[
        float,
        about("Wait for the answer to a first delivery.", unit="s", low=0.001, high=YEAR_S),
    ] = 30.0
    retry_delay: Annotated[
        float,
        about(
            "Half of the wait for that to the second; each further one is twice as long.",
            unit="s",
            low=0.001,
            high=YEAR_S,
        ),
    ] = 2.0
    retry_delay_max: Annotated[
        float, about("The longest of these waits.", unit="s", low=0.001, high=YEAR_S)
    ] = 120.0
    full_ack_timeout: Annotated[
        bool, about("Every delivery may be answered as long as the first one.")
    ] = False
    publish_wait: Annotated[
        float,
        about("Longest wait of a publisher for room.", unit="s", low=0, high=YEAR_S),
    ] = 8.0
    max_memory: Annotated[
        int,
        about(
            "Memory that messages may take; 0 is half of what this machine has.",
            unit="bytes",
            low=0,
            high=2**50,
        ),
    ] = 0
    max_completed: Annotated[int, about("Finished jobs that are remembered.", low=0, high=MANY)] = (
        50_000
    )
    max_completed_bytes: Annotated[
        int,
        about("Data and results of finished jobs.", unit="bytes", low=0, high=2**40),
    ] = 256 * MIB
    completed_retention: Annotated[
        int,
        about(
            "How long finished jobs are kept; 0 is for ever.", unit="ms", low=0, high=100 * YEAR_MS
        ),
    ] = 0
    max_logs: Annotated[int, about("Jobs whose logs are kept.", low=1, high=MANY)] = 10_000
    max_log_bytes: Annotated[
        int, about("Lines of all logs together.", unit="bytes", low=0, high=2**40)
    ] = 64 * MIB
    max_events: Annotated[
        int, about("Newest events that are remembered, of all queues.", low=0, high=MANY)
    ] = 200_000
    max_queue_events: Annotated[
        int, about("Newest events that are remembered of one queue.", low=0, high=MANY)
    ] = 10_000
    worker_timeout_ms: Annotated[
        int,
        about("Silence after which a worker counts as gone.", unit="ms", low=1, high=YEAR_MS),
    ] = 30_000
    max_worker_bytes: Annotated[
        int,
        about(
            "Memory for what workers say of themselves; a usual one takes 1.3 KiB.",
            unit="bytes",
            low=1_024,
            high=2**40,
        ),
    ] = 16 * MIB
    max_webhooks: Annotated[int, about("Most webhooks at a time.", low=0, high=MANY)] = 1_000
    webhook_allow: Annotated[
        tuple[str, ...], about("Private networks that webhooks may reach, like 10.1.0.0/16.")
    ] = ()
    webhook_max_retries: Annotated[
        int, about("How often a delivery to a webhook is tried in all.", low=1, high=1_000)
    ] = 3
    webhook_retry_delay_ms: Annotated[
        int,
        about(
            "Pause after the first failed delivery; the n-th is n times as long.",
            unit="ms",
            low=0,
            high=YEAR_MS,
        ),
    ] = 1_000
    webhook_max_waiting: Annotated[
        int, about("Deliveries that may wait, of one webhook a tenth.", low=1, high=MANY)
    ] = 10_000
    webhook_max_bytes: Annotated[
        int,
        about("Data and results in deliveries to come.", unit="bytes", low=0, high=2**40),
    ] = 64 * MIB
    max_tallied_queues: Annotated[
        int, about("Queues whose jobs are counted minute by minute.", low=1, high=MANY)
    ] = 10_000
    metrics_max_queues: Annotated[
        int, about("Queues that have figures of their own in Prometheus.", low=0, high=MANY)
    ] = 100
    metrics_auth: Annotated[bool, about("Want a token of whoever scrapes figures.")] = False
    shutdown_timeout: Annotated[
        float,
        about("Longest wait for jobs in work when stopping.", unit="s", low=0, high=YEAR_S),
    ] = 30.0
    loop: Annotated[Loop, about("Event loop; auto takes uvloop when it is installed.")] = "auto"
    log_level: Annotated[LogLevel, about("Least severe log lines that are written.")] = "info"
    log_format: Annotated[LogFormat, about("Shape of log lines.")] = "console"

    def __post_init__(self) -> None:
        self._check_each()
        if self.in_memory:
            force_setattr(self, "durability", "memory")
        if self.token_file and not self.tokens:
            force_setattr(self, "tokens", tokens_from(self.token_file))
        self._check_combinations()

    def __repr__(self) -> str:
        shown = (f"{name}={f.shown(getattr(self, name))!r}" for name, f in FIELDS.items())
        return f"Settings({', '.join(shown)})"

    @property
    def compressions(self) -> tuple[str, ...]:
        """The algorithms of ``compression``; an entry may name several, with commas between."""
        return _parts(self.compression)

    @property
    def in_memory(self) -> bool:
        """Nothing is kept when the process ends."""
        return self.data == "memory"

    @property
    def has_superuser(self) -> bool:
        """A superuser is asked for: the first start makes it, and nobody gets in unproved."""
        return bool(self.superuser or self.superuser_password or self.superuser_password_file)

    @property
    def superuser_name(self) -> str:
        return self.superuser or DEFAULT_SUPERUSER

    @property
    def on_loopback(self) -> bool:
        """Only this machine can connect; a name other than localhost may be anything."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def webhook_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of ``webhook_allow``; an entry may name several, with commas between."""
        return tuple(ip_network(text, strict=False) for text in _parts(self.webhook_allow))

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of ``trusted_proxy``; an entry may name several, as above."""
        return tuple(ip_network(text, strict=False) for text in _parts(self.trusted_proxy))

    @property
    def cors_allowed(self) -> tuple[str, ...]:
        """The origins of ``cors_origins``; an entry may name several, as above."""
        return _parts(self.cors_origins)

    def _check_each(self) -> None:
        for field in FIELDS.values():
            value = getattr(self, field.name)
            try:
                field.check(value)
            except ValueError:
                shown = "what was given" if field.secret else repr(value)
                text = f"{field.name} must be {field.allowed()}, not {shown}"
                raise BadSetting(text, field.name) from None

    def _check_combinations(self) -> None:
        if self.durability == "memory" and not self.in_memory:
            text = "durability memory keeps no file: set data to 'memory', or another durability"
            raise BadSetting(text, "durability", "data")
        if not all(token.strip() for token in self.tokens):
            raise BadSetting("tokens must not contain an empty one", "tokens")
        for name in ("webhook_allow", "trusted_proxy"):
            try:
                _ = [ip_network(text, strict=False) for text in _parts(getattr(self, name))]
            except ValueError as problem:
                text = f"{name} must be addresses or networks like 10.1.0.0/16: {problem}"
                raise BadSetting(text, name) from None
        if bool(self.tls_cert) != bool(self.tls_key):
            text = "tls_cert and tls_key belong together: give both or neither"
            raise BadSetting(text, "tls_cert", "tls_key")
        if self.tls_optional and not self.tls_cert:
            raise BadSetting("tls_optional needs tls_cert and tls_key", "tls_optional")
        if self.http and self.port == self.http_port != 0:
            text = f"port and http_port must differ, both are {self.port}"
            raise BadSetting(text, "port", "http_port")
        if self.superuser_password and self.superuser_password_file:
            text = "superuser_password and superuser_password_file: give one of them, not both"
            raise BadSetting(text, "superuser_password", "superuser_password_file")
        if not (self.on_loopback or self.tokens or self.has_superuser or self.insecure):
            text = (
                f"host {self.host!r} lets other machines connect and nobody has to authenticate: "
                "give a token (--token, --token-file) or a superuser (--superuser), "
                "listen on 127.0.0.1, "
                "or accept it (--insecure)"
            )
            raise BadSetting(text, "host")


def _parts(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return what entries name that may each name several things, with commas between."""
    return tuple(part for entry in entries for part in map(str.strip, entry.split(",")) if part)


FIELDS = fields_of(Settings)
"""Every setting by its name, in the order in which ``tandemq config show`` prints them."""
