"""Cost subsidy: literal transcriptions round for round, known answers, both regrets, what is refused.

A transcription keeps every reward and cost that it sees and follows the paper line by line; the readings are those of
the library's documentation. The arms stand in the replication's shuffled order and the lowest position wins a tie.
"""

from math import ceil, inf, isclose, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import (
    FIELDS,
    ORDER,
    POLICIES,
    POLICY,
    Played,
    Sums,
    digest,
    in_plain_python,
    literal_rounds,
    looks,
    low_level,
    outcomes,
    proving,
    same,
    stream,
)

import costbandits as cb
from costbandits import fast
from costbandits.engine.state import Arms, new_record
from costbandits.fast import subsidy as quick
from costbandits.policies import cost_subsidy

EVERYONE = {"UCB": cb.CSUCB(0.1), "UCB, costs unknown": cb.CSUCB(0.1, "unknown"), "TS": cb.CSTS(0.1),
            "Gaussian TS": cb.CSTS(0.1, "gaussian"), "TS, costs unknown": cb.CSTS(0.1, costs="unknown"),
            "naive TS": cb.CSTS(0.1, naive=True), "naive Gaussian TS": cb.CSTS(0.1, "gaussian", naive=True),
            "ETC": cb.CSETC(0.1), "ETC, costs unknown": cb.CSETC(0.1, costs="unknown"), "once": cb.CommitOnce(0.1),
            "blind": cb.BlindETC(), "pairwise": cb.PairwiseElimination(0.1), "elimination": cb.CSElimination(0.1),
            "VOI": cb.CSVOI(0.1)}


def bernoulli(means, costs):
    return cb.Bandit([cb.Bernoulli(m) for m in means], [cb.Constant(c) for c in costs])


def fixed(means, costs):
    return cb.Bandit([cb.Constant(m) for m in means], [cb.Constant(c) for c in costs])


def beta(means, costs, weight=20):
    return cb.Bandit([cb.Beta(weight * m, weight * (1 - m)) for m in means], [cb.Constant(c) for c in costs])


def random_bandit(seed, K, make=beta):
    """Costs on a coarse grid, so that many are tied."""
    rng = np.random.default_rng(seed)
    return make(rng.uniform(0.05, 0.95, K).tolist(), (rng.integers(0, 4, K) / 4).tolist())


def random_costs(bandit, weight=20):
    """The same arms, whose costs are random: Beta laws, and one Bernoulli."""
    means = np.clip(bandit.cost_means, 0.02, 0.98)
    return cb.Bandit(bandit.rewards, [cb.Bernoulli(means[0])] + [cb.Beta(weight * c, weight * (1 - c))
                                                                 for c in means[1:]])


# ---- literal transcriptions -------------------------------------------------------------------------

class Literal:
    """A player who is told T, alpha and, where they are known, the costs c; `fault` is a deliberate error."""

    alpha, costs, exploration_pulls, fault = 0.0, "known", None, None

    def __init__(self, T, c, rng, **reading):
        self.T, self.K, self.c, self.rng, self.arms = T, len(c), c, rng, [Sums() for _ in c]
        self.met = set()
        vars(self).update(reading)

    def see(self, arm, reward, cost):
        self.arms[arm].see(reward, cost)

    def beta(self, arm, t):
        return sqrt(2 * log(t if self.fault == "log t" else self.T) / arm.n)

    def bounds(self, t):
        """Algorithm 2: mu^UCB and mu^LCB."""
        cap = inf if self.fault == "no cap" else 1
        return ([min(arm.mu + self.beta(arm, t), cap) for arm in self.arms],
                [max(arm.mu - self.beta(arm, t), 0) for arm in self.arms])

    def cheapest(self, scores, standard, t):
        """The last lines of Algorithms 1, 2 and 3."""
        bar = (1 - self.alpha) * max(standard)
        feasible = [i for i, score in enumerate(scores) if score >= bar or isclose(score, bar, rel_tol=1e-12)]
        if self.fault == "strict":
            feasible = [i for i in feasible if scores[i] > bar and not isclose(scores[i], bar, rel_tol=1e-12)]
        if not feasible:
            self.met.add("empty")
            return standard.index(max(standard)) if self.fault != "first if empty" else 0
        c = self.c
        if self.costs == "unknown":
            floor = -inf if self.fault == "no floor" else 0
            c = [max(arm.rho - self.beta(arm, t), floor) for arm in self.arms]
            if self.fault == "mean costs":
                c = [arm.rho for arm in self.arms]
        if self.fault == "last of equals":
            feasible.reverse()
        arm = min(feasible, key=lambda i: c[i])
        if len(feasible) < self.K:
            self.met.add("some infeasible")
        if len({c[i] for i in feasible}) < len(feasible):
            self.met.add("tie")
        if arm != min(range(self.K), key=lambda i: c[i]):
            self.met.add("not the cheapest of all")
        return arm


class LiteralUCB(Literal):
    """Algorithm 1 with the line for UCB."""

    def choose(self, t):
        if t <= self.K:
            return t - 1
        scores, lower = self.bounds(t)
        return self.cheapest(scores, lower if self.fault == "lower bounds" else scores, t)


class LiteralTS(Literal):
    """Algorithm 1 with the line for TS, conjugate posteriors."""

    posterior = "beta"

    def __init__(self, *args, **reading):
        super().__init__(*args, **reading)
        self.successes, self.trials = [0] * self.K, [0] * self.K

    def see(self, arm, reward, cost):
        super().see(arm, reward, cost)
        if self.posterior == "beta":
            self.successes[arm] += self.rng.random() < reward
            self.trials[arm] += 1

    def choose(self, t):
        if t <= self.K:
            return t - 1
        prior = 2 if self.fault == "prior" else 1
        if self.posterior == "beta":
            scores = [self.rng.beta(prior + s, prior + n - s)
                      for s, n in zip(self.successes, self.trials, strict=True)]
        else:
            noise = [self.rng.standard_normal() for _ in self.arms]
            scores = [arm.mu + (z / arm.n if self.fault == "variance" else z / sqrt(arm.n))
                      for z, arm in zip(noise, self.arms, strict=True)]
        return self.cheapest(scores, scores, t)


