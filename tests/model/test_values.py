"""Values that only some peers can write."""

from __future__ import annotations

from tandemq.model.values import WideInteger


def test_a_wide_integer_is_a_number_that_can_be_told_from_others() -> None:
    wide = WideInteger(2**63)
    assert wide == 2**63
    assert isinstance(wide, int)
    assert not isinstance(2**63, WideInteger)
