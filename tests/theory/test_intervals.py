"""The asymmetric interval, its exact coverage, and the ratio bounds of Figure 1."""

from math import exp, inf, isinf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import binom, binomtest

import costbandits as cb
from costbandits.policies import budget_ucb, classics, omega_ucb
from costbandits.policies.rules import by_sums
from costbandits.theory import coverage, intervals

# The same examples in every run; the first call of a compiled rule takes longer than any deadline.
steady = settings(deadline=None, derandomize=True, database=None)

units = st.floats(0, 1)
sizes = st.integers(1, 10**6)
widths = st.floats(0, 20)
ranges = st.tuples(st.floats(-100, 100), st.floats(0.01, 100))         # low and high - low


@st.composite
def samples(draw):
    """Arguments of the interval on a range of its own: mean, n, z, eta, low, high."""
    low, span = draw(ranges)
    mean = min(max(low + span * draw(units), low), low + span)
    return mean, draw(sizes), draw(widths), draw(units), low, low + span


# ---- known answers --------------------------------------------------------------------------------

def test_bounds_by_hand():
    # n = 4, z^2 = 2, mean 1/2: w = 1/2, so 3/2 u^2 - 3/2 u + 1/4 = 0 and u = 1/2 -+ sqrt(1/12).
    lower, upper = cb.asymmetric_interval(0.5, 4, sqrt(2))
    assert (lower, upper) == pytest.approx((0.5 - sqrt(1 / 12), 0.5 + sqrt(1 / 12)), abs=1e-15)
    # The bounds at the ends of the range: 0 and w / (1 + w), mirrored.
    assert cb.asymmetric_interval(0, 4, sqrt(2)) == pytest.approx((0, 1 / 3), abs=1e-15)
    assert cb.asymmetric_interval(1, 4, sqrt(2)) == pytest.approx((2 / 3, 1), abs=1e-15)
    # eta = 1/2 halves z^2; [2, 6] stretches by 4 and shifts by 2.
    assert cb.asymmetric_interval(2, 4, sqrt(2), 0.5, 2, 6) == pytest.approx((2, 2 + 4 * 0.2), abs=1e-15)


def test_scalars_give_floats_and_arrays_broadcast():
    assert [type(v) for v in cb.asymmetric_interval(0.5, 4, 1)] == [float, float]
    lower, upper = cb.asymmetric_interval(np.array([[0.0], [0.5]]), [1, 10, 100], 2.0)
    assert lower.shape == upper.shape == (2, 3)
    assert lower[1, 2] == cb.asymmetric_interval(0.5, 100, 2.0)[0]


def test_asymmetry_by_hand():
    # Mean 0.9, n = 1, z = 3: (2 * 0.9 - 1) * 3 / sqrt(4 * 0.09 + 9).
    assert cb.intervals.asymmetry(0.9, 1, 3) == pytest.approx(2.4 / sqrt(9.36), rel=1e-14)
    assert [cb.intervals.asymmetry(m, 50, 3) for m in (0, 0.5, 1)] == pytest.approx([-1, 0, 1], abs=1e-15)


def test_misses_by_hand():
    # n = 1, z^2 = 1: outcome 0 gives [0, 1/2], outcome 1 gives [1/2, 1].
    assert intervals.bernoulli_miss(0.3, 1, 1) == pytest.approx((0.3, 0))
    assert intervals.bernoulli_miss(0.8, 1, 1) == pytest.approx((0, 0.2))
    assert intervals.bernoulli_miss(0.0, 1, 1) == (0, 0) == intervals.bernoulli_miss(1.0, 1, 1)
    worst, p = intervals.worst_miss(1, 1)
    assert worst == pytest.approx(0.5) and p == pytest.approx(0.5)
    # A reward that is always 1 has an upper bound of 1: only the cost's lower bound can fail.
    assert intervals.bernoulli_ratio_miss(1, 0.3, 1, 1) == pytest.approx(0.3)
    assert intervals.bernoulli_ratio_miss(0, 0.3, 1, 1) == 0
    assert intervals.bernoulli_ratio_miss(1, 0.5, 1, 1) == 0           # both sides equal 2: not exceeded


