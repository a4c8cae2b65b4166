"""SUAK, its rivals, rounds without a pull: literal transcriptions, the best mixture, the constraint, what is refused.

Where the paper solves a linear program, the transcriptions try all its bases: an arm alone, or a pair. One test holds
the best of them against a solver (HiGHS). Several optima are told apart by the rule of the library's documentation: an
arm that alone is as good as any mixture is best alone, and the lowest position if several are. Between mixtures there
is no tie in these examples: were there one, a transcription would part from the library, and the test fail. The null
arm is position K.
"""

import warnings
from collections import Counter
from itertools import pairwise
from math import inf, log, sqrt
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
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
    same,
    stream,
)
from scipy.optimize import linprog

import costbandits as cb
from costbandits.engine.driver import LAST_ROUND
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.policies import suak
from costbandits.policies.base import Problem

pytestmark = pytest.mark.slow

SKIP, PASS = -1, -2


def betas(*means, weight=10):
    return [cb.Beta(weight * m, weight * (1 - m)) for m in means]


FIGURE_1 = cb.Bandit(betas(0.45, 0.7, 0.8), betas(0.3, 0.75, 0.8))
FIGURE_2 = cb.Bandit(betas(0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9),
                     betas(0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85))


def random_bandit(seed, K):
    rng = np.random.default_rng(seed)
    return cb.Bandit(betas(*rng.uniform(0.05, 0.95, K)), betas(*rng.uniform(0.05, 0.95, K), weight=20))


# Costs far from c, so that little is learned early on. Constants are halves of halves: their sums are exact.
FAR = {
    "cheap and dear": (cb.Bandit(betas(0.3, 0.9), [*betas(0.06, weight=50), cb.Constant(1.0)]), 0.5),
    "three": (cb.Bandit(betas(0.4, 0.95, 0.1), [cb.Constant(0.0), cb.Constant(1.0), *betas(0.97, weight=50)]), 0.5),
    "two dear": (cb.Bandit(betas(0.9, 0.5), [cb.Constant(1.0), *betas(0.98, weight=50)]), 0.5),
    "two cheap": (cb.Bandit([cb.Constant(0.4005), cb.Constant(0.4), *betas(0.95)],
                            [cb.Constant(0.0), cb.Constant(0.0), cb.Constant(1.0)]), 0.5),
    "all cheap": (cb.Bandit(betas(0.4, 0.6), betas(0.02, 0.03, weight=50)), 0.5),
    "poor": (cb.Bandit(betas(0.3, 0.6, 0.95), [*betas(0.03), cb.Constant(7 / 8), cb.Constant(1.0)]), 0.25),
}
EVERYONE = {"SUAK": cb.SUAK(), "OPS": cb.OnePhaseSkip(), "literal OPS": cb.OnePhaseSkip(time_row=False),
            "PDS": cb.PrimalDualSkip(), "USS": cb.UCBSimplexSkip(), "threshold": cb.KnownMeans(),
            "draws": cb.KnownMeans(None), "control": cb.ControlBudget(), "SUAK 8": cb.SUAK(reserve="log t / 8 omega"),
            "SUAK 2": cb.SUAK(counting="two accounts", reserve="log t / 4 omega", margin=3.0, width=1.5)}


# ---- literal transcriptions -------------------------------------------------------------------------

def bases(mu, rho, rate):
    """What a best plan of mean cost `rate` or less can be, as (mean reward, shares): an arm alone, or one and a dearer.

    Some program's best plan is always among them: it has two rows, so a corner has at most two shares that are not 0.
    """
    for i, cheap in enumerate(rho):
        if cheap <= rate:
            yield mu[i], {i: 1.0}
            for j, dear in enumerate(rho):
                if dear > rate:
                    share = (rate - cheap) / (dear - cheap)
                    yield mu[i] + (mu[j] - mu[i]) * share, {i: 1 - share, j: share}


class Literal:
    """A player who is told c and T, and sees what each pull pays and costs; S_c is what was spent so far."""

    fault = None

    def __init__(self, c, T, bandit, rng, **reading):
        self.c, self.T, self.K, self.rng, self.arms = c, T, bandit.K, rng, [Sums() for _ in range(bandit.K)]
        self.bandit, self.S_c, self.solved, self.mixed, self.met = bandit, 0.0, 0, 0, set()
        vars(self).update(reading)

    def see(self, arm, reward, cost):
        self.S_c += cost
        self.arms[arm].see(reward, cost)

    def bounds(self, width, sign=1):
        """Upper bounds of rewards and lower bounds of costs, or the other way round."""
        radii = [sign * sqrt(width / arm.n) for arm in self.arms]
        return ([min(max(arm.mu + e, 0), 1) for arm, e in zip(self.arms, radii, strict=True)],
                [min(max(arm.rho - e, 0), 1) for arm, e in zip(self.arms, radii, strict=True)])

    def unpulled(self):
        return next((i for i, arm in enumerate(self.arms) if arm.n == 0), None)

    def best(self, mu, rho, budget, rounds=1):
        """Arms to play, and how often, of the best plan for a budget and a number of rounds."""
        mu, rho = [*mu, 0], [*rho, 0]
        value, plan = max(bases(mu, rho, budget / rounds), key=itemgetter(0))
        self.solved += 1
        alone = [i for i in range(len(mu)) if rho[i] * rounds <= budget and mu[i] + 1e-9 >= value]
        if alone:
            return {max(alone, key=lambda i: mu[i]): 1.0}
        self.mixed += 1
        return plan


class LiteralSUAK(Literal):
    """Algorithm 2, line by line, with the readings of N_p."""

    under_use, log, counting, order, reserve = 1.0, "t", "skips", "least", "log t / omega^2"
    margin, width = 7, 3
    phase, S_p, N_p, for_cost, null_gap = 1, 0.0, 0, False, inf

    def __init__(self, *args, **reading):
        super().__init__(*args, **reading)
        self.lines, self.omegas, self.asked = Counter(), {}, Counter()

    def see(self, arm, reward, cost):
        super().see(arm, reward, cost)
        if self.for_cost:
            self.S_p, self.N_p, self.for_cost = self.S_p + cost, self.N_p + 1, False

    def wide(self, arm, t):
        radius = self.margin * sqrt(1.5 * log(self.T if self.fault == "log T" else t) / arm.n)
        return arm.rho - radius, arm.rho + radius                                            # (4), (5)

    def at(self, line, arm=SKIP):
        self.met.add((self.phase, line))
        self.lines[line] += 1
        self.asked[arm] += line == 20
        return arm if arm < self.K else PASS

    def unsure(self, t):
        return [i for i, arm in enumerate(self.arms)
                if arm.n == 0 or self.wide(arm, t)[0] <= self.c <= self.wide(arm, t)[1]]

    def choose(self, t):
        unsure = self.unsure(t)
        self.phase = 1 if self.phase == 1 and unsure else 2
        asked = unsure or self.counting != "needed"
        if asked and self.S_p + 1 > self.c * (self.N_p + (self.counting == "coming")):        # lines 4 and 15
            self.N_p += self.counting != "printed"
            return self.at(16)
        if self.phase == 2 and self.S_c + 1 > self.c * t and self.fault != "S_c unchecked":   # line 17
            return self.at(18)
        if unsure:                                                                            # lines 7 and 20
            self.for_cost = True
            return self.at(20, min(unsure, key=lambda i: self.arms[i].n) if self.order == "least" else unsure[0])
        return self.base(t, self.c * t - self.S_c)

    def base(self, t, account):
        delta = min(abs(arm.rho - self.c) - sqrt(1.5 * log(t) / arm.n) for arm in self.arms)  # (7)
        delta = min(delta, self.null_gap)
        omega = self.omegas[t] = delta / (2 + delta - self.c)                                 # (6)
        base = self.best(*self.bounds(self.width * log(self.T if self.log == "T" else t)), self.c)   # lines 23 and 24
        if len(base) == 1:
            return self.at(24, *base)
        rho = {i: self.arms[i].rho if i < self.K else 0 for i in base}
        k, j = sorted(base, key=rho.get)                                                      # line 25
        reserve = {"log t / omega^2": log(t) / omega**2, "log t / 8 omega": log(t) / (8 * omega),
                   "log t / 4 omega": log(t) / (4 * omega)}[self.reserve]
        b = account - self.under_use * reserve                                                # line 26
        if b > rho[j]:                                                                        # lines 27 to 34
            line, p = 28, 1 - omega
        elif b < rho[k]:
            line, p = 30, omega
        else:
            line, p = 33, min(max((b - rho[k]) / (rho[j] - rho[k]), omega), 1 - omega)
        if self.fault == "no clip":
            p = (b - rho[k]) / (rho[j] - rho[k])
        return self.at(line, j if self.rng.random() < p else k)


