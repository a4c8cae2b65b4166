"""Counterexamples to what the papers state, in rational arithmetic and without the library: nothing hangs on rounding.

Each test says which statement it refutes, and why its instance does. Logarithms and roots, which are not rational, are
enclosed; probabilities are fractions, summed over all games where one game does not suffice.
"""

from decimal import Decimal
from fractions import Fraction as F
from functools import cache
from math import comb
from statistics import NormalDist


def log_between(x):
    """Rationals below and above log x; the decimal module's logarithms are right to 28 digits."""
    value, margin = F(Decimal(x.numerator).ln() - Decimal(x.denominator).ln()), F(1, 10**20)
    return value - margin, value + margin


# ---- omega-UCB (Heyden et al.) ------------------------------------------------------------------------

def quadratic(x, mean, n, z_squared):
    """A x^2 - B x + C of Theorem 1 on [0, 1], eta = 1: 0 at both ends of its interval and negative between them."""
    return (n + z_squared) * x**2 - (2 * n * mean + z_squared) * x + n * mean**2


def lower_end(n, z_squared):
    """That of the interval after n outcomes of 1: n / (n + z^2). By symmetry n outcomes of 0 leave z^2 / (n + z^2)."""
    end = F(n) / (n + z_squared)
    assert quadratic(end, 1, n, z_squared) == quadratic(1 - end, 0, n, z_squared) == 0 < end < 1
    return end


def lowest_index(n, z_squared):
    """The index of an arm that never paid and always cost 1 in its n plays, z^2 / n: no outcomes give a smaller one."""
    return (1 - lower_end(n, z_squared)) / lower_end(n, z_squared)


def test_theorem_1_misses_a_mean_of_13_percent_thirteen_times_too_often():
    """One Bernoulli outcome: a mean below what a 1 leaves possible is missed whenever a 1 shows."""
    z, alpha, mean = F(2576, 1000), F(1, 100), F(13, 100)
    assert float(z) > NormalDist().inv_cdf(1 - float(alpha) / 2)
    assert mean < lower_end(1, z * z)                   # so the probability of a miss is that of a 1, the mean
    assert mean == 13 * alpha


def test_theorem_2_is_violated_thirteen_times_too_often():
    """One outcome of each: the reward is always 1, and so is its upper end; the cost is 1 with a small probability.

    Each interval has Theorem 1's z for alpha, as the theorem is printed, or that for alpha / 2, which gives more.
    """
    alpha = F(1, 100)
    for z, level, times in ((F(2576, 1000), alpha, 13), (F(281, 100), alpha / 2, 11)):
        cost = times * alpha
        assert float(z) > NormalDist().inv_cdf(1 - float(level) / 2)
        assert 1 / cost > 1 / lower_end(1, z * z)


def test_theorem_3_is_violated_nine_hundred_times_too_often():
    """The same at t = 10,000, where the promise is 1 - sqrt(1 - t^-rho) and the cost 1 with probability 5 %."""
    rho, t, cost = 1, 10_000, F(5, 100)
    z_squared = 2 * rho * F(922, 100)                   # z^2 = 2 rho log t
    assert z_squared > 2 * rho * log_between(t)[1]
    promised = F(51, 10**6)                             # more than 1 - sqrt(1 - t^-rho)
    assert 1 - promised > 0 and (1 - promised)**2 < 1 - F(1, t)**rho
    assert 1 / cost > 1 / lower_end(1, z_squared) and cost > 900 * promised


def test_example_2_prints_an_m_ucb_that_no_eps_gives():
    """Section 3: at t = 10,000 and n = 1,000 m-UCB (alpha = 1) has 2.95 and 48.6, omega-UCB 5.5 and 2.1.

    The 48.6 is right. An m-UCB of 2.95 is below 0.8 / 0.2 = 4, which no eps >= 0 allows; Table 2's eps gives 8.6. The
    reading z = sqrt(2 log t) with rho = 1: omega-UCB's intervals hold an upper and a lower value whose ratio is above
    what rounds to 5.5 and to 2.1; its index is larger still.
    """
    low, high = F(95969, 10**6), F(95970, 10**6)        # eps^2 = log(t - 1) / n; both values grow with eps
    assert low**2 < log_between(9999)[0] / 1000 and log_between(9999)[1] / 1000 < high**2
    for eps in (low, high):
        assert F(855, 100) < min(F(8, 10) + eps, 1) / (F(2, 10) - eps) < F(865, 100)
        assert abs((F(1, 10) + eps) / (F(1, 10) - eps) - F(486, 10)) < F(5, 100)
    z_squared = 2 * log_between(10_000)[0]
    for reward, cost, upper, lower, printed in (
            (F(8, 10), F(2, 10), F(848, 1000), F(152, 1000), F(55, 10)),
            (F(1, 10), F(1, 10), F(148, 1000), F(1, 15), F(21, 10))):
        assert upper > reward and quadratic(upper, reward, 1000, z_squared) < 0
        assert lower < cost and quadratic(lower, cost, 1000, z_squared) < 0
        assert upper / lower > printed + F(5, 100)