class LiteralETC(Literal):
    """Algorithms 2 and 3: I_t = t mod K, where K itself stands for 0."""

    @property
    def tau(self):
        nearest = ceil((self.T / self.K) ** (2 / 3) - 0.5)
        return self.exploration_pulls or (1 if self.fault == "one each" else min(nearest, self.T // self.K))

    def choose(self, t):
        if t <= self.K * self.tau:
            return ((t % self.K) or self.K) - 1
        return self.commit(t)

    def commit(self, t):
        upper, lower = self.bounds(t)
        return self.cheapest(upper, upper if self.fault == "upper bounds" else lower, t)


class LiteralOnce(LiteralETC):
    chosen = None

    def commit(self, t):
        if self.chosen is None:
            self.chosen = super().commit(t)
        return self.chosen


class LiteralBlind(LiteralETC):
    def commit(self, t):
        return self.c.index(min(self.c))


class LiteralPairwise(Literal):
    """PE-CS as a script: what it pulls, in order."""

    def __init__(self, *args, **reading):
        super().__init__(*args, **reading)
        self.script = self.write()

    def choose(self, t):
        return next(self.script)

    def tau(self, m):
        D = 2.0**-m
        return ceil(2 * log(self.T * D**2) / D**2)

    def b(self, m):
        return sqrt(log(self.T * (2.0**-m) ** 2) / (2 * self.tau(m)))

    def sample(self, i, m):
        while self.arms[i].n < self.tau(m):
            yield i

    def write(self):
        by_cost = sorted(range(self.K), key=lambda i: self.c[i])
        omega, active = [0] * self.K, by_cost
        while len(active) > 1:
            m = max(omega)
            for i in active:
                yield from self.sample(i, m)
            bar = max(self.arms[i].mu - self.b(m) for i in active)
            active = [i for i in active if self.arms[i].mu + self.b(m) >= bar]
            for i in active:
                omega[i] += len(active) > 1 or self.fault != "survivor"
        (ell,) = active
        ahead = 4 if self.fault == "four ahead" else 5
        for j in by_cost[:by_cost.index(ell)]:
            while True:
                top = min(omega[ell], omega[j] + ahead)
                self.met.add("far ahead" if top < omega[ell] else "within five")
                yield from self.sample(j, omega[j])
                yield from self.sample(ell, top)
                mean, best = self.arms[j].mu, self.arms[ell].mu
                b, b_top = self.b(omega[j]), self.b(top)
                if (1 - self.alpha) * (best + b) + (self.alpha * b if self.fault == "whole b" else 0) < mean - b:
                    self.met.add("won")
                    while True:
                        yield j
                if mean + b < (1 - self.alpha) * (best - (b if self.fault == "wide" else b_top)):
                    self.met.add("lost")
                    break
                self.met.add("on")
                omega[j] += 1
                omega[ell] = max(omega[ell], omega[j])
        self.met.add("the best" if ell != by_cost[0] else "the best is the cheapest")
        while True:
            yield ell


def naive(alpha, **reading):
    """CS-TS as the definition says; that the other way to play it has the same law, `test_subsidy_thompson` shows."""
    return cb.CSTS(alpha, **reading, naive=True)


def literal(player, bandit, T, seed, **reading):
    """What a literal player pulls, by position, and the player."""
    order, rewards, costs = outcomes(bandit, seed, 0, T)
    c = bandit.cost_means[order].tolist() if reading.get("costs", "known") == "known" else [None] * bandit.K
    player = player(T, c, stream(seed, 0, POLICY), **reading)
    return literal_rounds(player, rewards, costs, T), player


def counts(said, K):
    """How often each position was pulled, in the rounds of `looks`."""
    return np.cumsum(np.eye(K, dtype=int)[said], axis=0)[looks(len(said)) - 1]


def pulled(policy, bandit, T, seed, kernels=True):
    """The same, by the library."""
    runs = cb.simulate({"p": policy}, bandit, cb.Horizon(T), seed=seed, checkpoints=looks(T) / T, fast=kernels)
    assert (runs.rounds[0, 0] == looks(T)).all()
    return runs.pulls[0, 0][:, stream(seed, 0, ORDER).permutation(bandit.K)]


def compare(policy, player, bandit, T, seed=0, **reading):
    """The transcription's pulls are those of the kernel and of the definition."""
    said, player = literal(player, bandit, T, seed, **reading)
    for kernels in (True, False):
        found = pulled(policy(**reading), bandit, T, seed, kernels)
        assert np.array_equal(found, counts(said, bandit.K)), f"kernels: {kernels}"
    return player


ALPHAS = (0.0, 0.1, 0.5)
# A cheap arm that is not good enough, for which every policy has to look at rewards; T is such that CS-ETC can tell.
POOR = beta([0.05, 0.9, 0.93], [0.0, 0.5, 0.5])
SMALL = [random_bandit(seed, K, make) for seed, (K, make) in
         enumerate([(2, bernoulli), (3, beta), (5, bernoulli), (4, beta), (5, beta)])]


@pytest.mark.slow
@pytest.mark.parametrize("costs", ["known", "unknown"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_ucb_round_for_round(alpha, costs):
    met = set()
    for seed, bandit in enumerate([*SMALL, POOR, beta([0.9, 0.3], [0.4, 0.4])]):
        bandit = random_costs(bandit) if costs == "unknown" and seed % 2 else bandit
        met |= compare(cb.CSUCB, LiteralUCB, bandit, 600, seed, alpha=alpha, costs=costs).met
    assert met == {"some infeasible", "tie", "not the cheapest of all"}


@pytest.mark.slow
@pytest.mark.parametrize("costs", ["known", "unknown"])
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_ts_round_for_round(alpha, posterior, costs):
    met = set()
    # Rewards near 0 make all draws negative, from a Gaussian.
    for seed, bandit in enumerate([*SMALL, POOR, bernoulli([0.01, 0.03], [1.0, 0.5])]):
        bandit = random_costs(bandit) if costs == "unknown" and seed % 2 else bandit
        met |= compare(naive, LiteralTS, bandit, 200, seed, alpha=alpha, posterior=posterior, costs=costs).met
    assert met >= {"some infeasible", "not the cheapest of all"} and ("tie" in met) == (alpha > 0)
    assert ("empty" in met) == (alpha > 0 and posterior == "gaussian")


@pytest.mark.slow
@pytest.mark.parametrize("costs", ["known", "unknown"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_etc_round_for_round(alpha, costs):
    met = set()
    for seed, (bandit, T) in enumerate([(POOR, 2500), *((bandit, 300) for bandit in SMALL)]):
        bandit = random_costs(bandit) if costs == "unknown" and seed % 2 == 0 else bandit
        for pulls in (None, 1, T // bandit.K) if seed else (None, 250):
            reading = {"alpha": alpha, "costs": costs, "exploration_pulls": pulls}
            met |= compare(cb.CSETC, LiteralETC, bandit, T, seed, **reading).met
    assert met >= {"some infeasible", "tie", "not the cheapest of all"}


@pytest.mark.slow
def test_committing_once_round_for_round():
    met, chosen = set(), set()
    for alpha in ALPHAS:
        for seed, (bandit, T) in enumerate([(POOR, 2500), *((bandit, 300) for bandit in SMALL)]):
            for pulls in (None, T // bandit.K // 2):
                player = compare(cb.CommitOnce, LiteralOnce, bandit, T, seed, alpha=alpha, exploration_pulls=pulls)
                met |= player.met
                chosen.add(player.chosen)
    assert met == {"some infeasible", "tie", "not the cheapest of all"} and len(chosen) > 2


def test_the_blind_round_for_round():
    for seed, bandit in enumerate([*SMALL, POOR]):
        for pulls in (None, 1, 300 // bandit.K):
            compare(cb.BlindETC, LiteralBlind, bandit, 300, seed, exploration_pulls=pulls)


# What happens in stage 2. In "far ahead" the best arm is found in round 6, the cheap one was dropped in round 1. Five
# rounds ahead the best is out of reach, 0.372 + b_1 < 0.7 (0.9 - b_6), and four rounds ahead it would not be.
PAIRS = {"poor": (beta([0.3, 0.9, 0.1, 0.3], [0.25, 0.5, 0.25, 0.25]), 5000, 0.5, {"on", "lost", "the best"}),
         "good": (beta([0.6, 0.97, 0.3], [0.2, 0.6, 1.0], 200), 6000, 0.5, {"on", "won"}),
         "alpha 0": (beta([0.2, 0.5, 0.95], [0.0, 0.3, 0.6]), 3000, 0.0, {"lost", "the best"}),
         "cheapest": (bernoulli([0.95, 0.3], [0.1, 0.2]), 3000, 0.1, {"the best is the cheapest"}),
         "one arm": (bernoulli([0.5], [0.5]), 50, 0.1, {"the best is the cheapest"}),
         "too close": (bernoulli([0.5, 0.52], [0.0, 1.0]), 1000, 0.1, set()),
         "far ahead": (fixed([0.372, 0.875, 0.9], [0.0, 0.5, 0.4]), 60_000, 0.3, {"far ahead", "lost", "the best"})}


@pytest.mark.slow
@pytest.mark.parametrize("name", proving(PAIRS, "alpha 0", "cheapest", "one arm", "too close"))
def test_pairwise_elimination_round_for_round(name):
    bandit, T, alpha, events = PAIRS[name]
    for seed in range(1 if T > 10**4 else 3):
        player = compare(cb.PairwiseElimination, LiteralPairwise, bandit, T, seed, alpha=alpha)
        assert player.met - {"within five"} == events
    for seed, each in enumerate(SMALL):
        compare(cb.PairwiseElimination, LiteralPairwise, each, 500, seed, alpha=alpha)


@given(seed=st.integers(0, 2**32), T=st.integers(5, 120), alpha=st.floats(0, 0.999), K=st.integers(1, 5))
@pytest.mark.slow
def test_small_runs_round_for_round(seed, T, alpha, K):
    bandit = random_bandit(seed, K, bernoulli if seed % 2 else beta)
    for policy, player, reading in [
            (cb.CSUCB, LiteralUCB, {}), (naive, LiteralTS, {}), (naive, LiteralTS, {"posterior": "gaussian"}),
            (cb.CSETC, LiteralETC, {}), (cb.CSETC, LiteralETC, {"costs": "unknown"}),
            (cb.CSUCB, LiteralUCB, {"costs": "unknown"}), (cb.CommitOnce, LiteralOnce, {}),
            (cb.PairwiseElimination, LiteralPairwise, {})]:
        compare(policy, player, bandit, T, seed % 7, alpha=alpha, **reading)


FAULTS = [(cb.CSUCB, LiteralUCB, {"alpha": 0.1}, ["log t", "no cap", "last of equals", "lower bounds"]),
          (cb.CSUCB, LiteralUCB, {"alpha": 0.0}, ["strict"]),
          (cb.CSUCB, LiteralUCB, {"alpha": 0.1, "costs": "unknown"}, ["mean costs", "no floor", "last of equals"]),
          (naive, LiteralTS, {"alpha": 0.1}, ["prior", "last of equals"]),
          (naive, LiteralTS, {"alpha": 0.1, "posterior": "gaussian"}, ["variance", "first if empty"]),
          (cb.CSETC, LiteralETC, {"alpha": 0.1}, ["one each", "upper bounds", "log t"]),
          (cb.CSETC, LiteralETC, {"alpha": 0.1, "costs": "unknown"}, ["mean costs", "no floor", "last of equals"])]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "player", "reading", "fault"),
                         [(*case, fault) for *case, faults in FAULTS for fault in faults])
def test_a_wrong_policy_is_found_out(policy, player, reading, fault):
    """With a deliberate error the transcription parts from the library, and would fail the tests above."""
    cases = [(POOR, 2500), (bernoulli([0.01, 0.03], [1.0, 0.5]), 200), *((bandit, 300) for bandit in SMALL)]
    parted = False
    for seed, (bandit, T) in enumerate(5 * cases):
        wrong, _ = literal(player, bandit, T, seed, fault=fault, **reading)
        parted = parted or not np.array_equal(pulled(policy(**reading), bandit, T, seed), counts(wrong, bandit.K))
        if parted:
            break
    assert parted


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "name"), [("four ahead", "far ahead"), ("whole b", "good"), ("wide", "poor"),
                                             ("survivor", "poor")])
def test_a_wrong_pairwise_elimination_is_found_out(fault, name):
    bandit, T, alpha, _ = PAIRS[name]
    wrong, _ = literal(LiteralPairwise, bandit, T, 0, alpha=alpha, fault=fault)
    assert not np.array_equal(pulled(cb.PairwiseElimination(alpha), bandit, T, 0), counts(wrong, bandit.K))


# ---- known answers ----------------------------------------------------------------------------------

# The cheap arm pays 0 and the dear one 1; which arm is pulled how often.
CHEAP, DEAR = 0, 1
POLAR = fixed([0.0, 1.0], [0.0, 1.0])


def ends(policy, T, bandit=POLAR):
    """Pulls at the end of a run, the same in any order of the arms."""
    found = {tuple(cb.simulate({"p": policy}, bandit, cb.Horizon(T), seed=seed, checkpoints=1).pulls[0, 0, 0].tolist())
             for seed in range(6)}
    assert len(found) == 1
    return found.pop()


def test_ucb_by_hand():
    # beta = sqrt(2 log 100 / n) = 3.0349 / sqrt n is 1/2 or more up to n = 36: 0.506, and then 0.499.
    assert ends(cb.CSUCB(0.5), 100) == (37, 63)
    # Nothing may be given up: it is 1 or more up to n = 9, 1.012, and then 0.960.
    assert ends(cb.CSUCB(0.0), 100) == (10, 90)


def test_etc_by_hand():
    # beta = sqrt(2 log 1000 / n) = 3.7169 / sqrt n. After 81 pulls each it is 0.4130: the dear arm pays 0.5870 at
    # least, and 0.2935 will do. The cheap arm's bound falls below that at 161 pulls, 3.7169 / sqrt(161) = 0.2929.
    assert ends(cb.CSETC(0.5, 81), 1000) == (161, 839)
    assert ends(cb.CommitOnce(0.5, 81), 1000) == (919, 81)
    # After 200 it is 0.2628: 0.7372 / 2 = 0.3686 is out of reach at once.
    assert ends(cb.CSETC(0.5, 200), 1000) == ends(cb.CommitOnce(0.5, 200), 1000) == (200, 800)
    assert ends(cb.BlindETC(200), 1000) == (800, 200)
    # After 10 it is 1.175: nothing is known of the dear arm, nor ever will be.
    assert ends(cb.CSETC(0.5, 10), 1000) == (990, 10)
    # By default (500)^(2/3) = 62.996.
    assert ends(cb.BlindETC(), 1000) == ends(cb.CommitOnce(0.5), 1000) == (937, 63)


def test_pairwise_elimination_by_hand():
    # tau_0 = ceil(2 log 1000) = 14, b_0 = sqrt(6.908 / 28) = 0.4967: 0 + b_0 < 1 - b_0, the dear arm is best.
    # tau_1 = ceil(8 log 250) = 45, b_1 = sqrt(5.521 / 90) = 0.2477: it is pulled 45 times, for its omega is 1. Still
    # b_0 > (1 - b_1) / 2 = 0.376; so is the cheap arm, and b_1 < 0.376.
    assert ends(cb.PairwiseElimination(0.5), 1000) == (45, 955)
    # Now 0.5 + b_0 >= 1 - b_0, so both are pulled 45 times, and 0.5 + b_1 = 0.7477 < 1 - b_1 = 0.7523. The omegas are
    # 1 and 2, tau_2 = ceil(32 log 62.5) = 133. It is good enough: 0.1 (1 + b_1) = 0.125 < 0.5 - b_1 = 0.252.
    assert ends(cb.PairwiseElimination(0.9), 1000, fixed([0.5, 1.0], [0.0, 1.0])) == (867, 133)
    # The best arm is the cheapest.
    assert ends(cb.PairwiseElimination(0.5), 1000, fixed([1.0, 0.0], [0.0, 1.0])) == (986, 14)


def test_unknown_costs_by_hand():
    # Equally good arms that cost 1/2 and 1. Bounds max(c - 3.0349 / sqrt n, 0) are 0 up to n = 36 and n = 9, and as
    # long as both are the first position is pulled; then the other.
    bandit = fixed([1.0, 1.0], [0.5, 1.0])
    for seed in range(4):
        runs = cb.simulate({"p": cb.CSUCB(0.0, "unknown")}, bandit, cb.Horizon(100), seed=seed, checkpoints=100)
        first = int(stream(seed, 0, ORDER).permutation(2)[0])
        alone, (a, b) = 37 if first == 0 else 10, runs.pulls[0, 0, :, [first, 1 - first]]
        assert (a[alone], b[alone], a[alone + 1], b[alone + 1]) == (alone, 1, alone, 2)
    known = cb.simulate({"p": cb.CSUCB(0.0)}, bandit, cb.Horizon(100), checkpoints=1)
    assert known.pulls[0, 0, 0].tolist() == [99, 1]


@pytest.mark.parametrize(("T", "K", "tau"), [(5000, 2, 184), (10_000, 2, 292), (1000, 1, 100), (8, 8, 1), (19, 10, 1),
                                             (20, 10, 2), (1, 1, 1), (2, 1, 2), (27, 1, 9), (10**6, 10, 2154)])
def test_exploration_by_hand(T, K, tau):
    assert cost_subsidy.exploration(T, K) == tau


@given(K=st.integers(1, 1000), T=st.integers(1, 10**7))
def test_exploration_fits_and_is_the_nearest_integer(K, T):
    T = max(T, K)
    tau = cost_subsidy.exploration(T, K)
    assert 1 <= tau and K * tau <= T
    assert abs(tau - (T / K) ** (2 / 3)) <= 0.5 + 1e-9 or T // K == 1


def best_of(standard, scores, price, alpha):
    return cost_subsidy.cheapest(alpha, *(np.array(each, float) for each in (standard, scores, price)))


def test_the_cheapest_feasible_arm_by_hand():
    scores = [0.9, 0.5, 0.8, 0.5]
    assert [best_of(scores, scores, [3, 1, 2, 1], alpha) for alpha in (0, 0.1, 0.12, 0.5)] == [0, 0, 2, 1]
    assert best_of(scores, scores, [1, 1, 1, 1], 0.9) == 0
    # All draws negative: with alpha = 0 the best is feasible, else none is, and the best is pulled all the same.
    scores = [-0.3, -0.1, -0.1, -0.2]
    assert [best_of(scores, scores, [0, 3, 2, 1], alpha) for alpha in (0, 0.1, 0.9)] == [2, 1, 1]
    assert best_of([0, 0, 0], [0, 0, 0], [1, 0, 0], 0.5) == 1


def rounded():
    """Means m and (1 - alpha) m as one writes them, where in floating point the product is a little more."""
    return [(m / 1000, round(m * (100 - a)) / 1e5, a / 100) for m in range(1, 1001) for a in (1, 5, 10, 15, 20, 30, 60)
            if m * (100 - a) / 1e5 < (1 - a / 100) * (m / 1000)]


def test_a_mean_that_is_tolerated_up_to_rounding():
    """Counts as feasible, in regrets and in scores; one that misses by 1e-9 does not."""
    cases = rounded()
    assert len(cases) > 500 and (0.5, 0.45, 0.1) not in cases
    for best, mean, alpha in cases:
        assert best_of([mean, best], [mean, best], [0, 1], alpha) == 0
        assert best_of([mean, best], [mean * (1 - 1e-9), best], [0, 1], alpha) == 1
    for best, mean, alpha in cases[::20]:
        for miss in (0, 1e-9):
            runs = by_hand(fixed([mean * (1 - miss), best], [0.0, 1.0]), [[3, 5]])
            quality, cost = cb.regret.quality(runs, alpha), cb.regret.cost(runs, alpha)
            assert (quality[0, 0, 0] == 0) == (miss == 0) and cost[0, 0, 0] == (0 if miss else 5)


@pytest.mark.parametrize("grid", [np.arange(30, 61) / 100, np.linspace(0.3, 0.6, 31), np.arange(0.3, 0.605, 0.01)])
def test_the_border_of_figure_2_however_its_grid_is_written(grid):
    """0.45, and the floating-point numbers below and above it, are good enough next to 0.5; 0.44 is not."""
    poor, border = float(grid[14]), float(grid[15])
    runs = {mean: cb.simulate({"p": cb.CSUCB(0.1)}, bernoulli([mean, 0.5], [0.0, 1.0]), cb.Horizon(200), checkpoints=1)
            for mean in (poor, border)}
    quality, cost = ({mean: regret(each, 0.1).item() for mean, each in runs.items()}
                     for regret in (cb.regret.quality, cb.regret.cost))
    assert abs(border - 0.45) < 1e-15 and quality[border] == 0 and cost[border] == runs[border].pulls[0, 0, 0, 1] > 0
    assert cost[poor] == 0 and quality[poor] == pytest.approx(0.01 * runs[poor].pulls[0, 0, 0, 0])


def test_the_grids_of_figure_2_do_differ():
    assert np.linspace(0.3, 0.6, 31)[15] < 0.9 * 0.5 < np.arange(0.3, 0.605, 0.01)[15]


def bounded(own, arm, arms):
    """What a round does with the bounds of the arm that it pulled."""
    own.upper[arm], own.lower[arm] = cost_subsidy.reward_bounds(arm, arms, own.told.width)
    if own.told.unknown:
        own.price[arm] = cost_subsidy.lowest_price(arm, arms, own.told.width)


def choice(own):
    return cost_subsidy.cheapest(own.told.alpha, own.lower if own.pessimistic else own.upper, own.upper, own.price)


def block_that_stays(rng, pessimistic, unknown):
    """An arm that is the choice, and the longest block of its pulls, all failures and all costs first, that `stays`."""
    K, T = int(rng.integers(2, 5)), 1000
    told = cost_subsidy.Told(float(rng.choice([0.0, 0.1, 0.5])), 1, 2 * log(T), T, unknown)
    own = quick.Bounds(told, pessimistic, *np.zeros((3, K)), new_record(quick.LOCAL))
    n, arms = rng.integers(50, 1500, K), Arms.of(K)
    arms.n[:], arms.reward[:], arms.cost[:] = n, rng.uniform(0.2, 0.9, K) * n // 1, rng.uniform(0.1, 0.9, K) * n // 1
    own.price[:] = rng.integers(0, 4, K) / 4
    for k in range(K):
        bounded(own, k, arms)
    arm = choice(own)
    share, m = rng.uniform(0.1, 0.9, 2), 2 * int(n[arm])
    while m > 1:
        rewards, costs = np.ones(m), np.zeros(m)
        rewards[:int(share[0] * m)], costs[:int(share[1] * m)] = 0.0, 1.0
        if quick.stays(arm, m, rewards.sum(), costs.sum(), own, arms):
            break
        m = int(m / 1.05)
    return arm, m, rewards, costs, own, arms


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("pessimistic", [False, True])
def test_an_arm_that_stays_is_the_choice_at_each_pull_of_its_block(pessimistic, unknown):
    rng, blocks = np.random.default_rng(4), 0
    for _ in range(60):
        arm, m, rewards, costs, own, arms = block_that_stays(rng, pessimistic, unknown)
        blocks += 1 < m < 2 * arms.n[arm]
        for j in range(m if m > 1 else 0):
            assert choice(own) == arm, (m, j)
            arms.n[arm] += 1
            arms.reward[arm], arms.cost[arm] = arms.reward[arm] + rewards[j], arms.cost[arm] + costs[j]
            bounded(own, arm, arms)
    assert blocks > 10


def test_an_arm_wins_by_the_radius_of_its_own_round():
    T, alpha = 10**6, 0.9
    (tau, b), (tau_best, b_best) = cost_subsidy.batch(1.0, T), cost_subsidy.batch(5.0, T)
    best, mean = 0.9, b + 0.1 * (0.9 + 0.5 * (b + b_best))       # between both bars
    assert 0.1 * (best + b_best) < mean - b < 0.1 * (best + b)
    arms, notes = Arms.of(2), cost_subsidy.Notes(*np.zeros((6, 2)), new_record(cost_subsidy.SPELL))
    arms.n[:], arms.reward[:] = (tau, tau_best), (mean * tau, best * tau_best)
    notes.price[:], notes.omega[:] = (0.0, 1.0), (1.0, 5.0)
    notes.standing[:] = cost_subsidy.BEATEN, cost_subsidy.ACTIVE
    told = cost_subsidy.Told(alpha, 1, 2 * log(T), T, False)
    assert cost_subsidy.compare(1, tau + tau_best + 1, arms, told, notes) == (-1, 0)
    assert notes.omega.tolist() == [2.0, 5.0]


def test_batches_never_run_out():
    """T 4^-m stays above 1 for every round m that two arms can reach (the comment in `batch`)."""
    rng = np.random.default_rng(0)
    least = inf
    for T in [*range(2, 3000), *rng.integers(3000, 2**31, 3000).tolist()]:
        m = 0
        while 2 * cost_subsidy.batch(float(m), float(T))[0] <= T:
            m += 1
        least = min(least, T / 4**m)
        tau, b = cost_subsidy.batch(float(m), float(T))
        assert tau >= 1 and b > 0
    assert 1 < least < 2.2


# ---- regrets ----------------------------------------------------------------------------------------

def by_hand(bandit, pulls, T=100):
    pulls = np.array(pulls, np.int32)[None, None]
    nothing = np.zeros(pulls.shape[:3])
    return cb.Runs(["p"], np.array([0]), np.arange(1, pulls.shape[2] + 1) / pulls.shape[2], pulls, nothing, nothing,
                   nothing, nothing, [bandit], [cb.Horizon(T)], 0)


@pytest.mark.parametrize("policy", [cb.CSUCB(0.1), cb.CSETC(0.1, 9), cb.CSTS(0.1), cb.CSTS(0.1, "gaussian")])
def test_no_run_is_longer_than_its_horizon(policy):
    T, one = 2**57 - 1, cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.5)])
    runs = cb.simulate({"p": policy}, one, cb.Horizon(T), checkpoints=[1.0])
    assert runs.rounds[0, 0, -1] == runs.pulls[0, 0, -1].sum() == T


def test_regrets_by_hand():
    # 0.45 is tolerated, of two such arms one costs 0.4: 0.6 more for the best, 0.2 for the other; 0.3 misses 0.15.
    runs = by_hand(bernoulli([0.5, 0.45, 0.3, 0.47], [1.0, 0.4, 0.0, 0.6]), [[1, 2, 4, 8], [10, 20, 40, 30]])
    assert cb.regret.quality(runs, 0.1)[0, 0] == pytest.approx([0.6, 6.0])
    assert cb.regret.cost(runs, 0.1)[0, 0] == pytest.approx([0.6 + 1.6, 6.0 + 6.0])
    # Nothing is given up: the others miss 0.05, 0.2 and 0.03, and all are cheap.
    assert cb.regret.quality(runs, 0.0)[0, 0, 0] == pytest.approx(0.1 + 0.8 + 0.24)
    assert cb.regret.cost(runs, 0.0)[0, 0].tolist() == [0, 0]
    # Half may be given up: 0.3 for nothing.
    assert cb.regret.quality(runs, 0.5)[0, 0].tolist() == [0, 0]
    assert cb.regret.cost(runs, 0.5)[0, 0, 0] == pytest.approx(1.0 + 0.8 + 4.8)


def test_regrets_are_sums_over_pulls():
    """Of positive parts, with expected costs where they are random."""
    def fresh(rng):
        return cb.Bandit([cb.Beta(4 * m, 4 - 4 * m) for m in rng.uniform(0.1, 0.9, 4)],
                         [cb.Beta(4 * c, 4 - 4 * c) for c in rng.uniform(0.1, 0.9, 4)])

    policies = {"UCB": cb.CSUCB(0.2, "unknown"), "ETC": cb.CSETC(0.2, costs="unknown"), "UCB1": cb.UCB1()}
    runs = cb.simulate(policies, fresh, cb.Horizon(300), 5, checkpoints=3)
    quality, cost = cb.regret.quality(runs, 0.2), cb.regret.cost(runs, 0.2)
    assert quality.shape == cost.shape == (3, 5, 3)
    for r, bandit in enumerate(runs.bandits):
        mu, c = [law.mean for law in bandit.rewards], [law.mean for law in bandit.costs]
        fair = min(c for m, c in zip(mu, c, strict=True) if m >= 0.8 * max(mu))
        for p in range(3):
            for f in range(3):
                n = runs.pulls[p, r, f]
                assert quality[p, r, f] == pytest.approx(sum(n[k] * max(0.8 * max(mu) - mu[k], 0) for k in range(4)))
                assert cost[p, r, f] == pytest.approx(sum(n[k] * max(c[k] - fair, 0) for k in range(4)))


@pytest.mark.parametrize("regret", [cb.regret.quality, cb.regret.cost])
def test_regrets_of_nonsense(regret):
    runs = by_hand(POLAR, [[1, 1]])
    for alpha in (-0.1, 1, 1.5, np.nan, "a", None, True):
        with pytest.raises(ValueError, match=r"alpha = .*: must be a number in \[0, 1\)"):
            regret(runs, alpha)
    with pytest.raises(ValueError, match=r"stop = Budget\(total=5\): must be a Horizon"):
        regret(cb.simulate({"UCB1": cb.UCB1()}, bernoulli([0.5], [0.5]), cb.Budget(5)), 0.1)
    with pytest.raises(ValueError, match=r"largest expected reward = -1.0: must be 0 or more"):
        regret(by_hand(fixed([-1.0, -2.0], [0.0, 1.0]), [[1, 1]]), 0.1)


def test_regrets_of_budgets_want_a_budget():
    runs = by_hand(POLAR, [[1, 1]])
    for regret, what in ((cb.regret.budgeted, "Budget or HardBudget"), (cb.regret.knapsack, "a HardBudget"),
                         (cb.regret.anytime, "an AnytimeBudget")):
        with pytest.raises(ValueError, match=rf"stop = Horizon\(rounds=100\): must be {what}"):
            regret(runs)


# ---- runs -------------------------------------------------------------------------------------------

STUDY = {"bandits": bernoulli([0.3, 0.5, 0.46, 0.9], [0.25, 0.25, 0.0, 1.0]), "stop": cb.Horizon(1000),
         "replications": 2, "seed": 3}

def test_policies_are_told_apart():
    """In such runs, so that no parameter is idle: neither alpha nor a reading nor tau."""
    policies = {**EVERYONE, "UCB 0.5": cb.CSUCB(0.5), "TS 0.5": cb.CSTS(0.5),
                "Gaussian TS 0.5": cb.CSTS(0.5, "gaussian"), "ETC 0.5": cb.CSETC(0.5, 81), "ETC 81": cb.CSETC(0.1, 81),
                "once 81": cb.CommitOnce(0.1, 81), "once 0.5": cb.CommitOnce(0.5, 81), "blind 90": cb.BlindETC(90),
                "pairwise 0.5": cb.PairwiseElimination(0.5), "elimination 0.5": cb.CSElimination(0.5),
                "elimination, told": cb.CSElimination(0.1, 0.5), "VOI 0.5": cb.CSVOI(0.5)}
    runs = [cb.simulate(policies, bandit, cb.Horizon(T), seed=3).pulls
            for bandit, T in ((POOR, 2000), (PAIRS["good"][0], 6000), (POLAR, 1000))]
    assert len({tuple(pulls[i].tobytes() for pulls in runs) for i in range(len(policies))}) == len(policies)


def test_neither_workers_nor_company_change_a_bit():
    runs = cb.simulate(EVERYONE, **STUDY)
    assert same(runs, cb.simulate(EVERYONE, **STUDY, n_jobs=2))
    for i, (label, policy) in enumerate(EVERYONE.items()):
        alone = cb.simulate({label: policy}, **STUDY)
        assert all(np.array_equal(getattr(alone, name)[0], getattr(runs, name)[i]) for name in FIELDS)


@pytest.mark.slow
def test_checkpoints_are_rounds_and_change_nothing():
    runs = cb.simulate({**EVERYONE, "UCB1": cb.UCB1(), "BTS": cb.BTS()}, **STUDY, checkpoints=1000)
    assert (runs.rounds == np.arange(1, 1001)).all() and (runs.pulls.sum(axis=-1) == runs.rounds).all()
    assert not runs.skips.any()
    for marks in (1, 7, [0.0001, 0.1, 0.1001, 0.9]):
        fewer = cb.simulate({**EVERYONE, "UCB1": cb.UCB1(), "BTS": cb.BTS()}, **STUDY, checkpoints=marks)
        at = np.ceil(np.round(fewer.fractions * 1000, 6)).astype(int)
        assert (fewer.rounds == at).all()
        assert all(np.array_equal(getattr(fewer, name), getattr(runs, name)[:, :, at - 1]) for name in FIELDS)


@pytest.mark.parametrize("label", EVERYONE)
def test_the_number_of_slots_changes_nothing(label):
    """Nor do checkpoints where a stack runs out."""
    policy, bandit, stop = EVERYONE[label], STUDY["bandits"], cb.Horizon(600)
    whole = low_level(policy, bandit, stop, 0, [1.0])
    for slots, checkpoints in ((1, 1), (16, 600), (256, 5)):
        pieces = low_level(policy, bandit, stop, 0, np.arange(1, checkpoints + 1) / checkpoints, slots)
        assert all(np.array_equal(piece[-1], end[-1]) for piece, end in zip(pieces, whole, strict=True))


class Own(cb.Bernoulli):
    """What a subclass draws, it draws in Python, and may run out of in the middle of a sweep."""


OWN = cb.Bandit([Own(p) for p in (0.4, 0.5, 0.47)], [cb.Constant(c) for c in (0.2, 1.0, 0.6)])


@pytest.mark.parametrize("bandit", [STUDY["bandits"], POOR, random_bandit(3, 4), OWN],
                         ids=["study", "poor", "tied", "drawn in Python"])
def test_kernels_make_the_pulls_of_the_definitions(bandit):
    """In runs of many blocks, at every checkpoint."""
    same_as = {label: getattr(fast.kernel_of(policy), "same", None) for label, policy in EVERYONE.items()}
    exact = {label: EVERYONE[label] for label, what in same_as.items() if what == "pulls"}
    assert len(exact) == 8 and {label for label, what in same_as.items() if what is None} == {
        "naive TS", "naive Gaussian TS", "VOI"}
    blocks, slow = (cb.simulate(exact, bandit, cb.Horizon(20_000), 2, seed=5, checkpoints=40, fast=way)
                    for way in (True, False))
    assert all(np.array_equal(getattr(blocks, name), getattr(slow, name)) for name in FIELDS[:3])
    assert np.allclose(blocks.spent, slow.spent, rtol=1e-12) and np.allclose(blocks.reward, slow.reward, rtol=1e-12)


def bits():
    runs = [cb.simulate(EVERYONE, bandit, cb.Horizon(T), checkpoints=5, seed=1)
            for bandit, T in ((POOR, 1500), (random_bandit(2, 4), 400))]
    return [digest(*(getattr(each, name) for name in FIELDS), cb.regret.quality(each, 0.1), cb.regret.cost(each, 0.1))
            for each in runs]


@pytest.mark.slow
def test_without_the_compiler_not_a_bit_changes():
    assert in_plain_python("test_cost_subsidy", "m.bits()") == bits()


def test_the_store_tells_policies_and_horizons_apart(tmp_path):
    readings = [cb.CSETC(0.1), cb.CSETC(0.2), cb.CSETC(0.1, 200), cb.CSETC(0.1, costs="unknown"), cb.CSUCB(0.1),
                cb.CSTS(0.1), cb.CSTS(0.1, "gaussian"), cb.CommitOnce(0.1), cb.BlindETC()]
    for T in (900, 1000, 900):
        for policy in readings:
            study = {**STUDY, "stop": cb.Horizon(T)}
            assert same(*(cb.simulate({"p": policy}, **study, store=store) for store in (tmp_path / "s", None)))


def test_what_theorem_1_is_about_and_what_it_is_not():
    """The cheap arm is barely good enough: CS-TS keeps paying for the dear one, CS-ETC does not after exploring."""
    T = 2000
    runs = cb.simulate({"TS": cb.CSTS(0.1), "ETC": cb.CSETC(0.1), "once": cb.CommitOnce(0.1)},
                       bernoulli([0.45 + T**-0.5, 0.5], [0.0, 1.0]), cb.Horizon(T), 20, checkpoints=[0.05, 1.0])
    regret = cb.regret.cost(runs, 0.1)
    assert (cb.regret.quality(runs, 0.1) == 0).all()
    assert (regret[1:, :, -1] == cost_subsidy.exploration(T, 2)).all() and regret[0, :, -1].mean() > 300
    assert (regret[1:, :, 0] == 50).all()


# ---- bad input --------------------------------------------------------------------------------------

def refuse(message, policy, bandit=POLAR, stop=None):
    with pytest.raises(ValueError, match=message):
        cb.simulate({"first": Played(), "p": policy}, bandit, stop or cb.Horizon(100))


WITH_ALPHA = [cb.CSUCB, cb.CSTS, cb.CSETC, cb.CommitOnce, cb.PairwiseElimination, cb.CSElimination, cb.CSVOI]


@pytest.mark.parametrize("make", WITH_ALPHA)
@pytest.mark.parametrize("alpha", [-0.1, 1, 1.5, np.nan, inf, "a", None, True])
def test_alpha_must_be_in_0_1(make, alpha):
    with pytest.raises(ValueError, match=r"alpha = .*: must be a number in \[0, 1\)"):
        make(alpha)


@pytest.mark.parametrize(("make", "message"), [
    *[(lambda bad=bad, make=make: make(exploration_pulls=bad), "exploration_pulls = .*: must be a whole number, 1 or")
      for bad in (0, -3, 2.5, np.nan, "a", True)
      for make in (cb.BlindETC, lambda **each: cb.CSETC(0.1, **each), lambda **each: cb.CommitOnce(0.1, **each))],
    *[(lambda make=make: make(0.1, costs="guess"), r"costs = 'guess': must be one of \('known', 'unknown'\)")
      for make in (cb.CSUCB, cb.CSTS, cb.CSETC)],
    (lambda: cb.CSTS(0.1, "normal"), r"posterior = 'normal': must be one of \('beta', 'gaussian'\)")])
def test_readings_that_do_not_exist(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("label", EVERYONE)
def test_fewer_rounds_than_arms(label):
    refuse(r"stop = '1 rounds': \w+ needs 2 or more, one for each arm", EVERYONE[label], stop=cb.Horizon(1))
    assert cb.simulate({"p": EVERYONE[label]}, POLAR, cb.Horizon(2)).rounds[0, 0, -1] == 2


@pytest.mark.parametrize("make", [cb.BlindETC, lambda tau: cb.CSETC(0.1, tau), lambda tau: cb.CommitOnce(0.1, tau)])
def test_exploration_that_exceeds_the_rounds(make):
    for tau in (51, 10**9):
        refuse(f"exploration_pulls = {tau}: must be at most 50, with 2 arms and 101 rounds", make(tau),
               stop=cb.Horizon(101))
    assert sorted(ends(make(50), 101, fixed([0.5, 0.5], [0.5, 0.4]))) == [50, 51]


@pytest.mark.parametrize("label", EVERYONE)
@pytest.mark.parametrize("law", [cb.Constant(1.01), cb.Constant(-0.1), cb.Discrete((0.0, 1.5), (0.9, 0.1))])
def test_costs_and_rewards_must_be_between_0_and_1(label, law):
    for what, sides in (("cost", ([cb.Constant(0.5)] * 2, [cb.Constant(0.0), law])),
                        ("reward", ([law, cb.Constant(0.5)], [cb.Constant(0.5)] * 2))):
        refuse(rf"{what} support = .*: policy 'p' .* is made for {what}s in \(0.0, 1.0\)", EVERYONE[label],
               cb.Bandit(*sides))


@pytest.mark.parametrize("label", EVERYONE)
def test_known_costs_must_not_be_random(label):
    bandit = random_costs(POLAR)
    if "unknown" in label:
        assert cb.simulate({"p": EVERYONE[label]}, bandit, cb.Horizon(9)).rounds[0, 0, -1] == 9
    else:
        refuse(r"\w+, costs = 'random': the policy must know every cost in advance", EVERYONE[label], bandit)


@pytest.mark.parametrize("label", EVERYONE)
@pytest.mark.parametrize("stop", [cb.Budget(5), cb.HardBudget(5)])
def test_without_a_horizon_they_are_refused(label, stop):
    refuse(r"stop = 'no horizon': \w+ needs Horizon\(rounds\)", EVERYONE[label], fixed([0.5], [0.5]), stop)


def test_under_an_anytime_budget_they_are_refused():
    refuse(r"policies\['p'\] = .*: must be able to skip rounds", cb.CSUCB(0.1), stop=cb.AnytimeBudget(0.5, 10))


# ---- a horizon for all ------------------------------------------------------------------------------

FREE = cb.Bandit([cb.Bernoulli(0.5), cb.Beta(2, 1)], [cb.Constant(0.0), cb.Bernoulli(0.5)])
NEEDS = {"KUBE": (cb.KUBE(), fixed([0.5], [0.5]), r"needs HardBudget\(total\)"),
         "eps-first": (cb.EpsilonFirst(0.1), fixed([0.5], [0.5]), r"EpsilonFirst needs HardBudget\(total\)"),
         "SUAK": (cb.SUAK(), FREE, r"needs AnytimeBudget\(rate, horizon\)"),
         "CB": (cb.CB(), cb.LinearBandit([[1.0]], [0.5], [0.5], 0.1), "delta = None: without a budget B CB can't take"),
         "Budget-CB": (cb.BudgetCB(), cb.LinearBandit([[1.0]], [0.5], [0.5], 0.1), "delta = None: without a budget"),
         "Budget-UCB": (cb.BudgetUCB(), FREE, "smallest expected cost = 0.0: BudgetUCB needs one above 0"),
         "UCB-BV1": (cb.UCBBV1(), FREE, "smallest expected cost = 0.0"),
         "vUCB-BV1": (cb.VUCBBV1(), FREE, "smallest expected cost = 0.0")}


@pytest.mark.parametrize("label", NEEDS)
def test_policies_that_need_a_budget_refuse_a_horizon(label):
    policy, bandit, message = NEEDS[label]
    refuse(message, policy, bandit)


@cb.choose
def restless(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return t % 3 - 1 if t % 3 else -2 if t % 2 else -1


@pytest.mark.filterwarnings("ignore:.* is above the smallest expected cost")
def test_everybody_else_may_play_under_a_horizon():
    others = {"UCB1": cb.UCB1(), "eps-greedy": cb.EpsilonGreedy(5, 0.1), "UCB-BV1": cb.UCBBV1(0.1),
              "restless": cb.ChoosePolicy(restless)}
    policies = {label: policy for label, policy in POLICIES.items() if label != "Budget-UCB"}
    runs = cb.simulate({**policies, "Budget-UCB": cb.BudgetUCB(0.1), **others}, FREE, cb.Horizon(300), checkpoints=4)
    assert (runs.rounds == [75, 150, 225, 300]).all()
    assert (runs.pulls[:-1].sum(axis=-1) == runs.rounds[:-1]).all() and not runs.skips[:-1].any()
    assert runs.pulls[-1, 0, -1].sum() == 200 and runs.skips[-1, 0, -1] == 50
    linear = cb.LinearBandit([[1.0], [0.5]], [0.5], [0.5], 0.1)
    assert (cb.simulate({"CB": cb.CB(0.1), "Budget-CB": cb.BudgetCB(0.1)}, linear, cb.Horizon(50)).rounds[..., -1]
            == 50).all()
