"""Laws: moments against scipy and sampling, support, concatenation, and what they refuse."""

from math import inf, nan
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import costbandits as cb

LAWS = {
    "Bernoulli": (cb.Bernoulli(0.3), stats.bernoulli(0.3)),
    "certain": (cb.Bernoulli(1), stats.bernoulli(1)),
    "impossible": (cb.Bernoulli(0), stats.bernoulli(0)),
    "Beta": (cb.Beta(2.5, 0.7), stats.beta(2.5, 0.7)),
    "Beta, U-shaped": (cb.Beta(0.3, 0.4), stats.beta(0.3, 0.4)),
    "Discrete": (cb.Discrete([0, 0.25, 2], [0.2, 0.5, 0.3]), stats.rv_discrete(values=([0, 1, 8], [0.2, 0.5, 0.3]))),
    "Empirical": (cb.Empirical([3, 0, 0, 1]), stats.rv_discrete(values=([0, 1, 3], [0.5, 0.25, 0.25]))()),
    "TruncatedNormal": (cb.TruncatedNormal(0.4, 0.3, 0, 1), stats.truncnorm(-4 / 3, 2, loc=0.4, scale=0.3)),
    "TruncatedNormal, upper tail": (cb.TruncatedNormal(0, 1, 3, 5), stats.truncnorm(3, 5)),
    "TruncatedNormal, lower tail": (cb.TruncatedNormal(9, 2, -1, 3), stats.truncnorm(-5, -3, loc=9, scale=2)),
}


@pytest.mark.parametrize("name", LAWS)
def test_moments_and_sampling(name):
    law, theirs = LAWS[name]
    if name == "Discrete":                                  # scipy's takes whole numbers: 4 and 1/4 times the values
        mean, variance = 0.2 * 0 + 0.5 * 0.25 + 0.3 * 2, 0.5 * 0.0625 + 0.3 * 4 - 0.725**2
    else:
        mean, variance = theirs.stats("mv")
    assert law.mean == pytest.approx(mean, rel=1e-9) and law.variance == pytest.approx(variance, rel=1e-9, abs=1e-15)
    size = 20_000
    x = law.sample(np.random.default_rng(11), size)
    assert x.dtype == float and x.shape == (size,)
    assert law.support[0] <= x.min() and x.max() <= law.support[1]
    # 5.3 standard errors of the normal limit: one false alarm in ten million.
    assert abs(x.mean() - law.mean) <= 5.3 * (law.variance / size) ** 0.5
    fourth = np.mean((x - law.mean) ** 4)
    assert abs(np.mean((x - law.mean) ** 2) - law.variance) <= 5.3 * (max(fourth - law.variance**2, 0) / size) ** 0.5
    if hasattr(theirs, "pdf"):     # a continuous law
        # Kolmogorov-Smirnov: P(sqrt(n) D > 2.9) < 2 exp(-2 2.9^2) = 1e-7.
        assert stats.kstest(x, theirs.cdf).statistic < 2.9 / size**0.5


def test_discrete_frequencies():
    law = cb.Discrete((3.0, -1.0, 0.5), (0.2, 0.0, 0.8))
    x = law.sample(np.random.default_rng(12), 20_000)
    assert set(np.unique(x)) == {0.5, 3.0} and law.support == (-1.0, 3.0)
    assert abs(np.mean(x == 3.0) - 0.2) < 5.3 * (0.2 * 0.8 / 20_000) ** 0.5      # one false alarm in ten million


@pytest.mark.parametrize(("off", "fine"), [(0.0, True), (5e-10, True), (-5e-10, True), (2e-9, False), (-2e-9, False)])
def test_probabilities_may_miss_1_by_rounding(off, fine):
    if fine:
        assert cb.Discrete([0.0, 1.0], [0.5, 0.5 + off]).mean == 0.5 + off
    else:
        with pytest.raises(ValueError, match="must sum to 1"):
            cb.Discrete([0.0, 1.0], [0.5, 0.5 + off])