# The worse arm of the next three tests pays 1 in one pull of a hundred, and costs 1 in all but one of a hundred. The
# better one always pays 1/2 and costs 1. So the best ratio is 1/2; rho = 1.
PAYS, COSTS, BEST = F(1, 100), F(99, 100), F(1, 2)
GAP = BEST - PAYS / COSTS


def enough(log_tau):
    """n*(tau) of the worse arm, as Theorem 4 and Lemma 1 print it."""
    delta = GAP / (GAP + 1 / COSTS)
    return 8 * log_tau / delta**2 * max(PAYS / (1 - PAYS), (1 - COSTS) / COSTS)


def allowed(log_tau):
    """At least Theorem 4's 1 + n*(tau) + xi(tau, 1), of which xi <= 1 + log tau by Eq. (21) and (22)."""
    return 1 + enough(log_tau) + 1 + log_tau


def played_more_than(N, tau):
    """Whether the worse arm has more than N plays in the first tau rounds of every game, whatever its outcomes.

    Say it has had N or fewer. Then the better arm was last chosen in a round t >= tau - N, after tau - N - 1 plays or
    more, with an index no smaller than that of the other, which was 2 log(t) / N or more. That must be impossible.
    """
    n, z_squared, u = tau - N - 1, 2 * log_between(tau)[1], F(11, 20)
    assert u > BEST and quadratic(u, BEST, n, z_squared) > 0            # u is above the upper end of the reward 1/2
    return u / lower_end(n, z_squared) < 2 * log_between(tau - N)[0] / N


def test_lemma_1_calls_improbable_what_is_certain():
    """A.5, Lemma 1: from n* plays on the index reaches the best ratio with probability below 1 - sqrt(1 - tau^-rho)."""
    low, high = log_between(10_000)
    n = 7
    assert n >= enough(high)
    assert lowest_index(n, 2 * low) > 5 * BEST          # so it does with probability 1
    promised = F(51, 10**6)
    assert (1 - promised)**2 < 1 - F(1, 10_000)


def test_theorem_4_is_exceeded_in_every_game():
    """Section 4.2, Theorem 4: E[n_2(tau)] <= 1 + n*(tau) + xi(tau, rho)."""
    N, tau = 33, 10_000
    assert played_more_than(N, tau) and N > F(3, 2) * allowed(log_between(tau)[1])


def test_theorem_5_is_exceeded_in_every_game():
    """Section 4.2, Theorem 5: regret <= Delta (1 + n* + xi)(tau_B) + X(B) Delta + 2 mu_1^r / mu_1^c.

    Costs are at most 1, so a game lasts B rounds or more. X(B) is in O(B / mu_min exp(-B mu_min / 2)): with B = 10,000
    it is nothing, even with a constant of 10^1000 in front.
    """
    N, B = 33, 10_000
    excess = 10**1000 * B / COSTS / 2**4950             # e > 2, and B mu_min / 2 = 4,950
    bound = GAP * (allowed(log_between(2 * B / COSTS)[1]) + excess) + 2 * BEST
    assert played_more_than(N, B) and COSTS * GAP * N > F(3, 2) * bound


def test_theorem_6_allows_less_than_a_power_that_the_regret_has():
    """Section 4.2, Theorem 6: the regret is in O(B^(1 - rho)) for rho < 1, and in O(log B) for rho >= 1.

    Arm 2 always pays 1 and costs 1/10: its index is 10 or more. Arm 1 always pays 1, and costs 1 with probability 1/11,
    else nothing: its ratio is 11. If its first s costs are all 1, its index is 1 + 2 rho log(t) / s. With
    s = 1 + floor(2 rho log(B) / 9) that is below 10 in each of the first B rounds, in which arm 2 has the other B - s
    plays. So the regret, 1/10 for each, is at least 11^-s (B - s) / 10, and 11^-s at least B^(-2 rho log(11) / 9) / 11.
    """
    _, high = log_between(11)
    assert 1 / lower_end(5, F(3)) == 1 + F(3) / 5       # the index after s costs of 1: 1 + z^2 / s
    for rho, exponent in ((1, 0), (F(1, 2), F(1, 2)), (F(1, 4), F(3, 4))):
        assert 1 - 2 * rho * high / 9 > exponent + F(1, 10)


