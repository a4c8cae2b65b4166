"""What things cost, measured in one run and written as a text table, BENCHMARKS.txt beside this script.

    PYTHONPATH=lib python benchmarks/speed.py [another file]      # or: make bench

Times are the best of several, in nanoseconds per pull *beyond sampling*: the stacks are drawn before the clock
starts. Rivals in the same run are what a good user would write instead: a plain Numba loop that evaluates every
index in every round, and NumPy vectorised over replications. The time of these two includes their sampling.
"""

import argparse
import itertools
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from math import log, sqrt
from pathlib import Path

import numba as nb
import numpy as np

import costbandits as cb
from compendium import publication
from costbandits import fast as kernels
from costbandits.engine.run import Run
from costbandits.engine.stacks import ORDER, POLICY, Stacks, _read_leaves, stream
from costbandits.engine.trees import LEAF
from costbandits.fast.lower import lower_bound, lower_for
from costbandits.policies.base import IndexRule, Problem

HERE = Path(__file__).resolve().parent
ARMS = (10, 100, 1000)
FAMILIES = {
    "Bernoulli": cb.instances.bernoulli,
    "discrete": cb.instances.generalized_bernoulli,
    "Beta": cb.instances.beta,
}
POLICIES = {
    "omega-UCB 1/4": cb.OmegaUCB(0.25),
    "omega-UCB 1": cb.OmegaUCB(1.0),
    "omega*-UCB 1/4": cb.OmegaStarUCB(0.25),
    "m-UCB": cb.MUCB(),
    "c-UCB": cb.CUCB(),
    "i-UCB": cb.IUCB(),
    "Budget-UCB": cb.BudgetUCB(),
    "UCB-BV1": cb.UCBBV1(),
    "vUCB-BV1": cb.VUCBBV1(),
    "UCB1": cb.UCB1(),
    "UCB-SC+": cb.UCBSCPlus(),
    "UCB-B2": cb.UCBB2(),
    "KL-UCB-SC": cb.KLUCBSC(),
    "omega-UCB, KL bounds": cb.OmegaKLUCB(),
    "PD-BwK": cb.PDBwK(),
    "IMED": cb.IMED(),
    "moment IMED": cb.MomentIMED(),
    "b-greedy": cb.BGreedy(),
    "eps-greedy": cb.EpsilonGreedy(1.0, 0.1),
    "BTS": cb.BTS(),
    "BTS (naive)": cb.BTS(naive=True),
}
EXPERIMENT = {
    "omega 1/4": cb.OmegaUCB(0.25),
    "omega* 1/4": cb.OmegaStarUCB(0.25),
    "omega 1": cb.OmegaUCB(1.0),
    "m": cb.MUCB(),
    "c": cb.CUCB(),
    "i": cb.IUCB(),
    "Budget-UCB": cb.BudgetUCB(),
    "UCB-SC+": cb.UCBSCPlus(),
}


def full_budget(bandit):
    """The omega-UCB paper's budget."""
    return cb.Budget(1.5e5 * float(bandit.cost_means.min()))


def timed(policy, make, stop, replication, repeats, fast=True):
    """Seconds and pulls of one run on drawn stacks, the best of several."""
    bandit, times = make(stream(0, replication, 0)), []
    order, rule = stream(0, replication, ORDER).permutation(bandit.K), stop(bandit)
    stacks, problem = Stacks(bandit, 0, replication, order), Problem.of(bandit, rule, order)
    for _ in range(repeats + 1):
        run = new_run(stacks, rule, bandit, order)
        start = time.perf_counter()
        kernels.play(policy, run, problem, stream(0, replication, POLICY), fast)
        times.append(time.perf_counter() - start)
    # The first one also drew the stacks.
    return min(times[1:]), int(run.state.now.rounds)


def new_run(stacks, rule, bandit, order):
    """A run on these stacks with one checkpoint, its end."""
    (top, *limits), last = rule.limits(bandit), np.ones(1)
    return Run(stacks, rule.due(last), 2**62, top[order], *limits, rule.ends(last))


