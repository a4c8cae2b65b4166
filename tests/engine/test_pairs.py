"""What a pull pays and costs is one pair of its law, however many pairs there are and however they are read."""

import numpy as np
import pytest
from scipy import stats

import costbandits as cb
from costbandits.engine.stacks import Stacks

RISK = 1e-6             # of one test, were the seed drawn anew
RNG = np.random.default_rng(3)
FEW = np.array([[0.0, 0.0], [0.0, 0.25], [1.0, 0.25], [1.0, 1.0]])
MANY = np.column_stack([RNG.random(50) < 0.2, RNG.random(50)])     # few rewards, and too many pairs to be counted


def drawn(law, count=20_000, **others):
    return Stacks(cb.Bandit(outcomes=[(cb.Bernoulli(0.5), cb.Constant(1.0)), law]), 0, 0, [1, 0]).pairs(0, count)


@pytest.mark.parametrize("pairs, chances", [(FEW, [0.4, 0.3, 0.2, 0.1]), (FEW, None), (MANY, None),
                                            (MANY, RNG.dirichlet(np.ones(50)))], ids=["few", "rows", "many", "weights"])
def test_pairs_are_drawn_with_their_chances(pairs, chances):
    found, often = np.unique(drawn(cb.Pairs(*pairs.T, chances)), axis=0, return_counts=True)
    order = np.lexsort(pairs.T[::-1])
    assert np.array_equal(found, pairs[order])
    expected = np.full(len(pairs), 1 / len(pairs)) if chances is None else np.array(chances)[order]
    assert stats.chisquare(often, expected / expected.sum() * often.sum()).pvalue > RISK


@pytest.mark.parametrize("pairs", [FEW, MANY], ids=["few", "many"])
def test_successive_pairs_and_arms_are_independent(pairs):
    law = cb.Pairs(*pairs.T)
    x, y = (Stacks(cb.Bandit(outcomes=[law] * 2), 0, 0, [0, 1]).pairs(k, 20_000) for k in range(2))
    for one, two in ((x[1:], x[:-1]), (x, y), (x, y[:, ::-1])):
        for column in range(2):
            assert abs(np.corrcoef(one[:, column], two[:, column])[0, 1]) * len(one)**0.5 < stats.norm.isf(RISK / 12)


def test_rows_of_a_log_in_another_order_are_the_same_law():
    again = np.random.default_rng(1).permutation(MANY)
    assert np.array_equal(drawn(cb.Pairs(*MANY.T)), drawn(cb.Pairs(*again.T)))


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("pairs", [FEW, MANY], ids=["few", "many"])
def test_beside_a_constant_nothing_is_joint(pairs, column):
    """The very outcomes of two independent laws, and a price that is the same is one that is known."""
    fixed = pairs.copy()
    fixed[:, column] = 0.3
    law = cb.Pairs(*fixed.T)
    assert (law.rewards, law.costs)[column] == cb.Constant(0.3) and np.isnan(law.correlation)
    assert np.array_equal(drawn(law), drawn((law.rewards, law.costs)))


def test_blocks_hold_pairs():
    """A long run's reward and spending, of pairs on a line, are on that line."""
    line = np.arange(32) / 32
    bandit = cb.Bandit(outcomes=[cb.Pairs(line / scale, 1 - line / 2) for scale in (1, 1.5, 2)])
    runs = cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(1e6), checkpoints=1, shuffle=False)
    pulls = runs.pulls[0, 0, -1]
    counts = [Stacks(bandit, 0, 0, range(3)).pairs(k, int(n)).sum(axis=0) for k, n in enumerate(pulls)]
    assert [runs.reward[0, 0, -1], runs.spent[0, 0, -1]] == pytest.approx(np.sum(counts, axis=0), rel=1e-12)
    for (reward, cost), n, scale in zip(counts, pulls, (1, 1.5, 2), strict=True):
        assert cost == pytest.approx(n - reward * scale / 2, rel=1e-9)