class LiteralTwoAccounts(LiteralSUAK):
    """SUAK with two accounts, as the chapter words it before its theorem (section 3.16)."""

    X_Q = X_P = 0.0
    asks = False

    def see(self, arm, reward, cost):
        Literal.see(self, arm, reward, cost)
        if self.asks:
            self.X_Q -= cost
        else:
            self.X_P -= cost

    def choose(self, t):
        unsure = self.unsure(t)
        self.asks, self.null_gap = bool(unsure), inf if self.fault == "no null arm" else self.c
        if unsure:
            self.phase = 1 if self.phase == 1 else 3
            self.X_Q += self.c
            if self.X_Q < 1:
                return self.at("skip")
            return self.at("ask", min(unsure, key=lambda i: self.arms[i].n) if self.order == "least" else unsure[0])
        self.phase, kept = 2, 0 if self.fault == "all is handed over" else 1 - self.c
        moved = max(self.X_Q - kept, 0)
        self.X_Q, self.X_P = self.X_Q - moved, self.X_P + moved + self.c
        return self.at("skip") if self.X_P < 1 else self.base(t, self.X_P)


class LiteralOPS(Literal):
    """Algorithm 1, with and without a row for the rounds that are left."""

    radius, time_row = "3logT", True

    def choose(self, t):
        if self.S_c + 1 > self.c * t:                                                         # line 4
            return SKIP
        if (arm := self.unpulled()) is not None:                                              # line 2
            return arm
        factor, told = self.radius.split("log")
        width = float(factor) * log({"T": self.T, "t": t}[told])
        mu, rho = self.bounds(width)
        return self.draw(mu, rho, t) if self.time_row else self.one_row(mu, rho)

    def draw(self, mu, rho, t):
        plan = self.best(mu, rho, self.c * self.T - self.S_c, self.T - t + 1)                 # line 7
        plan.pop(self.K, None)
        total = sum(plan.values())                                                            # line 8
        dear, *cheap = sorted(plan, key=lambda i: -rho[i])
        return dear if not cheap or self.rng.random() < plan[dear] / total else cheap[0]

    def one_row(self, mu, rho):
        self.solved += 1
        if min(rho) == 0:                            # the reward is unbounded, with any arm that may be free
            return rho.index(0)
        self.mixed += len({*rho}) > 1                # where it is a program at all
        return max(range(self.K), key=lambda i: mu[i] / rho[i])


class LiteralPDS(LiteralOPS):
    """Sweeps until two arms are known to be needed (the null arm may be one), then Algorithm 1 on them."""

    needed, queue = frozenset(), ()

    def value(self, mu, rho, without=None):
        """The best mean reward at a mean cost of at most c, without an arm: -inf where nothing is that cheap."""
        kept = [i for i in range(self.K + 1) if i != without]
        mu, rho = ([[*each, 0][i] for i in kept] for each in (mu, rho))
        return max((value for value, _ in bases(mu, rho, self.c)), default=-inf)

    def choose(self, t):
        if self.S_c + 1 > self.c * t:
            return SKIP
        width = 2 * log(self.T)
        if len(self.needed) < 2:
            if not self.queue and self.arms[0].n > 0:
                sure = self.value(*self.bounds(width, sign=-1))
                self.needed |= {i for i in range(self.K + 1) if sure > self.value(*self.bounds(width), without=i)}
            if len(self.needed) < 2:
                arm, *self.queue = self.queue or range(self.K)
                return arm
        mu, rho = self.bounds(width)
        arms = sorted(self.needed - {self.K})
        real = {len(arms): self.K, **dict(enumerate(arms))}
        few = LiteralOPS(self.c, self.T, self.bandit, self.rng, K=len(arms), S_c=self.S_c)
        arm = few.draw([mu[i] for i in arms], [rho[i] for i in arms], t)
        self.mixed, self.solved = self.mixed + few.mixed, self.solved + few.solved
        return real[arm]


class LiteralUSS(Literal):
    """The best base for optimistic rewards and mean costs, and within a base a balance of what it was charged."""

    lam = 9.0

    def __init__(self, *args, **reading):
        super().__init__(*args, **reading)
        self.charged, self.times, self.base = {}, {}, None

    def see(self, arm, reward, cost):
        super().see(arm, reward, cost)
        if self.base:
            self.charged[self.base] += cost

    def choose(self, t):
        self.base = None
        if self.S_c + 1 > self.c * t:
            return SKIP
        if (arm := self.unpulled()) is not None:
            return arm
        cost = [arm.rho for arm in self.arms]
        base = self.best([arm.mu + self.lam * sqrt(2 * log(t) / arm.n) for arm in self.arms], cost, self.c)
        if len(base) == 1:
            return next(iter(base))
        self.base = frozenset(base)
        times, charged = self.times.setdefault(self.base, 0), self.charged.setdefault(self.base, 0.0)
        self.times[self.base] += 1
        cheap, dear = sorted(base, key=[*cost, 0].__getitem__)
        arm = dear if charged <= self.c * times else cheap
        return arm if arm < self.K else PASS


class LiteralKnown(Literal):
    """The best base for the true means; the dear arm if `threshold` may be spent, or by an independent draw."""

    threshold, plan = 2.0, None

    def choose(self, t):
        if self.S_c + 1 > self.c * t:
            return SKIP
        costs = self.bandit.cost_means
        self.plan = self.plan or self.best(self.bandit.reward_means, costs, self.c)
        dear, *cheap = sorted(self.plan, key=lambda i: -[*costs, 0][i])
        if cheap and not (self.S_c + self.threshold <= self.c * t if self.threshold
                          else self.rng.random() < self.plan[dear]):
            dear = cheap[0]
        return dear if dear < self.K else PASS


