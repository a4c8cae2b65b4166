"""The exact law of what a randomised policy pulls on given stacks, and a test of runs against it.

On given stacks the numbers of pulls decide all that a policy has seen, so a run is a Markov chain of these numbers.
"""

from collections import Counter, defaultdict

import numpy as np
from scipy.stats import chi2

from costbandits import fast
from costbandits.engine.driver import DONE
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.policies.base import Problem

NEGLIGIBLE = 1e-13      # of a probability that is not followed up


def law(K, chances, ended):
    """Pulls -> probability at the end; chances(pulls): of each arm in the next round, zeros if nothing is pulled."""
    layer, found = {(0,) * K: 1.0}, defaultdict(float)
    while layer:
        after = defaultdict(float)
        for n, p in layer.items():
            chance = np.zeros(K) if ended(n) else chances(n)
            if not np.any(chance):
                found[n] += p
            for k in np.flatnonzero(chance):
                if p * chance[k] > NEGLIGIBLE:
                    after[(*n[:k], n[k] + 1, *n[k + 1:])] += p * chance[k]
        layer = after
    return found


def sums_of(stacks, count):
    """Sums of rewards and of costs of each position after 0, 1, 2, ... pulls; shape (2, K, count + 1)."""
    pairs = np.array([stacks.pairs(k, count) for k in range(len(stacks.laws))])
    return np.concatenate([np.zeros((2, len(pairs), 1)), np.cumsum(np.moveaxis(pairs, 2, 0), axis=2)], axis=2)


def stacks_of(bandit, seed=0):
    """Stacks with the arms in their own order."""
    return Stacks(bandit, seed, 0, range(bandit.K), slots=1 << 8)


def runs(policy, bandit, stop, stacks, count, fractions=(1.0,)):
    """Pulls at every checkpoint in runs on the same stacks with random numbers of their own: lists of tuples."""
    top, *limits = stop.limits(bandit)
    fractions, problem, found = np.array(fractions), Problem.of(bandit, stop, np.arange(bandit.K)), []
    for seed in range(count):
        run = Run(stacks, stop.due(fractions), 10**7, top, *limits, stop.ends(fractions))
        assert fast.play(policy, run, problem, np.random.default_rng([7, seed])) == DONE
        found.append([tuple(row) for row in run.record.pulls.tolist()])
    return list(zip(*found, strict=True))


def p_value(found, expected):
    """Of Pearson's chi-square; cells expected fewer than ten times are one. What cannot be makes it 0."""
    counts, total = Counter(found), len(found)
    if not set(counts) <= set(expected):
        return 0.0
    cells = [(counts[n], p * total) for n, p in expected.items()]
    large = [cell for cell in cells if cell[1] >= 10]
    seen, awaited = np.array([*large, np.sum([cell for cell in cells if cell[1] < 10] or [(0, 0)], axis=0)]).T
    seen, awaited = seen[awaited > 0], awaited[awaited > 0]
    return 1.0 if seen.size == 1 else float(chi2.sf(((seen - awaited)**2 / awaited).sum(), seen.size - 1))


def pearson(counts, probabilities):
    """Chi-square test; the cells expected below 10 are pooled, if need be together with the next larger ones."""
    assert abs(np.sum(probabilities) - 1) < 1e-9
    expected = np.ravel(probabilities) * counts.sum()
    order = np.argsort(expected)
    observed, expected = np.ravel(counts)[order], expected[order]
    rare = np.searchsorted(expected, 10.0)
    while 0 < rare < len(expected) and expected[:rare].sum() < 10.0:
        rare += 1
    cells = np.r_[0, rare:len(expected)] if rare else np.arange(len(expected))
    observed, expected = np.add.reduceat(observed, cells), np.add.reduceat(expected, cells)
    return chi2.sf(((observed - expected)**2 / expected).sum(), max(len(cells) - 1, 1))