def cost_of_a_pull(policy, make, fast=True, replications=3, repeats=2, stop=full_budget):
    """Nanoseconds per pull beyond sampling, over a few instances; each run is repeated on drawn stacks."""
    runs = [timed(policy, make, stop, replication, repeats, fast) for replication in range(replications)]
    return 1e9 * sum(seconds for seconds, _ in runs) / sum(pulls for _, pulls in runs)


def policies():
    """Table of ns per pull: each policy, lazy and full scan, by family and K."""
    yield f"{'ns per pull beyond sampling':30}" + "".join(
        f"{f'{family} K={K}':>18}" for family in FAMILIES for K in ARMS
    )
    for label, policy in POLICIES.items():
        scanned = isinstance(policy, IndexRule)
        for fast in (True, False)[:1 + scanned]:
            cells = [
                cost_of_a_pull(policy, make(K), fast, *((1, 1) if K > 100 else (3, 2)))
                for make in FAMILIES.values()
                for K in ARMS
            ]
            how = "" if not scanned else " (lazy)" if fast else " (full scan)"
            yield f"{label + how:30}" + "".join(f"{cell:18.0f}" for cell in cells)
    yield "(Beta, K=1000: its smallest cost is so small that the budget ends among the first pulls of the arms.)"


def _ads():
    """The advertisement settings; those of the stand-in where no file is named and none is in its place."""
    try:
        return cb.ads.settings()
    except FileNotFoundError:
        if os.environ.get(cb.ads.VARIABLE):
            raise
        return cb.ads.settings(standin=True)


def thompson(replications=10):
    """Thompson sampling by Chernoff bells against drawing every arm, on the omega-UCB paper's settings."""
    yield f"{'Thompson sampling, ns per pull beyond sampling':50}{'bells':>10}{'every arm':>12}{'ratio':>8}"

    def row(label, make, replications, naive):
        bells, every = (cost_of_a_pull(cb.BTS(how), make, True, number, 1)
                        for how, number in ((False, replications), (True, naive)))
        return every / bells, f"{label:50}{bells:10.0f}{every:12.0f}{every / bells:8.1f}"

    for family, make in FAMILIES.items():
        for K in (10, 50, 100):
            yield row(f"{family}, K={K}", make(K), replications, replications if K == 10 else 3)[1]
    for kind in ("bernoulli", "beta"):
        rows = [row(f"advertisement {setting.name}, {kind}, K={setting.K}", cb.instances.ads(setting, kind), 3, 1)
                for setting in _ads() if setting.K >= 10]
        yield from (line for _, line in (min(rows), max(rows)))
        yield f"(the least and the most favourable of {len(rows)} advertisement settings with K >= 10, {kind})"