def test_worst_miss_tends_to_that_of_the_poisson_law():
    # One success among n with n p just below the root of (1 - v)^2 = z^2 v: probability 1 - exp(-v), not alpha.
    z = ndtri(0.995)
    v = 1 + z * z / 2 - z * sqrt(z * z / 4 + 1)
    worst, p = intervals.worst_miss(10**5, z)
    assert worst == pytest.approx(1 - exp(-v), rel=1e-4) and 0.11 < worst < 0.111
    assert min(p, 1 - p) * 10**5 == pytest.approx(v, rel=1e-4)


# ---- properties -----------------------------------------------------------------------------------

@steady
@given(samples())
def test_order_and_ends(sample):
    mean, _, z, eta, low, high = sample
    lower, upper = cb.asymmetric_interval(*sample)
    assert low <= lower <= mean <= upper <= high
    if mean == low:
        assert lower == low
    if mean == high:
        assert upper == high
    if z == 0 or eta == 0:
        assert lower == mean == upper


def test_order_survives_rounding_on_odd_ranges():
    rng = np.random.default_rng(3)
    low = rng.normal(size=20_000)
    high = low + rng.exponential(size=20_000) + 1e-3
    mean = np.clip(low + (high - low) * rng.random(20_000), low, high)
    for z in (0.0, 1e-9):
        lower, upper = cb.asymmetric_interval(mean, 7, z, 1.0, low, high)
        assert ((low <= lower) & (lower <= mean) & (mean <= upper) & (upper <= high)).all()
        assert z > 0 or ((lower == mean) & (upper == mean)).all()


@steady
@given(samples())
def test_bounds_solve_the_quadratic(sample):
    mean, n, z, eta, low, high = sample
    ulp = 1e-15 * (abs(low) + abs(high))
    for mu in cb.asymmetric_interval(*sample):
        # Eq. (7). Rounding moves mu by an ulp or two, and so the left side's root.
        left, right = (mean - mu) ** 2, eta * (high - mu) * (mu - low) * z**2 / n
        slack = 4 * ulp * (ulp + sqrt(right)) + eta * z**2 / n * (high - low) * ulp
        assert abs(left - right) <= slack + 1e-13 * right


@steady
@given(samples())
def test_mirror_symmetry(sample):
    mean, n, z, eta, low, high = sample
    lower, upper = cb.asymmetric_interval(*sample)
    mirrored = cb.asymmetric_interval(min(max(low + (high - mean), low), high), n, z, eta, low, high)
    # The mirrored mean is rounded, and the bounds move by at most 1 + sqrt(n) times as much (steep near the ends).
    slack = 1e-13 * (abs(low) + abs(high)) * (1 + sqrt(n))
    assert mirrored == pytest.approx((low + high - upper, low + high - lower), abs=slack)


@steady
@given(units, sizes, widths, units, st.floats(1, 3))
def test_wider_with_z_and_eta_and_narrower_with_n(mean, n, z, eta, factor):
    lower, upper = cb.asymmetric_interval(mean, n, z, eta)
    for wider in ((n, z * factor, eta), (n, z, min(eta * factor, 1)), (max(n / factor, 1), z, eta)):
        wide_lower, wide_upper = cb.asymmetric_interval(mean, *wider)
        assert wide_lower <= lower and wide_upper >= upper


@steady
@given(units, sizes, widths, units, ranges)
def test_affine_equivariance(x, n, z, eta, where):
    low, span = where
    lower, upper = cb.asymmetric_interval(x, n, z, eta)
    mean = min(max(low + span * x, low), low + span)
    slack = 1e-13 * (abs(low) + span) * (1 + sqrt(n))
    moved = cb.asymmetric_interval(mean, n, z, eta, low, low + span)
    assert moved == pytest.approx((low + span * lower, low + span * upper), abs=slack)


