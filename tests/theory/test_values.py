"""Bounds that are the best of many choices, or stand for long sums, by their values: literally, or in 50 digits.

A test of how a bound grows, or of what it lies above, leaves its constants free.
"""

from math import floor, inf, log, log1p, sqrt

import mpmath
import numpy as np
import pytest

import costbandits as cb
from costbandits.theory.bounds import budget_ucb, cost_subsidy, kl_ucb, kube, omega_ucb, suak


def bernoulli(rewards, costs):
    return cb.Bandit([cb.Bernoulli(p) for p in rewards], [cb.Bernoulli(p) for p in costs])


PLAIN = bernoulli([0.8, 0.2], [0.4, 0.6])          # ratios 2 and 1/3


def kl(p, q):
    """Bernoulli's divergence, literally."""
    return sum(a * mpmath.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def logit(p):
    return mpmath.log(p / (1 - p))


# ---- KL-UCB-SC and the box ---------------------------------------------------------------------------

def errors(mean, reference):
    """S and m of Lemma 2."""
    more = mpmath.log(1 - mean) / mpmath.log(1 - reference) - 1
    return (1 + 2 / more) / kl(reference, mean), 1 + 1 / more


@pytest.mark.parametrize(("mean", "reference"), [(0.8, 0.4), (0.3, 0.05), (0.99, 0.9), (0.5, 0.499), (0.02, 1e-4)])
def test_errors(mean, reference):
    with mpmath.workdps(50):
        expected = tuple(map(float, errors(mpmath.mpf(mean), mpmath.mpf(reference))))
    assert kl_ucb.errors(mean, reference) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("r", "c", "level"), [(0.8, 0.4, 1.0), (0.5, 0.25, 0.5), (0.3, 0.9, 0.25)])
def test_low_rounds(r, c, level):
    """The best of the places y of the grid, with and without what two errors at a time add."""
    box, both = [], []
    for i in range(1, 399):
        y = c + (min(r / level, 1) - c) * i / 399
        (S_r, m_r), (S_c, m_c) = errors(r, level * y), errors(1 - c, 1 - y)
        box.append(S_r + S_c)
        both.append(S_r + S_c + min(m_c * S_r, m_r * S_c))
    assert kl_ucb.low_rounds(r, c, level, box=True) == pytest.approx(float(min(box)), rel=1e-9)
    assert kl_ucb.low_rounds(r, c, level) == pytest.approx(float(min(both)), rel=1e-9)


@pytest.mark.parametrize(("r", "c", "level"), [(0.2, 0.6, 2.0), (0.5, 0.5, 1.25), (0.9, 0.95, 3.0)])
def test_distance(r, c, level):
    """The least sum on x = level y, and the slopes there; for the box the place where both divergences are equal."""
    with mpmath.workdps(50):
        low, high = mpmath.mpf(r) / level, min(mpmath.mpf(c), 1 / mpmath.mpf(level))
        y = mpmath.findroot(lambda y: level * (level * y - r) / (level * y * (1 - level * y)) - (c - y) / (y * (1 - y)),
                            (low * 1.000001, high * 0.999999), solver="anderson")
        found = kl_ucb.distance(r, c, level)
        assert found == pytest.approx(tuple(map(float, (
            kl(r, level * y) + kl(c, y), logit(level * y) - logit(r), logit(c) - logit(y)))), rel=1e-9)
        y = mpmath.findroot(lambda y: kl(r, level * y) - kl(c, y), (low * 1.000001, high * 0.999999), solver="anderson")
        x = level * y
        pull_r, pull_c = level * (x - r) / (x * (1 - x)), (c - y) / (y * (1 - y))
        v = pull_c / (pull_r + pull_c)
        found = kl_ucb.distance(r, c, level, box=True)
        assert found == pytest.approx(tuple(map(float, (
            kl(c, y), v * (logit(x) - logit(r)), (1 - v) * (logit(c) - logit(y))))), rel=1e-9)


@pytest.mark.parametrize(("tau", "a", "box", "independent"), [
    (10**6, 1.0, False, True), (10**6, 1.0, True, False), (10**6, 1.0, True, True), (10**6, 2.5, False, False),
    (10**6, 0.25, False, True), (10**40, 0.25, False, True), (1000, 0.75, True, True), (2, 0.5, True, False)])
