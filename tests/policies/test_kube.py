"""Hard budgets, KUBE, fractional KUBE and epsilon-first: known answers, literal transcriptions, what is refused."""

from collections import Counter
from functools import cache, partial
from math import floor, inf, log, sqrt

import chains
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import INDICES, INSTANCE, ORDER, POLICY, digest, in_plain_python, outcomes, proving, stream

import costbandits as cb
from costbandits import fast
from costbandits.checks import rounding
from costbandits.engine.driver import DONE, LAST_ROUND
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Arm, Arms
from costbandits.fast import kube as quick
from costbandits.policies import kube
from costbandits.policies.base import Problem


def bandit_of(costs, means):
    return cb.Bandit([cb.Beta(4 * m, 4 * (1 - m)) for m in means], [cb.Constant(c) for c in costs])


def instance(rng, K, low=1.0, high=20.0):
    return bandit_of(rng.uniform(low, high, K), rng.uniform(0.05, 0.95, K))


FAMILY = cb.instances.knapsack(5)
POLICIES = {"KUBE": cb.KUBE(), "KUBE 40": cb.KUBE(40.0), "fractional": cb.FractionalKUBE(), "eps": cb.EpsilonFirst(0.2)}


# ---- literal transcriptions -------------------------------------------------------------------------

class Literal:
    """Players that see an arm's rewards as a list, the known costs and what is left of the budget."""

    def __init__(self, costs, budget):
        self.costs, self.budget, self.seen = costs, budget + rounding(budget), [[] for _ in costs]

    def affordable(self, spent):
        return [k for k, cost in enumerate(self.costs) if spent + cost <= self.budget]

    def first_pull(self, spent):
        return next((k for k in self.affordable(spent) if not self.seen[k]), None)


def literal_filling(costs, budget, scale, t, spent, pulls, totals):
    """Pairs of an arm and how often it is in the density-ordered greedy filling of what is left."""
    bound = {k: total / n / scale + sqrt(2 * log(t) / n)
             for k, (n, total) in enumerate(zip(pulls, totals, strict=True)) if n > 0}
    rest, filling = budget - spent, []
    for k in sorted(bound, key=lambda k: -(bound[k] / costs[k])):
        if spent + costs[k] <= budget and rest >= costs[k]:
            filling.append((k, floor(rest / costs[k])))
            rest -= filling[-1][1] * costs[k]
    return filling


class LiteralFractional(Literal):
    """The densest arm, all arms sorted in every round."""

    def choose(self, t, spent, rng):
        if (arm := self.first_pull(spent)) is not None:
            return arm
        totals = [np.cumsum(x)[-1] if x else 0.0 for x in self.seen]
        return literal_filling(self.costs, self.budget, 1.0, t, spent, [len(x) for x in self.seen], totals)[0][0]


class LiteralKUBE(Literal):
    """An item of the filling, each as likely: a number below 1 tells which."""

    scale = 1.0

    def choose(self, t, spent, rng):
        if (arm := self.first_pull(spent)) is not None:
            return arm
        totals = [np.cumsum(x)[-1] if x else 0.0 for x in self.seen]
        arms, often = zip(*literal_filling(self.costs, self.budget, self.scale, t, spent,
                                           [len(x) for x in self.seen], totals), strict=True)
        return arms[np.searchsorted(np.cumsum(often), rng.random() * sum(often), side="right")]


class LiteralScaledKUBE(LiteralKUBE):
    scale = 40.0


class LiteralEpsilonFirst(Literal):
    """Sweeps within a fifth of the budget, then the density-ordered greedy plan for the rest, written out at once."""

    plan, at = None, 0

    def choose(self, t, spent, rng):
        while self.plan is None:
            order = [(self.at + i) % len(self.costs) for i in range(len(self.costs))]
            fits = [k for k in order if spent + self.costs[k] <= 0.2 * self.budget]     # its rounding included
            if fits:
                self.at = fits[0] + 1
                return fits[0]
            mean = [np.cumsum(x)[-1] / len(x) if x else -inf for x in self.seen]
            self.plan = sorted(range(len(self.costs)), key=lambda k: -mean[k] / self.costs[k])
        return next(k for k in self.plan if k in self.affordable(spent))


class LiteralKLUCB(Literal):
    """The largest kl-UCB bound over the cost of those that are affordable, by bisection."""

    def choose(self, t, spent, rng):
        def bound(seen):
            r, (low, high) = sum(seen) / len(seen), (sum(seen) / len(seen), 1.0)
            for _ in range(60):
                x = (low + high) / 2
                kl = sum(p * log(p / q) if q > 0 else inf for p, q in ((r, x), (1 - r, 1 - x)) if p > 0)
                low, high = (x, high) if kl <= log(t) / len(seen) else (low, x)
            return low

        if (arm := self.first_pull(spent)) is not None:
            return arm
        return max(self.affordable(spent), key=lambda k: bound(self.seen[k]) / self.costs[k])