@cb.choose
def sorting_kube(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    """KUBE as Algorithm 1 has it: sort all arms and fill what is left of the budget, in every round."""
    K, costs, left = len(n), problem[1:], problem[0] - memory[0]
    arm = t - 1
    if t > K:
        density = (reward / n + np.sqrt(2 * log(t) / n)) / costs
        filling, items = np.zeros(K), 0.0
        for k in np.argsort(-density):
            filling[k] = np.floor(left / costs[k])
            left -= filling[k] * costs[k]
            items += filling[k]
        at, arm = rng.random() * items, 0
        while at >= filling[arm]:
            at -= filling[arm]
            arm += 1
    memory[0] += costs[arm]
    return arm


def knapsacks(total=1e5):
    """Known costs and a hard budget: KUBE and its rivals, the loop that sorts, sampling, the exact optimum."""
    def told(problem):
        return np.concatenate([[problem.budget], problem.cost_means])

    rivals = {"KUBE": cb.KUBE(), "fractional KUBE": cb.FractionalKUBE(), "epsilon-first 0.1": cb.EpsilonFirst(0.1),
              "KL-UCB over the cost": cb.KLUCB(40.0), "TS over the cost": cb.KnownCostTS(40.0),
              "KUBE, sorting in every round": cb.ChoosePolicy(sorting_kube, memory=lambda K: 1, prepare=told)}
    yield f"{'known costs U(1, 20), B = 1e5, ns per pull':50}" + "".join(f"{f'K={K}':>10}" for K in ARMS)
    for label, policy in rivals.items():
        cells = [cost_of_a_pull(policy, cb.instances.knapsack(K), stop=lambda _: cb.HardBudget(total)) for K in ARMS]
        yield f"{label:50}" + "".join(f"{cell:10.0f}" for cell in cells)
    law = cb.instances.knapsack(1)(np.random.default_rng(0)).rewards[0]
    start, rng = time.perf_counter(), np.random.default_rng(0)
    for _ in range(100):
        law.sample(rng, 64 * 256)
    yield f"{'sampling a truncated normal reward':50}{1e9 * (time.perf_counter() - start) / 100 / 64 / 256:10.1f} ns"
    cb.optimum.knapsack([1.0], [1.0], 1.0)      # loads the compiled code
    for B in (1e3, 1e4, 1e5, 1e6):
        times = []
        for replication in range(200):
            bandit = cb.instances.knapsack(100)(stream(0, replication, 0))
            start = time.perf_counter()
            cb.optimum.knapsack(bandit.reward_means, bandit.cost_means, B)
            times.append(1e3 * (time.perf_counter() - start))
        yield (f"{f'exact knapsack optimum, K=100, B={B:.0e}':50}{np.median(times):10.2f} ms at the median, "
               f"{max(times):.2f} at most, 200 instances")


def linear(d=10, total=5000.0):
    """Linear arms: Budget-CB and CB over 100 and 1,024 vertices."""
    arms = {100: np.random.default_rng(0).uniform(0.3, 1, (100, d)),
            2**d: cb.polytopes.box(np.full(d, 0.3), np.ones(d))}
    yield f"{f'linear arms, d = {d}, B = {total:g}, ns per pull':50}" + "".join(f"{f'K={K}':>10}" for K in arms)
    for label, policy in {"Budget-CB": cb.BudgetCB(), "CB": cb.CB()}.items():
        cells = [cost_of_a_pull(policy, cb.instances.linear(x), True, 1, 1, lambda _: cb.Budget(total))
                 for x in arms.values()]
        yield f"{label:50}" + "".join(f"{cell:10.0f}" for cell in cells)


def anytime(rounds=2_500_000):
    """An anytime budget, on the eight arms of Elumar et al., Fig. 2."""
    means = (0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9), (0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85)
    bandit = cb.Bandit(*([cb.Beta(10 * m, 10 * (1 - m)) for m in side] for side in means))
    policies = {"SUAK": cb.SUAK(), "OPS": cb.OnePhaseSkip(), "PDS": cb.PrimalDualSkip(), "USS": cb.UCBSimplexSkip(),
                "SUAK, log t / 8 omega": cb.SUAK(reserve="log t / 8 omega"), "ControlBudget": cb.ControlBudget()}
    yield f"{f'anytime budget, K = 8, {rounds:,} rounds, ns per round':50}"
    for label, policy in policies.items():
        cost = cost_of_a_pull(policy, lambda rng: bandit, True, 1, 1, lambda _: cb.AnytimeBudget(0.5, rounds))
        yield f"{label:50}{cost:10.0f}"
    start = time.process_time()
    cb.simulate(policies, bandit, cb.AnytimeBudget(0.5, rounds), 10, n_jobs=-1)
    yield f"{'10 runs of all six, with sampling':50}{time.process_time() - start:10.1f} CPU-s"


def subsidy(rounds=100_000):
    """Cost subsidy: Bernoulli arms of similar means at known costs, and the grid of Sinha et al., Fig. 2."""
    def arms(K):
        rng = np.random.default_rng(K)
        return cb.Bandit([cb.Bernoulli(p) for p in rng.uniform(0.4, 0.5, K)], [cb.Constant(c) for c in rng.random(K)])

    yield f"{f'cost subsidy, {rounds:,} rounds, ns per round':50}" + "".join(f"{f'K={K}':>10}" for K in (2, 10, 100))
    policies = {"CS-UCB": cb.CSUCB(0.1), "CS-TS": cb.CSTS(0.1), "CS-ETC": cb.CSETC(0.1),
                "CS-elimination": cb.CSElimination(0.1), "CS-VOI": cb.CSVOI(0.1)}
    for label, policy in policies.items():
        cells = [cost_of_a_pull(policy, lambda rng, K=K: arms(K), True, 2, 2, lambda _: cb.Horizon(rounds))
                 for K in (2, 10, 100)]
        yield f"{label:50}" + "".join(f"{cell:10.0f}" for cell in cells)
    start = time.process_time()
    for mean in np.arange(0.3, 0.605, 0.01):
        pair = cb.Bandit([cb.Bernoulli(mean), cb.Bernoulli(0.5)], [cb.Constant(0.0), cb.Constant(1.0)])
        cb.simulate({label: policies[label] for label in ("CS-UCB", "CS-TS", "CS-ETC")}, pair, cb.Horizon(5000), 100,
                    checkpoints=1)
    yield f"{'100 runs of CS-UCB, -TS and -ETC at each of 31 means':50}{time.process_time() - start:10.1f} CPU-s"


def sampling(leaves=3125):
    """Ns per sampled pair of reward and cost, leaf after leaf."""
    rng = np.random.default_rng(0)
    for family, make in FAMILIES.items():
        bandit = make(1)(rng)
        times = []
        for replication in range(6):
            outcomes = Stacks(bandit, 0, replication, [0]).outcomes()
            start = time.perf_counter()
            _read_leaves(0, 0, 0, leaves, outcomes)
            times.append((time.perf_counter() - start) / leaves / LEAF)
        # The first one also loads the compiled code.
        yield f"{'sampling a pair, ' + family:50}{1e9 * min(times[1:]):10.1f} ns"


class Counted(IndexRule):
    """An index policy that counts how often its index is evaluated, and a block of pulls tried."""

    def __init__(self, policy):
        rule, lower, self.prepare = policy.rule, lower_for(policy), policy.prepare
        self.monotone, self.regular, self.params = policy.monotone, False, np.append(policy.parameters, [0.0, 0.0])

        @cb.index
        @cb.tally
        def counting(t, n, reward, cost, reward_sq, cost_sq, constant, params):
            params[-2] += 1.0
            return rule(t, n, reward, cost, reward_sq, cost_sq, constant, params)

        @lower_bound(counting)
        @nb.njit(error_model="numpy")
        def trying(t, m, arm, rewards, costs, params):
            params[-1] += 1.0
            return lower(t, m, arm, rewards, costs, params)

        self.rule = counting


def counted_run(policy, bandit, stop):
    """Seconds and rounds of one run, nodes and leaves that it drew, and what an index policy evaluated and tried."""
    order = stream(0, 0, ORDER).permutation(bandit.K)
    problem, stacks = Problem.of(bandit, stop, order), Stacks(bandit, 0, 0, order)
    run, counts = new_run(stacks, stop, bandit, order), ["", ""]
    start = time.perf_counter()
    kernels.play(policy, run, problem, stream(0, 0, POLICY))
    seconds = time.perf_counter() - start
    many = Stacks(bandit, 0, 0, order, slots=1 << 19)       # enough for hardly any node to take another one's place
    kernels.play(policy, new_run(many, stop, bandit, order), problem, stream(0, 0, POLICY))
    nodes = int((many.outcomes().kept[:, :2] > 0).sum())
    if isinstance(policy, IndexRule):
        counted = Counted(policy)
        kernels.play(counted, new_run(stacks, stop, bandit, order), problem, stream(0, 0, POLICY))
        counts = [f"{number:.2g}" for number in counted.params[-2:]]
    return seconds, int(run.state.now.rounds), *counts, f"{nodes:.2g}"


def trillion():
    """What a run costs, for budgets and horizons up to a trillion; after one of five seconds only BTS goes on."""
    ten, rng = cb.instances.bernoulli(10)(np.random.default_rng(1)), np.random.default_rng(2)
    priced = cb.Bandit([cb.Bernoulli(p) for p in rng.uniform(0.2, 0.8, 10)],
                       [cb.Constant(float(c)) for c in rng.integers(1, 21, 10)])
    cheap = cb.Bandit(priced.rewards, [cb.Constant(c / 20) for c in priced.cost_means])
    families = {cb.Budget: (ten, {label: policy for label, policy in POLICIES.items() if "naive" not in label}),
                cb.HardBudget: (priced, {"KUBE": cb.KUBE(), "fractional KUBE": cb.FractionalKUBE(),
                                         "epsilon-first 0.1": cb.EpsilonFirst(0.1), "KL-UCB over the cost": cb.KLUCB(),
                                         "TS over the cost": cb.KnownCostTS()}),
                cb.Horizon: (cheap, {"CS-UCB": cb.CSUCB(0.1), "CS-ETC": cb.CSETC(0.1),
                                     "pairwise elimination": cb.PairwiseElimination(0.1),
                                     "CS-elimination": cb.CSElimination(0.1)})}
    yield "one run with 10 arms, Bernoulli rewards (and costs, under a budget); indices, blocks: how many are evaluated"
    yield f"{'budget or horizon':30}{'seconds':>10}{'rounds':>10}{'indices':>10}{'blocks':>10}{'nodes':>10}"
    for stop, (bandit, policies) in families.items():
        for label, policy in policies.items():
            counted_run(policy, bandit, stop(1000))         # compiles it
            for power in range(5, 13):
                seconds, rounds, *counts = counted_run(policy, bandit, stop(10**power))
                yield (f"{label:22}{10.0**power:8.0e}{seconds:10.3f}{rounds:10.1e}"
                       + "".join(f"{count:>10}" for count in counts))
                if seconds > 5 and label != "BTS":        # whose last line the report for a journal tells
                    break
    wide = cb.instances.bernoulli(100)(np.random.default_rng(1))
    for label, policy in {"omega-UCB 1/4, K = 100": cb.OmegaUCB(0.25), "BTS, K = 100": cb.BTS()}.items():
        for power in (9, 11) if "omega" in label else (7, 9):
            seconds, rounds, *counts = counted_run(policy, wide, cb.Budget(10**power))
            yield (f"{label:22}{10.0**power:8.0e}{seconds:10.3f}{rounds:10.1e}"
                   + "".join(f"{count:>10}" for count in counts))


def pairs():
    """Joint laws beside independent ones of the same columns: 32 pairs, which are counted, and 1000, which are not."""
    yield f"{'omega-UCB 1/4, 3 arms':30}{'rounds':>10}{'pairs':>10}{'independent':>14}"
    for size, budget, repeats in ((32, 1e9, 1), (32, 5e11, 1), (1000, 1e6, 3)):
        drawn = np.random.default_rng(1).random((3, 2, size))
        drawn[:, 0] *= np.array([[1.0], [0.5], [0.25]])
        joint, seconds = cb.Bandit(outcomes=[cb.Pairs(*both) for both in drawn]), []
        for bandit in (joint, cb.Bandit(joint.rewards, joint.costs)):
            times = []
            for total in (100, *(budget,) * repeats):       # the first one compiles
                start = time.perf_counter()
                runs = cb.simulate({"omega": cb.OmegaUCB(0.25)}, bandit, cb.Budget(total), checkpoints=1)
                times.append(time.perf_counter() - start)
            seconds.append(min(times[1:]))
        yield (f"{f'{size} pairs an arm':30}{float(runs.rounds[0, 0, -1]):10.1e}"
               f"{seconds[0]:8.2f} s{seconds[1]:12.2f} s")


def replications():
    """What a replication with ten policies costs, sampling included, on Bernoulli arms at the paper's budget."""
    ten = {**EXPERIMENT, "UCB-B2": cb.UCBB2(), "UCB1": cb.UCB1()}
    for K in (10, 100):
        cb.simulate(ten, cb.instances.bernoulli(K), full_budget, 1, seed=1)
        start = time.perf_counter()
        cb.simulate(ten, cb.instances.bernoulli(K), full_budget, 100)
        yield f"{f'a replication with ten index policies, K={K}':50}{10 * (time.perf_counter() - start):10.2f} ms"


@nb.njit(error_model="numpy")
def plain_numba(rewards, costs, budget, rho, rng):
    """omega-UCB as a good user would write it: one loop, every index in every round, sampling on the way."""
    K, t, spent = len(rewards), 0, 0.0
    n, r, c = np.zeros(K), np.zeros(K), np.zeros(K)
    while spent < budget:
        arm, best, z2 = t, -1.0, 2 * rho * log(t + 1)
        for k in range(K if t >= K else 0):
            w, m, q = z2 / n[k], r[k] / n[k], c[k] / n[k]
            upper = min((2 * m + w + sqrt(w * (4 * m * (1 - m) + w))) / (2 * (1 + w)), 1.0)
            lower = (2 * q * q) / (2 * q + w + sqrt(w * (4 * q * (1 - q) + w)))
            index = upper / lower if q > 0 else np.inf
            if index > best:
                arm, best = k, index
        reward, cost = 1.0 * (rng.random() < rewards[arm]), 1.0 * (rng.random() < costs[arm])
        n[arm] += 1
        r[arm] += reward
        c[arm] += cost
        spent += cost
        t += 1
    return t


def numpy_over_replications(K, replications, rounds, rho=0.25):
    """omega-UCB vectorised over replications, one NumPy step per round; seconds per pull."""
    rng = np.random.default_rng(0)
    rewards, costs = rng.random((replications, K)), rng.uniform(0.01, 1, (replications, K))
    n, r, c, rows = (
        np.ones((replications, K)),
        1.0 * (rng.random(rewards.shape) < rewards),
        1.0 * (rng.random(costs.shape) < costs),
        np.arange(replications),
    )
    start = time.perf_counter()
    for t in range(K + 1, K + 1 + rounds):
        w, m, q = 2 * rho * np.log(t) / n, r / n, c / n
        upper = np.minimum((2 * m + w + np.sqrt(w * (4 * m * (1 - m) + w))) / (2 * (1 + w)), 1)
        lower = 2 * q * q / (2 * q + w + np.sqrt(w * (4 * q * (1 - q) + w)))
        arm = np.where(q > 0, upper / np.where(q > 0, lower, 1), np.inf).argmax(axis=1)
        n[rows, arm] += 1
        r[rows, arm] += rng.random(replications) < rewards[rows, arm]
        c[rows, arm] += rng.random(replications) < costs[rows, arm]
    return (time.perf_counter() - start) / rounds / replications


def rivals():
    """What a good user would write instead, for omega-UCB on Bernoulli arms, as ratios."""
    yield "(The rivals' time includes their sampling. Ours is beyond sampling: add what 'sampling a pair' says.)"
    # Compiled before the clock starts, for what it is to play: the arrays of a bandit are read-only, a type of its own.
    bandit = cb.instances.bernoulli(2)(stream(0, 0, 0))
    plain_numba(bandit.reward_means, bandit.cost_means, 5.0, 0.25, np.random.default_rng(0))
    for K in (10, 100):
        ours, make = cost_of_a_pull(cb.OmegaUCB(0.25), cb.instances.bernoulli(K)), cb.instances.bernoulli(K)
        seconds = pulls = 0
        for replication in range(3):
            bandit = make(stream(0, replication, 0))
            start = time.perf_counter()
            pulls += plain_numba(
                bandit.reward_means, bandit.cost_means, full_budget(bandit).total, 0.25, np.random.default_rng(0)
            )
            seconds += time.perf_counter() - start
        for what, cost in (
            ("plain Numba loop", 1e9 * seconds / pulls),
            ("NumPy over 100 replications", 1e9 * numpy_over_replications(K, 100, 2000)),
        ):
            yield f"{what + f', omega-UCB, K={K}':50}{cost:10.0f} ns a pull, {cost / ours:.1f} x ours ({ours:.0f} ns)"


def experiment():
    """CPU seconds and peak memory of the paper's nine synthetic settings, 100 replications, 8 index policies."""
    start, total = time.process_time(), 0
    for make in FAMILIES.values():
        for K in (10, 50, 100):
            runs = cb.simulate(
                EXPERIMENT, make(K), full_budget, 100, n_jobs=-1, reduce=lambda runs: {"rounds": runs.rounds[:, :, -1]}
            )
            total += int(runs["rounds"].sum())
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "darwin" else 1024)
    yield f"{'synthetic experiment, 9 x 100 x 8 policies':50}{seconds:10.1f} CPU-s, {total:,} pulls, {peak:.0f} MB"


