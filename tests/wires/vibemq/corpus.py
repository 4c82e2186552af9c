"""The golden frames and recorded sessions, where they are at hand (TANDEMQ_SHARED)."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("TANDEMQ_SHARED") or Path(__file__).parents[4] / "shared")
CORPUS = SHARED / "corpus" / "vibemq"

needed = pytest.mark.skipif(not CORPUS.exists(), reason=f"the recordings are not at {SHARED}")


@cache
def lines(name: str) -> list[dict[str, Any]]:
    """The records of a file; none at all where the corpus is missing."""
    file = CORPUS / name
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]


def each(records: Iterable[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", list(records), ids=lambda vector: vector["id"])


def valid(name: str) -> list[dict[str, Any]]:
    return [vector for vector in lines(f"vectors/{name}_vectors.jsonl") if vector["valid"]]


def malformed(name: str) -> list[dict[str, Any]]:
    return [vector for vector in lines(f"vectors/{name}_vectors.jsonl") if not vector["valid"]]


def data(vector: dict[str, Any]) -> bytes:
    """The whole frame of a vector."""
    found = bytes.fromhex(vector["hex"]) if "hex" in vector else built(vector["build"])
    if "sha256" in vector:
        assert hashlib.sha256(found).hexdigest() == vector["sha256"]
    return found


def built(steps: list[list[Any]]) -> bytes:
    parts = []
    for step, *rest in steps:
        match step:
            case "hex":
                parts.append(bytes.fromhex(rest[0]))
            case "repeat":
                parts.append(bytes.fromhex(rest[0]) * rest[1])
            case "gzip":
                packer = zlib.compressobj(1, zlib.DEFLATED, 31)
                parts.append(packer.compress(built(rest[0])) + packer.flush())
            case "frame":
                inner = built(rest[1])
                parts.append(len(inner).to_bytes(4, "big") + bytes((rest[0],)) + inner)
    return b"".join(parts)


@cache
def sessions() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Header and frames of each recorded session."""
    found = []
    for file in sorted(CORPUS.glob("recorded/*.jsonl")):
        header, *events = lines(f"recorded/{file.name}")
        found.append((header, [event for event in events if "hex" in event]))
    return found
