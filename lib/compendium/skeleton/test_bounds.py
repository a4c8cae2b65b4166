"""The bounds of the skeleton paper."""

import pytest

from costbandits.theory.bounds import skeleton as bounds


def test_theorem_1_by_hand():
    assert bounds.theorem_1(0.5, 1) == 4.3 and bounds.theorem_1(0.5, 100) == pytest.approx(32 * 4.60517 + 4.3)


def test_a_gap_of_zero_is_refused():
    with pytest.raises(ValueError, match="gap = 0"):
        bounds.theorem_1(0, 100)
