"""The HTTP face: routes of the commands, and what only HTTP has."""

from __future__ import annotations