def test_theorem_7_is_the_best_of_its_grid(tau, a, box, independent):
    """1 + C(h) g(tau) + (1 + eps) a log(tau) / I + (1 + eps)^2 V / (2 eps^2 I^2), over all levels h and eps."""
    g, best = 1 if a >= 1 else 1 + tau ** (1 - a) / (1 - a), inf
    eps = 1e-3 * 5000 ** (np.arange(100) / 99)
    for share in 0.95 * (1e-3 / 0.95) ** (np.arange(80) / 79):
        h = 2 - (2 - 1 / 3) * share
        I, G_r, G_c = kl_ucb.distance(0.2, 0.6, h, box)     # noqa: E741 - the paper's
        V = G_r**2 + G_c**2 if independent else (G_r + G_c) ** 2
        seen = (1 + eps) * a * log(tau) / I + (1 + eps) ** 2 * V / (2 * eps**2 * I**2)
        best = min(best, 1 + kl_ucb.low_rounds(0.8, 0.4, h, box or not independent) * g + seen.min())
    assert kl_ucb.pulls(PLAIN, tau, a, box, independent).tolist() == pytest.approx([inf, best], rel=1e-9)


# ---- omega-UCB: long sums ----------------------------------------------------------------------------

def alpha(t, rho):
    return 1 - mpmath.sqrt(1 - mpmath.mpf(t) ** -rho)


def literal_xi(tau, K, rho, begin=1000):
    """The sum over all rounds; from `begin` on by Hurwitz' zeta function, term by term of the series of the root."""
    total, u, coefficient = sum(alpha(t, rho) for t in range(K + 1, begin)), mpmath.mpf(begin) ** -rho, mpmath.mpf(1)
    for k in range(1, 2000):
        coefficient *= mpmath.mpf(3 - 2 * k) / (2 * k) * -1 if k > 1 else mpmath.mpf(1) / 2
        power = k * mpmath.mpf(rho)
        if abs(power - 1) < 1e-12:
            part = mpmath.digamma(tau + 1) - mpmath.digamma(begin)
        else:
            part = mpmath.zeta(power, begin) - mpmath.zeta(power, tau + 1)
        total += abs(coefficient) * part
        if abs(coefficient) * u**k < mpmath.mpf(10) ** -16:
            break
    return (tau - K) * alpha(tau, rho) + total


@pytest.mark.parametrize(("rho", "tau", "K"), [(0.25, 10**7, 2), (0.25, 10**40, 2), (0.5, 10**12, 7), (1.0, 10**40, 2),
                                               (2.0, 10**6, 2), (2.0, 10**12, 3), (1.5, 10**9, 900)])
def test_xi_far_out(rho, tau, K):
    with mpmath.workdps(60):
        expected = literal_xi(tau, K, rho)
    assert omega_ucb.xi(tau, K, rho) == pytest.approx(float(expected), rel=1e-12)


def test_xi_bound():
    """(tau - K) alpha(tau) + (K + 1)^-rho + the integral of t^-rho from K + 1 to tau."""
    for tau, K, rho, integral in ((1000, 10, 1.0, log(1000 / 11)), (100, 3, 0.5, 2 * (10 - 2)),
                                  (50, 4, 2.0, 1 / 5 - 1 / 50), (10**8, 7, 0.25, (10**6 - 8**0.75) / 0.75)):
        expected = (tau - K) * (1 - sqrt(1 - tau**-rho)) + (K + 1) ** -rho + integral
        assert omega_ucb.xi_bound(tau, K, rho) == pytest.approx(expected, rel=1e-6)
    assert omega_ucb.xi_bound(5, 5, 1.0) == pytest.approx(1 / 6)        # from 6 to 5 there is nothing


