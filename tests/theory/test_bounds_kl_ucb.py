"""What policies with bounds by divergences promise: by hand, against exact sums, and where a hypothesis is dropped."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom

import costbandits as cb
from costbandits.policies.kl_ucb import largest_ratio
from costbandits.theory.bounds import kl_ucb as bounds


def bernoulli(rewards, costs):
    return cb.Bandit([cb.Bernoulli(p) for p in rewards], [cb.Bernoulli(p) for p in costs])


PLAIN = bernoulli([0.8, 0.2], [0.4, 0.6])          # ratios 2 and 1/3
DEAR = bernoulli([1.0, 0.96], [0.005, 0.016])      # ratios 200 and 60
unit = st.floats(0.01, 0.99)


# ---- distances --------------------------------------------------------------------------------------

def test_closest_by_hand():
    # s = 1/4: x = (1/2 + s)/(1 + s) = 3/5 and y = (1/2 - s)/(1 - s) = 1/3
    assert [float(v) for v in bounds.closest(0.5, 0.5, 9 / 5)] == pytest.approx([0.5 * log(75 / 64), 3 / 5, 1 / 3])
    assert [float(v) for v in bounds.closest(0.5, 0.25, 2.0)] == [0.0, 0.5, 0.25]
    # All rewards 1: x = 1, y = 1/h; all costs 1 and no rewards: x = 1/2, y = x/h, or y = 1 at a low level.
    assert [float(v) for v in bounds.closest(1.0, 0.5, 5.0)] == pytest.approx([log(5 / 4), 1.0, 1 / 5])
    assert [float(v) for v in bounds.closest(0.0, 1.0, 3.0)] == pytest.approx([log(2) + log(6), 1 / 2, 1 / 6])
    assert [float(v) for v in bounds.closest(0.0, 1.0, 0.25)] == pytest.approx([log(4 / 3), 1 / 4, 1.0])
    assert float(bounds.closest(0.0, 0.0, 3.0)[0]) == 0.0


@given(unit, unit, st.floats(1.01, 50))
def test_closest_is_where_the_index_of_kl_ucb_sc_reaches_the_level(r, c, factor):
    level = r / c * factor
    assert largest_ratio(r, c, float(bounds.closest(r, c, level)[0])) == pytest.approx(level, rel=1e-6)


@given(unit, unit, st.floats(1.01, 50))
def test_the_box_needs_between_half_and_all_of_it(r, c, factor):
    whole, half = (bounds.distance(r, c, r / c * factor, box).divergence for box in (False, True))
    assert whole / 2 <= half * (1 + 1e-9) and half <= whole * (1 + 1e-9)


def test_the_box_by_hand():
    found = bounds.distance(0.5, 0.5, 4.0, box=True)        # kl(1/2, 4/5) = kl(1/2, 1/5) = log(5/4)
    # On x = 4 y the reward's divergence rises by 4 (0.3/0.16) and the cost's falls by 0.3/0.16: weights 1/5 and 4/5.
    assert found == pytest.approx((log(5 / 4), log(4) / 5, 4 * log(4) / 5))
    assert bounds.distance(1.0, 0.5, 5.0, box=True) == pytest.approx((log(5 / 4), 0.0, log(4)))
    # Costs that are always 1 do not err. No reward: kl(0, x) = log(1/(1 - x)) and kl(1, y) = log(1/y) agree at 2/3.
    assert bounds.distance(0.0, 1.0, 0.5, box=True) == pytest.approx((log(3 / 2), 0.0, 0.0))


@given(unit, unit, unit, unit, st.floats(1.05, 4), st.booleans())
def test_the_tangent_lies_below(mu_r, mu_c, r, c, factor, box):
    level = mu_r / mu_c * factor
    far = bounds.distance(mu_r, mu_c, level, box)
    seen = bounds.distance(r, c, level, box).divergence if r < level * c else 0.0
    assert seen >= far.divergence - far.reward * (r - mu_r) + far.cost * (c - mu_c) - 1e-6 * (1 + far.divergence)


# ---- errors -----------------------------------------------------------------------------------------

def exact_error(n, mean, reference):
    """E[exp(Y); Y > 0] of n Bernoulli rewards."""
    k = np.arange(n + 1)
    Y = np.where(k / n < reference, n * bounds.divergence(k / n, reference), 0.0)
    return np.exp(binom.logpmf(k, n, mean) + Y)[Y > 0].sum()


def test_errors_by_hand():
    # theta = log(1/4)/log(1/2) = 2 and kappa = kl(1/2, 3/4) = log(4/3)/2
    total, most = bounds.errors(0.75, 0.5)
    assert (total, most) == pytest.approx((3 / (0.5 * log(4 / 3)), 2.0))
    assert bounds.errors(1.0, 0.5) == bounds.errors(0.0, 0.0) == (0, 0)
    assert bounds.errors(0.5, 0.5) == bounds.errors(0.5, 0.7) == bounds.errors(0.5, 0.0) == (inf, inf)


@pytest.mark.slow
@given(unit, st.floats(0.05, 0.99))
def test_errors_bound_exact_sums(mean, factor):
    total, most = bounds.errors(mean, mean * factor)
    terms = [exact_error(n, mean, mean * factor) for n in range(1, 200)]
    assert sum(terms) <= total and max(terms) <= most


def test_a_reference_above_the_mean_has_no_such_sum():
    assert exact_error(1000, 0.5, 0.52) > 1e3 > exact_error(1000, 0.5, 0.48)


def test_low_rounds_by_hand():
    # Rewards of 1, and a level of 100: the cost's reference is 1/100.
    cost = bounds.errors(1 - 0.005, 1 - 0.01)
    assert bounds.low_rounds(1.0, 0.005, 100.0) == pytest.approx(cost.total)
    assert bounds.low_rounds(0.8, 0.4, 1.0, box=True) < bounds.low_rounds(0.8, 0.4, 1.0)
    assert bounds.low_rounds(0.5, 1.0, 0.4) == pytest.approx(bounds.errors(0.5, 0.4).total)


# ---- theorems ---------------------------------------------------------------------------------------

def test_rates():
    assert bounds.rates(PLAIN) == pytest.approx([0.0, 1 / float(bounds.closest(0.2, 0.6, 2.0)[0])])
    assert (bounds.rates(DEAR, box=True) >= bounds.rates(DEAR)).all()
    # An arm as good as the best loses nothing.
    assert bounds.rates(bernoulli([0.8, 0.4], [0.4, 0.2])).tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("box", [False, True])
def test_pulls_are_above_what_is_measured_and_grow_at_the_rate(box):
    policy = cb.OmegaKLUCB() if box else cb.KLUCBSC()
    runs = cb.simulate({"kl": policy}, PLAIN, cb.Horizon(10**4), 20, checkpoints=1)
    bound = bounds.pulls(PLAIN, 10**4, box=box)
    assert np.isinf(bound[0]) and runs.pulls[0, :, -1, 1].mean() < bound[1] < 10**4
    # The remainder is of the order of log^(4/5), or smaller: a thousand times the logarithm, a quarter of its share.
    shares = [bounds.pulls(PLAIN, 10**e, box=box)[1] / (e * log(10)) / bounds.rates(PLAIN, box)[1] - 1
              for e in (10**3, 10**6)]
    assert 0 < shares[1] < 0.26 * shares[0]


def test_a_third_arm_changes_no_bound_of_the_others():
    """Nor does a cheap one: the rounds in which the best arm looks bad are told from its own costs."""
    two, three = bernoulli([0.8, 0.3], [0.4, 0.6]), bernoulli([0.8, 0.3, 0.001], [0.4, 0.6, 0.02])
    for box in (False, True):
        assert bounds.pulls(two, 1000, 1.0, box)[1] == bounds.pulls(three, 1000, 1.0, box)[1]


def test_pulls_below_log_t_are_a_power():
    least, most = (bounds.pulls(PLAIN, 10**e, a=0.25)[1] for e in (40, 80))
    assert log(most / least) / log(1e40) == pytest.approx(0.75, abs=0.01)


def test_dependence_has_its_price():
    assert (bounds.pulls(PLAIN, 10**6, box=True, independent=False)[1] > bounds.pulls(PLAIN, 10**6, box=True)[1])
    assert bounds.pulls(PLAIN, 10**6, a=2.0, independent=False)[1] < inf
    with pytest.raises(ValueError, match=r"a = 1\.0: must be 2 or more"):
        bounds.pulls(PLAIN, 10**6, independent=False)


def test_locked_exponent_by_hand():
    assert bounds.locked_exponent(DEAR, 0.25) == pytest.approx(1 - 0.25 * log(200) / log(59))
    assert bounds.locked_exponent(DEAR, 1.0) == bounds.locked_exponent(PLAIN, 0.25) == 0.0


def test_locked_plays_by_hand():
    # At tau = 1000 and a = 1/4 the reach is log(5.62): s = 3 costs of 1 at h = 2, and 2 at h = 3 and 4.
    trap = bernoulli([1.0, 0.5], [0.1, 0.1])
    q = [(0.5 - h / 10) / (0.5 * 0.9) for h in (2, 3, 4)]
    plays = max(q[0] * 0.001 * 997, q[1] * 0.01 * 998, q[2] * 0.01 * 998)
    assert bounds.locked_plays(trap, 1000, 0.25) == pytest.approx(plays)
    slope = log(bounds.locked_plays(DEAR, 10**200, 0.25) / bounds.locked_plays(DEAR, 10**20, 0.25)) / log(1e180)
    assert slope == pytest.approx(bounds.locked_exponent(DEAR, 0.25), abs=0.02)


@given(unit, st.floats(0.05, 0.95), unit, st.floats(0.05, 0.95))
def test_there_is_no_trap_at_log_t(r, c, mu, share):
    rival = r * share * mu
    assume(rival > 0)
    assert bounds.locked_exponent(bernoulli([r, rival], [c * mu, mu]), 1.0) == 0.0


@pytest.mark.parametrize(("make", "message"), [
    (lambda: bounds.low_rounds(0.8, 0.4, 2.5), "level = 2.5"), (lambda: bounds.distance(0.8, 0.4, 1.0), "level = 1.0"),
    (lambda: bounds.distance(0.5, 1.5, 4), r"cost_mean = 1.5: must be in \(0, 1\]"),
    (lambda: bounds.low_rounds(0.8, 0.0, 1.0), r"cost_mean = 0.0: must be in \(0, 1\]"),
    (lambda: bounds.low_rounds(1.8, 0.5, 1.0), r"reward_mean = 1.8: must be in \(0, 1\]"),
    (lambda: bounds.errors(1.5, 0.5), "mean = 1.5"), (lambda: bounds.closest(0.5, 0.5, 0), "level = 0"),
    (lambda: bounds.pulls(PLAIN, 1), "tau = 1"), (lambda: bounds.locked_exponent(PLAIN, 0), "a = 0")])
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
