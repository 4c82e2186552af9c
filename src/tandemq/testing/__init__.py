"""Tests of programs that use queues: the real engine in the test's process, and its clock."""

from __future__ import annotations

from tandemq.testing.stage import Stage as Stage

__all__ = ["Stage"]