class LiteralThompson(Literal):
    """The largest draw over the cost of those that are affordable; a reward is the chance of a success."""

    won, last = (), None

    def choose(self, t, spent, rng):
        self.won = self.won or [0] * len(self.costs)
        if self.last is not None:
            self.won[self.last] += rng.random() < self.seen[self.last][-1]
        scores = {k: rng.beta(self.won[k] + 1, len(self.seen[k]) - self.won[k] + 1) / self.costs[k]
                  for k in self.affordable(spent)}
        self.last = max(scores, key=scores.get)
        return self.last


# Where nothing is random, or the same random numbers are used.
LITERAL = {"fractional": LiteralFractional, "eps": LiteralEpsilonFirst, "KL-UCB": LiteralKLUCB,
           "TS naive": LiteralThompson}
DEFINED = {**LITERAL, "KUBE": LiteralKUBE, "KUBE 40": LiteralScaledKUBE}     # what definitions play pull for pull
UNIT = {"KL-UCB": cb.KLUCB(), "TS": cb.KnownCostTS(), "TS naive": cb.KnownCostTS(naive=True)}     # rewards in [0, 1]


def literal_trajectory(player, bandit, budget, seed, samples=2000):
    """Pulls until nothing is affordable, at positions of the replication's order."""
    order = stream(seed, 0, ORDER).permutation(bandit.K)
    _, rewards, _ = outcomes(bandit, seed, 0, samples)
    player, rng, spent, pulled = player(bandit.cost_means[order], budget), stream(seed, 0, POLICY), 0.0, []
    while player.affordable(spent):
        arm = player.choose(len(pulled) + 1, spent, rng)
        player.seen[arm].append(rewards[arm][len(player.seen[arm])])
        spent += player.costs[arm]
        pulled.append(arm)
    return pulled


def play(policy, bandit, budget, seed, max_rounds=10**6, kernels=True):
    order = stream(seed, 0, ORDER).permutation(bandit.K)
    costs = bandit.cost_means[order]
    run = Run(Stacks(bandit, seed, 0, order), [budget], max_rounds, costs, budget + rounding(budget))
    problem = Problem(bandit.K, costs, budget, True, True)
    return fast.play(policy, run, problem, stream(seed, 0, POLICY), kernels), run


def trajectory(policy, bandit, budget, seed, rounds, kernels=True):
    counts = [np.zeros(bandit.K, int)]
    for limit in range(1, rounds + 1):
        status, run = play(policy, bandit, budget, seed, limit, kernels)
        assert status == LAST_ROUND
        counts.append(run.state.arms.n.copy())
    status, run = play(policy, bandit, budget, seed, kernels=kernels)
    assert status == DONE and run.state.now.rounds == rounds
    return np.diff(counts, axis=0).argmax(axis=1).tolist()


@pytest.mark.parametrize(("label", "kernels"), [*[(label, True) for label in LITERAL],
                                                *[(label, False) for label in DEFINED]])
@pytest.mark.slow
def test_pull_for_pull(label, kernels):
    draws = 0
    for seed, (K, budget) in enumerate([(2, 300.0), (3, 40.0), (6, 900.0), (12, 700.0), (8, 20.0)]):
        bandit = instance(stream(11, seed, INSTANCE), K)
        literal = literal_trajectory(DEFINED[label], bandit, budget, seed)
        draws += len(literal)
        assert trajectory({**POLICIES, **UNIT}[label], bandit, budget, seed, len(literal), kernels) == literal
    assert draws > 200


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), K=st.integers(1, 12), budget=st.floats(0.1, 400), low=st.floats(0.05, 5),
       spread=st.floats(0, 20), label=st.sampled_from(sorted(LITERAL)))
def test_the_lazy_and_the_literal_choice_agree(seed, K, budget, low, spread, label):
    bandit = instance(np.random.default_rng(seed), K, low, low + spread)
    literal = literal_trajectory(LITERAL[label], bandit, budget, seed, samples=10_000)
    _, run = play({**POLICIES, **UNIT}[label], bandit, budget, seed)
    assert run.state.arms.n.tolist() == np.bincount(literal, minlength=K).tolist()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), K=st.integers(1, 12), budget=st.floats(0.1, 400), low=st.floats(0.05, 5),
       spread=st.floats(0, 20), label=st.sampled_from(sorted(DEFINED)))