@steady
@given(st.integers(1, 2000), st.data(), st.floats(0.5, 0.999999))
def test_is_wilsons_interval_for_eta_1(n, data, confidence):
    k = data.draw(st.integers(0, n))
    wilson = binomtest(k, n).proportion_ci(confidence, method="wilson")
    ours = cb.asymmetric_interval(k / n, n, ndtri((1 + confidence) / 2))
    assert ours == pytest.approx((wilson.low, wilson.high), abs=1e-12)


@steady
@given(units, st.floats(1e-6, 1), st.integers(1, 10**5), st.integers(2, 10**6), st.floats(0.01, 4), units, units)
def test_agrees_with_the_policys_index(r, c, n, t, rho, eta_r, eta_c):
    z = sqrt(2 * rho * log(t))
    w = z * z / n
    upper, lower = cb.asymmetric_interval(r, n, z, eta_r)[1], cb.asymmetric_interval(c, n, z, eta_c)[0]
    # An upper bound is exact to rounding of the range, a lower one to rounding of itself.
    ratio = omega_ucb.omega_ratio(r, c, eta_r * w, eta_c * w)
    assert ratio * lower == pytest.approx(upper, rel=1e-13, abs=1e-15)


@steady
@given(units, sizes, st.floats(0.01, 20), st.floats(0.01, 1))
def test_asymmetry_is_what_its_definition_says(mean, n, z, eta):
    value = intervals.asymmetry(mean, n, z, eta)
    lower, upper = cb.asymmetric_interval(mean, n, z, eta)
    assert -1 <= value <= 1
    assert value * (upper - lower) / 2 == pytest.approx(mean - (lower + upper) / 2, abs=1e-13)
    # Eq. (23), for eta = 1, is its square.
    square = (2 * mean - 1) ** 2 * z**2 / (4 * n * mean * (1 - mean) + z**2)
    assert intervals.asymmetry(mean, n, z) ** 2 == pytest.approx(square, rel=1e-11, abs=1e-15)


# ---- exact coverage -------------------------------------------------------------------------------

@steady
@given(st.integers(1, 60), units, st.floats(1e-9, 1), st.floats(0.1, 4))
def test_misses_are_sums_over_all_outcomes(n, p, q, z):
    lower, upper = cb.asymmetric_interval(np.arange(n + 1) / n, n, z)
    chance_p, chance_q = (binom.pmf(np.arange(n + 1), n, v) for v in (p, q))
    assert intervals.bernoulli_miss(p, n, z) == pytest.approx(
        (chance_p[lower > p].sum(), chance_p[upper < p].sum()), abs=1e-12)
    missed = p / q * lower[:, None] > upper[None, :]
    assert intervals.bernoulli_ratio_miss(p, q, n, z) == pytest.approx(chance_q @ missed @ chance_p, abs=1e-12)


def test_lattice_misses():
    # Two values are Bernoulli.
    for p in (0.03, 0.5, 0.8):
        expected = intervals.bernoulli_miss(p, 40, 2.2)
        assert intervals.lattice_miss([1 - p, p], 40, 2.2) == pytest.approx(expected, abs=1e-13)
    # One outcome in {0, 1/2, 1} with mean 0.14, z = 1: [0, 1/2], 1/2 -+ sqrt(1/8) and [1/2, 1].
    law = [0.8, 0.12, 0.08]
    assert intervals.lattice_miss(law, 1, 1, eta=1) == pytest.approx((0.2, 0))
    # The law's own eta is the default.
    own = (0.12 / 4 + 0.08 - 0.14**2) / (0.14 * 0.86)
    assert intervals.lattice_miss(law, 90, 1.5) == intervals.lattice_miss(law, 90, 1.5, own)
    assert intervals.lattice_miss(law, 90, 1.5) != intervals.lattice_miss(law, 90, 1.5, 1)


@pytest.mark.parametrize(("n", "z", "low", "high"), [
    (7, 2.0, 0, 1), (40, 2.6, 0, 1), (40, 2.6, 0.2, 0.7), (200, 1.5, 0, 0.3), (200, 1.5, 0.7, 1)])
