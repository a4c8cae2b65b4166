"""The policies of the skeleton paper."""

import numpy as np
import pytest

import costbandits as cb
from costbandits.engine.state import Arm
from costbandits.policies.skeleton import Alpha, Skeleton, skeleton


def test_the_index_by_hand():
    # Round 8, 2 pulls, rewards 1 and costs 0.5 in all: (1 + sqrt(2 log 8)) / 0.5.
    arm = Arm(2, 1.0, 0.5, 1.0, 0.25, 0.0)
    assert skeleton(8, arm, Alpha(1.0)) == pytest.approx(2 * (1 + np.sqrt(2 * np.log(8))))


def test_it_plays():
    bandit = cb.Bandit([cb.Bernoulli(0.9), cb.Bernoulli(0.1)], [cb.Bernoulli(0.5)] * 2)
    pulls = cb.simulate({"it": Skeleton(0.5)}, bandit, cb.Budget(200)).pulls[0, 0, -1]
    assert pulls[0] > pulls[1] > 0