def test_the_definition_and_the_literal_choice_agree(seed, K, budget, low, spread, label):
    bandit = instance(np.random.default_rng(seed), K, low, low + spread)
    literal = literal_trajectory(DEFINED[label], bandit, budget, seed, samples=10_000)
    _, run = play({**POLICIES, **UNIT}[label], bandit, budget, seed, kernels=False)
    assert run.state.arms.n.tolist() == np.bincount(literal, minlength=K).tolist()


@pytest.mark.parametrize("label", ["fractional", "eps", "KUBE", "KUBE 40"])
def test_by_their_definitions_on_request(label):
    """`simulate` without kernels plays what the transcriptions play; kernels of "pulls" do so, too."""
    bandit, budget, policy = instance(stream(12, 0, INSTANCE), 5), 90.0, POLICIES[label]
    kernel = fast.kernel_of(policy)
    for seed in range(5):
        runs = {way: cb.simulate({"p": policy}, bandit, cb.HardBudget(budget), seed=seed, checkpoints=9, fast=way)
                for way in (True, False)}
        order = stream(seed, 0, ORDER).permutation(bandit.K)
        literal = literal_trajectory(DEFINED[label], bandit, budget, seed)
        assert runs[False].pulls[0, 0, -1, order].tolist() == np.bincount(literal, minlength=bandit.K).tolist()
        assert kernel.same == ("law" if label.startswith("KUBE") else "pulls")
        if kernel.same == "pulls":
            assert np.array_equal(runs[True].pulls, runs[False].pulls)
            assert np.array_equal(runs[True].rounds, runs[False].rounds)
            assert np.allclose(runs[True].spent, runs[False].spent, rtol=1e-12)


class Script:
    """A generator that says what it was told to, and counts how often it was asked."""

    def __init__(self, says):
        self.says, self.asked = says, 0

    def random(self):
        self.asked += 1
        return self.says


def defined(costs, budget, scale, t, spent, n, reward, says):
    """What the definition of KUBE pulls, and how many random numbers it draws; none of its arrays is fresh."""
    K, rng = len(costs), Script(says)
    arms = Arms(np.array(n), np.array(reward, float), *np.full((3, K), np.nan))
    told = kube.KnownCosts(np.array(costs), budget)
    memory = np.full(K, 9.0), np.arange(K), np.full(K, 7.0)
    rule = getattr(kube.kube, "py_func", kube.kube)
    return int(rule(t, spent, arms, told, kube.Scale(scale), memory, rng)), rng.asked


def test_every_item_of_the_filling_is_equally_likely():
    """By N numbers in the middle of each N-th of [0, 1): each of N items is pulled once."""
    rng, kinds = np.random.default_rng(3), Counter()
    for _ in range(300):
        K, scale, spent = int(rng.integers(1, 10)), float(rng.choice([1.0, 4.0])), float(rng.uniform(5, 50))
        costs, n = rng.uniform(0.5, 9, K), rng.integers(1, 40, K)
        reward, budget = n * costs**2 * rng.uniform(0.3, 1, K), spent + float(rng.uniform(0, 60))
        t = int(n.sum()) + 1
        filling = literal_filling(costs, budget, scale, t, spent, n.tolist(), reward.tolist())
        N = sum(often for _, often in filling)
        found = [defined(costs, budget, scale, t, spent, n, reward, (i + 0.5) / N) for i in range(N)]
        assert Counter(arm for arm, _ in found) == dict(filling) and all(drawn == 1 for _, drawn in found)
        kinds[len(filling)] += 1
    assert kinds[1] > 100 and kinds[2] > 100 and kinds[3] > 20        # fillings of so many arms


def test_an_arm_that_was_never_pulled_is_pulled_next_if_it_fits():
    """The first of them that does, without a draw."""
    costs = [2.0, 9.0, 3.0, 1.0]
    assert defined(costs, 10.0, 1.0, 2, 2.0, [1, 0, 0, 0], [1, 0, 0, 0], 0.5) == (2, 0)
    assert defined(costs, 12.0, 1.0, 2, 2.0, [1, 0, 0, 0], [1, 0, 0, 0], 0.5) == (1, 0)
    # Only the first and the last arm fit. At t = 2 their densities are (1 + 1.18) / 2 and (1/4 + 0.59) / 1.
    assert defined(costs, 4.5, 1.0, 2, 2.0, [1, 0, 0, 4], [1, 0, 0, 1], 0.5) == (0, 1)


# ---- blocks of pulls ----------------------------------------------------------------------------------

