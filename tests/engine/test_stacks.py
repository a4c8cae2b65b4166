"""Outcome n of arm k in replication r is a function of (seed, r, k, n) alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import costbandits as cb
from costbandits.engine import stacks, trees
from costbandits.engine.stacks import Stacks


class Own(cb.distributions.Distribution):
    """A law of the reader's own."""

    mean, variance, support = 0.5, 1 / 12, (0.0, 1.0)

    def sample(self, rng, size):
        return rng.random(size)


MANY = cb.Discrete(np.arange(33) / 32, np.full(33, 1 / 33))         # too many values to be counted
REWARDS = [cb.Beta(1, 2), cb.Bernoulli(0.4), cb.TruncatedNormal(0, 1, 0, 1), cb.Discrete([0, 2], [0.3, 0.7]), Own(),
           cb.Discrete([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4])]
COSTS = [cb.Beta(2, 1), cb.Constant(0.3), cb.Bernoulli(0.6), cb.Beta(0.5, 0.5), cb.Bernoulli(0.5), MANY]
PAIRS = np.random.default_rng(5).random((2, 40))
OUTCOMES = [*zip(REWARDS, COSTS, strict=True), cb.Pairs(*PAIRS[:, :9]), cb.Pairs(*PAIRS)]
BANDIT = cb.Bandit(outcomes=OUTCOMES)
K, N = BANDIT.K, 1000


@settings(max_examples=40)
@given(seed=st.integers(0, 2**63), replication=st.integers(0, 2**62), order=st.permutations(range(K)),
       company=st.integers(1, K), slots=st.sampled_from([1, 4, 1024]),
       reads=st.lists(st.tuples(st.integers(0, K - 1), st.integers(0, N)), max_size=12))
def test_pairs_depend_on_seed_replication_arm_and_number_alone(seed, replication, order, company, slots, reads):
    """Not on where an arm stands, on how much of others was read, on slots, nor on who else is in the bandit."""
    plain = Stacks(BANDIT, seed, replication, range(K), 16)
    expected = [plain.pairs(arm, N) for arm in range(K)]
    shuffled = Stacks(BANDIT, seed, replication, order, slots)
    for position, count in reads:
        assert np.array_equal(shuffled.pairs(position, count), expected[order[position]][:count])
    few = Stacks(cb.Bandit(outcomes=OUTCOMES[:company]), seed, replication, range(company), slots)
    for arm in range(company):
        assert np.array_equal(few.pairs(arm, N), expected[arm])
        assert np.array_equal(shuffled.pairs(order.index(arm), N), expected[arm])


def test_all_that_a_pair_depends_on_matters():
    """Of arms with the same laws: seed, replication, arm, and whether it is the reward or the cost."""
    same = cb.Bandit([cb.Bernoulli(0.5)] * 3 + [cb.Beta(1, 1)] * 3 + [Own()] * 3,
                     [cb.Bernoulli(0.5)] * 3 + [cb.Beta(1, 1)] * 3 + [Own()] * 3)
    found = []
    for seed, replication in [(0, 0), (0, 1), (1, 0), (1, 1), (2**32, 0), (0, 2**32), (2**32 + 1, 0), (2**63, 5)]:
        made = Stacks(same, seed, replication, range(9), 64)
        found += [column.tobytes() for k in range(9) for column in made.pairs(k, 256).T]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("replications", "chunks"), [((0, 1, 2**32), False), ((0, 1, 2**32 - 1), True)])
def test_streams_do_not_collide(replications, chunks):
    """Also where plain lists such as [seed, replication] would: with trailing zeros, or seeds above 2**32.

    With chunks they do from replication 2**32 on: it takes two words of a key, and then looks like a chunk of another.
    """
    keys = [(seed, r, purpose, arm) for seed in (0, 1, 2**32, 2**32 + 1) for r in replications for purpose in range(7)
            for arm in (0, 1, 2)]
    keys += [(*key, chunk) for key in keys for chunk in (0, 1, 4, 8) if chunks]
    assert len({stacks.stream(*key).integers(2**63) for key in keys}) == len(keys)
    assert stacks.stream(5, 6, 3).integers(2**63) == stacks.stream(5, 6, 3, 0).integers(2**63)