class LiteralControl(Literal):
    """The best base for the true means; B against its threshold tells the arm that spends from the one that saves."""

    plan, thresholds = None, ()

    def choose(self, t):
        B, costs = self.c * t - self.S_c, [*self.bandit.cost_means, 0]
        self.plan = self.plan or self.best(self.bandit.reward_means, costs[:-1], self.c)
        arms = sorted(self.plan, key=lambda i: costs[i])
        if B < 1:
            return SKIP
        delta = min(abs(costs[i] - self.c) for i in arms)
        arm = arms[-1] if len(arms) == 1 or B >= 6 / delta**2 * log(max(self.T - t, 1)) else arms[0]
        self.met.add(arm == arms[-1])
        return arm if arm < self.K else PASS


def literal(player, bandit, c, T, seed, upto=None, solve=inf, **reading):
    """What a literal player does, by position, up to a round or until it solved so many programs; and the player."""
    upto = upto or T
    order, rewards, costs = outcomes(bandit, seed, 0, upto)
    bandit = cb.Bandit([bandit.rewards[arm] for arm in order], [bandit.costs[arm] for arm in order])
    player = player(c, T, bandit, stream(seed, 0, POLICY), **reading)
    return literal_rounds(player, rewards, costs, upto, lambda: player.solved >= solve), player


def rounds(policy, bandit, c, T, seed, upto=None):
    """What the library does in each round, by position: there is a checkpoint at every round."""
    t = np.arange(1, (upto or T) + 1)
    runs = cb.simulate({"p": policy}, bandit, cb.AnytimeBudget(c, T), seed=seed, checkpoints=t / T)
    pulls = np.diff(runs.pulls[0, 0][:, stream(seed, 0, ORDER).permutation(bandit.K)], axis=0, prepend=0)
    skips = np.diff(runs.skips[0, 0], prepend=0)
    assert ((pulls.sum(axis=1) + skips) <= 1).all() and (runs.rounds[0, 0] == t).all()
    return np.where(pulls.any(axis=1), pulls.argmax(axis=1), np.where(skips == 1, SKIP, PASS)).tolist()


def compare(policy, player, bandit, c, T, seed=0, upto=None, solve=inf, **reading):
    """Pulls of each position, and skips, are those of the transcription; it, and what it said."""
    said, player = literal(player, bandit, c, T, seed, upto, solve, **reading)
    t, counts = looks(len(said)), np.zeros((len(said), bandit.K + 1), int)
    for i, arm in enumerate(said):
        counts[i, arm] = arm != PASS                # a skip is -1, the last column
    runs = cb.simulate({"p": policy(**reading)}, bandit, cb.AnytimeBudget(c, T), seed=seed, checkpoints=t / T)
    found = runs.pulls[0, 0][:, stream(seed, 0, ORDER).permutation(bandit.K)], runs.skips[0, 0]
    assert (runs.rounds[0, 0] == t).all() and np.array_equal(np.column_stack(found), counts.cumsum(axis=0)[t - 1])
    return player, said


SUAK_READINGS = [{}, {"under_use": 0.0, "log": "T"}, {"counting": "coming", "under_use": 0.1},
                 {"counting": "needed", "order": "first", "under_use": 0.0},
                 {"counting": "needed", "log": "T", "under_use": 0.1},
                 {"counting": "coming", "order": "first", "under_use": 0.02, "log": "T"},
                 {"reserve": "log t / 8 omega"}]


@pytest.mark.parametrize("reading", SUAK_READINGS, ids=str)
def test_suak_round_for_round_while_it_is_unsure(reading):
    for seed, (bandit, c) in enumerate([(FIGURE_1, 0.5), (FIGURE_2, 0.5), (random_bandit(1, 4), 0.3),
                                        (random_bandit(2, 1), 1.0)]):
        player, said = compare(cb.SUAK, LiteralSUAK, bandit, c, 500, seed, **reading)
        # The first unsure arm stays the first for long.
        assert player.phase == 1 and {*said} - {SKIP} == {*range(1 if player.order == "first" else bandit.K)}


# Which lines of phase 2 a case meets; at line 24 an arm is best alone.
SURE = [("three", 0, {16, 20, 30}), ("three", 1, {16, 18, 20, 28}), ("three", 2, {16, 20, 28, 30, 33}),
        ("three", 3, {16, 18, 20, 28}), ("three", 4, {16, 20, 28, 30, 33}), ("two dear", 5, {16, 20, 28, 30, 33}),
        ("two dear", 1, {16, 18, 20, 28}), ("two cheap", 1, {20, 28}), ("all cheap", 0, {20, 24}),
        ("three", 6, {16, 20, 28, 30, 33}), ("two dear", 6, {16, 20, 28, 30, 33})]


@pytest.mark.parametrize(("name", "reading", "lines"), SURE)
def test_suak_round_for_round_when_it_is_sure(name, reading, lines):
    """Of phase 2 the first 200 rounds with a program."""
    bandit, c = FAR[name]
    player, _ = compare(cb.SUAK, LiteralSUAK, bandit, c, 10**8, reading, 13_000, 200, **SUAK_READINGS[reading])
    assert player.solved == 200 and player.mixed == (0 if name == "all cheap" else 200)
    assert {line for phase, line in player.met if phase == 2} == lines


@pytest.mark.parametrize(("name", "reading"), [("three", 0), ("three", 2), ("two dear", 5), ("all cheap", 0)])
def test_what_suak_remembers_is_what_the_transcription_counts(name, reading):
    """Skips by their lines, questions by arm, the first round with a base, and the extremes of omega."""
    (bandit, c), T, policy = FAR[name], 10**8, cb.SUAK(**SUAK_READINGS[reading])
    said, player = literal(LiteralSUAK, bandit, c, T, reading, 13_000, 200, **SUAK_READINGS[reading])
    stop, order = cb.AnytimeBudget(c, T), stream(reading, 0, ORDER).permutation(bandit.K)
    top, *limits = stop.limits(bandit)
    run = Run(Stacks(bandit, reading, 0, order), [inf], len(said), top[order], *limits)
    assert policy.play(run, Problem.of(bandit, stop, order), stream(reading, 0, POLICY)) == LAST_ROUND
    memory, asked = run.worked_on[0].memory, [player.asked[k] for k in range(bandit.K)]
    account, omegas = memory.account, list(player.omegas.values())
    assert memory.unsure[:-1].tolist() == asked and memory.unsure[-1] == 0.0 and min(asked) > 0
    assert (account.skips_unsure, account.skips_anytime) == (player.lines[16], player.lines[18])
    assert account.phase_2 == min(player.omegas) and account.N_p == player.N_p
    assert (account.least_omega, account.most_omega) == pytest.approx((min(omegas), max(omegas)), rel=1e-9)
    assert len(omegas) == 200 and max(omegas) > min(omegas)


def test_a_wrong_suak_is_found_out():
    """With a deliberate error the transcription parts from the library, and would fail the tests above."""
    bandit, c = FAR["three"]
    said = rounds(cb.SUAK(under_use=0.0), bandit, c, 10**8, 1, 12_500)
    for fault in (None, "S_c unchecked", "no clip", "log T"):
        wrong, _ = literal(LiteralSUAK, bandit, c, 10**8, 1, 12_500, 200, under_use=0.0, fault=fault)
        assert (said[:len(wrong)] == wrong) == (fault is None)