# ---- KUBE (Tran-Thanh et al.) ---------------------------------------------------------------------------

def kube_bound(means, costs, log_pulls, end_phase):
    """Theorems 1 (with the end phase) and 7 for two arms, the first of them I*, with 10 for pi^2, which is less."""
    (mu, other), (c, cost) = means, costs
    d = mu / c - other / cost
    weight = max(mu - other, 0) + F(max(cost - c, 0), c)
    return weight * ((8 / d**2 + end_phase * F(max(costs), min(costs))**2) * log_pulls + F(10, 3) + 1) + 1


def test_theorems_1_and_7_promise_a_negative_regret():
    """Section 4, Theorems 1 and 7, "for any budget size B > 0": with B = 1/4 nothing is affordable, the regret is 0."""
    log_pulls = log_between(F(1, 4))[1]                 # c_min = 1
    for end_phase in (True, False):
        assert kube_bound((F(9, 10), F(1, 10)), (1, 2), log_pulls, end_phase) < -10


def first_leads(pulls, rewards):
    """Whether arm 1, of cost 1, has the larger index per cost by Eq. (7) than arm 2, of cost 2; equal ones: arm 1."""
    (n, m), (s, r) = pulls, rewards
    bonus = 2 * Decimal(n + m + 1).ln()
    ahead = Decimal(s) / n + (bonus / n).sqrt() - (Decimal(r) / m + (bonus / m).sqrt()) / 2
    equal = n == 4 * m and 2 * s * m == r * n           # as log t is irrational, else they differ
    assert equal or abs(ahead) > Decimal("1e-20")       # far more than was rounded
    return equal or ahead > 0


def test_lemma_3_and_equation_32_fail_given_a_number_of_pulls_that_can_happen():
    """Section 4: E[N_2 | T] <= (8 / d^2 + (c_max / c_min)^2) ln T + pi^2 / 3 + 1, in Eq. (32) without the square.

    With costs 1 and 2 all of B is spent, so N_2 = B - T: given T there is no chance left, and one game with that T
    suffices. In this one arm 1 (mean 0.98) never pays and arm 2 (mean 0.02) always does, and the leader is pulled as
    long as it is affordable: always by fractional KUBE, by KUBE with a positive probability in each round.
    """
    B, d, pulls = 1000, F(98, 100) - F(2, 100) / 2, [1, 1]
    while (left := B - pulls[0] - 2 * pulls[1]) > 0:
        pulls[0 if left == 1 or first_leads(pulls, (0, pulls[1])) else 1] += 1
    T = sum(pulls)
    assert pulls[1] == B - T
    assert pulls[1] > 5 * ((8 / d**2 + 4) * log_between(T)[1] + F(10, 3) + 1)     # pi^2 < 10


