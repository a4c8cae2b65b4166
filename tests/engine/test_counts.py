"""Counts have exactly the law that they should have.

Every statistical test here draws from fixed keys. `LEVEL` is the probability that a correct sampler, with other keys,
fails in one of them: 1e-6 for a whole test, split evenly over its cases.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import in_plain_python
from scipy import stats

from costbandits.engine import counts, keyed
from costbandits.engine.compilation import compiled_for

LEVEL = 1e-6
SPLITS = [(128, 64, 64), (128, 1, 64), (128, 17, 64), (128, 125, 64), (1024, 512, 512), (4096, 2048, 2048),
          (4096, 3, 2048), (2**14, 5000, 2**13), (2**20, 2**19, 2**19), (2**20, 2**17, 2**19),
          (2**20, 2**20 - 12_000, 2**19), (2**20, 1, 2**19), (2**20 - 64, 2**18 + 5, 2**19 - 77), (2**20, 1, 3),
          (2, 1, 1), (3, 2, 2), (7, 3, 4), (50, 49, 3), (100, 30, 47), (111, 64, 110), (3000, 700, 1400),
          (10**5, 99_000, 98_000), (10**6, 10_000, 20_000), (10**6, 30_000, 971_000)]
TRIALS = [(1, 0.5), (1, 1e-6), (2, 1 - 1e-6), (10, 0.3), (64, 0.5), (64, 0.01), (1000, 0.5), (1000, 0.99), (2000, 0.5),
          (10**5, 0.3), (2**20, 1e-6), (2**20, 0.5), (2**20, 0.001), (2**20, 0.97), (2**20, 1 - 1e-6)]


@compiled_for()
def binomials(state, N, p, out):
    for i in range(len(out)):
        out[i] = counts.binomial(state, N, p)


@compiled_for()
def hypergeometrics(state, total, marked, drawn, out):
    for i in range(len(out)):
        out[i] = counts.hypergeometric(state, total, marked, drawn)


@compiled_for()
def arrangements(state, given, watched, out):
    """For each arrangement which values stand at the watched positions, as the digits of one number."""
    values, row = np.arange(len(given)) * 1.0, np.zeros((64, 3))
    for i in range(len(out)):
        counts.scatter(state, given, values, row[:, 1])
        for position in watched:
            out[i] = len(given) * out[i] + np.int64(row[position, 1])


def generator(key):
    state = np.zeros(4, np.uint64)
    keyed.start(state, np.uint64(key), 0, 0, 0)
    return state


def draws(sampler, *parameters, n, key=1):
    out = np.zeros(n, np.int64)
    sampler(generator(key), *parameters, out)
    return out


def fit(observed, expected):
    """The p-value of a chi-square test. Neighbouring cells are pooled until 20 are expected in each."""
    cells = [[0.0, 0.0]]
    for seen, due in zip(observed, expected, strict=True):
        if cells[-1][1] >= 20:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += due
    if len(cells) > 1 and cells[-1][1] < 20:
        seen, due = cells.pop()
        cells[-1][0] += seen
        cells[-1][1] += due
    if len(cells) == 1:
        return 1.0
    seen, due = np.transpose(cells)
    assert due.sum() == pytest.approx(sum(observed), rel=1e-6)
    return stats.chi2.sf(((seen - due) ** 2 / due).sum(), len(due) - 1)


def fits(sample, law):
    """The p-value of a chi-square test of counts against a law of SciPy; each tail is one cell."""
    low, high = int(sample.min()), int(sample.max())
    expected = law.pmf(np.arange(low, high + 1))
    expected[0], expected[-1] = law.cdf(low), law.sf(high - 1)
    if low == high:
        return law.pmf(low) ** len(sample)
    return fit(np.bincount(sample - low), len(sample) * expected)


# --- probabilities

def split_probability(total, marked, drawn, x):
    law, scale = counts._hypergeometric_law(total, marked, drawn)
    return scale * counts._hypergeometric_weight(x, law)


def trials_probability(N, p, x):
    law, scale = counts._binomial_law(N, p)
    return scale * counts._binomial_weight(x, law)


def log_choices(n, k):
    return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)


def test_small_probabilities_are_those_of_counting():
    for total in range(2, 15):
        for marked in range(1, total):
            for drawn in range(1, total):
                for x in range(max(0, marked + drawn - total), min(marked, drawn) + 1):
                    exact = Fraction(math.comb(marked, x) * math.comb(total - marked, drawn - x),
                                     math.comb(total, drawn))
                    assert split_probability(total, marked, drawn, x) == pytest.approx(float(exact), rel=1e-14)
    for N in range(1, 12):
        for p in (1e-6, 0.25, 0.3, 0.5, 0.9, 1 - 1e-6):
            for x in range(N + 1):
                exact = math.comb(N, x) * Fraction(p)**x * (1 - Fraction(p))**(N - x)
                assert trials_probability(N, p, x) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("size", [64, 2**10, 2**20, 2**31, 2**40, 2**53, 2**56, 2**57, 2**62])
def test_probabilities_are_exact_at_every_size(size):
    """Down to 1e-30, against 70 digits. Above 2**53 whole numbers need not be floats, nor their products integers."""
    rng = np.random.default_rng(size)
    with mpmath.workdps(70):
        for _ in range(30):
            marked, drawn = (int(1 + (size - 2) * 10 ** -rng.uniform(0, each)) for each in (12, 2))
            total, drawn = (size, size // 2) if rng.random() < 0.4 else (size - int(rng.integers(size // 4)), drawn)
            marked, drawn = min(marked, total - 1), min(drawn, total - 1)
            p = [0.5, marked / total, 1e-6, 1 - 1e-6][rng.integers(4)]
            here = marked * drawn // total, int(mpmath.floor(total * mpmath.mpf(p)))
            spread = [math.sqrt(here[0] * (1 - marked / total) * (1 - drawn / total)), math.sqrt(here[1] * (1 - p))]
            for z in (-8, -3, -1, 0, 0.5, 2, 6):
                x, y = (mean + round(z * sd) for mean, sd in zip(here, spread, strict=True))
                if max(0, marked + drawn - total) <= x <= min(marked, drawn):
                    exact = mpmath.exp(log_choices(marked, x) + log_choices(total - marked, drawn - x)
                                       - log_choices(total, drawn))
                    assert exact < 1e-30 or abs(split_probability(total, marked, drawn, x) / exact - 1) < 2e-13
                if 0 <= y <= total:
                    exact = mpmath.exp(log_choices(total, y)) * mpmath.mpf(p)**y * (1 - mpmath.mpf(p))**(total - y)
                    assert exact < 1e-30 or abs(trials_probability(total, p, y) / exact - 1) < 2e-13


def test_proposals_reach_far_enough():
    """The ratio of uniforms needs |y| sqrt(f(y)) <= width, f the probability of the rounded y divided by the mode's."""
    laws = [(stats.binom(N, p), 4 / (N + 1)) for N, p in TRIALS if N >= 1000]        # smaller ones are inverted
    laws += [(stats.hypergeom(total, row, drawn), 4 * max(1 / (k + 1) + 1 / (total - k + 1) for k in (row, drawn)))
             for total, row, drawn in SPLITS if total >= 1000]
    for law, bend in laws:
        low, high = law.support()
        x = np.arange(max(low, int(law.mean() - 20 * law.std())), min(high, int(law.mean() + 20 * law.std())) + 1)
        chances = law.pmf(x)
        top = chances.max()
        if top <= counts.INVERTED:
            reach = ((abs(x - x[chances.argmax()]) + 0.5) * np.sqrt(chances / top)).max()
            assert reach <= min(counts._width(top, bend), counts._width(top, 1e-30))     # and by Devroye's bound