class Coin:
    """A law of rewards that the trees do not know."""

    mean, variance, support = 36.0, 864.0, (0.0, 60.0)

    def sample(self, rng, size):
        return 60.0 * (rng.random(size) < 0.6)


def known(costs, *rewards):
    return cb.Bandit(rewards, [cb.Constant(c) for c in costs])


# An expensive arm that leads, cheap ones for what it leaves of the budget.
RICH, LESS, BELOW = (cb.Discrete(values, (0.3, 0.2, 0.5)) for values in ((0, 20, 60), (0, 10, 45), (-30, 40, 80)))
SMALL, LITTLE, SMOOTH = cb.Bernoulli(0.5), cb.Bernoulli(0.3), cb.TruncatedNormal(50, 5, 0, 100)
CASES = {"short": (known([9.0, 1.0, 2.0], RICH, SMALL, LITTLE), 407.0), "one": (known([0.7], SMALL), 120.0),
         "equal": (known([9.0, 9.0, 1.0], *[cb.Constant(v) for v in (60.0, 60.0, 0.5)]), 305.0),
         "turns": (known([23.0, 17.0, 1.0], RICH, LESS, LITTLE), 3000.0),
         "typed": (known([29.0, 1.0], Coin(), SMALL), 16_000.0), "below": (known([29.0, 1.0], BELOW, SMALL), 9000.0),
         "tenths": (known([2.9, 0.1, 0.3], SMOOTH, SMALL, LITTLE), 150.0),
         "long": (known([29.0, 1.0], RICH, SMALL), 29_025.0), "even": (known([28.0, 4.0], RICH, SMALL), 14_040.0),
         "smooth": (known([17.3, 1.1], SMOOTH, SMALL), 5500.0)}


def chances(scale, costs, budget, sums, n):
    """Of each arm in KUBE's next round; none if nothing is affordable."""
    spent, chance, budget = float(np.dot(n, costs)), np.zeros(len(n)), budget + rounding(budget)
    fresh = [k for k in range(len(n)) if n[k] == 0 and spent + costs[k] <= budget]
    if fresh:
        chance[fresh[0]] = 1
        return chance
    for k, m in literal_filling(costs, budget, scale, sum(n) + 1, spent, n, [sums[0, k, n[k]] for k in range(len(n))]):
        chance[k] = m
    return chance / max(chance.sum(), 1)


class Defined(cb.KUBE):
    """No kernel plays a policy with a `play` of its own."""

    def play(self, run, problem, rng):
        return super().play(run, problem, rng)


@cache
def law_of(case, fraction):
    """The exact law of KUBE's pulls at a checkpoint, on the stacks of seed 0."""
    bandit, budget = CASES[case]
    costs, due = bandit.cost_means, cb.HardBudget(budget).due([fraction])[0]
    sums = chains.sums_of(chains.stacks_of(bandit), int(budget / costs.min()) + 2)
    return chains.law(bandit.K, partial(chances, 1.0, costs, budget, sums),
                      lambda n: fraction < 1 and np.dot(n, costs) >= due)


PLAYERS = {"kernel": cb.KUBE(), "definition": Defined()}
LAWS = [(case, player) for case in CASES for player in PLAYERS]
SHORT = [("short", "kernel"), ("typed", "kernel"), ("tenths", "kernel"), ("below", "kernel"), ("short", "definition")]