def test_discrete_takes_uniforms_from_zero_up():
    """rng.random() may be 0 and is never 1: value j owns [sum of those before, + its own)."""
    uniforms = SimpleNamespace(random=lambda size: np.array([0.0, 0.25, 0.5, 1 - 2.0**-53]))
    assert cb.Discrete([6, 7, 8, 9], [0, 0.5, 0.5, 0]).sample(uniforms, 4).tolist() == [7, 7, 8, 8]


def test_constant_is_exact():
    law = cb.Constant(0.7)
    assert (law.mean, law.variance, law.support) == (0.7, 0.0, (0.7, 0.7))
    assert law.sample(None, 3).tolist() == [0.7] * 3


@pytest.mark.parametrize("arguments", [(0, 1, 8, 9), (0, 1, -21, -20.5), (0, 1, 30, 40), (0, 0.01, 0.3, 1),
                                       (-30, 1, 0, 1), (0, 1000, 0, 1), (0.5, 1e6, 0, 1), (0, 1, 2, 2.0001),
                                       (0, 1, -1e16, 1e16), (0.5, 0.1, -1e20, 1), (3, 1, -1e18, 1e17)])
def test_truncated_normal_far_out_and_nearly_uniform(arguments):
    """Where the closed forms lose their digits; the truth by the error function in 200 digits."""
    law = cb.TruncatedNormal(*arguments)
    with mpmath.workdps(200):
        mean, sd, low, high = (mpmath.mpf(x) for x in arguments)
        a, b = (low - mean) / sd, (high - mean) / sd
        mass = (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2
        first = (mpmath.npdf(a) - mpmath.npdf(b)) / mass
        variance = 1 + (a * mpmath.npdf(a) - b * mpmath.npdf(b)) / mass - first**2
        truth = float(mean + sd * first), float(sd**2 * variance)
    assert (law.mean, law.variance) == pytest.approx(truth, rel=1e-11)
    x = law.sample(np.random.default_rng(13), 10_000)
    assert law.low <= x.min() < x.max() <= law.high
    assert abs(x.mean() - law.mean) < 5.3 * (law.variance / 10_000) ** 0.5       # one false alarm in ten million


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda w: sum(w) > 1e-3)
bounded = st.floats(-5, 5)
laws = st.one_of(
    st.builds(cb.Bernoulli, st.floats(0, 1)),
    st.builds(cb.Beta, st.floats(0.01, 50), st.floats(0.01, 50)),
    st.builds(cb.Constant, bounded),
    probabilities.map(lambda w: cb.Discrete(range(len(w)), np.array(w) / sum(w))),
    st.builds(lambda mean, sd, low, width: cb.TruncatedNormal(mean, sd, low, low + width),
              bounded, st.floats(0.5, 3), bounded, st.floats(0.01, 4)),
)


@settings(deadline=None, derandomize=True)
@given(law=laws, cuts=st.lists(st.integers(0, 9), max_size=4), seed=st.integers(0, 2**32))
def test_calls_concatenate(law, cuts, seed):
    whole = law.sample(np.random.default_rng(seed), sum(cuts) + 1)
    rng = np.random.default_rng(seed)
    assert whole.tolist() == [x for size in (*cuts, 1) for x in law.sample(rng, size)]
    low, high = law.support
    assert low <= law.mean <= high and 0 <= law.variance <= (high - law.mean) * (law.mean - low) + 1e-9
    assert low <= whole.min() and whole.max() <= high
    cb.check_sampler(law)


class Rejecting(cb.Bernoulli):
    """Standard normal values above 0, by vectorised rejection."""

    support = (0.0, inf)

    def sample(self, rng, size):
        found = np.empty(0)
        while len(found) < size:
            x = rng.standard_normal(2 * size)
            found = np.concatenate([found, x[x > 0]])
        return found[:size]


class Unshaped(cb.Bernoulli):
    def sample(self, rng, size):
        return rng.random()


