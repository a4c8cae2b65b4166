"""A tree is one and the same sequence however it is read, and its outcomes are independent draws.

The statistical tests read trees of many keys. `LEVEL` is the probability that a right tree, with other keys, fails in
one of them: for a whole test, split evenly over its cases.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import COST, REWARD, digest, in_plain_python, run, same_record
from scipy import stats
from test_counts import fits

import costbandits as cb
from costbandits.engine import stacks, trees
from costbandits.engine.compilation import compiled_for
from costbandits.engine.driver import pull_once
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Arms
from costbandits.engine.trees import LEAF, block, read_on, skip, total

LEVEL = 1e-6
FIVE = cb.Discrete([0.1, 0.7, 0.3, 1.0, 0.0], [0.05, 0.4, 0.15, 0.3, 0.1])
TENTHS = cb.Discrete([0.1, 0.7], [0.25, 0.75])
ARMS = cb.Bandit(outcomes=[
    (cb.Bernoulli(0.3), cb.Constant(0.3)), (FIVE, cb.Bernoulli(0.6)), (cb.Constant(0.7), cb.Constant(0.1)),
    (TENTHS, FIVE), (cb.Beta(2, 1), cb.Bernoulli(0.5)), (cb.Bernoulli(0.9), cb.TruncatedNormal(0, 1, 0, 1)),
    cb.Pairs([0.1, 0.7, 0.3], [0.7, 0.3, 0.2], [0.2, 0.5, 0.3])])
COUNTED = [0, 1, 2, 3, 6]   # both outcomes of these arms have few values
N = 2**13                   # outcomes of an arm that are compared


@compiled_for()
def play(script, found, blocks, arms, outcomes):
    """Do as the rows (arm, size, whole) of a script say, and tell what was seen.

    Where an arm is at a leaf's border, and `whole` is set, the next block of up to `size` outcomes is pulled at once;
    else `size` outcomes one by one.
    """
    n, filled = arms.n, outcomes.filled
    for row in range(len(script)):
        k, size, whole = script[row]
        if n[k] + size > found.shape[1]:
            continue
        if whole == 1 and size >= LEAF and n[k] == filled[k]:
            first = n[k]
            size = block(k, first, size, outcomes)
            blocks[row, 0], blocks[row, 1] = first, size
            blocks[row, 2], blocks[row, 3] = total(k, 0, outcomes), total(k, 1, outcomes)
            skip(k, arms, outcomes)
        else:
            for _ in range(size):
                i = n[k]
                found[k, i, 0], found[k, i, 1] = pull_once(k, arms, outcomes)


class Reader:
    """A run that reads the stacks of a replication by scripts."""

    def __init__(self, stacks):
        K = len(stacks.laws)
        self.outcomes, self.found = stacks.outcomes(), np.full((K, N, 2), np.nan)
        self.arms, self.blocks = Arms.of(K), []

    def play(self, script):
        script = np.array(script, np.int64).reshape(-1, 3)
        told = np.zeros((len(script), 4))
        play(script, self.found, told, self.arms, self.outcomes)
        self.blocks += [(k, *row) for (k, _, _), row in zip(script.tolist(), told.tolist(), strict=True) if row[1] > 0]
        return self

    @property
    def sums(self):
        """Of rewards, costs, and their squares; of shape (4, K)."""
        return np.array(self.arms[1:])


def settled(law, values):
    """The sums of many outcomes and of their squares, from their counts in the order of the law's values."""
    once = squares = 0.0
    for value in stacks.counted(law)[0]:
        often = np.count_nonzero(values == value)
        once, squares = once + often * value, squares + often * (value * value)
    return once, squares


def sums_of(law, values):
    """What is known of an arm after these outcomes: settled at the last leaf's border, then added one by one."""
    border = len(values) // LEAF * LEAF if stacks.counted(law) else 0
    once, squares = settled(law, values[:border]) if border else (0.0, 0.0)
    for value in values[border:].tolist():
        once, squares = once + value, squares + value * value
    return once, squares