def _start(cache, what):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", what], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def start_up():
    """Seconds from nothing to an imported library and to the end of a small study; cold is without compiled code."""
    first = "import costbandits as cb; cb.Agent(cb.OmegaUCB(), ['a', 'b'], cb.Budget(9)).ask()"
    study = ("import costbandits as cb; "
             "cb.simulate({'omega': cb.OmegaUCB(), 'BTS': cb.BTS()}, cb.instances.bernoulli(10), cb.Budget(100))")
    bare = min(_start("", "pass") for _ in range(3))
    with tempfile.TemporaryDirectory() as cache:
        cold = _start(cache, study)
        _start(cache, first)
        warm, asked, imported = (min(_start(cache, what) for _ in range(3))
                                 for what in (study, first, "import costbandits"))
    for what, seconds in (("import", imported), ("import and an agent's first ask, compiled before", asked),
                          ("import and a first study, compiled before", warm),
                          ("import and a first study, with its compilation", cold)):
        yield f"{what:50}{seconds - bare:10.2f} s"


def serving(policy, K, under_way=0, rounds=2000):
    """Microseconds of an ask and of a tell, medians, with so many pulls under way."""
    agent, rng = cb.Agent(policy, [f"arm {k}" for k in range(K)], cb.Budget(1e9)), np.random.default_rng(0)
    times, waiting = [], []
    for _ in range(2 * K + under_way + rounds):
        start = time.perf_counter()
        waiting.append(agent.ask())
        asked = time.perf_counter()
        if len(waiting) > under_way:
            outcome = waiting.pop(0), float(rng.random() < 0.4), float(rng.random() < 0.5)
            begun = time.perf_counter()
            agent.tell(*outcome)
            times.append((asked - start, time.perf_counter() - begun))
    return 1e6 * np.median(times[-rounds:], axis=0)