@pytest.mark.parametrize(("case", "player"), proving(LAWS, *{*LAWS} - {*SHORT}))
@pytest.mark.slow
def test_the_law_of_the_pulls_of_kube(case, player):
    """At three checkpoints, against the exact law on the same stacks: a false alarm once in a million each."""
    (bandit, budget), fractions = CASES[case], (0.4, 0.8, 1.0)
    found = chains.runs(PLAYERS[player], bandit, cb.HardBudget(budget), chains.stacks_of(bandit), 6000, fractions)
    for fraction, pulls in zip(fractions, found, strict=True):
        expected = law_of(case, fraction)
        assert sum(expected.values()) == pytest.approx(1, abs=1e-8)
        assert chains.p_value(pulls, expected) > 1e-6
        # Or there would be nothing to test. In the end nearly all of the filling has been pulled.
        assert case == "one" or fraction > 0.5 or max(expected.values()) < 0.5


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [0.03, 0.5, 0.97])
def test_epsilon_first_by_sweeps(case, epsilon):
    """At every checkpoint what its definition plays pull by pull, however they lie."""
    bandit, _ = CASES[case]
    policy = cb.EpsilonFirst(epsilon)
    for seed, total in enumerate((0.5, 3.0, 20.0, 21.7, 333.3, 5000.0, 12345.6)):
        stacks, stop, order = chains.stacks_of(bandit, seed), cb.HardBudget(total), np.arange(bandit.K)
        top, *limits = stop.limits(bandit)
        problem = Problem.of(bandit, stop, order)
        for count in (1, 3, 90, 700):
            due = stop.due(np.arange(1, count + 1) / count)
            runs = [Run(stacks, due, 10**7, top, *limits) for _ in range(2)]
            assert fast.play(policy, runs[0], problem, None) == DONE
            assert policy.play(runs[1], problem, np.random.default_rng(0)) == DONE
            assert np.array_equal(runs[0].record.pulls, runs[1].record.pulls)
            assert np.array_equal(runs[0].record.noted["rounds"], runs[1].record.noted["rounds"])
            for name in ("spent", "reward"):
                assert np.allclose(runs[0].record.noted[name], runs[1].record.noted[name], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("label", POLICIES)
def test_checkpoints_change_nothing(label):
    for bandit, _ in CASES.values():
        many, few = (cb.simulate({"p": POLICIES[label]}, bandit, cb.HardBudget(2000), 3, checkpoints=count)
                     for count in (60, 3))
        assert np.array_equal(many.pulls[:, :, 19::20], few.pulls)
        assert np.array_equal(many.spent[:, :, 19::20], few.spent)


def test_an_arm_that_was_never_pulled_is_not_left_to_chance():
    """Also where one is too expensive from the beginning: the filling is an item of each of the others."""
    bandit = known([2.0, 1.0, 5.0], *[cb.Bernoulli(0.5)] * 3)
    for fast_too in (True, False):
        runs = cb.simulate({"KUBE": cb.KUBE()}, bandit, cb.HardBudget(3), 40, checkpoints=[0.3, 1], shuffle=False,
                           fast=fast_too)
        assert (runs.pulls[0] == [[1, 0, 0], [1, 1, 0]]).all()


@pytest.mark.slow
def test_a_trillion_is_spent_to_the_last_unit():
    """Costs of whole numbers: whatever the blocks, less than the smallest cost is left, and nothing is overspent."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        bandit = known(rng.integers(2, 21, 5).astype(float), *[cb.Bernoulli(p) for p in (0.1, 0.3, 0.5, 0.7, 0.9)])
        runs = cb.simulate({"KUBE": cb.KUBE(), "eps": cb.EpsilonFirst(0.1)}, bandit, cb.HardBudget(1e12), seed=seed)
        left = 10**12 - runs.pulls[:, 0, -1] @ bandit.cost_means.astype(int)
        assert (left >= 0).all() and (left < bandit.cost_means.min()).all()
        assert (runs.spent[:, 0, -1] == 10**12 - left).all()
        # Known in advance: nearly all pulls are of the arm with the best ratio.
        assert (runs.pulls[0, 0, -1].argmax() == bandit.ratios.argmax())


def test_a_checkpoint_is_the_first_pull_that_reaches_it():
    for policy in POLICIES.values():
        bandit, stop = known([3.0, 2.0, 7.0], RICH, SMALL, LITTLE), cb.HardBudget(1e6)
        runs = cb.simulate({"p": policy}, bandit, stop, 2, checkpoints=300)
        due = stop.due(runs.fractions)[:-1]
        assert (runs.spent[0, :, :-1] >= due).all() and (runs.spent[0, :, :-1] < due + 7).all()
        assert (runs.spent == runs.pulls @ bandit.cost_means).all() and (runs.rounds == runs.pulls.sum(axis=3)).all()


def everything(**options):
    every = [cb.simulate(POLICIES, bandit, cb.HardBudget(budget / 10), 3, seed=4, checkpoints=10, **options)
             for label, (bandit, budget) in CASES.items() if label != "typed"]
    return digest(*(getattr(runs, name) for runs in every for name in ("pulls", "rounds", "spent", "reward")))


@pytest.mark.slow
def test_the_same_bits_in_plain_python():
    assert in_plain_python("test_kube", "m.everything()") == everything() == everything(n_jobs=2)


# ---- known answers ----------------------------------------------------------------------------------

def test_density_by_hand():
    # t = 16, n = 2: sqrt(2 log 16 / 2) = sqrt(2.7725887222) = 1.6651092223; (3/2 + 1.6651092223) / 5
    arm = Arm(2, 3.0, 0.0, 0.0, 0.0, 5.0)
    assert kube.density(16, arm, kube.Scale(1.0)) == pytest.approx(0.633021844463, rel=1e-11)
    # rewards divided by 40 first: (3/80 + 1.6651092223) / 5
    assert kube.density(16, arm, kube.Scale(40.0)) == pytest.approx(0.340521844463, rel=1e-11)
    assert kube.density(1, Arm(0, 0.0, 0.0, 0.0, 0.0, 5.0), kube.Scale(1.0)) == inf


def fill(costs, n, reward, t, spent, budget):
    """The arms of the kernel's filling, in order, and how often each."""
    arms = Arms.of(len(costs))
    arms.n[:], arms.reward[:] = n, reward
    own = quick.Filling(np.array(costs), min(costs), np.ones(1), None, np.zeros(len(costs), int), np.zeros(len(costs)))
    kinds = quick.fill(cb.FractionalKUBE.rule, t, spent, budget, own, arms)
    return own.picks[:kinds], own.counts[:kinds]


def test_filling_by_hand():
    # Round t = 1 has no bonus: densities 6/3 = 2, 5/2 = 2.5 and 1/1. Of 10 - 1 = 9: four of arm 1, then one of arm 2.
    known = [3.0, 2.0, 1.0], [1, 1, 1], [6, 5, 1]
    picks, counts = fill(*known, 0, 1.0, 10.0)
    assert (picks.tolist(), counts.tolist()) == ([1, 2], [4, 1])
    assert [quick.item(at, picks, counts) for at in (0.0, 3.9, 4.1, 4.9)] == [1, 1, 2, 2]
    costs, n, reward = known
    found = [defined(costs, 10.0, 1.0, 1, 1.0, n, reward, at / 5) for at in (0.0, 3.9, 4.1, 4.9)]
    assert found == [(1, 1), (1, 1), (2, 1), (2, 1)]
    # 0.5 is left: nothing fits.
    assert fill(*known, 0, 9.5, 10.0)[0].size == 0


def test_kube_draws_each_item_of_the_filling_equally_often():
    """4 of 5 items are the densest arm; 5 standard errors, a false alarm once in a million."""
    bandit = cb.Bandit([cb.Constant(5.0), cb.Constant(0.5)], [cb.Constant(2.0), cb.Constant(1.0)])
    first = 0
    for seed in range(2000):
        order = stream(seed, 0, ORDER).permutation(2)
        # After a pull of each, 9 are left: densities near 5/2 and 1/2: four of the one, then one of the other.
        _, run = play(cb.KUBE(), bandit, 12.0, seed, max_rounds=3)
        first += run.state.arms.n[list(order).index(0)] == 2
    assert abs(first / 2000 - 0.8) < 5 * sqrt(0.8 * 0.2 / 2000)


def test_epsilon_first_by_hand():
    # Explore with 5 of 25: costs 2, 1 fit as 2 + 1 + 2. Then 20 are left for the denser arm: ten pulls at 2.
    bandit = cb.Bandit([cb.Constant(3.0), cb.Constant(1.0)], [cb.Constant(2.0), cb.Constant(1.0)])
    counts = {tuple(cb.simulate({"e": cb.EpsilonFirst(0.2)}, bandit, cb.HardBudget(25), seed=seed).pulls[0, 0, -1])
              for seed in range(8)}
    # In the other order of arms 1 + 2 + 1 is spent, and one more at cost 1: 20 are left as well.
    assert counts == {(12, 1), (11, 3)}


def test_epsilon_too_small_is_told_not_raised():
    runs = cb.simulate({"e": cb.EpsilonFirst(0.01)}, cb.instances.knapsack(20), cb.HardBudget(500), 3)
    assert (runs.unpulled[0, :, -1] > 10).all() and (runs.rounds[0, :, -1] > 20).all()


# ---- hard budgets -----------------------------------------------------------------------------------

EVERYONE = {**POLICIES, **UNIT, **INDICES}


@pytest.mark.slow
@pytest.mark.parametrize("label", EVERYONE)
def test_the_budget_is_never_exceeded(label):
    """And at the end no arm is affordable, whatever the policy, the costs and the budget."""
    rng = np.random.default_rng(5)
    for seed in range(60):
        K = int(rng.integers(1, 9))
        bandit = bandit_of(rng.choice([0.1, 0.3, 0.7, 1.0], K) if seed % 2 else rng.uniform(0.05, 1, K), rng.random(K))
        budget = float(rng.choice([0.3, 1.0, 2.5, 7.0, 30.0]))
        runs = cb.simulate({label: EVERYONE[label]}, bandit, cb.HardBudget(budget), seed=seed, checkpoints=5)
        assert (runs.spent <= budget + rounding(budget)).all()
        assert (runs.spent[0, 0, -1] + bandit.cost_means > budget).all()
        assert (np.diff(runs.rounds[0, 0]) >= 0).all() and runs.rounds[0, 0, -1] == runs.pulls[0, 0, -1].sum()


def test_a_budget_below_every_cost_means_no_pull():
    runs = cb.simulate(POLICIES, FAMILY, cb.HardBudget(0.5), 3)
    assert not runs.pulls.any() and not runs.spent.any() and not cb.regret.knapsack(runs).any()


def test_exact_fit():
    # Costs 1 and 2 into 7: everything is spent to the last unit.
    bandit = bandit_of([1.0, 2.0], [0.5, 0.5])
    assert (cb.simulate({**POLICIES, **UNIT}, bandit, cb.HardBudget(7), 20).spent[:, :, -1] == 7).all()


def test_lazy_scan_is_full_scan_under_a_hard_budget():
    for seed in range(20):
        bandit = instance(np.random.default_rng(seed), 7, 1, 9)
        order = np.arange(7)
        runs = [Run(Stacks(bandit, seed, 0, order), 200 * np.arange(1, 9) / 8, 10**6, bandit.cost_means, 200.0)
                for _ in range(2)]
        problem = Problem(7, bandit.cost_means, 200.0, True, True)
        for run, lazy in zip(runs, (True, False), strict=True):
            assert fast.play(cb.FractionalKUBE(), run, problem, None, lazy) == DONE
        assert np.array_equal(runs[0].record.pulls, runs[1].record.pulls)
        assert np.array_equal(runs[0].state.arms.n, runs[1].state.arms.n)


@cb.choose
def spendthrift(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return int(np.argmax(problem))


def test_an_unaffordable_arm_is_reported_by_policy_replication_and_round():
    bandit = bandit_of([3.0, 1.0], [0.5, 0.5])
    with pytest.raises(RuntimeError, match=r"policy 'mine', replication 0, round \d+: .* would exceed the budget"):
        policy = cb.ChoosePolicy(spendthrift, prepare=lambda problem: problem.cost_means)
        cb.simulate({"mine": policy}, bandit, cb.HardBudget(10))


@pytest.mark.parametrize("cost", [cb.Bernoulli(0.5), cb.Beta(1, 1), cb.Discrete((1.0,), (1.0,))])
def test_costs_must_be_known(cost):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0), cost])
    with pytest.raises(ValueError, match=r"cost of arm 1 = .*under a hard budget every cost must be known"):
        cb.simulate(POLICIES, bandit, cb.HardBudget(10))