@pytest.mark.parametrize(("budget", "mu"), [(10, 0.5), (3.7, 0.2), (40.5, 0.9), (0.3, 0.25)])
def test_excess_rounds(budget, mu):
    """A geometric series that begins at t = floor(2 B / mu) with exp(-t kl(B/t, mu))."""
    t = floor(2 * budget / mu)
    with mpmath.workdps(50):
        p = mpmath.mpf(budget) / t
        ratio = (1 - mpmath.mpf(mu)) / (1 - p)              # of neighbouring terms, at most
        expected = mpmath.exp(-t * kl(p, mpmath.mpf(mu))) / (1 - ratio)
    assert omega_ucb.excess_rounds(budget, mu) == pytest.approx(float(expected), rel=1e-12)


# ---- KUBE --------------------------------------------------------------------------------------------

SHARES = [0.01 * 99 ** (i / 99) for i in range(100)]
EPS = [1e-3 * 1e4 ** (i / 99) for i in range(100)]


def low_rounds(shortfall, rounds, R, sigma):
    kappa, p = shortfall**2 / (2 * sigma**2), 1 - (R / sigma) ** 2
    return (1 + rounds**p / p) / kappa if R < sigma else 1 / kappa + log1p(1 / kappa) / (2 * kappa)


@pytest.mark.parametrize(("R", "sigma"), [(1.0, 0.5), (0.5, 0.5), (0.25, 0.5), (3.0, 2.0), (1.0, 2.0)])
@pytest.mark.parametrize("budget", [50.0, 1e6, 1e200])
def test_theorem_9_is_the_best_of_its_grid(R, sigma, budget):
    """Densities 3/8 and 1/6; a pull of the second arm loses 3 * 3/8 - 1/2, and costs may be in any unit."""
    loss, density = 3 * 0.375 - 0.5, 0.375
    seen = min((1 + e) * 2 * R**2 * log(budget / 2) + 2 * sigma**2 / (1 - (1 + e) ** -0.5) ** 2 for e in EPS)
    best = min(seen / (loss * (1 - s)) ** 2 + low_rounds(2 * loss / 3 * s, budget / 2, R, sigma) for s in SHARES)
    learning, game = loss * (1 + best), ([0.75, 0.5], [2, 3], budget, R, sigma)
    assert kube.theorem_9(*game) == pytest.approx(learning + density * 2, rel=1e-9)
    off = min(density * 3 * (1 + log(budget / 3)),
              loss * 9 / 4 * (1 + log(budget / 2 / (9 / 4))) + density * 2)
    assert kube.theorem_9(*game, fractional=False) == pytest.approx(learning + off, rel=1e-9)


@pytest.mark.parametrize("budget", [10.0, 1e6, 1e300])
def test_theorem_10_is_the_best_of_its_grid(budget):
    """Of a worse arm with costs within reach, and of one that is too expensive at some of the levels."""
    for rewards, costs in (([0.75, 0.4], [1, 1.2]), ([0.75, 0.5], [1, 1.6]), ([0.75, 0.0], [1, 1.2])):
        loss, best = costs[1] * 0.75 - rewards[1], inf
        for s in SHARES:
            due = rewards[1] + loss * (1 - s)
            low = float(errors(mpmath.mpf(0.75), mpmath.mpf(0.75 - loss / costs[1] * s))[0])
            high = 0.0
            if due < 1:
                I = float(kl(rewards[1], due))              # noqa: E741 - the paper's
                L = float(logit(due) - logit(rewards[1])) if rewards[1] else 0.0
                high = min((1 + e) * log(budget) / I + (1 + e) ** 2 * L**2 / (2 * e**2 * I**2) for e in EPS)
            best = min(best, low + high)
        assert kube.theorem_10(rewards, costs, budget) == pytest.approx(loss * (1 + best) + 0.75, rel=1e-9)


def test_what_is_pulled_and_spent_off_the_leader():
    """min(1, q / k) and min(1, c / x) integrated: where the budget is below q or c, and where it is above."""
    for costs, budget, pulls, spent in (([1, 2], 100, 4 * (1 + log(25)), 2 * (1 + log(50))),
                                        ([1, 3], 5, 5, 3 * (1 + log(5 / 3))), ([2, 6], 4, 2, 4),
                                        ([2, 6], 30, 9 * (1 + log(15 / 9)), 6 * (1 + log(5)))):
        assert kube.off_leader_pulls(costs, budget) == pytest.approx(pulls)
        assert kube.off_leader_cost(costs, budget) == pytest.approx(spent)