def test_lemma_5_fails_given_a_number_of_pulls_that_can_happen():
    """Section 4, Lemma 5: P(i(t) = j | T) <= P(hat I(t) = j | T) + (c_max / c_min)^2 / (T - t + 1).

    Costs 1 and 2, B = 30; arm 1 pays with probability 0.999, arm 2 always. KUBE's law, summed over all games: given
    T = 25, arm 1 is pulled in round 11 with probability 0.91, and leads there with probability 0.06. Most of these
    games begin with five pulls of each arm, in which arm 1 never paid. Arm 2 leads then, and is drawn with probability
    7/8; but T = 25 leaves no sixth pull for it. The lemma names no arm; this one is I*.
    """
    B, T, t, mean = 30, 25, 11, F(999, 1000)

    @cache
    def chance(n, s, m, event):
        """That T pulls are made and the event happens, if arm 1 has n pulls and s rewards, arm 2 m of both."""
        left, first = B - n - 2 * m, first_leads((n, m), (s, m))
        if left == 0:
            return F(n + m == T)
        if n + m + 1 == t and event == "arm 1 leads" and not first:
            return F(0)
        filling = (left, 0) if first else (left % 2, left // 2)
        one, two = (F(times, sum(filling)) for times in filling)
        if n + m + 1 == t and event == "arm 1 is pulled":
            two = 0
        return (one * after_arm_1(n, s, m, event) if one else 0) + (two * chance(n, s, m + 1, event) if two else 0)

    def after_arm_1(n, s, m, event):
        return mean * chance(n + 1, s + 1, m, event) + (1 - mean) * chance(n + 1, s, m, event)

    game, pulled, leads = (after_arm_1(0, 0, 1, event) for event in ("T pulls", "arm 1 is pulled", "arm 1 leads"))
    assert game > 0 and pulled / game > leads / game + F(4, T - t + 1) + F(1, 2)


# ---- cost subsidy (Sinha et al.) --------------------------------------------------------------------------

def test_nobody_has_cost_regret_where_section_6_sees_much_of_it():
    """Section 6: "When mu_2 is close to (and less than) 0.45, CS-TS and CS-UCB incur much higher cost regret".

    Cost regret adds up max(c - c*, 0), c* the cost of the cheapest arm whose mean is at least 0.9 times the best. Below
    0.45 that is the expensive arm, and no pull has any, as the paper says of smaller means. From 0.45 on there is some.
    """
    def of_a_pull(cheap):
        means, costs = (F(1, 2), cheap), (1, 0)
        optimal = min(cost for mean, cost in zip(means, costs, strict=True) if mean >= F(9, 10) * max(means))
        return [max(cost - optimal, 0) for cost in costs]

    assert all(of_a_pull(F(k, 1000)) == [0, 0] for k in range(300, 450))
    assert all(of_a_pull(F(k, 1000)) == [1, 0] for k in range(450, 601))


def test_below_the_border_exploring_less_costs_quality_and_nothing_is_identified():
    """Section 6: CS-ETC loses much quality there "because the number of exploration rounds is fixed"; "can identify".

    T = 5,000, alpha = 0.1. After tau = 184 pulls of each arm the cheap one is left only if the other's mean of 184
    rewards, each 1 with probability 1/2, reaches mu / 0.9 plus the radius, or if its own upper bound fails, which has
    a probability of at most T^-3. So it is pulled nearly always, below 0.45, too, and at 0.3 that loses 0.15 in all
    rounds but 184. With 18 pulls the radius exceeds 0.9 and the bar is below 0.1: 0.15 is lost in all rounds but 18.
    """
    T, (low, _) = 5000, log_between(F(5000))
    for mu in (F(30, 100), F(43, 100), F(44, 100)):
        need = next(s for s in range(185) if s >= 184 * mu / F(9, 10) and (s - 184 * mu / F(9, 10))**2 >= 2 * low * 184)
        leaves = F(sum(comb(184, s) for s in range(need, 185)), 2**184) + F(1, T**3)
        assert leaves < F(1, 10_000)
    assert 2 * low / 18 > F(9, 10)**2 and F(15, 100) * (T - 18) * (1 - F(1, T**3)) > F(15, 100) * (T - 184)


def test_theorem_4_is_outgrown_by_a_linear_cost_regret():
    """Section 5.1, Theorem 4: costs within delta times the means' distances give O((1 + delta) sqrt(K T log T)).

    Three arms that always pay 0.82, 0.9 and 0.5, at costs 0, 0.4 and 1; alpha = 0.1. CS-UCB pulls each once. The last
    one's score is then 1, and the bar 0.9, which the second always reaches: so the last, which is the most expensive,
    is never pulled again, and the bar stays. The first reaches it as long as sqrt(2 log T / n) >= 0.08. All other pulls
    go to the second, at 0.4 more than the first costs, which is good enough.
    """
    means, costs, alpha, delta, K = (F(82, 100), F(9, 10), F(1, 2)), (0, F(4, 10), 1), F(1, 10), 5, 3
    assert all(abs(costs[i] - costs[j]) <= delta * abs(means[i] - means[j]) for i in range(K) for j in range(i))
    bar = (1 - alpha) * 1
    assert means[0] >= (1 - alpha) * max(means) and means[1] >= bar > means[0]
    shares = []
    for T in (10**6, 10**9, 10**12):
        low, high = log_between(T)
        assert means[2]**2 <= 2 * low                   # its radius after one pull: 0.5 + sqrt(2 log T) >= 1
        lost = costs[1] * (T - 2 - 2 * high / (bar - means[0])**2)
        shares.append(lost**2 / ((1 + delta)**2 * 8 * K * T * high))     # over the bound in its proof, squared
    assert shares[0] > 10 and shares[1] > 500 * shares[0] and shares[2] > 500 * shares[1]