def test_the_filling_ends_where_rounding_leaves_room_for_one_more():
    """floor(rest / c) is one too few here, and the arm would stand in the filling twice."""
    cost, budget = 18.196488875661576, 69292.22963851927
    picks, counts = fill([cost], [4], [3.0], 5, 0.0, budget)
    assert picks.tolist() == [0] and counts.tolist() == [3807] and budget - 3807 * cost >= cost
    assert defined([cost], budget, 1.0, 6, 0.0, [4], [3.0], 1 - 2**-53) == (0, 1)


@pytest.mark.parametrize("policy", [cb.KUBE(), cb.FractionalKUBE(), cb.EpsilonFirst(0.1), cb.KLUCB(),
                                    cb.KnownCostTS()])
def test_policies_that_need_known_costs_say_so(policy):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Bernoulli(0.5)] * 2)
    with pytest.raises(ValueError, match=r"must know every cost in advance|needs HardBudget"):
        cb.simulate({"p": policy}, bandit, cb.Budget(10))


@pytest.mark.parametrize("make", [cb.KLUCB, cb.KnownCostTS])
def test_rewards_beyond_their_scale_are_refused(make):
    bandit = known([7.0, 3.0], cb.Discrete((0, 30), (0.5, 0.5)), SMALL)
    assert cb.simulate({"p": make(30.0)}, bandit, cb.HardBudget(50), 2).spent.min() > 0
    with pytest.raises(ValueError, match=r"reward support = \(0.0, 30.0\): policy 'p' .* rewards in \(0\.0, 29\.0\)"):
        cb.simulate({"p": make(29)}, bandit, cb.HardBudget(50))


