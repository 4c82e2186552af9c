"""The reference server's own variable names, and its defaults where a variable is missing.

Only ``--compat-env`` looks here. Two things differ from the reference on purpose: without HOST
the server stays on 127.0.0.1, and a value that makes no sense is an error, not a silent default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tandemq.config.layers import Given, Layer

_DEFAULTS: dict[str, object] = {
    "data": "memory",
    "requests_per_minute": 10_000,
    "login_limit": 0,
    "insecure": True,
}


def _as_it_is(text: str) -> str:
    return text


def _milliseconds(text: str) -> str:
    return f"{text}ms" if text.strip().isdigit() else text


def _level(text: str) -> str:
    return "warning" if text.strip().lower() == "warn" else text


def _format(text: str) -> str:
    return "json" if text.strip().lower() == "json" else "console"


_NAMES: dict[str, tuple[tuple[str, ...], Callable[[str], str]]] = {
    "host": (("HOST",), _as_it_is),
    "port": (("TCP_PORT",), _as_it_is),
    "http_port": (("HTTP_PORT",), _as_it_is),
    "cors_origins": (("CORS_ALLOW_ORIGIN",), _as_it_is),
    "data": (("BUNQUEUE_DATA_PATH", "BQ_DATA_PATH", "DATA_PATH", "SQLITE_PATH"), _as_it_is),
    "tokens": (("AUTH_TOKENS",), _as_it_is),
    "tls_cert": (("TLS_CERT_FILE",), _as_it_is),
    "tls_key": (("TLS_KEY_FILE",), _as_it_is),
    "requests_per_minute": (("RATE_LIMIT_MAX_REQUESTS",), _as_it_is),
    "request_window_ms": (("RATE_LIMIT_WINDOW_MS",), _as_it_is),
    "half_frame_timeout": (("TCP_IDLE_TIMEOUT_MS",), _milliseconds),
    "max_unread_bytes": (("TCP_MAX_WRITE_QUEUE_BYTES",), _as_it_is),
    "max_completed": (("BUNQUEUE_MAX_COMPLETED_JOBS", "MAX_COMPLETED_JOBS"), _as_it_is),
    "completed_retention": (
        ("BUNQUEUE_COMPLETED_RETENTION_MS", "COMPLETED_RETENTION_MS"),
        _as_it_is,
    ),
    "worker_timeout_ms": (("WORKER_TIMEOUT_MS",), _as_it_is),
    "webhook_max_retries": (("WEBHOOK_MAX_RETRIES",), _as_it_is),
    "webhook_retry_delay_ms": (("WEBHOOK_RETRY_DELAY_MS",), _as_it_is),
    "metrics_auth": (("METRICS_AUTH",), _as_it_is),
    "metrics_max_queues": (("METRICS_MAX_QUEUES",), _as_it_is),
    "shutdown_timeout": (("SHUTDOWN_TIMEOUT_MS",), _milliseconds),
    "log_level": (("LOG_LEVEL",), _level),
    "log_format": (("LOG_FORMAT",), _format),
}


def reference_layer(environ: Mapping[str, str]) -> Layer:
    """What the reference's variables give; the first of several names for one thing wins."""
    layer = {name: Given(raw, "reference default") for name, raw in _DEFAULTS.items()}
    for setting, (variables, convert) in _NAMES.items():
        for variable in reversed(variables):
            if text := environ.get(variable):
                layer[setting] = Given(convert(text), variable)
    return layer