# --- laws

def test_binomial_counts_have_their_law():
    for N, p in TRIALS:
        sample = draws(binomials, N, p, n=200_000)
        assert fits(sample, stats.binom(N, p)) > LEVEL / len(TRIALS), (N, p)


@pytest.mark.slow
def test_hypergeometric_counts_have_their_law():
    for total, marked, drawn in SPLITS:
        sample = draws(hypergeometrics, total, marked, drawn, n=200_000)
        assert fits(sample, stats.hypergeom(total, marked, drawn)) > LEVEL / len(SPLITS), (total, marked, drawn)


@pytest.mark.slow
def test_huge_counts_have_their_law():
    """Mean, variance and (Kolmogorov-Smirnov) the normal limit, whose own error of 1e-6 or less cannot be seen.

    Differences from the mean are whole numbers: 2**62 has no room for them in a float.
    """
    n, cases = 200_000, []
    for total in (2**40, 2**52, 2**62):
        for marked, drawn in [(total // 2, total // 2), (total // 2**12 + 1, total // 2),
                              (total // 3, total // 7), (total // 2**9, total - total // 2**9)]:
            cases.append((hypergeometrics, (total, marked, drawn), Fraction(marked * drawn, total),
                          Fraction(marked * drawn * (total - marked) * (total - drawn), total**2 * (total - 1))))
        for p in (0.5, 0.1, 1 - 2.0**-10):
            cases.append((binomials, (total, p), total * Fraction(p), total * Fraction(p) * (1 - Fraction(p))))
    for sampler, parameters, mean, variance in cases:
        base = math.floor(mean)
        z = ((draws(sampler, *parameters, n=n) - base) - float(mean - base)) / math.sqrt(variance)
        p_values = [2 * stats.norm.sf(abs(z.mean()) * math.sqrt(n)),
                    2 * stats.norm.sf(abs((z**2).mean() - 1) * math.sqrt(n / 2)),
                    stats.kstest(z, "norm").pvalue]
        assert min(p_values) > LEVEL / (3 * len(cases)), (parameters, p_values)


@pytest.mark.slow
def test_no_part_of_a_law_is_cut_off():
    """Few cells and many draws: proposals 3 % too narrow would thin out the law at 1.4 standard deviations."""
    n = 4_000_000
    halves, trials = draws(hypergeometrics, 2**40, 2**39, 2**39, n=n), draws(binomials, 2**40, 0.5, n=n)
    for sample, mean, sd in [(halves, 2**38, 2.0**18), (trials, 2**39, 2.0**19)]:
        cells = np.searchsorted(stats.norm.ppf(np.arange(1, 40) / 40), (sample - mean) / sd)
        assert fit(np.bincount(cells), np.full(40, n / 40)) > LEVEL / 2


def test_rare_ones_among_very_many():
    """A few marked ones are distributed as successes of trials, up to marked / total."""
    cases = [(2**62, 5, 2**61, 0.5), (2**62, 40, 2**60, 0.25), (2**62, 3000, 2**61, 0.5), (2**61 - 1, 7, 2**59, 0.25)]
    for total, marked, drawn, p in cases:
        sample = draws(hypergeometrics, total, marked, drawn, n=200_000)
        assert fits(sample, stats.binom(marked, p)) > LEVEL / 2 / len(cases)
        mirrored = draws(hypergeometrics, total, total - marked, drawn, n=200_000)
        assert fits(drawn - mirrored, stats.binom(marked, p)) > LEVEL / 2 / len(cases)


# --- support

def of_size(most):
    """Whole numbers up to `most`, those near powers of two, 0 and `most` among them."""
    near = st.integers(0, most.bit_length()).flatmap(lambda e: st.integers(2**e - 2, 2**e + 2))
    return st.one_of(st.integers(0, most), near, st.integers(0, 3), st.integers(most - 3, most)).map(
        lambda k: min(max(k, 0), most))


@pytest.mark.slow
@given(data=st.data(), key=st.integers(0, 2**64 - 1))
def test_hypergeometric_counts_are_possible(data, key):
    total = data.draw(of_size(2**62))
    marked, drawn = data.draw(of_size(total)), data.draw(st.one_of(st.just(total // 2), of_size(total)))
    state, before = generator(key), generator(key)
    for _ in range(20):
        x = counts.hypergeometric(state, total, marked, drawn)
        assert max(0, marked + drawn - total) <= x <= min(marked, drawn)
    degenerate = marked in (0, total) or drawn in (0, total)
    assert degenerate == (state.tolist() == before.tolist())           # nothing is drawn where nothing is random


@given(N=of_size(2**62), p=st.floats(0, 1), key=st.integers(0, 2**64 - 1))
def test_binomial_counts_are_possible(N, p, key):
    state = generator(key)
    for _ in range(20):
        assert 0 <= counts.binomial(state, N, p) <= N
    assert (counts.binomial(state, N, 0.0), counts.binomial(state, N, 1.0)) == (0, N)


# --- arrangements

@pytest.mark.slow
@given(parts=st.lists(st.integers(0, 64), min_size=0, max_size=31), key=st.integers(0, 2**64 - 1))
def test_arrangements_keep_their_counts(parts, key):
    """And they write to a column of a table without touching its neighbours."""
    marks = np.array([0, *sorted(parts), 64])
    each = np.diff(marks)
    values, table = np.arange(len(each)) + 0.5, np.full((64, 3), -1.0)
    counts.scatter(generator(key), each, values, table[:, 1])
    assert (table[:, [0, 2]] == -1).all()
    assert [(table[:, 1] == value).sum() for value in values] == each.tolist()


PATTERNS = [((63, 1), range(64)), ((1, 63), range(64)), ((62, 2), (0, 1, 5, 40, 62, 63)), ((50, 14), range(56, 64)),
            ((44, 20), range(8)), ((43, 21), range(0, 64, 8)), ((42, 22), range(5, 13)), ((32, 32), range(20, 28)),
            ((32, 32), (0, 9, 18, 27, 36, 45, 54, 63)), ((22, 42), range(8)), ((12, 52), range(1, 64, 8)),
            ((62, 1, 1), (0, 1, 2, 62, 63)), ((20, 24, 20), (0, 1, 30, 63)), ((1, 1, 62), (0, 21, 63)),
            ((10, 10, 10, 34), (7, 8, 9)), ((2,) * 32, (0, 63)), ((33,) + (1,) * 31, (3, 40))]


@pytest.mark.slow
@pytest.mark.parametrize("given, watched", PATTERNS)
def test_all_arrangements_are_equally_likely(given, watched):
    """Chi-square of what stands at a few positions, against the number of arrangements of the rest."""
    V, n = len(given), 200_000
    sample = draws(arrangements, np.array(given), np.array(watched), n=n)
    if V == 2 and len(watched) == 64:                                  # where the single one is
        sample = np.log2(np.minimum(sample.view(np.uint64), ~sample.view(np.uint64))).astype(int)
        assert fit(np.bincount(sample, minlength=64), np.full(64, n / 64)) > LEVEL / len(PATTERNS)
        return
    expected = []
    for code in range(V ** len(watched)):
        seen = np.bincount([code // V**i % V for i in range(len(watched))], minlength=V)
        ways = math.prod(math.perm(have, used) for have, used in zip(given, seen.tolist(), strict=True))
        expected.append(n * ways / math.perm(64, len(watched)))
    observed = np.bincount(sample, minlength=len(expected))
    assert not observed[np.array(expected) == 0].any()
    order = np.argsort(expected, kind="stable")
    assert fit(observed[order], np.array(expected)[order]) > LEVEL / len(PATTERNS)


# --- without Numba

def outcomes():
    """Some of everything, for a few keys."""
    found = []
    with np.errstate(over="ignore"):
        for key in range(3):
            for total, marked, drawn in [*SPLITS, (2**62, 2**61, 2**61), (2**62 - 5, 2**60 + 1, 2**61 + 3)]:
                found += draws(hypergeometrics, total, marked, drawn, n=5, key=key).tolist()
            for N, p in [*TRIALS, (2**62, 0.3), (2**62 - 1, 1e-9)]:
                found += draws(binomials, N, p, n=5, key=key).tolist()
            for given, _ in PATTERNS:
                found += draws(arrangements, np.array(given), np.array([0, 30, 63]), n=5, key=key).tolist()
    return found


@pytest.mark.slow
def test_compiled_and_plain_python_agree_bit_by_bit():
    assert in_plain_python("test_counts", "m.outcomes()") == outcomes()