@pytest.mark.parametrize("make", [cb.KLUCB, cb.KnownCostTS])
def test_a_common_factor_of_rewards_and_their_scale_changes_nothing(make):
    plain, scaled = (cb.simulate({"p": make(4.0**k)}, known([7.0, 3.0], *[cb.Discrete((0, x * 4**k), (0.5, 0.5))
                                 for x in (1.0, 0.5)]), cb.HardBudget(5000), 5) for k in (0, 2))
    assert np.array_equal(plain.pulls, scaled.pulls)


def test_a_cost_of_zero_is_refused():
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0), cb.Constant(0.0)])
    with pytest.raises(ValueError, match=r"expected cost of arm 1 = 0\.0"):
        cb.simulate(POLICIES, bandit, cb.HardBudget(10))


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, 1.5, float("nan"), "a", True])
def test_epsilon_must_be_between_0_and_1(epsilon):
    with pytest.raises(ValueError, match=r"epsilon = .* must be a number in \(0, 1\)"):
        cb.EpsilonFirst(epsilon)


@pytest.mark.parametrize("make", [cb.KUBE, cb.FractionalKUBE, cb.HardBudget, cb.KLUCB, cb.KnownCostTS])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), inf, "a"])
def test_scale_and_budget_must_be_positive(make, bad):
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        make(bad)


