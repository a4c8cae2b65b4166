"""`make bench`: what things cost, measured in one run and written as a text table.

Times are the best of several, in nanoseconds per pull *beyond sampling*: the stacks are drawn before the clock
starts. Rivals in the same run are what a good user would write instead: a plain Numba loop that evaluates every
index in every round, and NumPy vectorised over replications.
"""

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

from . import engine
from .policies.base import IndexRule, Problem
from .stacks import ORDER, POLICY, Stacks, stream

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
    "UCB-SC+": cb.UCBSCPlus(),
    "UCB-B2": cb.UCBB2(),
    "b-greedy": cb.BGreedy(),
    "BTS": cb.BTS(),
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


def cost_of_a_pull(policy, make, lazy=None, replications=3, repeats=3):
    """Nanoseconds per pull beyond sampling, over a few instances; each run is repeated on drawn stacks."""
    seconds = pulls = 0
    for replication in range(replications):
        bandit = make(stream(0, replication, 0))
        order = stream(0, replication, ORDER).permutation(bandit.K)
        stacks, stop = Stacks(bandit, 0, replication, order), full_budget(bandit)
        problem = Problem(bandit.K, bandit.cost_means[order], stop.total, False)
        options = {} if lazy is None else {"lazy": lazy}
        times = []
        for _ in range(repeats):
            run = engine.Run(stacks, np.array([stop.total]), 10**8)
            start = time.perf_counter()
            policy.play(run, problem, stream(0, replication, POLICY), **options)
            times.append(time.perf_counter() - start)
        # The first one also drew the stacks.
        seconds, pulls = seconds + min(times[1:]), pulls + int(run.clock[0])
    return 1e9 * seconds / pulls


def policies():
    """Table of ns per pull: each policy, lazy and full scan, by family and K."""
    yield f"{'ns per pull beyond sampling':30}" + "".join(
        f"{f'{family} K={K}':>18}" for family in FAMILIES for K in ARMS
    )
    for label, policy in POLICIES.items():
        for lazy in (True, False) if isinstance(policy, IndexRule) else (None,):
            cells = [
                cost_of_a_pull(policy, make(K), lazy, *((1, 2) if K > 100 else (3, 3)))
                for make in FAMILIES.values()
                for K in ARMS
            ]
            how = {True: " (lazy)", False: " (full scan)", None: ""}[lazy]
            yield f"{label + how:30}" + "".join(f"{cell:18.0f}" for cell in cells)
    yield "(Beta, K=1000: its smallest cost is so small that the budget ends among the first pulls of the arms.)"


def sampling():
    """Ns per sampled pair of reward and cost."""
    rng = np.random.default_rng(0)
    for family, make in FAMILIES.items():
        bandit = make(1)(rng)
        times = []
        for replication in range(5):
            start, stacks = time.perf_counter(), Stacks(bandit, 0, replication, [0])
            while stacks.filled[0] < 200_000:
                stacks.grow(0)
            times.append((time.perf_counter() - start) / stacks.filled[0])
        yield f"{'sampling a pair, ' + family:50}{1e9 * min(times):10.1f} ns"


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
    plain_numba(np.ones(2) / 2, np.ones(2) / 2, 5.0, 0.25, np.random.default_rng(0))
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


def _start(cache, what="import costbandits"):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", what], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def start_up():
    """Seconds from nothing to an imported library, with an empty and with a filled compilation cache."""
    with tempfile.TemporaryDirectory() as cache:
        cold, bare = _start(cache), min(_start(cache, "pass") for _ in range(3))
        warm = min(_start(cache) for _ in range(3))
    yield f"{'import, cold (compiles everything)':50}{cold - bare:10.2f} s"
    yield f"{'import, warm':50}{warm - bare:10.2f} s"


def main(path="BENCHMARKS.txt"):
    """Run all, print as it goes, and write the table at the end."""
    lines = [
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {nb.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores"
    ]
    print(lines[0], flush=True)
    # The experiment comes first: its peak memory would include whatever ran before.
    for part in (experiment, start_up, sampling, rivals, policies):
        for line in ("", *part()):
            print(line, flush=True)
            lines.append(line)
    temporary = Path(path).with_suffix(".part")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