@pytest.mark.parametrize(("name", "reading"), [("three", {"counting": "coming"}), ("three", {"counting": "needed"}),
                                               ("three", {"order": "first"}), ("three", {"under_use": 0.0}),
                                               ("two cheap", {"log": "T"}),
                                               ("three", {"reserve": "log t / 8 omega"}),
                                               ("three", {"reserve": "log t / 4 omega"}), ("three", {"margin": 6.5}),
                                               ("two cheap", {"width": 1.5}), ("three", {"counting": "two accounts"})])
def test_readings_of_suak_differ(name, reading):
    """In such runs: so no reading is tested by another's transcription."""
    ends = [cb.simulate({"p": cb.SUAK(**{"under_use": 0.1, **each})}, FAR[name][0], cb.AnytimeBudget(0.5, 10**8),
                        seed=1, checkpoints=np.array([2, 12_000]) / 10**8) for each in ({}, reading)]
    assert not same(*ends)


TWO = [{"counting": "two accounts", "reserve": "log t / 4 omega", "margin": 3, "width": 1.5},
       {"counting": "two accounts", "under_use": 0.0, "margin": 2.5, "log": "T"},
       {"counting": "two accounts", "reserve": "log t / 8 omega", "margin": 4.0, "order": "first", "width": 1.0}]


def test_suak_2_is_suak_with_two_accounts():
    bandit = cb.Bandit([cb.Bernoulli(x) for x in (0.3, 0.5, 0.9)], [cb.Bernoulli(x) for x in (0.1, 0.3, 0.9)])
    runs = cb.simulate({"2": cb.SUAK2(), "1": cb.SUAK(**TWO[0]), "paper": cb.SUAK()}, bandit,
                       cb.AnytimeBudget(0.5, 20_000))
    assert np.array_equal(runs.pulls[0], runs.pulls[1]) and not np.array_equal(runs.pulls[0], runs.pulls[2])


@pytest.mark.parametrize("reading", TWO, ids=str)
def test_two_accounts_round_for_round_while_an_arm_is_unsure(reading):
    for seed, (bandit, c) in enumerate([(FIGURE_1, 0.5), (FIGURE_2, 0.5), (random_bandit(1, 4), 0.3),
                                        (random_bandit(2, 1), 0.99)]):
        player, _ = compare(cb.SUAK, LiteralTwoAccounts, bandit, c, 400, seed, **reading)
        assert {(1, "skip"), (1, "ask")} <= player.met


# What a case meets in rounds in which all arms are resolved: skips, and lines of Algorithm 2.
RESOLVED = [("three", 0, {"skip", 28, 30, 33}), ("three", 1, {"skip", 28, 33}), ("three", 2, {"skip", 28, 30, 33}),
            ("two dear", 0, {"skip", 28, 30, 33}), ("two cheap", 1, {"skip", 28, 33}), ("all cheap", 0, {24}),
            ("poor", 0, {28}), ("cheap and dear", 0, {28, 30, 33})]


@pytest.mark.parametrize(("name", "reading", "lines"), RESOLVED)
def test_two_accounts_round_for_round_when_all_are_resolved(name, reading, lines):
    """The first 400 rounds with a program, with the questions that come up between them."""
    player, _ = compare(cb.SUAK, LiteralTwoAccounts, *FAR[name], 10**8, reading, 6_000, 400, **TWO[reading])
    assert player.solved == 400 and ((3, "ask") in player.met) == (name not in ("two cheap", "cheap and dear"))
    assert {line for phase, line in player.met if phase == 2} == lines


@pytest.mark.parametrize(("bandit", "c", "fault"), [
    (*FAR["three"], "all is handed over"), (cb.Bandit(betas(0.5), [cb.Constant(1.0)]), 0.25, "no null arm")])
def test_wrong_two_accounts_are_found_out(bandit, c, fault):
    said = rounds(cb.SUAK(**TWO[0]), bandit, c, 10**8, 1, 6_000)
    for wrong in (None, fault):
        other, _ = literal(LiteralTwoAccounts, bandit, c, 10**8, 1, 6_000, 400, fault=wrong, **TWO[0])
        assert (said[:len(other)] == other) == (wrong is None)


OPS_READINGS = [{}, {"radius": "3logt"}, {"radius": "2.5logT"}, {"radius": "2logT"}, {"time_row": False}]


@pytest.mark.parametrize("reading", OPS_READINGS, ids=str)
def test_ops_round_for_round(reading):
    for name in ("two dear", "poor"):
        player, _ = compare(cb.OnePhaseSkip, LiteralOPS, *FAR[name], 500, 1, **reading)
        # Without the row the program has no bound as long as an arm may be free.
        assert player.mixed > (30 if player.time_row or name == "two dear" else -1)
    for seed, (bandit, c) in enumerate([(FIGURE_1, 0.5), (FIGURE_2, 0.5), (random_bandit(3, 5), 0.8)]):
        compare(cb.OnePhaseSkip, LiteralOPS, bandit, c, 60, seed, **reading)


def test_ops_knows_how_many_rounds_are_left():
    """The row decides: where little is left to learn, an arm alone has the best ratio, but a mixture pays more."""
    bandit, c = FAR["poor"]
    with_row, without = (rounds(cb.OnePhaseSkip(time_row=row), bandit, c, 5000, 0) for row in (True, False))
    late = [len(set(said[-500:]) - {SKIP}) for said in (with_row, without)]
    assert with_row != without and late[0] >= 2


def test_pds_round_for_round():
    # One arm is needed, and the null arm.
    for seed, (bandit, c) in enumerate([(cb.Bandit(betas(0.9), betas(0.95)), 0.5),
                                        (cb.Bandit(betas(0.95, 0.1), [cb.Constant(1.0), *betas(0.9)]), 0.5)]):
        player, _ = compare(cb.PrimalDualSkip, LiteralPDS, bandit, c, 1000, seed)
        assert player.needed == {np.argmax(player.bandit.reward_means), bandit.K} and player.solved > 100
    # A mixture of two.
    bandit = cb.Bandit([cb.Constant(0.5), cb.Constant(1.0)], [cb.Constant(0.0), cb.Constant(1.0)])
    player, _ = compare(cb.PrimalDualSkip, LiteralPDS, bandit, 0.5, 4500, solve=600)
    assert player.needed == {0, 1} and player.mixed > 100
    # The sweeps do not end.
    player, said = compare(cb.PrimalDualSkip, LiteralPDS, FIGURE_2, 0.5, 400)
    pulled = [arm for arm in said if arm != SKIP]
    assert not player.needed and pulled == [i % 8 for i in range(len(pulled))] and len(pulled) > 100


@pytest.mark.parametrize("lam", [9.0, 0.5])
def test_uss_round_for_round(lam):
    for seed, (bandit, c, T) in enumerate([(FIGURE_1, 0.5, 150), (FIGURE_2, 0.5, 150), (random_bandit(4, 4), 0.3, 150),
                                           (cb.Bandit(betas(0.9, 0.5), betas(0.9, 0.7)), 0.5, 150)]):
        player, _ = compare(cb.UCBSimplexSkip, LiteralUSS, bandit, c, T, seed, lam=lam)
        assert player.mixed > 20


@pytest.mark.parametrize("threshold", [2.0, 5.0, None])
def test_known_means_round_for_round(threshold):
    said = set()
    for seed, (bandit, c) in enumerate([(FIGURE_1, 0.5), (FIGURE_2, 0.5), *FAR.values(), (random_bandit(5, 5), 0.4)]):
        said.update(compare(cb.KnownMeans, LiteralKnown, bandit, c, 500, seed, threshold=threshold)[1])
    assert said >= {SKIP, PASS, 0, 1}