def test_laws_that_are_counted():
    """The library's own with up to 32 values; a subclass may sample as it likes."""
    class Mine(cb.Bernoulli):
        pass

    five = cb.Discrete([0, 1, 2, 3, 4], [0.1, 0, 0.2, 0.3, 0.4])
    assert stacks.counted(five) == (five.values, five.probabilities)
    assert stacks.counted(cb.Constant(3)) == ((3,), (1.0,))
    assert stacks.counted(cb.Discrete(np.arange(32), np.full(32, 1 / 32))) is not None
    values, chances = stacks.counted(cb.Empirical([4, 0, 4, 1]))
    assert values.tolist() == [0, 1, 4] and chances.tolist() == [0.25, 0.25, 0.5]
    assert stacks.counted(cb.Empirical(np.arange(32))) and not stacks.counted(cb.Empirical(np.arange(33)))
    assert [stacks.counted(law) for law in (MANY, Mine(0.5), cb.Beta(1, 1), Own())] == [None] * 4


@pytest.mark.parametrize(("rewards", "costs", "counted", "negative", "typed"), [
    (cb.Bernoulli(0.5), cb.Constant(1), True, False, []), (cb.Beta(1, 1), cb.Constant(1), False, False, []),
    (cb.Bernoulli(0.5), Own(), False, False, [0]), (MANY, cb.Bernoulli(1), False, False, [0]),
    (cb.Discrete([-1, 1], [0.5, 0.5]), cb.Constant(1), True, True, []),
    (cb.Bernoulli(0.5), cb.Constant(-1), True, True, []), (cb.TruncatedNormal(0, 1, -1, 1), Own(), False, True, [0])])
def test_what_is_told_of_all_laws(rewards, costs, counted, negative, typed):
    made = Stacks(cb.Bandit([rewards], [costs]), 0, 0, [0], 1)
    assert (made.counted, made.negative, made.typed) == (counted, negative, typed)
    assert made.most == (np.inf if MANY in (rewards, costs) and max(MANY.values) > 1 else 1.0)
    assert Stacks(cb.Bandit([rewards], [cb.Constant(1.1)]), 0, 0, [0], 1).most == np.inf


def test_chances_are_those_of_what_is_left():
    """A value's probability over that of all not before it; of the last one whatever rounding says."""
    law = cb.Discrete([5, 6, 7, 8, 9], [0.1, 0.2, 0.3, 0.4 - 1e-17, 0.0])
    laws = Stacks(cb.Bandit([law], [cb.Constant(1)]), 0, 0, [0], 1).outcomes().laws[0]
    assert laws[0, :5].tolist() == list(law.values) and laws[1, 0] == 1
    assert laws[0, 5:9] == pytest.approx([0.1, 0.2 / 0.9, 0.3 / 0.7, 1.0], rel=1e-12) and laws.max() <= 9
    assert (laws[0, 5:10] <= 1).all() and (laws[0, 5:10] >= 0).all()


@pytest.mark.parametrize("chances", [[0.1, 0.2, 0.7, 0.0], [0.7, 0.2, 0.1, 0.0, 0.0], [0.0, 1.0, 0.0], [1 / 3] * 3])
def test_the_last_value_that_is_possible_takes_what_is_left(chances):
    """However the probabilities round: or else a value of probability 0 would occur once in 2**52 pulls."""
    law = cb.Discrete(np.arange(float(len(chances))), chances)
    laws = Stacks(cb.Bandit([law], [cb.Constant(1)]), 0, 0, [0], 1).outcomes().laws[0]
    last = np.flatnonzero(chances)[-1]
    assert laws[0, len(chances) + last] == 1.0