class Infinite(cb.Bernoulli):
    def sample(self, rng, size):
        return np.full(size, inf)


@pytest.mark.parametrize(("law", "message"), [(Rejecting, "calls must concatenate"), (Infinite, "finite numbers"),
                                              (Unshaped, r"array of shape \(size,\)")])
def test_a_bad_sampler_is_found_before_it_plays(law, message):
    with pytest.raises(ValueError, match=rf"{law.__name__}\.sample.*{message}"):
        cb.check_sampler(law(0.5))
    with pytest.raises(ValueError, match=message):
        cb.simulate({"b": cb.BGreedy()}, cb.Bandit([cb.Bernoulli(0.5)], [law(0.5)]), cb.Budget(5))


@pytest.mark.parametrize(("make", "named", "allowed"), [
    (lambda: cb.Bernoulli(-0.1), "Bernoulli p = -0.1", r"in \[0, 1\]"),
    (lambda: cb.Bernoulli(1.5), "Bernoulli p = 1.5", r"in \[0, 1\]"),
    (lambda: cb.Bernoulli(nan), "Bernoulli p = nan", r"in \[0, 1\]"),
    (lambda: cb.Bernoulli("a"), "Bernoulli p = 'a'", r"in \[0, 1\]"),
    (lambda: cb.Bernoulli(True), "Bernoulli p = True", r"in \[0, 1\]"),
    (lambda: cb.Beta(0, 1), "Beta a = 0", "above 0"),
    (lambda: cb.Beta(1, inf), "Beta b = inf", "above 0"),
    (lambda: cb.Constant(nan), "Constant value = nan", "finite number"),
    (lambda: cb.Discrete([], []), "Discrete values", r"of shape \(m,\)"),
    (lambda: cb.Discrete([1, nan], [0.5, 0.5]), "Discrete values", "finite numbers"),
    (lambda: cb.Discrete([0, 1], [1.0]), "Discrete probabilities", r"of shape \(2,\)"),
    (lambda: cb.Discrete([0, 1], [0.5, 0.6]), "Discrete probabilities", "must sum to 1"),
    (lambda: cb.Discrete([0, 1], [1.5, -0.5]), "Discrete probabilities", r"in \[0, 1\]"),
    (lambda: cb.Discrete([0, 1], [nan, 1]), "Discrete probabilities", r"in \[0, 1\]"),
    (lambda: cb.TruncatedNormal(0, 0, 0, 1), "TruncatedNormal sd = 0", "above 0"),
    (lambda: cb.TruncatedNormal(nan, 1, 0, 1), "TruncatedNormal mean = nan", "finite number"),
    (lambda: cb.TruncatedNormal(0, 1, 1, 1), "TruncatedNormal high = 1", "above low = 1"),
    (lambda: cb.TruncatedNormal(0, 1, 0, inf), "TruncatedNormal high = inf", "finite number"),
    (lambda: cb.TruncatedNormal(0, 1, 50, 51), r"TruncatedNormal \(low, high\)", "parent's probability"),
    (lambda: cb.TruncatedNormal(0, 1, -1e-14, 0), r"TruncatedNormal \(low, high\)", "must be further apart"),
])
def test_bad_parameters(make, named, allowed):
    with pytest.raises(ValueError, match=f"{named}.*{allowed}"):
        make()


def test_a_mean_lies_within_the_support_however_sums_round():
    law = cb.Discrete([0.7] * 10, [0.1] * 10)
    assert (law.mean, law.variance) == (0.7, 0.0)
    assert cb.Discrete([0.3], [1 - 1e-10]).variance == 0
    assert cb.Empirical([1e308, 1.5e308]).mean == pytest.approx(1.25e308)


def test_a_value_of_probability_0_is_never_drawn_though_the_others_fall_short():
    law = cb.Discrete(range(40), [(1 - 9e-10) / 39] * 39 + [0.0])

    class High:
        def random(self, size):
            return np.full(size, 1 - 2.0**-53)

    assert law.sample(High(), 2).tolist() == [38, 38]