def test_worst_miss_is_a_supremum(n, z, low, high):
    worst, p = intervals.worst_miss(n, z, low, high)
    assert low <= p <= high and sum(intervals.bernoulli_miss(p, n, z)) == worst
    grid = np.linspace(low, high, 20_001)
    scanned = np.add(*intervals.bernoulli_miss(grid, n, z)).max()
    assert scanned <= worst + 1e-12
    assert scanned >= 0.98 * worst


# ---- ratio bounds ---------------------------------------------------------------------------------

@pytest.mark.parametrize("r", [0.3, 0.99])                             # a bound of the second one is cut off at 1
def test_ratio_bounds_are_the_policies_indices(r):
    # With t and delta matched, each policy's t-dependent width is the width at level delta.
    c, n = 0.6, 400

    def rule(function, t, param=1.0, constant=0.05):
        sums = (n * r, n * c, n * r, n * c)                            # Bernoulli outcomes are their own squares
        return by_sums(function)(t, n, *sums, constant, np.array([param]))

    def bounds(delta):
        return coverage.ratio_bounds(r, c, n, delta, min_cost=0.05)

    hoeffding = bounds(2 / 14**2)                                      # log(2 / delta) / 2 = log(t - 1) at t = 15
    for label, function in (("m-UCB", classics.m_ucb), ("c-UCB", classics.c_ucb), ("i-UCB", classics.i_ucb)):
        assert hoeffding[label] == pytest.approx(rule(function, 15), rel=1e-12)
    assert bounds(2 / 4**4)["Budget-UCB"] == pytest.approx(rule(budget_ucb.budget_ucb, 5), rel=1e-12)
    assert bounds(0.01)["UCB-SC+"] == pytest.approx(rule(classics.ucb_sc_plus, 200 * n), rel=1e-12)
    assert bounds(3 / 30**2.01)["UCB-B2"] == pytest.approx(rule(classics.ucb_b2, 30), rel=1e-12)
    rho = ndtri(0.995) ** 2 / (2 * log(1000))
    assert bounds(0.01)["ω-UCB"] == pytest.approx(rule(omega_ucb.omega_ucb, 1000, rho), rel=1e-12)


def test_ratio_bounds_without_a_valid_bound_are_infinite():
    assert all(isinf(v) for v in coverage.ratio_bounds(0.5, 0.0, 100).values())
    some = coverage.ratio_bounds(0.5, 0.1, 100)                       # eps = 0.16 exceeds the mean cost
    assert {label for label, v in some.items() if isinf(v)} == {"m-UCB", "UCB-SC+", "UCB-B2"}
    assert all(v > 5 for v in some.values())


@steady
@given(units, st.floats(1e-3, 1), sizes)
def test_ratio_bounds_lie_above_the_estimate(r, c, n):
    assert all(v >= r / c * (1 - 1e-12) for v in coverage.ratio_bounds(r, c, n, min_cost=1e-3).values())


def test_violations_reports_shares_of_the_same_pairs():
    def half(reward_mean, cost_mean, n, delta):
        ratio = reward_mean / np.maximum(cost_mean, 1e-9)
        return {"none": np.full_like(ratio, inf), "zero": np.zeros_like(ratio), "estimate": ratio}

    def table():
        rows = coverage.violations(np.random.default_rng(1), (50, 100), pairs=2000, bounds=half)
        return rows.set_index(["bound", "n"])

    first = table()
    assert (first.loc["none", ["violated", "infinite", "median", "finite_mean"]] == [0, 1, inf, inf]).all(axis=None)
    assert (first.loc["zero", ["violated", "infinite", "high", "median"]] == [1, 0, 1, 0]).all(axis=None)
    # Clopper-Pearson for no violation among 2000, and for nothing else: 1 - 0.025^(1/2000).
    assert first.high["none"].to_numpy() == pytest.approx(1 - 0.025 ** (1 / 2000), rel=1e-9)
    # The plain ratio is exceeded about half of the time: 0.5 within 10 standard errors (about 1e-23).
    assert (abs(first.violated["estimate"] - 0.5) < 0.112).all()
    assert first.equals(table())


