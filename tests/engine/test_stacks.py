"""Sample n of arm k in replication r is a function of (seed, r, k, n) alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import COST, REWARD, stream

import costbandits as cb
from costbandits.engine import stacks

BANDIT = cb.Bandit([cb.Beta(1, 2), cb.Bernoulli(0.4), cb.TruncatedNormal(0, 1, 0, 1), cb.Discrete([0, 2], [0.3, 0.7])],
                   [cb.Beta(2, 1), cb.Constant(0.3), cb.Bernoulli(0.6), cb.Beta(0.5, 0.5)])


def sample(made, position, n):
    """Pair n of a position, found as the kernels find it."""
    return made.pool[made.table[position, n >> made.shift], n & (made.page - 1)]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**63), replication=st.integers(0, 10**6), order=st.permutations(range(4)),
       page=st.sampled_from([2, 16, 256]), growth=st.lists(st.integers(0, 3), max_size=14))
def test_pairs_depend_on_seed_replication_arm_and_number_alone(seed, replication, order, page, growth):
    made = stacks.Stacks(BANDIT, seed, replication, order, page)
    for position in growth:                                # pages of different arms interleave in the pool
        made.grow(position)
    for position, arm in enumerate(order):
        filled = int(made.filled[position])
        assert filled % page == 0 and filled > 0
        rewards = BANDIT.rewards[arm].sample(stream(seed, replication, REWARD, arm), filled)
        costs = BANDIT.costs[arm].sample(stream(seed, replication, COST, arm), filled)
        for n in {0, 1, filled // 2, filled - 1}:
            assert sample(made, position, n).tolist() == [rewards[n], costs[n]]


def test_streams_do_not_collide():
    """Also where plain lists such as [seed, replication] would: with trailing zeros, or seeds above 2**32."""
    keys = [(seed, r, purpose, arm) for seed in (0, 1, 2**32, 2**32 + 1) for r in (0, 1, 2**32) for purpose in range(5)
            for arm in (0, 1, 2)]
    assert len({stacks.stream(*key).integers(2**63) for key in keys}) == len(keys)
    assert stacks.stream(5, 6, 3).integers(2**63) == stacks.stream(5, 6, 3, 0).integers(2**63)


def test_draws_double_up_to_64_pages():
    made = stacks.Stacks(BANDIT, 0, 0, range(4), 2)
    filled = []
    for _ in range(9):
        filled.append(int(made.filled[1]) // 2)
        made.grow(1)
    assert np.diff(filled).tolist() == [2, 4, 8, 16, 32, 64, 64, 64] and filled[0] == 1
    assert made.filled[[0, 2, 3]].tolist() == [2, 2, 2]


@pytest.mark.parametrize("page", [3, 100, -2])
def test_pages_are_powers_of_two(page):
    with pytest.raises(ValueError, match=f"page = {page}: must be a power of two"):
        stacks.Stacks(BANDIT, 0, 0, range(4), page)
