"""Every policy pulls exactly the arms that a literal transcription of its paper's rule pulls."""

import numpy as np
import pytest
from reference import FAMILIES, INSTANCE, LITERAL, POLICIES, counted, literal_trajectory, looks, proving, stream

from costbandits.fast import kernel_of

pytestmark = pytest.mark.slow


# Of a policy whose kernel keeps to its law, and not to its pulls, the definition is played.
CASES = [(label, family) for label in POLICIES if label != "BTS" for family in FAMILIES]


# Transcriptions of indices that are solved for take as long as all others together; the others have two families each.
@pytest.mark.parametrize(("label", "family"), proving(CASES, *(
    (label, family) for label, family in CASES if family == "beta" or ("KL" in label and family != "bernoulli"))))
def test_pull_for_pull(label, family):
    for replication, K in enumerate((2, 4, 6)):
        bandit = FAMILIES[family](K)(stream(2024, replication, INSTANCE))
        budget = 400 * bandit.cost_means[bandit.ratios.argmax()]
        literal = literal_trajectory(LITERAL[label](K), bandit, budget, 2024, replication)
        assert np.bincount(literal).max() >= 30                       # from there on omega* differs from omega
        policy, kernel = POLICIES[label], kernel_of(POLICIES[label])
        fast = kernel is not None and kernel.same == "pulls"
        cuts, counts = looks(len(literal)), np.cumsum(np.eye(K, dtype=int)[literal], axis=0)
        assert np.array_equal(counted(policy, bandit, budget, 2024, replication, cuts, fast), counts[cuts - 1])
