"""A job queue and a message broker in one server."""

from __future__ import annotations

__version__ = "0.1.0"