def test_control_budget_round_for_round():
    said = set()
    for seed, (bandit, c) in enumerate([(FIGURE_1, 0.5), (FIGURE_2, 0.5), *FAR.values(), (random_bandit(5, 5), 0.4)]):
        player, each = compare(cb.ControlBudget, LiteralControl, bandit, c, 1500, seed)
        assert player.met == {False, True} or len(player.plan) == 1
        said.update(each)
    assert said >= {SKIP, PASS, 0, 1}


def test_control_budget_by_hand():
    # Arms that cost 1 and 0 at c = 1/2: delta = 1/2, and the threshold 24 log(T - t) is 24 log 2 = 16.6 two rounds
    # before the end. Until then nothing is spent, and B = t/2 grows to 10; from there to the end, with a threshold of
    # 24 log 1 = 0, the arm that spends is pulled.
    bandit = cb.Bandit([cb.Constant(1.0), cb.Constant(0.25)], [cb.Constant(1.0), cb.Constant(0.0)])
    runs = cb.simulate({"c": cb.ControlBudget()}, bandit, cb.AnytimeBudget(0.5, 20), checkpoints=20)
    assert runs.pulls[0, 0, :, 0].tolist() == [0] * 18 + [1, 2] and runs.skips[0, 0].tolist() == [1] * 20
    # delta = min(1 - 3/4, 3/4 - 0) now: 96 log(T - t).
    runs = cb.simulate({"c": cb.ControlBudget()}, bandit, cb.AnytimeBudget(0.75, 2000), checkpoints=2000)
    spending, spare = np.diff(runs.pulls[0, 0, :, 0]) > 0, 0.75 * np.arange(2, 2001) - runs.spent[0, 0, :-1]
    assert (spending == (spare >= 96 * np.log(np.maximum(np.arange(1998, -1, -1), 1)))).all() and spending.mean() > 0.5


# ---- the best mixture -------------------------------------------------------------------------------

def highs(mu, rho, rate):
    found = linprog(-np.asarray(mu), A_ub=[rho, np.ones(len(mu))], b_ub=[rate, 1], method="highs")
    assert found.status == 0
    return -found.fun


def mixtures(kind, rng):
    """Rewards, costs and a rate; the grid's are exact, so that ties are ties."""
    K, rate = int(rng.integers(1, 8)), float(rng.choice([0.25, 0.5, 0.75, 1.0]))
    mu, rho = rng.integers(0, 9, K) / 8, rng.integers(0, 9, K) / 8
    return {"random": lambda: (rng.random(K), rng.random(K), float(rng.uniform(0.01, 1))),
            "grid": lambda: (mu, rho, rate),
            "equal costs": lambda: (mu, np.full(K, rho[0]), rate),
            "at the rate": lambda: (mu, np.where(rng.random(K) < 0.5, rate, rho), rate),
            "collinear": lambda: (0.25 + rho / 2, rho, rate),
            "through the origin": lambda: (rho / 2, rho, rate),
            "no reward": lambda: (0 * mu, rho, rate),
            "all above": lambda: (mu, rate + (1 + rho) / 8, rate),
            "all below": lambda: (mu, rho * rate, rate),
            "twins": lambda: (np.repeat(mu, 2), np.repeat(rho, 2), rate)}[kind]()


