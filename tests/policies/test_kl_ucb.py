"""Upper bounds by divergences: by hand, against 50 digits, and what the engine relies on."""

from math import exp, inf, log

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import costbandits as cb
from costbandits.policies import kl_ucb

RATIOS = {
    # With s = 1/4: x = (1/2 + s)/(1 + s) = 3/5, y = (1/2 - s)/(1 - s) = 1/3, and kl(1/2, x) = log(25/24)/2 and
    # kl(1/2, y) = log(9/8)/2.
    "inside": (0.5, 0.5, 0.5 * log(75 / 64), 9 / 5),
    # No reward: x = s/(1 + s) = 1/5, kl(0, x) = -log(1 - x) = log(5/4).
    "no reward": (0.0, 0.5, log(5 / 4) + 0.5 * log(9 / 8), 3 / 5),
    # Nothing but rewards: x = 1, and kl(1/2, y) = -log(4 y (1 - y))/2 is log(5/4) at y = 1/5.
    "full reward": (1.0, 0.5, log(5 / 4), 5.0),
    # Nothing but costs: y stays 1 until kl(0, 1/2) = log 2, then x stays 1/2 and y = exp(-rest).
    "full cost, little": (0.0, 1.0, log(4 / 3), 1 / 4),
    "full cost, border": (0.0, 1.0, log(2), 1 / 2),
    "full cost, much": (0.0, 1.0, log(2) + 3, exp(3) / 2),
    # kl(1/2, 3/4) = log(4/3)/2; beyond that (1 + r)/2 exp(rest)
    "full cost, half the reward": (0.5, 1.0, 0.5 * log(4 / 3) + 1, 0.75 * exp(1)),
    "full cost and reward": (1.0, 1.0, 2.0, exp(2)),
    "nothing to explore": (0.5, 0.25, 0.0, 2.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", RATIOS)
def test_largest_ratio_by_hand(case):
    r, c, d, expected = RATIOS[case]
    assert kl_ucb.largest_ratio(r, c, d) == pytest.approx(expected, rel=2e-15)


def value(t, n, r, c, plus=False, exploration=1.0):
    policy = cb.KLUCBSC(plus, exploration)
    return policy.rule(t, n, n * r, n * c, n * r, n * c, 0.0, policy.parameters)


def test_the_index_by_hand():
    # log(1.25^8) / 8 = log 1.25, so y = 1/5 as above; log t = 8 log 1.25 is that of t = 5.96, so exploration mends it.
    assert value(6, 8, 1.0, 0.5, exploration=8 * log(1.25) / log(6)) == pytest.approx(5.0, rel=1e-14)
    # "+": log(t/n) = log 5, for which the same.
    assert value(40, 8, 1.0, 0.5, True, exploration=8 * log(1.25) / log(5)) == pytest.approx(5.0, rel=1e-14)
    assert value(8, 8, 0.5, 0.25, True) == value(7, 8, 0.5, 0.25, True) == 2.0
    assert value(8, 8, 0.5, 0.0) == value(8, 8, 0.0, 0.0, True) == inf


# ---- against 50 digits ------------------------------------------------------------------------------

def kl(p, q):
    return sum(a * mpmath.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def root(increasing, low, high):
    """Where a function of mpmath numbers becomes positive."""
    for _ in range(180):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
    return high


def exact_bound(p, d):
    """The largest q with kl(p, q) <= d; by -log(1 - q), for little may be left of 1 - q."""
    start = -mpmath.log(1 - p)
    return -mpmath.expm1(-root(lambda b: kl(p, -mpmath.expm1(-b)) - d, start, start + d / (1 - p) + 50))


def least(r, c, V):
    """The least kl(r, x) + kl(c, y) with x/y = V: convex in y, so its slope says on which side the least is."""
    def slope(y):
        x = V * y
        return V * (x - r) / (x * (1 - x)) + (y - c) / (y * (1 - y)) if x < 1 and y < 1 else V - 1

    # By log y: it may be as small as c exp(-d/c). Where all costs were 1, the end y = 1 may be the place.
    y = mpmath.exp(root(lambda b: slope(mpmath.exp(b)), mpmath.log(c) - 200, mpmath.log(min(c, 1 / V))))
    return kl(r, V * y) + kl(c, y)


states = st.tuples(st.integers(1, 10**9), st.floats(0, 1), st.floats(0, 1), st.floats(1e-9, 60), st.booleans())


def state(drawn):
    """Sums of n outcomes of 0 and 1, and a round."""
    n, r, c, room, plus = drawn
    return n, round(n * r), max(round(n * c), 1), n * exp(min(room, 42 - log(n))) if n < 10**9 else 2.0 * n, plus


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(states)
@example((1000, 0.999, 0.999, 1.0, False))
@example((10**9, 1e-9, 1 - 1e-9, 1.0, False))
@example((10**9, 1e-9, 1e-9, 1.0, True))
@example((40, 0.0, 1.0, 10.0, False))
@example((1, 0.0, 1.0, 0.6931471805599453, True))
def test_the_ratio_is_exact_but_for_rounding(drawn):
    n, won, paid, t, plus = state(drawn)
    d = log(t / n if plus else t) / n
    assume(d > 0)
    found = kl_ucb.largest_ratio(won / n, paid / n, d)
    with mpmath.workdps(60):
        r, c, V = mpmath.mpf(won / n), mpmath.mpf(paid / n), mpmath.mpf(found)
        # Where little is divided, many ratios are one number; a large ratio is found by its logarithm.
        near = 1 + mpmath.mpf(5e-15) * (1 + abs(mpmath.log(V)))
        assert V / near <= r / c or least(r, c, V / near) <= d
        assert least(r, c, V * near) >= d


BOUNDS = {
    # kl(0, x) = -log(1 - x); kl(1/2, x) = -log(4 x (1 - x))/2 is log(5/4) at x = 4/5; nothing is above 1
    "no reward": (0.0, log(5 / 4), 1 / 5), "inside": (0.5, log(5 / 4), 4 / 5), "full": (1.0, 3.0, 1.0),
    "nothing to explore": (0.25, 0.0, 0.25), "above one by rounding": (1.0 + 2**-52, 1.0, 1.0),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_upper_bound_by_hand(case):
    r, d, expected = BOUNDS[case]
    assert kl_ucb.upper_bound(r, d) == pytest.approx(expected, rel=2e-15)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(states)
@example((10**9, 1e-9, 0.0, 1e-9, False))
@example((10**9, 1 - 1e-9, 0.0, 1.0, False))
@example((5, 0.6, 0.0, 40.0, False))
def test_the_bound_is_exact_but_for_rounding(drawn):
    n, won, _, t, plus = state(drawn)
    d = log(t / n if plus else t) / n
    assume(d > 0)
    with mpmath.workdps(60):
        expected = exact_bound(mpmath.mpf(won / n), mpmath.mpf(d)) if won < n else 1
    assert abs(kl_ucb.upper_bound(won / n, d) / expected - 1) < 1e-14


LOWER = {
    # kl(1, y) = -log y; kl(1/2, y) is symmetric, log(5/4) at 1/5; kl(1/4, 1/16) = log(4)/4 + 3/4 log(12/15)
    "full": (1.0, log(3), 1 / 3), "inside": (0.5, log(5 / 4), 1 / 5),
    "a quarter": (0.25, 0.25 * log(4) + 0.75 * log(4 / 5), 1 / 16),
    "nothing to explore": (0.25, 0.0, 0.25), "above one by rounding": (1.0 + 2**-52, 0.0, 1.0),
}


@pytest.mark.parametrize("case", LOWER)
def test_lower_bound_by_hand(case):
    c, d, expected = LOWER[case]
    assert kl_ucb.lower_bound(c, d) == pytest.approx(expected, rel=2e-15)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(states)
@example((10**9, 0.0, 1e-9, 1e-9, False))
@example((10**9, 0.0, 1 - 1e-9, 1e-9, False))
@example((10**9, 0.0, 1e-9, 1.0, False))
@example((7, 0.0, 0.2, 40.0, False))
def test_the_lower_bound_is_exact_but_for_rounding(drawn):
    n, _, paid, t, plus = state(drawn)
    d = log(t / n if plus else t) / n
    assume(d > 0)
    with mpmath.workdps(60):
        c, few = mpmath.mpf(paid / n), mpmath.mpf(d)
        down = root(lambda u: kl(c, c * mpmath.exp(-u)) - few, mpmath.mpf(0), few / c + 1) if paid < n else few
        expected = c * mpmath.exp(-down)
    # Numbers below 1 are found by their logarithms.
    assert abs(kl_ucb.lower_bound(paid / n, d) / expected - 1) < 1e-14 * (1 + down)


def omega(t, n, r, c, rho=1.0):
    return cb.OmegaKLUCB.rule(t, n, n * r, n * c, n * r, n * c, 0.0, np.array([rho]))


def test_omega_kl_ucb_by_hand():
    # Both means 1/2, and a divergence of log(5/4): 4/5 over 1/5. Then nothing but rewards, and nothing but costs.
    rho = 8 * log(1.25) / log(6)
    assert omega(6, 8, 0.5, 0.5, rho) == pytest.approx(4.0, rel=1e-14)
    assert omega(6, 8, 1.0, 0.5, rho) == pytest.approx(5.0, rel=1e-14)
    assert omega(9, 2, 1.0, 1.0) == pytest.approx(3.0, rel=1e-14)       # t^(rho/s) after s costs of 1
    assert omega(9, 2, 0.5, 0.0) == omega(9, 2, 0.0, 0.0) == inf
    assert omega(1, 1, 0.5, 0.25) == 2.0


@settings(max_examples=500, deadline=None, derandomize=True)
@given(states)
def test_the_index_is_a_lawful_neighbour(drawn):
    """Its box holds the set over which KL-UCB-SC maximises, and lies within what Pinsker allows."""
    n, won, paid, t, _ = state(drawn)
    t, r, c = int(t) + 2, won / n, paid / n
    half = (log(t) / n / 2) ** 0.5
    most = min(r + half, 1.0) / (c - half) if c > half else inf
    assert value(t, n, r, c) * (1 - 1e-13) <= omega(t, n, r, c) <= most * (1 + 1e-13)


def test_a_ratio_is_infinite_where_the_cost_may_be_as_good_as_nothing_by_hand():
    # With c = 0.01 a divergence of 6.5 lets the cost fall to e^-650, above which a ratio is a number.
    assert kl_ucb.largest_ratio(0.5, 0.01, 6.51) == inf > kl_ucb.largest_ratio(0.5, 0.01, 6.49)


def test_kl_ucb_by_hand():
    # Rewards of 10 in all, over 4 pulls and a scale of 5: r = 1/2. At t = 6, a bonus of log(6)/4, for which
    # 4 x (1 - x) = exp(-2 log(6)/4) = 6^-0.5, and over the cost of 3.
    expected = (1 + (1 - 6**-0.5)**0.5) / 2 / 3
    assert cb.KLUCB.rule(6, 4, 10.0, 12.0, 0.0, 36.0, 3.0, cb.KLUCB(5.0).parameters) == pytest.approx(expected, 1e-14)
    # The first pull again: log 1 leaves nothing to explore.
    assert cb.KLUCB.rule(1, 1, 0.5, 2.0, 0.25, 4.0, 2.0, cb.KLUCB().parameters) == 0.25


# ---- what the engine relies on ----------------------------------------------------------------------

LEAST = 1e-13       # a tenth of what the engine allows for rounding


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, derandomize=True)
@given(states, st.integers(0, 2**40), st.floats(0, 1), st.sampled_from(["t", "r", "c", "n"]))
@example((10**9, 1.0, 1.0, 1e-9, True), 1, 0.0, "t")
def test_the_index_moves_one_way(drawn, more, share, what):
    """It does not fall with t nor r, nor rise with c nor n; however little changes."""
    n, won, paid, t, plus = state(drawn)
    t, r, c = int(t) + 1, won / n, paid / n
    low = value(t, n, r, c, plus)
    higher = {"t": (t + more, n, r, c), "r": (t, n, r + share * (1 - r), c), "c": (t, n, r, c * (1 - share)),
              "n": (t, max(int(n * (1 - share)), 1), r, c)}[what]
    assert value(*higher, plus) >= low * (1 - LEAST)
    assert omega(*higher) >= omega(t, n, r, c) * (1 - LEAST)


def test_only_free_arms_have_infinite_indices():
    for n in (1, 2, 1000, 10**12, 2**40):
        assert 0 < value(2**62, n, 0.0, 1 / n) < value(2**62, n, 1.0, 1 / n) < inf


def test_few_steps_are_enough(monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.setattr(kl_ucb, "STEPS", 12)
    for _ in range(1500):
        n = int(10**rng.uniform(0, 6))
        won, paid = (min(int(n * rng.choice([0, 1e-6, x, 1])), n) for x in rng.random(2))
        r, c, d = won / n, max(paid, 1) / n, rng.choice([1e-9, rng.uniform(0, 40)]) / n
        with np.errstate(all="ignore"):
            for solve, arguments in ((kl_ucb.largest_ratio, (r, c, d)), (kl_ucb.upper_bound, (r, d)),
                                     (kl_ucb.lower_bound, (c, d))):
                assert getattr(solve, "py_func", solve)(*map(np.float64, arguments)) == solve(*arguments)


@pytest.mark.slow
def test_longer_runs_are_played_by_blocks():
    bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.5, 0.4, 0.9)], [cb.Bernoulli(p) for p in (0.3, 0.3, 0.8)])
    policies = {"KL-UCB-SC": cb.KLUCBSC(), "+": cb.KLUCBSC(plus=True), "omega": cb.OmegaKLUCB()}
    runs = cb.simulate(policies, bandit, cb.Budget(1e11))
    assert (runs.rounds[:, 0, -1] > 3e11).all() and (runs.pulls[:, 0, -1].argmax(axis=1) == 0).all()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: cb.KLUCBSC(plus=1), "plus = 1: must be True or False"),
    (lambda: cb.OmegaKLUCB(0), "rho = 0: must be a finite number above 0"),
    (lambda: cb.KLUCBSC(exploration=0), "exploration = 0: must be a finite number above 0"),
    (lambda: cb.KLUCBSC(exploration="x"), "exploration = 'x': must be a finite number above 0")])
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_outcomes_beyond_one_are_refused():
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(2.0)])
    with pytest.raises(ValueError, match=r"cost support = \(2\.0, 2\.0\): .*KLUCBSC"):
        cb.simulate({"k": cb.KLUCBSC()}, bandit, cb.Budget(20))
