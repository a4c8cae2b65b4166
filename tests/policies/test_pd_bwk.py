"""PD-BwK against numbers worked out by hand, and the end that it needs."""

from math import inf, sqrt

import numpy as np
import pytest
from reference import index_value

import costbandits as cb
from costbandits.policies import pd_bwk
from costbandits.policies.base import Problem

INDICES = {
    # g = 1, n = 16: rad(1/4) = 1/8 + 1/16, rad(1/2) = sqrt(1/32) + 1/16
    "PD-BwK": ((99, 16, 0.25, 0.5), 0.4375 / (0.4375 - sqrt(1 / 32))),
    "PD-BwK, zero cost": ((99, 16, 0.25, 0.0), inf),
    # c = rad(c, n) at sqrt(c) = (1 + sqrt 5)/2 sqrt(g/n): 0.1636 here
    "PD-BwK, below": ((99, 16, 0.25, 0.163), inf),
}


@pytest.mark.parametrize("case", INDICES)
def test_pd_bwk_by_hand(case):
    arguments, expected = INDICES[case]
    assert index_value(pd_bwk.pd_bwk, *arguments, constant=1.0) == pytest.approx(expected, rel=1e-11)


def test_pd_bwk_needs_an_end():
    with pytest.raises(ValueError, match="no budget and no horizon': PDBwK needs one of them, or a constant"):
        cb.PDBwK().check(Problem(2, np.array([0.3, 0.2]), inf, False))