KINDS = ("random", "grid", "equal costs", "at the rate", "collinear", "through the origin", "no reward", "all above",
         "all below", "twins")


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_mixture_and_its_prices(kind):
    """As good as HiGHS finds, feasible, and proved by its prices; a single arm where that is as good."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        mu, rho, rate = mixtures(kind, rng)
        value, shares, price, floor = cb.optimum.mixture(mu, rho, rate)
        assert value == pytest.approx(highs(mu, rho, rate), abs=1e-9)
        assert value == pytest.approx(shares @ mu, abs=1e-12) == floor + price * rate
        assert (shares >= 0).all() and shares.sum() <= 1 + 1e-12 and shares @ rho <= rate + 1e-12
        assert (shares > 0).sum() <= 2
        assert price >= 0 and floor >= -1e-12 and (mu <= floor + price * rho + 1e-12).all()
        alone = np.flatnonzero((rho <= rate) & (mu >= value - 1e-12) & (mu > 0))
        if len(alone):
            assert shares.tolist() == np.eye(len(mu))[alone[0]].tolist()


def test_the_best_base_is_the_optimum_of_the_program():
    """What the transcriptions go by, with and without a null arm, against HiGHS; so is the best ratio, for one row."""
    rng, without = np.random.default_rng(9), 0
    for i in range(100):
        mu, rho, rate = mixtures(KINDS[i % len(KINDS)], rng)
        if i % 3:
            mu, rho = np.append(mu, 0), np.append(rho, 0)
        value, plan = max(bases(mu, rho, rate), key=itemgetter(0), default=(-inf, {}))
        found = linprog(-mu, A_ub=[rho], b_ub=[rate], A_eq=[np.ones(len(mu))], b_eq=[1], method="highs")
        assert value == (pytest.approx(-found.fun, abs=1e-9) if found.status == 0 else -inf)
        without += found.status != 0
        if plan:
            arms, shares = [*plan], np.array([*plan.values()])
            assert shares.min() >= 0 and shares.sum() == pytest.approx(1) and shares @ rho[arms] <= rate + 1e-12
            assert shares @ mu[arms] == pytest.approx(value, abs=1e-12)
        found = linprog(-mu, A_ub=[rho], b_ub=[rate], method="highs")
        if rho.min() > 0:
            assert -found.fun == pytest.approx(rate * max(mu / rho))
        else:                               # an arm that pays is free, or not even one that pays is there
            assert (found.status == 0) == (mu[rho == 0].max() == 0)
    assert without > 3


def test_the_best_mixture_by_brute_force():
    """Many more than HiGHS could: all pairs of arms, of which one may be the null arm."""
    rng = np.random.default_rng(8)
    for _ in range(1000):
        mu, rho, rate = mixtures(rng.choice(["random", "grid", "at the rate"]), rng)
        m, r = np.append(mu, 0), np.append(rho, 0)
        with np.errstate(all="ignore"):
            mixed = m[:, None] + (m - m[:, None]) * (rate - r[:, None]) / (r - r[:, None])
        mixed = np.where((r[:, None] <= rate) & (r > rate), mixed, 0)
        assert cb.optimum.mixture(mu, rho, rate).value == pytest.approx(max(mixed.max(), m[r <= rate].max()), abs=1e-12)


@pytest.mark.parametrize(("bandit", "rate", "value", "shares", "price", "floor"), [
    # From (cost, reward) = (.3, .45) to (.8, .8) the slope is .35/.5 = .7; at .5: .45 + .2 x .7 = .59.
    (FIGURE_1, 0.5, 0.59, {0: 0.6, 2: 0.4}, 0.7, 0.24),
    # From (.3, .45) to (.75, .9) it is 1; at .5: .65; (.4, .52), (.6, .72), (.7, .84), (.8, .92) lie below .15 + x.
    (FIGURE_2, 0.5, 0.65, {1: 5 / 9, 5: 4 / 9}, 1.0, 0.15),
    # Below all costs, the best ratio .9/.75 = 1.2 with the null arm: .2 x 1.2 = .24, unless .35/.25 = 1.4 or
    # .45/.3 = 1.5, which is the best: .3.
    (FIGURE_2, 0.2, 0.3, {1: 2 / 3}, 1.5, 0.0),
    (FIGURE_2, 1.0, 0.92, {6: 1.0}, 0.0, 0.92),
])
def test_the_best_mixture_by_hand(bandit, rate, value, shares, price, floor):
    found = cb.optimum.mixture(bandit.reward_means, bandit.cost_means, rate)
    given = np.zeros(bandit.K)
    given[list(shares)] = list(shares.values())
    assert found.value == pytest.approx(value) and found.shares == pytest.approx(given, abs=1e-12)
    assert (found.price, found.floor) == pytest.approx((price, floor), abs=1e-12)


def test_the_best_base_of_many_is_the_first():
    """Ties by hand: the best arm alone, at the lowest position; of equal dear arms the first; K is the null arm."""
    bases = {(1.0, 1.0, 0.5): (0.0, 0.0, 0.0), (0.5, 0.5, 0.5): (0.5, 0.0, 0.9), (0.5, 1.0, 1.0): (0.0, 1.0, 1.0),
             (0.0, 0.0, 0.0): (0.1, 0.5, 0.9), (0.5, 0.5, 0.25): (0.75, 0.75, 0.25)}
    found = [suak.bridge(np.array([*mu, 0.0]), np.array([*rho, 0.0]), 0.5) for mu, rho in bases.items()]
    assert found == [(0, -1), (0, -1), (0, 1), (3, -1), (2, 0)]


@pytest.mark.parametrize(("change", "message"), [
    ({"rewards": [0.5, np.nan]}, r"rewards\[1\] = nan: must be finite"),
    ({"rewards": "a"}, "rewards = 'a': must be finite"), ({"costs": [0.5, inf]}, "= inf: .*finite"),
    ({"costs": [0.5, -0.1]}, r"costs\[1\] = -0.1: must be finite numbers, 0 or more"),
    ({"costs": [0.5]}, r"costs = \[0.5\]: .*of shape \(2,\)"),
    ({"rate": 0}, "rate = 0: must be a finite number above 0"), ({"rate": np.nan}, "rate = nan: .*above 0")])
def test_a_mixture_of_nonsense(change, message):
    with pytest.raises(ValueError, match=message):
        cb.optimum.mixture(**{"rewards": [0.5, 0.6], "costs": [0.4, 0.9], "rate": 0.5, **change})


# ---- the constraint ---------------------------------------------------------------------------------

@cb.choose
def careful(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    """The arms in turn, when one can be afforded; a little is left for rounding."""
    if cost.sum() + 1.0 + 1e-9 > problem[0] * t:
        return -1
    return t % (len(n) + 1) if t % (len(n) + 1) < len(n) else -2


MINE = cb.ChoosePolicy(careful, prepare=lambda problem: [problem.rate])

laws = st.one_of(st.builds(cb.Beta, st.floats(0.2, 9), st.floats(0.2, 9)), st.builds(cb.Bernoulli, st.floats(0, 1)),
                 st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0]).map(cb.Constant), st.just("rate"))


@settings(max_examples=25)
@given(costs=st.lists(laws, min_size=1, max_size=5), rate=st.one_of(st.floats(0.02, 1), st.sampled_from([0.1, 0.3, 1])),
       seed=st.integers(0, 2**32))
@pytest.mark.filterwarnings("ignore:an arm costs c")
def test_the_constraint_holds_after_every_round(costs, rate, seed):
    """Exactly, in floating point, and by sums of our own."""
    T, costs = 100, [cb.Constant(rate) if law == "rate" else law for law in costs]
    bandit = cb.Bandit([cb.Beta(2, 1)] * len(costs), costs)
    runs = cb.simulate({**EVERYONE, "mine": MINE}, bandit, cb.AnytimeBudget(rate, T), seed=seed, checkpoints=T)
    assert (runs.spent <= rate * np.arange(1, T + 1)).all()
    assert (runs.skips + runs.pulls.sum(axis=-1) <= runs.rounds).all()
    assert (runs.rounds == np.arange(1, T + 1)).all()
    order, _, drawn = outcomes(bandit, seed, 0, T)
    stacks = drawn[np.argsort(order)]
    for pulls, spent in zip(runs.pulls[:, 0], runs.spent[:, 0], strict=True):
        charged, new = 0.0, np.diff(pulls, axis=0, prepend=0)
        for t in range(T):
            for arm in np.flatnonzero(new[t]):
                charged += stacks[arm][pulls[t, arm] - 1]
            assert charged == spent[t]


@cb.choose
def careless(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return -1 if t < params[0] else 0


def test_a_pull_that_could_break_the_constraint_is_an_error():
    """Even if it would not: what counts is the most that it can cost."""
    bandit, stop = cb.Bandit([cb.Bernoulli(0.5)], [cb.Discrete((0.0, 0.75), (0.999, 0.001))]), cb.AnytimeBudget(0.25, 9)
    with pytest.raises(RuntimeError, match=r"'mine', replication 2, round 2: .*an arm that would exceed the budget"):
        cb.simulate({"mine": cb.ChoosePolicy(careless, (2,))}, bandit, stop, replications=[2])
    # At round 3 there is 0.75; if the pull costs nothing, as is likely, the next may come at once.
    runs = cb.simulate({"mine": cb.ChoosePolicy(careless, (3,))}, bandit, stop)
    assert runs.pulls[0, 0, -1, 0] == 7 and runs.skips[0, 0, -1] == 2


def test_skips_and_passes():
    """Both are rounds, and only the first are skips."""
    bandit = cb.Bandit([cb.Constant(0.5)] * 2, [cb.Constant(0.0)] * 2)
    runs = cb.simulate({"mine": MINE}, bandit, cb.AnytimeBudget(0.5, 30), checkpoints=10)
    # Rounds 1 and 2 are skipped: 1 + 1e-9 > 0.5 t. Of the other 28 every third is passed: 5, 8, ..., 29.
    assert runs.rounds[0, 0].tolist() == list(range(3, 31, 3)) and (runs.skips[0, 0] == 2).all()
    assert sorted(runs.pulls[0, 0, -1]) == [9, 10]


@cb.choose
def off_the_map(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return int(params[0]) if t == 7 else -1


@pytest.mark.parametrize("arm", [3, -3])
def test_an_arm_out_of_range_under_an_anytime_budget(arm):
    with pytest.raises(RuntimeError, match=r"'mine', replication 0, round 7: .*0 to 2, -1 to skip and -2 for the null"):
        cb.simulate({"mine": cb.ChoosePolicy(off_the_map, (arm,))}, FIGURE_1, cb.AnytimeBudget(0.5, 20), checkpoints=9)


NO_SKIPS = {**POLICIES, "KUBE": cb.KUBE(), "fractional KUBE": cb.FractionalKUBE(), "eps-first": cb.EpsilonFirst(0.1),
            "eps-greedy": cb.EpsilonGreedy(5, 0.1), "UCB1": cb.UCB1(), "UCB-BV1": cb.UCBBV1(), "CB": cb.CB(0.1, 1.0),
            "Budget-CB": cb.BudgetCB(0.1, 1.0)}


@pytest.mark.parametrize("label", NO_SKIPS)
def test_who_cannot_skip_is_refused(label):
    with pytest.raises(ValueError, match=r"policies\['p'\] = .*: must be able to skip rounds under an anytime budget"):
        cb.simulate({"first": Played(), "p": NO_SKIPS[label]}, FIGURE_1, cb.AnytimeBudget(0.5, 100))


@pytest.mark.parametrize("label", EVERYONE)
@pytest.mark.parametrize("stop", [cb.Budget(10), cb.HardBudget(10)])
def test_without_an_anytime_budget_they_are_refused(label, stop):
    bandit = cb.Bandit(betas(0.5, 0.5), [cb.Constant(0.5)] * 2)
    with pytest.raises(ValueError, match=r"stop = .*needs AnytimeBudget\(rate, horizon\)"):
        cb.simulate({"p": EVERYONE[label]}, bandit, stop)


# ---- runs -------------------------------------------------------------------------------------------

def test_as_printed_nothing_is_ever_pulled():
    """S_p(0) + 1 > c N_p(0) = 0, and neither ever changes."""
    for bandit, rate in [(FIGURE_1, 0.5), (FIGURE_2, 1.0)]:
        runs = cb.simulate({"p": cb.SUAK(counting="printed")}, bandit, cb.AnytimeBudget(rate, 1000), checkpoints=4)
        assert runs.skips[0, 0].tolist() == [250, 500, 750, 1000] == runs.rounds[0, 0].tolist() and not runs.pulls.any()


STUDY = {"bandits": FIGURE_1, "stop": cb.AnytimeBudget(0.5, 600), "replications": 2, "seed": 5}

def test_nobody_passes_but_who_mixes_with_the_null_arm():
    runs = cb.simulate(EVERYONE, FAR["two dear"][0], cb.AnytimeBudget(0.5, 4000))
    passes = (runs.rounds - runs.skips - runs.pulls.sum(axis=-1))[:, 0, -1]
    passing = {label for label, count in zip(EVERYONE, passes, strict=True) if count}
    assert passing == {"USS", "threshold", "draws", "control", "SUAK 2"}


def test_neither_workers_nor_company_change_a_bit():
    runs = cb.simulate(EVERYONE, **STUDY)
    assert same(runs, cb.simulate(EVERYONE, **STUDY, n_jobs=2))
    for i, (label, policy) in enumerate(EVERYONE.items()):
        alone = cb.simulate({label: policy}, **STUDY)
        assert all(np.array_equal(getattr(alone, name)[0], getattr(runs, name)[i]) for name in FIELDS)


def test_checkpoints_are_rounds_and_change_nothing():
    runs = cb.simulate(EVERYONE, **STUDY, checkpoints=600)
    for marks in (1, 7, [0.0001, 0.1, 0.10001, 0.9]):
        fewer = cb.simulate(EVERYONE, **STUDY, checkpoints=marks)
        at = np.ceil(np.round(fewer.fractions * 600, 6)).astype(int)
        assert (fewer.rounds == at).all()
        assert all(np.array_equal(getattr(fewer, name), getattr(runs, name)[:, :, at - 1]) for name in FIELDS)


@pytest.mark.parametrize("label", [*EVERYONE, "mine"])
def test_neither_slots_nor_checkpoints_at_the_ends_of_leaves_change_a_bit(label):
    """A checkpoint at every round: in some of them a stack runs out."""
    policy, stop = {**EVERYONE, "mine": MINE}[label], cb.AnytimeBudget(1.0, 240)
    bandit = cb.Bandit([cb.Beta(2, 1)], [cb.Constant(0.75)])
    whole = low_level(policy, bandit, stop, 0, [1.0])
    for slots in (16, 1, 256):
        pieces = low_level(policy, bandit, stop, 0, np.arange(1, 241) / 240, slots)
        assert all(np.array_equal(piece[-1], end[-1]) for piece, end in zip(pieces, whole, strict=True))
        assert pieces[1].tolist() == list(range(1, 241))
    assert {16, 48} <= {*pieces[0].sum(axis=1)}                            # pages of 16 are drawn by 1, 2, 4, ...
    for slots in (1, 4):
        assert all(map(np.array_equal, low_level(policy, FIGURE_1, cb.AnytimeBudget(0.5, 900), 3, [0.1, 0.5, 1], slots),
                       low_level(policy, FIGURE_1, cb.AnytimeBudget(0.5, 900), 3, [0.1, 0.5, 1])))


def bits():
    """Hashes of runs in which every rule plays, SUAK's second phase included."""
    short = cb.simulate(EVERYONE, FIGURE_1, cb.AnytimeBudget(0.5, 300), checkpoints=5)
    long = [cb.simulate({"p": cb.SUAK(under_use=0.0)}, bandit, cb.AnytimeBudget(c, 8000)) for bandit, c in
            (FAR["cheap and dear"], FAR["all cheap"])]
    known = cb.simulate({"p": cb.PrimalDualSkip()}, cb.Bandit(betas(0.9), betas(0.95)), cb.AnytimeBudget(0.5, 1000))
    return [digest(*(getattr(runs, name) for name in FIELDS)) for runs in (short, *long, known)]