def test_sharper_bounds_end_with_the_smaller_of_two_counts():
    """Arms that hardly differ: 0.01 lost per pull, so that pulls count for less than what is spent on them."""
    learning = 8 * log(100) / 0.01 + 0.01 * (1 + 2 * float(mpmath.zeta(3, 3) - mpmath.zeta(4, 3)))
    assert kube.kube_sharper([0.5, 0.99], [1, 2], 100) == pytest.approx(
        learning + 0.01 * 4 * (1 + log(25)) + 0.5, rel=1e-9)
    assert kube.fractional_kube_sharper([0.5, 0.99], [1, 2], 100) == pytest.approx(learning + 0.5, rel=1e-9)


def test_printed_bounds_of_three_arms():
    """I* is the cheapest arm: all others count with their rewards, if smaller, and their costs, if larger."""
    rewards, costs = [0.5, 0.9, 0.2], [1, 3, 1.5]           # densities 1/2, 0.3 and 2/15
    weight, d = 0.3 + (2 + 0.5) / 1, 0.2
    for bound, end in ((kube.kube, 9), (kube.fractional_kube, 0)):
        assert bound(rewards, costs, 200) == pytest.approx(
            weight * ((8 / d**2 + end) * log(200) + np.pi**2 / 3 + 1) + 1, rel=1e-12)
    # The best arm costs 2: costs count in its own, and the budget in the smallest.
    assert kube.kube([0.9, 0.2], [2, 1], 50) == pytest.approx(
        0.7 * ((8 / 0.25**2 + 4) * log(50) + np.pi**2 / 3 + 1) + 1, rel=1e-12)
    assert kube.kube([0.9, 0.2, 0.5], [2, 1, 5], 50) == pytest.approx(
        (0.7 + 0.4 + 3 / 2) * ((8 / 0.25**2 + 25) * log(50) + np.pi**2 / 3 + 1) + 1, rel=1e-12)


@pytest.mark.parametrize(("n", "mean", "gap"), [(1000, 0.5, 0.1), (10**20, 0.5, 0.2), (10**60, 0.3, 0.05)])
def test_worse_of_two(n, mean, gap):
    low, high = mpmath.mpf(mean) - mpmath.mpf(gap), mpmath.mpf(mean) + mpmath.mpf(gap)
    expected = gap / kl(low, high) * mpmath.lambertw(n * kl(low, high) / 8)
    assert kube.worse_of_two(n, mean, gap) == pytest.approx(float(expected.real), rel=1e-9)


# ---- cost subsidy ------------------------------------------------------------------------------------

@pytest.mark.parametrize(("means", "alpha", "T"), [((0.46, 0.5), 0.1, 10_000), ((0.2, 0.6), 0.2, 3000)])
def test_leaves(means, alpha, T):
    """T^-3, and that the dear arm's mean reaches (the cheap one's + radius) / (1 - alpha), a binomial tail."""
    tau = round((T / 2) ** (2 / 3))
    with mpmath.workdps(50):
        bar = mpmath.mpf(means[0]) / (1 - alpha) + mpmath.sqrt(2 * mpmath.log(T) / tau)
        tail = sum(mpmath.binomial(tau, k) * mpmath.mpf(means[1]) ** k * (1 - mpmath.mpf(means[1])) ** (tau - k)
                   for k in range(tau + 1) if k >= tau * bar)
        expected = tail + mpmath.mpf(T) ** -3
    assert cost_subsidy.leaves(means, alpha, T) == pytest.approx(float(expected), rel=1e-9)



# ---- Budget-UCB --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("budget", "mu"), [(1.0, 0.5), (0.6, 0.3), (2.0, 0.9), (5.0, 0.04)])
def test_tail(budget, mu):
    """Three exponentials, at budgets so small that each of them is seen."""
    parts = [mpmath.exp(-mu * (budget - mu) ** 2 / budget), 3 * budget / mu * mpmath.exp(-budget * mu / 2),
             mpmath.exp(1 - 2 * budget * mu) / mu**2]
    assert min(parts) > 1e-4 * sum(parts)
    assert budget_ucb.tail(budget, mu) == pytest.approx(float(sum(parts)), rel=1e-12)


