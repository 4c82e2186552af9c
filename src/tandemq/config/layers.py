"""A layer: what one source gives, before anybody has looked at the values."""

from __future__ import annotations

from typing import NamedTuple


class Given(NamedTuple):
    """A text or value, and where: ``--port``, ``TANDEMQ_PORT``, ``port in x.toml``."""

    raw: object
    source: str


Layer = dict[str, Given]
"""What a source gives, by the name of the setting."""