def check(reader, truth, bandit=ARMS):
    """That a reader has seen the true outcomes, blocks of them, and has canonical sums."""
    seen = ~np.isnan(reader.found)
    assert np.array_equal(reader.found[seen], truth[seen])
    for k, first, size, *totals in reader.blocks:
        first, size, laws = int(first), int(size), (bandit.rewards[k], bandit.costs[k])
        assert size & (size - 1) == 0 and first % size == 0 and (first & (first - 1) == 0 or size < first)
        assert totals == [settled(law, truth[k, first:first + size, c])[0] for c, law in enumerate(laws)]
    for k, n in enumerate(reader.arms.n.tolist()):
        (r, rr), (c, cc) = (sums_of(law, truth[k, :n, column])
                            for column, law in enumerate((bandit.rewards[k], bandit.costs[k])))
        assert reader.sums[:, k].tolist() == [r, c, rr, cc]


@pytest.fixture(scope="module")
def truth():
    """The first outcomes of all arms, read one after the other."""
    made = Stacks(ARMS, 0, 0, range(ARMS.K))
    return np.array([made.pairs(k, N) for k in range(ARMS.K)])


SIZES = st.one_of(st.integers(1, 200), st.sampled_from([63, 64, 65, 128, 256, 1000, 1024, 4096]))
SCRIPTS = st.lists(st.tuples(st.integers(0, ARMS.K - 1), SIZES, st.booleans()), max_size=40).map(
    lambda rows: [(k, size, whole and k in COUNTED) for k, size, whole in rows])


# --- one and the same sequence

@pytest.mark.slow
@settings(max_examples=200)
@given(scripts=st.lists(SCRIPTS, min_size=1, max_size=2), slots=st.sampled_from([1, 2, 16, 256]))
def test_a_stack_is_the_same_however_it_is_read(truth, scripts, slots):
    """By blocks and leaves of any size, arm by arm or all at once, after others, with any number of slots."""
    made = Stacks(ARMS, 0, 0, range(ARMS.K), slots)
    for script in scripts:
        check(Reader(made).play(script), truth)