# ---- regret -----------------------------------------------------------------------------------------

def test_knapsack_regret_by_hand():
    # Means 3 and 1, costs 2 and 1, budget 5: the best plan is two of the first and one of the second, worth 7.
    bandit = cb.Bandit([cb.Constant(3.0), cb.Constant(1.0)], [cb.Constant(2.0), cb.Constant(1.0)])
    runs = cb.simulate(POLICIES, bandit, cb.HardBudget(5), 5, checkpoints=5)
    regret = cb.regret.knapsack(runs)
    assert regret.shape == runs.spent.shape
    assert np.allclose(regret, 7 - runs.pulls @ np.array([3.0, 1.0]))
    assert (regret >= -1e-12).all() and (np.diff(regret, axis=-1) <= 0).all()


def test_knapsack_regret_compares_each_run_with_the_best_plan_of_its_own_instance():
    # Where the second arm pays 2 a pull of it is worth more than half of one of the first: the best plan is worth 10.
    def either(rng):
        return cb.Bandit([cb.Constant(3.0), cb.Constant(1.0 + int(2 * rng.random()))],
                         [cb.Constant(2.0), cb.Constant(1.0)])

    runs = cb.simulate({"KUBE": cb.KUBE(reward_scale=3.0)}, either, cb.HardBudget(5), 12, checkpoints=1)
    best = np.array([{1.0: 7, 2.0: 10}[bandit.reward_means[1]] for bandit in runs.bandits])
    assert set(best) == {7, 10}
    earned = [pulls[0] @ bandit.reward_means for pulls, bandit in zip(runs.pulls[0], runs.bandits, strict=True)]
    assert cb.regret.knapsack(runs)[0, :, 0] == pytest.approx(best - earned)


def test_knapsack_regret_needs_a_hard_budget():
    runs = cb.simulate({"i": cb.IUCB()}, bandit_of([1.0, 0.5], [0.5, 0.5]), cb.Budget(5))
    with pytest.raises(ValueError, match="must be a HardBudget"):
        cb.regret.knapsack(runs)


@pytest.mark.slow
@pytest.mark.parametrize("label", POLICIES)
def test_no_policy_expects_more_than_the_optimum(label):
    runs = cb.simulate({label: POLICIES[label]}, FAMILY, cb.HardBudget(60), 200)
    assert (cb.regret.knapsack(runs)[..., -1] >= -1e-9).all()


def test_where_rounding_leaves_no_room_the_definition_ends_as_the_kernel_does():
    """The second arm's cost, added to what was spent, rounds to the ceiling, and yet exceeds what is left."""
    ceiling = cb.HardBudget(10).limits(cb.Bandit([cb.Constant(1)], [cb.Constant(1)]))[1]
    costs = [9.7, float(np.nextafter(ceiling - 9.7, np.inf))]
    assert 9.7 + costs[1] <= ceiling < 9.7 + costs[1] + 1e-15
    bandit = cb.Bandit([cb.Constant(1)] * 2, [cb.Constant(cost) for cost in costs])
    for fast_too in (True, False):
        runs = cb.simulate({"KUBE": cb.KUBE()}, bandit, cb.HardBudget(10), shuffle=False, fast=fast_too)
        assert runs.pulls[0, 0, -1].tolist() == [1, 0]


@pytest.mark.slow
def test_kube_looks_up_where_no_block_can_be_taken():
    """There the money is added up anew. If it were not, this run's last rest would be rounded to one pull less.

    As first played: arms 8 and 41 of a hundred, and what was spent.
    """
    runs = cb.simulate({"KUBE": cb.KUBE(40.0)}, cb.instances.knapsack(100, 1, 20), cb.HardBudget(1e6), [175], 0, [1.0])
    assert runs.pulls[0, 0, -1, [8, 41]].tolist() == [4926, 151950]
    assert runs.spent[0, 0, -1] == 999999.9588296021