def test_without_the_compiler_not_a_bit_changes():
    assert in_plain_python("test_suak", "m.bits()") == bits()


def test_the_store_tells_anytime_budgets_apart(tmp_path):
    changes = [{}, {"stop": cb.AnytimeBudget(0.5, 599)}, {"stop": cb.AnytimeBudget(0.4, 600)}]
    for change in (*changes, {}):
        assert same(cb.simulate(EVERYONE, **{**STUDY, **change}, store=tmp_path / "s"),
                    cb.simulate(EVERYONE, **{**STUDY, **change}))
    pairs = pairwise(cb.simulate(EVERYONE, **{**STUDY, **change}) for change in changes)
    assert not any(same(a, b) for a, b in pairs)


def test_readings_are_kept_apart_in_the_store(tmp_path):
    for reading in (*SUAK_READINGS, *TWO):
        runs = [cb.simulate({"p": cb.SUAK(**reading)}, *FAR["all cheap"][:1], cb.AnytimeBudget(0.5, 9000), store=store)
                for store in (tmp_path / "s", None)]
        assert same(*runs)


# ---- regret -----------------------------------------------------------------------------------------

def test_regret_is_gaps_idle_rounds_and_unspent_budget():
    """The identity of its documentation, term by term, on fresh bandits."""
    def fresh(rng):
        K = 5
        return cb.Bandit(betas(*rng.uniform(0.05, 0.95, K)), betas(*rng.uniform(0.05, 0.95, K)))

    runs = cb.simulate(EVERYONE, fresh, lambda each: cb.AnytimeBudget(each.cost_means.mean(), 400), 8, checkpoints=5)
    regret, t = cb.regret.anytime(runs), runs.rounds
    assert regret.shape == runs.spent.shape and (np.diff(t, axis=-1) == 80).all()
    for r, (bandit, stop) in enumerate(zip(runs.bandits, runs.stops, strict=True)):
        _, _, price, floor = cb.optimum.mixture(bandit.reward_means, bandit.cost_means, stop.rate)
        n, mu, rho = runs.pulls[:, r], bandit.reward_means, bandit.cost_means
        gaps, idle = n @ (floor + price * rho - mu), floor * (t[:, r] - n.sum(axis=-1))
        assert (gaps >= -1e-9).all() and (idle >= -1e-9).all()
        assert regret[:, r] == pytest.approx(gaps + idle + price * (stop.rate * t[:, r] - n @ rho), abs=1e-9)
        assert regret[:, r] == pytest.approx(t[:, r] * highs(mu, rho, stop.rate) - n @ mu, abs=1e-6)


