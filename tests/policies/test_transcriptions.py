"""Every policy pulls exactly the arms that a literal transcription of its paper's rule pulls."""

import numpy as np
import pytest
from reference import FAMILIES, INSTANCE, LITERAL, POLICIES, literal_trajectory, stream, trajectory

import costbandits as cb

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", FAMILIES)
# BTS and b-greedy play by the same law, but not pull for pull: see test_thompson and test_classics.
@pytest.mark.parametrize("label", [label for label in POLICIES if label != "BTS"])
def test_pull_for_pull(label, family):
    for replication, K in enumerate((2, 4, 6)):
        bandit = FAMILIES[family](K)(stream(2024, replication, INSTANCE))
        budget = 400 * bandit.cost_means[bandit.ratios.argmax()]
        literal = literal_trajectory(LITERAL[label](K), bandit, budget, 2024, replication)
        assert np.bincount(literal).max() >= 30                       # from there on omega* differs from omega
        policy = cb.ChoosePolicy(cb.BGreedy.rule) if label == "b-greedy" else POLICIES[label]
        assert trajectory(policy, bandit, budget, 2024, replication, len(literal)).tolist() == literal.tolist()