def agents():
    """What an agent at work costs: asking, telling, keeping, starting."""
    for label, policy, *game in (("omega-UCB 1/4", cb.OmegaUCB(), 10), ("omega-UCB 1/4", cb.OmegaUCB(), 1000),
                                 ("omega-UCB 1/4", cb.OmegaUCB(), 10, 100), ("KL-UCB-SC", cb.KLUCBSC(), 10),
                                 ("BTS", cb.BTS(), 10), ("BTS", cb.BTS(), 1000), ("BTS", cb.BTS(), 10, 100)):
        ask, tell = serving(policy, *game, rounds=200 if len(game) > 1 else 2000)
        about = f"an agent's ask and tell, {label}, K={game[0]}" + "".join(f", {many} under way" for many in game[1:])
        yield f"{about:62}{ask:8.0f}{tell:8.0f} us"
    agent, rng = cb.Agent(cb.BTS(), list(range(10)), cb.Budget(1e9)), np.random.default_rng(0)
    for i, (reward, cost) in enumerate(rng.random((100_000, 2))):
        agent.attach(i % 10, reward, cost)
    with tempfile.TemporaryDirectory() as folder:
        path, times = Path(folder) / "agent.json", [time.perf_counter()]
        agent.save(path)
        times.append(time.perf_counter())
        cb.Agent.load(path, cb.BTS(), agent.stop).ask()
        times.append(time.perf_counter())
    for what, seconds in zip(("saving 100,000 outcomes of BTS", "loading them, and the first ask"), np.diff(times),
                             strict=True):
        yield f"{what:62}{seconds:8.2f} s"


def destination(name, about):
    """Where to write: to the committed file of this name, or to a new one that the command line names."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=HERE / name, help="a new file (default: %(default)s)")
    path = parser.parse_args().path
    if path != HERE / name and (path.exists() or not path.parent.is_dir()):
        parser.error(f"path = {path}: must be a new file in a folder that is there")
    return path


def main(path):
    """Run all, print as it goes, and write the table at the end."""
    lines = [
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {nb.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores"
    ]
    print(lines[0], flush=True)
    # The experiment comes first: its peak memory would include whatever ran before.
    for part in (experiment, replications, start_up, agents, sampling, trillion, pairs, rivals, thompson, knapsacks,
                 linear, anytime, subsidy, policies):
        for line in itertools.chain([""], part()):
            print(line, flush=True)
            lines.append(line)
    publication.replace(path, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(destination("BENCHMARKS.txt", __doc__))