@pytest.mark.parametrize("chances", [[1.0, 2.5e-24, 8.9e-22], [0.5, 0.5, 1e-10, 1e-10], [0.5, 0.5 + 1e-10, 0.0, 1e-10]])
def test_where_nothing_is_left_nothing_is_divided(chances):
    """Probabilities add up to 1 but for rounding: those before the last possible value may do so already."""
    made = Stacks(cb.Bandit([cb.Discrete(np.arange(float(len(chances))), chances)], [cb.Constant(1)]), 0, 0, [0], 1)
    assert made.outcomes().laws[0, 0, len(chances) + 2:2 * len(chances)].tolist() == [1.0] * (len(chances) - 2)
    assert made.pairs(0, 500)[:, 0].max() <= 1


def test_outcomes_are_read_from_their_beginning():
    """Whatever another run has read; what is kept is shared, how far one has come is not."""
    made = Stacks(BANDIT, 0, 0, range(K), 64)
    expected = made.pairs(1, 500)
    first, second = made.outcomes(), made.outcomes()
    assert first.kept is second.kept and first.pool is second.pool
    for name in ("at", "filled", "level", "counts", "random"):
        assert not np.shares_memory(getattr(first, name), getattr(second, name))
    assert not second.filled.any() and not second.level[:, 0].any() and not second.counts[:, :, 0].any()
    assert np.array_equal(made.pairs(1, 500), expected)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 255, 256, 257, 511, 512, 513, 4096, 4097])
def test_pairs_of_any_number(count):
    made = Stacks(BANDIT, 0, 0, range(K), 64)
    for k in range(K):
        longest = made.pairs(k, 5000)
        assert longest.shape == (5000, 2) and np.array_equal(made.pairs(k, count), longest[:count])


def test_typed_outcomes_are_asked_for_in_growing_chunks():
    asked = []

    class Told(Own):
        def sample(self, rng, size):
            asked.append(size // trees.LEAF)
            return super().sample(rng, size)

    Stacks(cb.Bandit([Told()], [cb.Constant(1)]), 0, 0, [0], 1).pairs(0, trees.LEAF * 256)
    assert asked == [4, 4, 8, 16, 32, 64, 64, 64]


class Rarely(cb.distributions.Distribution):
    """Uniform, but for what comes up beyond the samples that are looked at before anything is played."""

    mean, variance, support = 0.5, 1 / 12, (0.0, 1.0)

    def __init__(self, spoil, support=(0.0, 1.0)):
        self.spoil, self.support = spoil, support

    def sample(self, rng, size):
        x = rng.random(size)
        return self.spoil(x) if size not in (3, 5, 8, 10_000) else x


@pytest.mark.parametrize(("spoil", "support", "said"), [
    (lambda x: np.where(x < 0.01, np.nan, x), (0.0, 1.0), "= nan: must return finite numbers"),
    (lambda x: np.where(x < 0.01, np.inf, x), (0.0, np.inf), "= inf: must return finite numbers"),
    (lambda x: np.where(x < 0.01, -np.inf, x), (-np.inf, 1.0), "= -inf: must return finite numbers"),
    (lambda x: np.where(x < 0.01, 1.25, x), (0.0, 1.0), r"= 1\.25: must lie in the support, \(0, 1\)"),
    (lambda x: np.where(x < 0.01, -0.25, x), (0.0, 1.0), r"= -0\.25: must lie in the support, \(0, 1\)"),
    (lambda x: x[:, None], (0.0, 1.0), r"= \(256, 1\): must return an array of shape \(size,\)"),
    (lambda x: x[0], (0.0, 1.0), r"= \(\): must return an array of shape \(size,\)"),
    (lambda x: x.astype(str), (0.0, 1.0), "= .*: must return finite numbers"),
    (lambda x: x + 0j, (0.0, 1.0), "= .*: must return finite numbers")])
@pytest.mark.parametrize("what", ["reward", "cost"])
def test_each_block_of_a_readers_law_is_checked_as_it_is_drawn(spoil, support, said, what):
    laws = [cb.Constant(0.5), Rarely(spoil, support)]
    bandit = cb.Bandit(*(laws, [cb.Constant(0.5)] * 2)[::1 if what == "reward" else -1])
    with pytest.raises(ValueError, match=rf"Rarely\.sample, {what} of arm 1 {said}"):
        cb.simulate({"b": cb.BGreedy()}, bandit, cb.Budget(50))