@settings(max_examples=100)
@given(script=SCRIPTS, slots=st.sampled_from([1, 2, 16, 256]))
def test_two_runs_may_read_in_turn(truth, script, slots):
    """From one leaf's border to another; what a leaf holds is not asked for after another run has read on."""
    made = Stacks(ARMS, 0, 0, range(ARMS.K), slots)
    readers = Reader(made), Reader(made)
    for i, (k, size, whole) in enumerate(script):
        readers[i % 2].play([(k, -(-size // LEAF) * LEAF, whole)])
    for reader in readers:
        check(reader, truth)


@pytest.mark.parametrize("slots", [1, 2, 2**15])
def test_a_leaf_stays_while_it_is_read(truth, slots):
    """All arms in turn, one pull each: every leaf is read while all others are."""
    rows = [(k, 1, False) for _ in range(300) for k in range(ARMS.K)]
    made = Stacks(ARMS, 0, 0, range(ARMS.K), slots)
    for _ in range(2):
        reader = Reader(made).play(rows)
        assert reader.arms.n.tolist() == [300] * ARMS.K
        check(reader, truth)


def test_roots_lie_side_by_side():
    reader = Reader(Stacks(ARMS, 0, 0, range(ARMS.K))).play([(k, N // 2, True) for _ in range(7) for k in COUNTED])
    for k in COUNTED:
        assert [(first, size) for arm, first, size, *_ in reader.blocks if arm == k] == \
            [(0, 64), *((64 << level, 64 << level) for level in range(6))]


@pytest.mark.slow
def test_sums_do_not_depend_on_how_pulls_were_cut(truth):
    """To the last bit, though 0.1 and 0.7 have no exact sums, and at every number of pulls."""
    for n in [*range(60, 70), 127, 128, 129, 200, 640, 1000, 4095, 4096, 4097]:
        cuts = [[(k, 1, False)] * n for k in COUNTED], [[(k, n, False)] for k in COUNTED], \
            [[(k, 1 << bit, True) for bit in range(13, -1, -1) if n >> bit & 1] for k in COUNTED]
        found = []
        for rows in cuts:
            reader = Reader(Stacks(ARMS, 0, 0, range(ARMS.K)))
            for row in rows:
                reader.play(row)
            while (reader.arms.n[COUNTED] < n).any():
                reader.play([(k, n - reader.arms.n[k], True) for k in COUNTED])
            check(reader, truth)
            found.append(reader.sums.tobytes())
        assert len(set(found)) == 1
    naive = np.add.accumulate(truth[3, :, 0])
    assert naive[-1] != settled(TENTHS, truth[3, :, 0])[0]      # else there was nothing to see


# --- the law

@compiled_for()
def walk(keys, first, sizes, found, outcomes):
    """For each key the counts in blocks that follow each other from outcome `first` on, of up to `sizes`."""
    _, _, _, table, _, level, counts, kept, random = outcomes
    for i in range(len(keys)):
        random[4] = keys[i]
        kept[:, trees.NODE] = kept[:, trees.LEFT] = 0
        for k in range(len(table)):
            n, level[k, 0] = first, 0
            for j in range(len(sizes)):
                size = block(k, n, sizes[j], outcomes)
                for column in range(2):
                    for v in range(table[k, trees.KIND + column]):
                        found[i, k, column, j, v] = counts[k, column, level[k, 0], v]
                n += size
                level[k, 0] -= 1


@compiled_for()
def leaves(keys, leaf, out, arms, outcomes):
    """For each key the rewards and costs of the leaves before and after a border, one after the other."""
    pool, at, filled, _, _, level, _, kept, random = outcomes
    n = arms.n
    for i in range(len(keys)):
        random[4] = keys[i]
        kept[:, trees.NODE] = kept[:, trees.LEFT] = 0
        level[:, 0] = 0
        for k in range(n.size):
            n[k] = filled[k] = leaf * LEAF
            for part in range(2):
                read_on(k, arms, outcomes)
                out[i, k, part * LEAF:(part + 1) * LEAF] = pool[at[k] + n[k]:at[k] + filled[k]]
                n[k] = filled[k]


def counts_of(bandit, keys, first, sizes, values):
    """Counts of the first `values` values: shape (keys, arms, rewards and costs, blocks, values)."""
    found = np.zeros((len(keys), bandit.K, 2, len(sizes), values), np.int64)
    walk(np.asarray(keys, np.uint64), first, np.asarray(sizes, np.int64), found,
         Stacks(bandit, 0, 0, range(bandit.K), 1).outcomes())
    return found


SPLIT = cb.Bandit([cb.Bernoulli(0.3), cb.Bernoulli(0.3)], [FIVE, cb.Bernoulli(0.5)])
KEYS, LEAVES = 2500, 2**12 // LEAF * 2


@pytest.fixture(scope="module")
def in_leaves():
    """Counts in the first leaves, for many keys."""
    return counts_of(SPLIT, range(KEYS), 0, [LEAF] * LEAVES, 5)


LAWS = {"rewards": (0, 0, (0.3,)), "others": (1, 0, (0.3,)), "costs": (1, 1, (0.5,)),
        "five values": (0, 1, np.cumsum(FIVE.probabilities)[:4])}


@pytest.mark.parametrize("level", range(7))
@pytest.mark.parametrize("which", LAWS)
def test_block_counts_are_those_of_independent_draws(in_leaves, which, level):
    """Binomial at every level from 64 to 4096; of five values, so are the counts of the first one, two, three, four."""
    arm, column, chances = LAWS[which]
    size, cases = 1 << level, len(LAWS) * 7
    blocks = in_leaves[:, arm, column].reshape(KEYS, LEAVES // size, size, 5).sum(axis=2).cumsum(axis=2)
    for v, p in enumerate(chances):
        law = stats.binom(LEAF * size, p)
        assert fits(blocks[:, :, v].ravel(), law) > LEVEL / cases / len(chances) / 2
        for j in {0, 1, LEAVES // size - 1}:                            # a root and a block split from one
            assert fits(blocks[:, j, v], law) > LEVEL / cases / len(chances) / 6


def uncorrelated(x, y, level):
    """Whether no column of x goes with one of y, or with another one if y is x; all have mean 0."""
    r = (x / (x**2).mean(axis=0)**0.5).T @ (y / (y**2).mean(axis=0)**0.5) / len(x)**0.5
    r = r[np.triu_indices(len(r), 1)] if x is y else r.ravel()
    low, high = stats.chi2.ppf(level / 4, len(r)), stats.chi2.isf(level / 4, len(r))
    return np.abs(r).max() < stats.norm.isf(level / len(r) / 4) and low < (r**2).sum() < high


def standard(counts, size, p):
    return (counts - size * p) / np.sqrt(size * p * (1 - p))


def far(counts, size, p):
    """Whether a count is more than its standard deviation away from its mean, less the probability of that."""
    chance = stats.binom.pmf(np.arange(size + 1), size, p)[np.abs(standard(np.arange(size + 1), size, p)) > 1].sum()
    return (np.abs(standard(counts, size, p)) > 1) - chance


@pytest.mark.parametrize("of", [standard, far])
@pytest.mark.parametrize("level", range(6))
def test_blocks_streams_arms_and_keys_are_independent(in_leaves, level, of):
    """Their counts are not correlated, nor is how far these are from the mean: halves of a block, or of two.

    The same for rewards and costs of an arm, rewards of two arms of the same law, and keys side by side.
    """
    size, cases = 1 << level, 12 * 5
    sums = in_leaves.reshape(KEYS, 2, 2, LEAVES // size, size, 5).sum(axis=4)
    rewards, others, costs = (of(sums[:, arm, column, :, 0], LEAF * size, p)
                              for arm, column, p in ((0, 0, 0.3), (1, 0, 0.3), (1, 1, 0.5)))
    for x, y in ((rewards, rewards), (costs, costs), (rewards, others), (others, costs), (rewards[1:], rewards[:-1])):
        assert uncorrelated(x, y, LEVEL / cases)


def test_halves_of_a_block_are_not_correlated(in_leaves):
    """Of a block whose counts are given they would be; they are not over many keys."""
    for level in range(1, 7):
        size = 1 << level
        halves = in_leaves[:, 0, 0, size:2 * size, 0].reshape(KEYS, 2, size // 2).sum(axis=2)
        first, second = standard(halves, LEAF * size / 2, 0.3).T
        assert abs((first * second).mean()) * KEYS**0.5 < stats.norm.isf(LEVEL / 12)


def test_replications_and_seeds_are_independent():
    """Of the trees of 40 seeds and 40 replications, by the keys that stacks begin with."""
    keys = np.array([[Stacks(SPLIT, seed, r, [0, 1], 1).outcomes().random[4] for r in range(40)] for seed in range(40)])
    assert len(np.unique(keys)) == keys.size
    z = standard(counts_of(SPLIT, keys.ravel(), 0, [LEAF] * 64, 5)[:, 0, 0, :, 0], LEAF, 0.3).reshape(40, 40, 64)
    seeds, replications = z.reshape(40, -1).T, z.transpose(0, 2, 1).reshape(-1, 40)
    assert uncorrelated(seeds, seeds, LEVEL / 2) and uncorrelated(replications, replications, LEVEL / 2)


RARE = cb.Bandit([cb.Bernoulli(1e-6), cb.Bernoulli(0), cb.Constant(0.5)], [cb.Bernoulli(1 - 1e-6), cb.Bernoulli(1),
                                                                         cb.Discrete([3, 5], [1, 0])])


def test_skewed_laws():
    """One success in a million: blocks of 2**14 in a root of 2**20, one by one and all together."""
    found = counts_of(RARE, range(300), 2**20, [2**14] * 64, 2)
    for arm, column, v in ((0, 0, 0), (0, 1, 1)):
        for joined in (1, 8, 64):
            counts = found[:, arm, column, :, v].reshape(300, 64 // joined, joined).sum(axis=2).ravel()
            assert fits(counts, stats.binom(2**14 * joined, 1e-6)) > LEVEL / 6
    assert (found.sum(axis=-1) == 2**14).all()
    assert (found[:, 1:, :, :, 0] == [[[0], [2**14]], [[2**14], [2**14]]]).all()


@pytest.mark.parametrize("level", [40, 50, 59, 60, 61])
def test_big_blocks(level):
    """Roots of 2**40 to 2**61 outcomes, their halves, and so on down to a leaf: mean, variance, and nothing is lost."""
    sizes = [LEAF, *(LEAF << i for i in range(level - 6))]
    found = counts_of(SPLIT, range(600), 2**level, sizes, 5)
    assert (found.sum(axis=-1) == np.array(sizes)).all() and found.min() >= 0
    for arm, column, chances in LAWS.values():
        for v, p in enumerate(chances):
            z = standard(found[:, arm, column, :, :v + 1].sum(axis=-1), np.array(sizes, float), p).ravel()
            # A correct z has mean 0 and mean square 1; its kurtosis is below 3.1 even for a leaf.
            assert abs(z.mean()) < stats.norm.isf(LEVEL / 140) / len(z)**0.5
            assert abs((z**2).mean() - 1) < stats.norm.isf(LEVEL / 140) * (2.1 / len(z))**0.5
    whole = counts_of(SPLIT, range(600), 2**level, [2**61], 5)
    assert np.array_equal(whole[:, :, :, 0], found.sum(axis=3))         # the root is what its parts sum to


@pytest.mark.slow
def test_the_far_end():
    """The last root that ends below 2**61 is read to its end, and a leaf after it; none of these is kept."""
    made, sizes = Stacks(SPLIT, 0, 0, [0, 1], 4), [LEAF << i for i in range(53, -1, -1)]
    outcomes = made.outcomes()
    counts, found = np.zeros((1, 2, 2, 55, 5), np.int64), np.zeros((2, 2, 2 * LEAF, 2))
    walk(outcomes.random[4:], 2**60, np.array([*sizes, LEAF]), counts, outcomes)
    assert 2**60 + sum(sizes) + LEAF == 2**61 and (counts.sum(axis=-1) == [*sizes, LEAF]).all()
    arms = Arms.of(2)
    for i in range(2):
        leaves(outcomes.random[4:].copy(), 2**61 // LEAF, found[i:i + 1], arms, made.outcomes())
    assert np.array_equal(found[0], found[1]) and set(found[0, :, :, 0].ravel()) == {0.0, 1.0}
    assert arms.n.tolist() == [2**61 + 2 * LEAF] * 2 and not outcomes.kept[:, [trees.NODE, trees.LEFT]].any()


@pytest.mark.slow
@pytest.mark.parametrize("leaf", [0, 1, 4, 2**20])
def test_a_leaf_is_a_random_arrangement(leaf):
    """A single success is anywhere, two are at all distances; over the border to the next leaf it is the same."""
    rare = cb.Bandit([cb.Bernoulli(1 / 64)], [cb.Discrete([0, 1, 2, 3, 4], FIVE.probabilities)])
    keys, level = 20_000, LEVEL / 4 / 8
    found, made = np.zeros((keys, 1, 2 * LEAF, 2)), Stacks(rare, 0, 0, [0], 1)
    leaves(np.arange(keys, dtype=np.uint64), leaf, found, Arms.of(1), made.outcomes())
    rewards, costs = found[:, 0, :, 0], found[:, 0, :, 1].astype(int)
    for part in (rewards[:, :LEAF], rewards[:, LEAF:]):
        single, double = part[part.sum(axis=1) == 1], part[part.sum(axis=1) == 2]
        assert stats.chisquare(single.sum(axis=0)).pvalue > level
        places = np.argwhere(double)[:, 1].reshape(-1, 2)
        apart = np.bincount(places[:, 1] - places[:, 0], minlength=LEAF)[1:]
        assert stats.chisquare(apart, len(double) * np.arange(63, 0, -1) / 2016).pvalue > level
    assert stats.chisquare(rewards.sum(axis=0)).pvalue > level
    for first in (0, 63, 80):                                    # 63: the last of a leaf and the first of the next
        pairs = 5 * costs[:, first] + costs[:, first + 1]
        due = keys * np.outer(FIVE.probabilities, FIVE.probabilities).ravel()
        assert stats.chisquare(np.bincount(pairs, minlength=25), due).pvalue > level


# --- laws that are sampled in Python

class Typed(cb.Bernoulli):
    """A subclass samples as it likes, so nothing is known of it; it counts how often it is asked."""

    def sample(self, rng, size):
        object.__setattr__(self, "asked", getattr(self, "asked", 0) + 1)
        return super().sample(rng, size)


class Sixteenths(cb.distributions.Distribution):
    """A law of the reader's own, which has nothing of the library's classes."""

    mean, variance, support = 7.5 / 16, 85 / 4 / 256, (0.0, 15 / 16)

    def sample(self, rng, size):
        return rng.integers(0, 16, size) / 16


OWN = cb.Bandit([Typed(0.3), Sixteenths(), cb.Bernoulli(0.4), cb.Discrete(np.arange(40) / 40, np.full(40, 1 / 40))],
                [cb.Bernoulli(0.5), Sixteenths(), Typed(0.7), cb.Beta(1, 2)])
CHUNKS = [(0, 4), (4, 4), (8, 8), (16, 16), (32, 32), (64, 64), (128, 64), (192, 64)]


def test_typed_outcomes_are_sampled_in_chunks_that_have_a_key():
    made = Stacks(OWN, 3, 5, [2, 0, 3, 1])
    assert made.typed == [0, 1, 2, 3] and not made.counted
    for position, arm in enumerate([2, 0, 3, 1]):
        found = made.pairs(position, LEAF * 256)
        for column, law in enumerate((OWN.rewards[arm], OWN.costs[arm])):
            if stacks.counted(law) is None and type(law) is not cb.Beta:
                keys = [np.random.SeedSequence(3, spawn_key=(5, (REWARD, COST)[column], arm, first))
                        for first, _ in CHUNKS]
                chunks = [law.sample(np.random.default_rng(key), LEAF * often)
                          for key, (_, often) in zip(keys, CHUNKS, strict=True)]
                assert np.array_equal(found[:, column], np.concatenate(chunks))


def test_counted_outcomes_are_the_same_beside_typed_ones():
    other = cb.Bandit([cb.Beta(1, 1), cb.Beta(1, 1), cb.Bernoulli(0.4), FIVE],
                      [cb.Bernoulli(0.5), FIVE, cb.Beta(2, 2), cb.Beta(1, 2)])
    one, two = Stacks(OWN, 1, 2, range(4)), Stacks(other, 1, 2, range(4), 16)
    for k, column in ((0, 1), (2, 0), (3, 1)):
        assert np.array_equal(one.pairs(k, 5000)[:, column], two.pairs(k, 5000)[:, column])


@pytest.mark.parametrize("room", [0, 1, 2000, 2**22])
def test_memory_for_typed_outcomes_is_bounded(monkeypatch, room):
    monkeypatch.setattr(stacks, "ROOM", room)
    bandit = cb.Bandit([Typed(0.3), Typed(0.3)], [cb.Bernoulli(0.5)] * 2)
    made, fresh = Stacks(bandit, 0, 0, [0, 1]), Stacks(bandit, 0, 0, [0, 1])
    found = made.pairs(0, 10**4), made.pairs(1, 10**4)
    asked = sum(law.asked for law in bandit.rewards)
    held = sum(len(chunk) for chunk in made._sampled.values())
    assert held <= room + stacks.LONGEST * LEAF
    assert np.array_equal(found, [made.pairs(0, 10**4), made.pairs(1, 10**4)])
    assert (sum(law.asked for law in bandit.rewards) == asked) == (room == 2**22)
    assert np.array_equal(found, [fresh.pairs(0, 10**4), fresh.pairs(1, 10**4)])


def test_runs_on_typed_outcomes():
    """A run leaves its loop to sample; by blocks and in full, with few slots and many, it is the same."""
    shares = 800 * np.arange(1, 41) / 40
    for policy in (cb.OmegaUCB(), cb.BTS()):
        found = [run(policy, OWN, shares, stacks=Stacks(OWN, 0, 0, range(4), slots), fast=fast)
                 for slots in (1, 64) for fast in (True, False)[:1 + isinstance(policy, cb.OmegaUCB)]]
        for status, table, _ in found:
            assert status == found[0][0] and same_record(table, found[0][1])
        n, *sums = found[0][1].state.arms
        for k in range(OWN.K):
            pairs = found[0][1].stacks.pairs(k, int(n[k]))
            assert np.array(sums)[:, k] == pytest.approx(np.hstack([pairs, pairs**2]).sum(axis=0), rel=1e-12)


# --- plain Python

def everything():
    """A digest of what is read in several ways."""
    with np.errstate(over="ignore"):
        parts = []
        for slots in (2, 64):
            reader = Reader(Stacks(ARMS, 7, 8, range(ARMS.K), slots))
            reader.play([(k, size, whole) for size, whole in ((70, 0), (58, 0), (1000, 1), (64, 1), (512, 1), (100, 0))
                         for k in range(ARMS.K)])
            parts += [reader.found, reader.sums, np.array(reader.blocks)]
        parts += [counts_of(SPLIT, range(2), 2**50, [2**45, 2**12, 64], 5)]
        made = Stacks(OWN, 7, 8, range(4))
        made.read_on(made.outcomes(), Arms.of(4))
        return digest(*parts, made.pairs(0, 300), made.pairs(3, 300))


@pytest.mark.slow
def test_the_same_bits_in_plain_python():
    assert in_plain_python("test_trees", "m.everything()") == everything()