def test_between_two_crossings_the_worst_is_at_an_end():
    low, high = 0.301, 0.303
    assert not any(low < bound < high for ends in cb.asymmetric_interval(np.arange(41) / 40, 40, 2.6) for bound in ends)
    worst, p = intervals.worst_miss(40, 2.6, low, high)
    assert p in (low, high) and worst == max(sum(intervals.bernoulli_miss(end, 40, 2.6)) for end in (low, high))


def test_looseness_by_hand():
    def twice(reward_mean, cost_mean, n, delta):
        return {"a": np.where(np.arange(4) < 3, 2 * ratio, inf), "b": ratio / 2}

    rng = np.random.default_rng(1)
    p_r, p_c = rng.random(4), rng.uniform(0.01, 1, 4)
    ratio = p_r / p_c
    rows = coverage.violations(np.random.default_rng(1), [10], pairs=4, bounds=twice).set_index("bound")
    assert rows.loc["a", ["violated", "median", "finite_mean", "infinite"]].tolist() == pytest.approx([0, 2, 2, 0.25])
    assert rows.loc["b", ["violated", "median", "finite_mean", "infinite"]].tolist() == pytest.approx([1, 0.5, 0.5, 0])


# ---- bad input ------------------------------------------------------------------------------------

@pytest.mark.parametrize(("arguments", "name"), [
    ((1.1, 10, 2), "mean"), ((-0.1, 10, 2), "mean"), ((np.nan, 10, 2), "mean"), (([0.5, 1.5], 10, 2), "mean"),
    (("a", 10, 2), "mean"), ((0.5, 0, 2), "n"), ((0.5, inf, 2), "n"), ((0.5, 10, -1), "z"), ((0.5, 10, np.nan), "z"),
    ((0.5, 10, 2, 1.5), "eta"), ((0.5, 10, 2, -0.1), "eta"), ((0.5, 10, 2, 1, 1, 0), "high"),
    ((0.5, 10, 2, 1, 0.5, 0.5), "high"), ((0.5, 10, 2, 1, 0, inf), "high"), ((2, 10, 2, 1, 3, 4), "mean"),
    (([0.5, 0.5], [1, 2, 3], 2), "mean.shape")])
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=rf"^{name}(\[1\])? = "):
        cb.asymmetric_interval(*arguments)


@pytest.mark.parametrize(("call", "name"), [
    (lambda: intervals.asymmetry(0.5, 10, 0), "z"), (lambda: intervals.asymmetry(0.5, 10, 1, 0), "eta"),
    (lambda: intervals.bernoulli_miss(1.2, 10, 2), "p"), (lambda: intervals.bernoulli_miss(0.2, 1.5, 2), "n"),
    (lambda: intervals.lattice_miss([0.5, 0.4], 10, 2), "probabilities"),
    (lambda: intervals.lattice_miss([1.0, 0.0], 10, 2), "probabilities"),
    (lambda: intervals.worst_miss(10, 2, 0.5, 0.5), "high"), (lambda: intervals.worst_miss(0, 2), "n"),
    (lambda: intervals.bernoulli_ratio_miss(0.5, 0, 10, 2), "p_cost"),
    (lambda: intervals.bernoulli_ratio_miss(1.5, 0.5, 10, 2), "p_reward"),
    (lambda: coverage.ratio_bounds(0.5, 2, 10), "cost_mean"),
    (lambda: coverage.ratio_bounds(-1, 0.5, 10), "reward_mean"),
    (lambda: coverage.ratio_bounds(0.5, 0.5, 0), "n"), (lambda: coverage.ratio_bounds(0.5, 0.5, 10, 1.0), "delta"),
    (lambda: coverage.ratio_bounds(0.5, 0.5, 10, min_cost=0), "min_cost"),
    (lambda: coverage.violations(np.random.default_rng(0), pairs=0), "pairs"),
    (lambda: coverage.violations(np.random.default_rng(0), cost_low=0), "cost_low"),
    (lambda: coverage.violations(np.random.default_rng(0), sizes=[0]), "n")])
def test_bad_arguments_of_the_rest_are_named(call, name):
    with pytest.raises(ValueError, match=f"^{name} = "):
        call()