def test_regret_of_what_is_not_kept():
    reduced = cb.simulate(EVERYONE, **STUDY, reduce=lambda runs: {"regret": cb.regret.anytime(runs)})
    assert np.array_equal(reduced["regret"], cb.regret.anytime(cb.simulate(EVERYONE, **STUDY)))


def test_regret_by_hand():
    # An arm that pays 0.6 and costs 1 at c = 1/2: r* = 0.3. The first pull is in round 2, then in every second round.
    bandit = cb.Bandit([cb.Constant(0.6)], [cb.Constant(1.0)])
    runs = cb.simulate({"k": cb.KnownMeans(1.0)}, bandit, cb.AnytimeBudget(0.5, 5), checkpoints=5)
    assert runs.pulls[0, 0, :, 0].tolist() == [0, 1, 1, 2, 2] and runs.skips[0, 0].tolist() == [1, 1, 2, 2, 3]
    assert cb.regret.anytime(runs)[0, 0] == pytest.approx([0.3, 0, 0.3, 0, 0.3])


def test_each_regret_belongs_to_its_budget():
    runs = cb.simulate({"k": cb.KnownMeans()}, FIGURE_1, cb.AnytimeBudget(0.5, 50))
    for regret, message in ((cb.regret.budgeted, "must be Budget or HardBudget"),
                            (cb.regret.knapsack, "must be a HardBudget")):
        with pytest.raises(ValueError, match=rf"stop = AnytimeBudget\(.*{message}"):
            regret(runs)
    with pytest.raises(ValueError, match=r"stop = Budget\(total=5\): must be an AnytimeBudget"):
        cb.regret.anytime(cb.simulate({"i": cb.IUCB()}, FIGURE_1, cb.Budget(5)))


# ---- bad input --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("rate", "horizon", "message"), [
    *[(rate, 10, r"rate = .*: must be a number in \(0, 1\]")
      for rate in (0, -0.1, 1.0001, np.nan, inf, "a", None, True)],
    *[(0.5, T, "horizon = .*: must be a whole number, 1 or more") for T in (0, -3, 2.5, np.nan, "a", None, True)]])
def test_rate_and_horizon(rate, horizon, message):
    with pytest.raises(ValueError, match=message):
        cb.AnytimeBudget(rate, horizon)


@pytest.mark.parametrize("law", [cb.Discrete((0.5, 1.5), (0.9, 0.1)), cb.Discrete((-0.5, 0.5), (0.1, 0.9)),
                                 cb.Constant(1.01), cb.TruncatedNormal(0.5, 1.0, 0.0, 1.5)])
@pytest.mark.parametrize("policy", [cb.SUAK(), MINE])
def test_costs_must_be_between_0_and_1(law, policy):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0), law])
    with pytest.raises(ValueError, match=r"cost of arm 1 = .*: under an anytime budget every cost must be in \[0, 1\]"):
        cb.simulate({"first": Played(), "p": policy}, bandit, cb.AnytimeBudget(0.5, 10))


@pytest.mark.parametrize("label", EVERYONE)
def test_rewards_must_be_between_0_and_1(label):
    bandit = cb.Bandit([cb.Constant(2.0)], [cb.Constant(1.0)])
    with pytest.raises(ValueError, match=r"reward support = \(2.0, 2.0\): policy 'p' .* for rewards in \(0.0, 1"):
        cb.simulate({"first": Played(), "p": EVERYONE[label]}, bandit, cb.AnytimeBudget(0.5, 10))


def test_a_horizon_beyond_max_rounds():
    with pytest.raises(ValueError, match=r"max_rounds = 99: must be at least the horizon \(100\)"):
        cb.simulate({"first": Played()}, FIGURE_1, cb.AnytimeBudget(0.5, 100), max_rounds=99)
    assert cb.simulate({"p": MINE}, FIGURE_1, cb.AnytimeBudget(0.5, 100), max_rounds=100).rounds[0, 0, -1] == 100


@pytest.mark.parametrize(("make", "message"), [
    *[(lambda bad=bad: cb.UCBSimplexSkip(bad), "lam = .*: must be a finite number above 0")
      for bad in (0, -1, np.nan, inf, "a")],
    *[(lambda bad=bad: cb.KnownMeans(bad), "threshold = .*: must be a finite number above 0")
      for bad in (0, -1, np.nan, inf, "a")],
    *[(lambda bad=bad: cb.SUAK(under_use=bad), "under_use = .*: must be a number, 0 or more")
      for bad in (-0.1, np.nan, inf, "a", None)],
    (lambda: cb.SUAK(log="s"), r"log = 's': must be one of \('t', 'T'\)"),
    (lambda: cb.SUAK(counting="pulls"), "counting = 'pulls': must be one of .*'skips', 'coming', 'needed', 'printed'"),
    (lambda: cb.SUAK(reserve="none"), r"reserve = 'none': must be one of \('log t / omega\^2', 'log t / 8 omega'"),
    *[(lambda bad=bad: cb.SUAK(margin=bad), "margin = .*: must be a number, 2 or more") for bad in (1.9, np.nan, "a")],
    *[(lambda bad=bad: cb.SUAK(width=bad), r"width = .*: must be a number in \(0, 3\]") for bad in (0, 3.1, inf, None)],
    (lambda: cb.SUAK(order=0), r"order = 0: must be one of \('least', 'first'\)"),
    (lambda: cb.OnePhaseSkip("3 log T"), r"radius = '3 log T': must be one of .*'3logt', '2.5logT', '2logT'"),
    (lambda: cb.OnePhaseSkip(time_row=1), "time_row = 1: must be True or False")])
def test_readings_that_do_not_exist(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cost_of_exactly_c_is_warned_of_and_never_resolved():
    bandit = cb.Bandit(betas(0.9, 0.5), [*betas(0.5), cb.Constant(0.0)])
    with pytest.warns(UserWarning, match=r"an arm costs c = 0.5 in expectation: SUAK can never tell"):
        runs = cb.simulate({"SUAK": cb.SUAK()}, bandit, cb.AnytimeBudget(0.5, 20_000), checkpoints=4)
    # Once the other arm is known to be cheap, all pulls are of this one.
    late = np.diff(runs.pulls[0, 0], axis=0)[-1]
    assert late[1] < 500 < 4000 < late[0] and (runs.spent <= 0.5 * runs.rounds).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cb.simulate({**EVERYONE}, FIGURE_1, cb.AnytimeBudget(0.5, 50))
        cb.simulate({"p": cb.OnePhaseSkip()}, bandit, cb.AnytimeBudget(0.5, 50))


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_a_horizon_too_short_for_every_arm(horizon):
    runs = cb.simulate(EVERYONE, FIGURE_2, cb.AnytimeBudget(0.5, horizon), 3, checkpoints=1)
    assert (runs.rounds == horizon).all() and (runs.unpulled[:5] > 0).all() and (runs.spent <= 0.5 * horizon).all()
    assert np.isfinite(cb.regret.anytime(runs)).all()