def test_theorem_3_sharper_counts_the_late_rounds():
    """A worse arm so bad that the money lasts, and a budget so small that what is beyond 2 B / mu shows."""
    bandit = bernoulli([1.0, 0.0], [0.1, 1.0])
    late, width = omega_ucb.excess_rounds(75, 0.1), budget_ucb.width(bandit)
    pulls = 2 * log(1500) / width[1] ** 2 + 1 + budget_ucb.chance_failures(2) + late
    assert late > 1e-10 and pulls < 75 and width[0] == 0
    assert budget_ucb.theorem_3_sharper(bandit, 75) == pytest.approx(10 * pulls + 10, rel=1e-13)


@pytest.mark.parametrize(("exponent", "found"), [(1, True), (13, True), (25, True), (29.9, True), (30.1, False)])
def test_informative_from_is_looked_for_up_to_1e30(exponent, found):
    """A regret of 2 10^e is less than all that can be missed, 2 (B + 1), from B = 10^e - 1 on."""
    start = budget_ucb.informative_from(lambda budget: 2 * 10**exponent, 2)
    assert start == (pytest.approx(10**exponent - 1) if found else inf)


# ---- cost subsidy, on ----------------------------------------------------------------------------------

def test_theorem_1_repaired_with_a_prior():
    """K - 1 + (T - K) (1 - Phi(z)^(K - 1)) / 2, with a prior that pulls estimates towards 0, and with a flat one."""
    K, T, alpha, q, d, prior, noise = 4, 1000, 0.25, 0.6, 1.5, 0.7, 2.0
    z = d / 0.75 * mpmath.sqrt(1 / (T * prior**2) + 1 / noise**2) + q * noise / (prior * mpmath.sqrt(4 + prior**2))
    expected = 3 + 996 * (1 - mpmath.ncdf(z) ** 3) / 2
    assert cost_subsidy.theorem_1_repaired(K, T, alpha, q, d, prior, noise) == pytest.approx(float(expected), rel=1e-12)
    expected = 3 + 996 * (1 - mpmath.ncdf(1.0) ** 3) / 2
    assert cost_subsidy.theorem_1_repaired(K, T, alpha, q, d, noise_sd=noise) == pytest.approx(float(expected))


@pytest.mark.parametrize(("costs", "times"), [("known", 1), ("unknown", 2)])
@pytest.mark.parametrize("tau", [1.0, 36.0, 1000.0])
def test_theorem_3_repaired(costs, times, tau):
    """R is four widths times sqrt(K (T - K)) - K sqrt(tau - 1), of which the pulls of 1,000 rounds leave nothing."""
    T, width = 2000, sqrt(2 * log(2000))
    R = 4 * width * max(sqrt(2 * 1998) - 2 * sqrt(tau - 1), 0.0)
    found = cost_subsidy.theorem_3_repaired(2, T, 0.2, tau, costs)
    assert found.quality == pytest.approx(
        0.8 * (2 * tau + 2 * (T - 2 * tau) * width / sqrt(tau)) + R + times * 2 / T, rel=1e-12)
    assert found.cost == pytest.approx(2 * tau + R * (costs == "unknown") + times * 2 / T, rel=1e-12)


def test_best_pulls_and_the_pulls_of_the_counterexample():
    assert cost_subsidy.best_pulls(3, 10**6, 0.2) == pytest.approx(
        (0.8 * 10**6 * sqrt(2 * log(10**6)) / (1.8 * 3)) ** (2 / 3), rel=1e-12)
    assert cost_subsidy.best_pulls(10**9, 2 * 10**9, 0.0) == 2     # no more than there are rounds for, and one at least
    assert cost_subsidy.best_pulls(5, 5, 0.99) == 1
    assert cost_subsidy.counterexample_pulls(10**5) == pytest.approx(
        (1 - 2e-10) * (10**5 - 2 - 1250 * log(10**5)), rel=1e-12)


