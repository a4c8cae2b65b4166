"""Our two policies for cost subsidy: literal transcriptions round for round, known answers, what is proved of them."""

from itertools import product
from math import ceil, erfc, exp, inf, isclose, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cost_subsidy import (
    POOR,
    SMALL,
    Literal,
    bernoulli,
    beta,
    compare,
    counts,
    ends,
    fixed,
    literal,
    pulled,
    random_bandit,
)

import costbandits as cb
from costbandits.engine.state import Arms, new_record
from costbandits.policies import cost_subsidy, subsidy_repairs
from costbandits.theory.bounds import cost_subsidy as bounds


def pdf(z):
    return exp(-z * z / 2) / sqrt(2 * pi)


def cdf(z):
    return erfc(-z / sqrt(2)) / 2



class LiteralElimination(Literal):
    """As a script: what it pulls, in order."""

    delta = inf

    def __init__(self, *args, **reading):
        super().__init__(*args, **reading)
        self.script = self.write()

    def choose(self, t):
        return next(self.script)

    def at_least(self, x, bar):
        return x >= bar or isclose(x, bar, rel_tol=1e-12)

    def exploration(self):
        """tau."""
        C = max(self.c) - min(self.c)
        if self.delta < inf:
            C = min(C, self.delta * self.alpha)
        return min(ceil((2 * self.T * sqrt(2 * log(self.T)) / (self.K * C)) ** (2 / 3)), self.T) if C > 0 else self.T

    def write(self):
        active, sweep, tau = sorted(range(self.K), key=lambda i: self.c[i]), 1, self.exploration()
        while True:
            for i in active:
                while self.arms[i].n < sweep:
                    yield i
            upper, lower = self.bounds(1)
            poor = [i for i in active
                    if not self.at_least(upper[i], (1 - self.alpha) * max(lower[j] for j in active))]
            worse = [i for i in active if any(self.c[j] <= self.c[i] and lower[j] > upper[i] for j in active)]
            worse = [] if self.fault == "keeps the worse" else worse
            self.met |= {name for name, found in (("poor", poor), ("worse", worse)) if found}
            active = [i for i in active if i not in poor + worse]
            cheapest = sorted(i for i in active if self.c[i] == min(self.c[j] for j in active))
            best = max(cheapest, key=lambda i: lower[i])
            bar = (1 - self.alpha) * max(upper[i] for i in active)
            while self.at_least(lower[best], bar) and self.fault != "never sure":
                self.met.add("sure")
                yield best
            if sweep == tau:
                break
            sweep = min(sweep + max(1, sweep // (4 if self.fault == "a quarter" else 8)), tau)
        while True:
            upper, lower = self.bounds(1)
            bar = (1 - self.alpha) * max(lower[j] for j in active)
            arm = min((i for i in sorted(active) if self.at_least(upper[i], bar)), key=lambda i: self.c[i])
            self.met.add("undecided")
            for _ in range(max(1, self.arms[arm].n // 8)):
                yield arm


class LiteralVOI(Literal):
    """Round for round."""

    weight = 1

    def choose(self, t):
        if t <= self.K:
            return t - 1
        keep, K, c = 1 - self.alpha, range(self.K), self.c
        a, b = ([x + 1 for x in each] for each in zip(*[(arm.n * arm.mu, arm.n * (1 - arm.mu)) for arm in self.arms],
                                                     strict=True))
        mean = [a[i] / (a[i] + b[i]) for i in K]
        v = [a[i] * b[i] / (a[i] + b[i]) ** 2 / (a[i] + b[i] + 1) for i in K]       # of a Beta law
        s = [[sqrt(v[i] + keep**2 * v[j]) for j in K] for i in K]
        z = [[(keep * mean[j] - mean[i]) / s[i][j] for j in K] for i in K]
        bars = [[j for j in K if j != i] for i in K]
        lack = [max((s[i][j] * (pdf(z[i][j]) + z[i][j] * cdf(z[i][j])) for j in bars[i]), default=0)
                for i in K]
        worst = [max(bars[i], key=lambda j: z[i][j]) if bars[i] else i for i in K]
        good = [cdf(-z[i][worst[i]]) if bars[i] else 1 for i in K]
        loss = []
        for i in K:
            cheaper = sorted((k for k in K if c[k] < c[i]), key=lambda k: c[k])
            dear = [(c[i] - c[k]) * np.prod([1 - good[j] for j in cheaper[:place]]) * good[k]
                    for place, k in enumerate(cheaper)]
            loss.append(lack[i] + sum(dear))
        d = loss.index(min(loss))

        def gain(i):
            sharper = v[i] / (a[i] + b[i] + 1)
            found = pdf(z[d][i]) * keep**2 * sharper / (2 * s[d][i])
            x, spread = z[i][worst[i]], s[i][worst[i]]
            if c[i] < c[d] and x > 0 and self.fault != "no cheaper arm":
                found += (c[d] - c[i]) * pdf(x) * x / spread * sharper / (2 * spread)
            return self.weight * (self.T - t + 1) * found - (loss[i] - loss[d])

        gains = {i: gain(i) for i in K if i != d}
        arm = max(gains, key=gains.get, default=d)
        self.met.add("look" if gains and gains[arm] > 0 else "default")
        return arm if gains and gains[arm] > 0 else d


CASES = [(POOR, 2500), (bernoulli([0.9, 0.2, 0.5], [0.0, 0.25, 0.25]), 2000), *((bandit, 500) for bandit in SMALL)]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [inf, 2.0])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
def test_elimination_round_for_round(alpha, delta):
    met = set()
    for seed, (bandit, T) in enumerate([*CASES, (bernoulli([0.5, 0.52], [0.0, 1.0]), 600)]):
        met |= compare(cb.CSElimination, LiteralElimination, bandit, T, seed, alpha=alpha, delta=delta).met
    assert met >= {"poor", "worse"} | ({"sure"} if alpha == 0.5 else set())
    assert ("undecided" in met) == (alpha > 0 or delta == inf)          # else C = 0, and exploring never ends


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
def test_voi_round_for_round(alpha):
    met = set()
    for seed, bandit in enumerate([*SMALL, POOR, bernoulli([0.46, 0.5], [0.0, 1.0])]):
        met |= compare(cb.CSVOI, LiteralVOI, bandit, 150, seed, alpha=alpha).met
    assert met == {"look", "default"}


@given(seed=st.integers(0, 2**32), T=st.integers(5, 120), alpha=st.floats(0, 0.999), K=st.integers(1, 5))
@pytest.mark.slow
def test_small_runs_round_for_round(seed, T, alpha, K):
    bandit = random_bandit(seed, K, bernoulli if seed % 2 else beta)
    compare(cb.CSElimination, LiteralElimination, bandit, T, seed % 7, alpha=alpha)
    compare(cb.CSVOI, LiteralVOI, bandit, min(T, 40), seed % 7, alpha=alpha)


@pytest.mark.parametrize(("policy", "player", "fault"), [
    *[(cb.CSElimination, LiteralElimination, {"fault": fault})
      for fault in ("keeps the worse", "never sure", "a quarter", "no cap")],
    *[(cb.CSVOI, LiteralVOI, fault) for fault in ({"fault": "no cheaper arm"}, {"weight": 1.1})]])
def test_a_wrong_policy_is_found_out(policy, player, fault):
    rounds = inf if policy is cb.CSElimination else 150
    for seed, ((bandit, T), alpha) in enumerate(product(CASES, (0.1, 0.5))):
        T = min(T, rounds)
        wrong, _ = literal(player, bandit, T, seed, alpha=alpha, **fault)
        if not np.array_equal(pulled(policy(alpha), bandit, T, seed), counts(wrong, bandit.K)):
            return
    raise AssertionError("nobody noticed")


# ---- known answers ----------------------------------------------------------------------------------

def test_elimination_by_hand():
    # beta = sqrt(2 log 1000 / n) = 3.7169 / sqrt n; looks after 1, ..., 16, 18, 20, 22, 24, 27, 30, 33, 37, 41, 46, 51,
    # 57, 64, 72, 81, 91, 102, 114, 128, 144, 162, 182, 204, 229 sweeps; tau = (1000 * 3.7169)^(2/3) = 239.9, 240.
    # The cheap arm is not good enough: beta < (1 - beta) / 2 from 125 pulls on.
    assert ends(cb.CSElimination(0.5), 1000) == (128, 872)
    # The dear arm is worse: 1 - beta > beta, and the cheap one is surely good enough; both from 56 pulls on.
    assert ends(cb.CSElimination(0.5), 1000, fixed([1.0, 0.0], [0.0, 1.0])) == (943, 57)
    # The dear arm is better, and the cheap one surely good enough: 0.8 - beta >= 0.5, from 154 on.
    assert ends(cb.CSElimination(0.5), 1000, fixed([0.8, 1.0], [0.0, 1.0])) == (838, 162)
    # At the border: nothing is ever sure, and doubt is decided in favour of the cheap arm.
    assert ends(cb.CSElimination(0.5), 1000, fixed([0.5, 1.0], [0.0, 1.0])) == (760, 240)
    # Costs that differ by 0.4 times as much as means: C = 0.2, tau = 702. The run ends on the way from 461 to 518.
    assert ends(cb.CSElimination(0.5, 0.4), 1000, fixed([0.5, 1.0], [0.0, 0.2])) == (518, 482)
    # Equal costs: the first position wins where nothing tells arms apart, and all 1,000 rounds are for exploring.
    alike = cb.simulate({"p": cb.CSElimination(0.0)}, fixed([0.5, 0.5], [0.5, 0.5]), cb.Horizon(1000), 4)
    assert (np.sort(alike.pulls[0, :, -1], axis=1) == [482, 518]).all()


@pytest.mark.parametrize(("T", "K", "price", "tau"), [(1000, 2, 1.0, 240), (1000, 2, 0.2, 702), (100, 3, 0.0, 100),
                                                      (1, 1, 1.0, 1), (10, 1, 1e-9, 10)])
def test_sweeps_by_hand(T, K, price, tau):
    assert subsidy_repairs.sweeps(T, K, price) == tau


def test_voi_by_hand():
    """After a success of each arm: means 2/3, variances 1/18, the cheap arm short by z = -0.2102 of 0.3171.

    A pull of it is expected to lose 0.0960, one of the dear arm that and Phi(0.2102) = 0.5833 more. Another look takes
    off 0.3902 * 0.81 / 72 / 0.6342 = 0.006922 a round, worth it with 85 rounds left, not with 84.
    """
    for T, arm in ((86, 0), (87, 1)):
        known, memory = np.array([0.0, 1.0, 0.0, 1.0, T]), np.zeros(2 * subsidy_repairs.ROWS)
        ones, nothing = np.ones(2), np.zeros(2)
        arms = Arms(np.ones(2, np.int64), ones, nothing, ones, nothing)
        chosen = subsidy_repairs.value_of_a_look(3, 0.0, arms, known, subsidy_repairs.Alpha(0.1), memory,
                                                 np.random.default_rng(0))
        assert chosen == arm
        assert memory[4:6] == pytest.approx([0.09596, 0.67922], abs=1e-5)


def test_what_does_not_exist():
    for delta in (0.0, -1, np.nan, "a", None, True):
        with pytest.raises(ValueError, match=r"delta = .*: must be a finite number above 0"):
            cb.CSElimination(0.1, delta)


# ---- what is proved ---------------------------------------------------------------------------------

def notes_of(K):
    return cost_subsidy.Notes(*np.zeros((6, K)), new_record(subsidy_repairs.LOOK))


def looked_at(rng, spread, K=4):
    """A look at random arms whose estimates are off by up to `spread` radii: the arms, and what it did."""
    told = cost_subsidy.Told(rng.uniform(0, 0.9), 0, 2 * log(1000), 1000, False)
    arms, notes = Arms.of(K), notes_of(K)
    arms.n[:] = rng.integers(20, 2000)
    mu, beta = rng.random(K), sqrt(told.width / arms.n[0])
    notes.price[:] = rng.integers(0, 4, K) / 4
    arms.reward[:] = (mu + rng.uniform(-spread, spread, K) * beta) * arms.n
    sure = subsidy_repairs.look_at(arms, told, notes)
    return mu, notes.price, beta, told.alpha, notes.standing == cost_subsidy.ACTIVE, sure


def broken_promises(spread, looks=3000):
    """How often a look drops an arm that it must not drop, keeps one that it must drop, or is sure of a wrong one."""
    rng, lost, kept, wrong = np.random.default_rng(0), 0, 0, 0
    for _ in range(looks):
        mu, c, beta, alpha, active, sure = looked_at(rng, spread)
        short = (1 - alpha) * mu.max() - mu
        best = min(np.flatnonzero(short <= 0), key=lambda i: (c[i], -mu[i]))
        worse = (c >= c[best]) & (mu < mu[best])
        lost += not (active[best] and active[mu.argmax()])
        kept += (active & ((short > 4 * beta) | (worse & (mu[best] - mu > 4 * beta)))).any()
        wrong += sure >= 0 and (short[sure] > 0 or c[sure] > c[best])
    return lost, kept, wrong


@pytest.mark.slow
def test_a_look_drops_and_keeps_what_the_proof_says():
    assert broken_promises(1.0) == (0, 0, 0)
    assert min(broken_promises(2.0)) > 0


def consistent(rng, K):
    """Arms whose costs differ by at most delta times as much as their means."""
    mu, delta = rng.uniform(0.2, 1, K), rng.uniform(0.2, 6)
    c = np.clip(0.5 + delta * (mu - mu.mean()) * rng.choice([-1, 1]), 0, 1)
    return bernoulli(mu.tolist(), c.tolist()), delta


def test_a_dropped_arm_does_not_come_back():
    arms, notes = Arms.of(2), notes_of(2)
    arms.n[:], arms.reward[:] = 1000, (100.0, 900.0)
    told = cost_subsidy.Told(0.1, 1, 2 * log(10**6), 10**6, False)
    notes.price[:], notes.standing[:] = (0.0, 1.0), (cost_subsidy.ACTIVE, cost_subsidy.BEATEN)
    notes.upper[:], notes.lower[:] = (0.3, -inf), (0.0, -inf)
    look = notes.spell
    look.arm, look.sweep = 1, 0                 # exploring has ended, and the arm pulled last was dropped
    assert subsidy_repairs.next_spell(arms, told, notes) == (0, 1000 // subsidy_repairs.LATER)


def test_regret_is_within_the_bounds():
    """Of runs, a Bernoulli mean of 20 in place of an expectation: no run comes near half of its bound."""
    rng, most = np.random.default_rng(1), 0.0
    for seed in range(60):
        K, alpha, T = int(rng.integers(2, 6)), rng.uniform(0.02, 0.5), int(10 ** rng.uniform(3, 5))
        bandit, delta = consistent(rng, K)
        runs = cb.simulate({"p": cb.CSElimination(alpha, delta)}, bandit, cb.Horizon(T), seed=seed, checkpoints=1)
        regret = cb.regret.quality(runs, alpha).item() + cb.regret.cost(runs, alpha).item()
        most = max(most, regret / bounds.theorem_4_repaired(K, T, alpha, delta))
    assert 0.05 < most < 0.5


@pytest.mark.parametrize(("means", "costs"), [([0.6, 0.5], [0, 1]), ([0.3, 0.7, 0.9], [0, 0.5, 1]),
                                              ([0.7, 0.9, 0.2], [0, 0, 0.3])])
def test_regret_is_logarithmic_with_margins(means, costs):
    bandit, T = bernoulli(means, [float(c) for c in costs]), 10**9
    bound = bounds.theorem_4_margins(bandit, 0.1, T)
    assert bound.sweeps <= subsidy_repairs.sweeps(T, len(means), max(costs))
    runs = cb.simulate({"p": cb.CSElimination(0.1)}, bandit, cb.Horizon(T), 4, checkpoints=1)
    quality, cost = cb.regret.quality(runs, 0.1), cb.regret.cost(runs, 0.1)
    assert (quality <= bound.quality).all() and (cost <= bound.cost).all()
    assert (quality + cost > 0).all()