@pytest.mark.parametrize(("K", "T", "alpha", "delta"), [(2, 10**4, 0.5, 2.0), (8, 10**6, 0.5, 1.0),
                                                             (3, 500, 0.1, 40.0)])
def test_theorem_4_floor_is_the_best_of_its_family(K, T, alpha, delta):
    """Costs of 1 where delta allows them, and as high as it allows where not."""
    found = cost_subsidy.theorem_4_floor(K, T, alpha, delta)
    def floor_at(e):
        p, epsilon, w = (1 - alpha) * (1 - e) / 2, (1 - alpha) * e, 1 / 3
        price = min(1.0, delta * alpha * (1 - e) / 2)
        lost, kl_of = (1 - w) * epsilon * T, float(kl((1 - e) / 2, (1 + e) / 2))
        return lost - lost**2 * kl_of / (8 * K * (w * price - (1 - w) * epsilon)), p, epsilon
    e = found.epsilon / (1 - alpha)
    assert found == pytest.approx(floor_at(e), rel=1e-12)
    price = min(1.0, delta * alpha / 2)
    best = max(floor_at(e)[0] for e in np.geomspace(1e-3, min(0.44, 0.24 * price / (1 - alpha)), 400))
    assert best <= found.value * (1 + 1e-6) and found.value <= best * 1.01


# ---- bounds from below ---------------------------------------------------------------------------------

DEAR = bernoulli([1.0, 0.96, 0.5], [0.005, 0.016, 0.02])      # ratios 200, 60 and 25


@pytest.mark.parametrize("exponent", [1, 4, 20, 200])
@pytest.mark.parametrize("a", [0.05, 0.25, 1.0, 3.0])
def test_locked_plays_at_the_best_level_of_the_best_rival(exponent, a):
    """q mu^s (tau - s) over all levels below a rival's ratio; s = 1 + floor(2 a log(tau) / (h - 1)), or / log h."""
    tau = 10**exponent
    for plays, pulls in ((omega_ucb.locked_plays, lambda h: 1 + floor(2 * a * log(tau) / (h - 1))),
                         (kl_ucb.locked_plays, lambda h: 1 + floor(a * log(tau) / log(h)))):
        found = [(r - h * c) / (r * (1 - c)) * 0.005 ** pulls(h) * (tau - pulls(h))
                 for r, c, levels in ((0.96, 0.016, range(2, 60)), (0.5, 0.02, range(2, 25))) for h in levels]
        assert plays(DEAR, tau, a) == pytest.approx(max(0.0, *found), rel=1e-9)


def test_the_share_of_rounds_that_cs_ucb_gives_to_the_expensive_arm():
    assert [cost_subsidy.ucb_share(alpha) for alpha in (0.0, 0.2, 0.9)] == pytest.approx(
        [0.5, 0.64 / 1.64, 0.01 / 1.01])


# ---- SUAK ----------------------------------------------------------------------------------------------

def test_a_pair_of_which_one_costs_all_that_may_be_spent():
    """It is mixed with nothing dearer, and with what is cheaper as its reward says; where both cost less, the better
    one alone; where both cost more, there is no mixture."""
    assert suak.pair([0.5, 0.9], [0.5, 0.8], 0.5) == pytest.approx((0.5, 1.0))
    assert suak.pair([0.9, 0.5], [0.8, 0.5], 0.5) == pytest.approx((0.5, 0.0))
    assert suak.pair([0.5, 0.25], [0.5, 0.25], 0.5) == pytest.approx((0.5, 1.0))
    assert suak.pair([0.25, 0.5], [0.125, 0.25], 0.5) == pytest.approx((0.5, 0.0))
    assert suak.pair([0.9, 0.25], [0.75, 0.25], 0.5) == pytest.approx((0.575, 0.5))
    assert suak.pair([0.25, 0.9], [0.75, 0.25], 0.5) == pytest.approx((0.9, 0.0))
    assert suak.pair([0.9, 0.8], [0.75, 0.625], 0.5).value == -inf


def test_failures_are_finite_where_an_arm_costs_c():
    assert suak.regret([0.5, 0.9, 0.2], [0.5, 0.8, 0.1], 0.5, 100).failures == pytest.approx(18 * np.pi**2)
