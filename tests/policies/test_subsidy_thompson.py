"""Cost-subsidy Thompson sampling by tangent bells plays exactly by its law, and these tests would notice if it did not.

The law is known without drawing: `law` integrates over the largest score, accurate to 1e-9. Counts are held against it
by chi-square tests that pool the cells expected below 10, and full runs against the definition by two-sample tests.
There are fewer than 500 p-values, each of which must exceed 1e-10: the seeds are fixed, but with fresh ones a false
alarm would have a probability below 1e-7, with room for the chi-square approximation. Errors made on purpose must give
a p-value below 1e-12. The environment variable COSTBANDITS_DEEP multiplies the sample sizes.
"""

import inspect
import os
from functools import cache
from math import log

import numba as nb
import numpy as np
import pytest
from reference import FIELDS, digest, in_plain_python
from scipy import special, stats

import costbandits as cb
from costbandits.engine import loops as engine
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Limits, Outcomes
from costbandits.policies import subsidy_thompson as st
from costbandits.policies.cost_subsidy import Terms, cheapest
from costbandits.policies.subsidy_thompson import (
    CHANCE,
    COLUMNS,
    CONTENDED,
    CROWD,
    EACH,
    LEVEL,
    LOW,
    PRICE,
    PULLS,
    SCORE,
    TOP,
    WON,
    Tuning,
)

pytestmark = pytest.mark.slow

DEEP = int(os.environ.get("COSTBANDITS_DEEP", "1"))
ALARM, CAUGHT = 1e-10, 1e-12
# Tunings that prefer each kind of run, with levels that make rare branches common.
KINDS = {"usual": Tuning(), "each": Tuning(margin=1e9, crowd=1e9, contended=1e9),
         "settled": Tuning(margin=0.2, calm=20.0, dispute=1e9, lazy=20.0),
         "settled, quiet": Tuning(margin=1.2, calm=20.0, dispute=1e9, loud=0.9),
         "crowd": Tuning(margin=1e9, crowd=-1e9, contended=1e9, depth=1.0, faint=0.6, lazy=20.0),
         "lone": Tuning(margin=1e9, crowd=-1e9, contended=1e9, depth=-0.5, faint=0.69, lazy=20.0),
         "contended": Tuning(margin=1e9, contended=-1e9, lazy=20.0),
         "few points": Tuning(margin=1e9, contended=-1e9, points=0.3, loud=0.3, lazy=20.0)}


def told(posterior, alpha, unknown=False, width=0.3):
    return Terms(float(alpha), 1, float(width), 1000, unknown, False, False, posterior == "gaussian")


# ---- the law ----------------------------------------------------------------------------------------

def score(posterior, won, n):
    """The law of a score."""
    return stats.beta(won + 1, n - won + 1) if posterior == "beta" else stats.norm(won / n, n**-0.5)


def law(scores, price, alpha):
    """The probability, for each arm, that it is pulled: an integral over the largest score m, for each arm of it."""
    K, ranks = len(scores), np.argsort(np.argsort(price, kind="stable"))
    tails = special.ndtr(np.arange(-8.0, 8.01, 0.5))
    ends = np.concatenate([score.ppf(tails) for score in scores])
    low, high = max(score.ppf(1e-16) for score in scores), max(score.isf(1e-16) for score in scores)
    ends = np.unique(np.clip(np.concatenate([[0.0, low, high], ends, ends / (1 - alpha)]), low, high))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(ends)[:, None] / 2
    m, weights = (ends[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
    below, under = [score.cdf(m) for score in scores], [score.cdf((1 - alpha) * m) for score in scores]
    chosen = np.zeros(K)
    for best in range(K):
        density = weights * scores[best].pdf(m)
        alone = density * np.prod([below[j] for j in range(K) if j != best], axis=0)
        # If nothing may be given up, or nobody reaches a negative bar, the best is pulled.
        chosen[best] += alone[(m <= 0) | (alpha == 0)].sum()
        for arm in range(K) if alpha else ():
            if ranks[arm] <= ranks[best]:
                others = [under[j] if ranks[j] < ranks[arm] else below[j] for j in range(K) if j not in (arm, best)]
                own = below[arm] - under[arm] if arm != best else 1.0
                chosen[arm] += (density * own * np.prod(others, axis=0))[m > 0].sum()
    return chosen


def test_the_law_by_hand():
    # Two new arms: the cheap one is pulled if its score is at least 1 - alpha times the other's.
    new = stats.beta(1, 1)
    assert law([new, new], [0, 1], 0.2) == pytest.approx([0.6, 0.4], abs=1e-10)
    assert law([new, new], [1, 0], 0.0) == pytest.approx([0.5, 0.5], abs=1e-10)
    assert law([new, new, new], [1, 1, 1], 0.0) == pytest.approx([1 / 3] * 3, abs=1e-10)
    assert law([new], [1], 0.3) == pytest.approx([1], abs=1e-10)


@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.9])
def test_the_law_by_drawing(posterior, alpha):
    """Against the definition itself; with scores that are often negative."""
    won, n, price = np.array([1.0, 0.0, 2.0, 1.0]), np.array([4.0, 2.0, 9.0, 3.0]), np.array([0.5, 0.2, 0.2, 0.1])
    scores = [score(posterior, *arm) for arm in zip(won, n, strict=True)]
    rng, counts = np.random.default_rng(1), np.zeros(4)
    for drawn in np.stack([score.rvs(20_000, random_state=rng) for score in scores], axis=1):
        counts[cheapest(alpha, drawn, drawn, price)] += 1
    assert p_value(counts, law(scores, price, alpha)) > ALARM


def p_value(counts, probabilities):
    """Chi-square test; the cells expected below 10 are pooled, if need be together with the next larger ones."""
    assert np.sum(probabilities) == pytest.approx(1, abs=1e-9)
    expected = np.ravel(probabilities) * counts.sum()
    order = np.argsort(expected)
    observed, expected = np.ravel(counts)[order], expected[order]
    rare = np.searchsorted(expected, 10.0)
    while 0 < rare < len(expected) and expected[:rare].sum() < 10.0:
        rare += 1
    cells = np.r_[0, rare:len(expected)] if rare else np.arange(len(expected))
    observed, expected = np.add.reduceat(observed, cells), np.add.reduceat(expected, cells)
    return stats.chi2.sf(((observed - expected)**2 / expected).sum(), max(len(cells) - 1, 1))


# ---- the kernel, and errors made on purpose -----------------------------------------------------------

# What stands in the source once, up to "@", is replaced by a choice between it and something wrong, by a number that
# stands in one column more of the arms' array: so one compilation serves all errors.
TANGENT = "{0} + rng.standard_exponential() / steepness({1}, {0}, {2}gaussian)"
FAULTS = {
    "contended: no acceptance step": (
        "knock(floor, chance, most, won, n, gaussian, rng)@\n            if", TANGENT.format("floor", "won, n", "")),
    "contended: nor at the bar": (
        "knock(floor, chance, bar, won, n, gaussian, rng)@\n                if", TANGENT.format("floor", "won, n", "")),
    "contended: scores above the level before": ("x > ceiling@", "False"),
    "contended: scores above the largest": ("x > most@:\n                        x = knock", "False"),
    "contended: the first good enough arm passed over": ("last if terms.unknown else 0@", "last"),
    "no acceptance step": ("knock(arms[k, LEVEL + tail], arms[k, CHANCE + tail], -inf, arms[k, WON], arms[k, PULLS], "
                           "terms.gaussian, rng)@",
                           TANGENT.format("arms[k, LEVEL + tail]", "arms[k, WON], arms[k, PULLS]", "terms.")),
    "silent arms drawn unconditioned": ("arms[k, LEVEL + low] <= y <= arms[k, LEVEL + top]@", "True"),
    "the wrong side": ("low > 0.0 and rng.random() * (low + top) < low@", "False"),
    "the leader's bell not thinned": ("rng.random() * race.bound >= arms[k, CHANCE + LOW]@", "False"),
    "no guarantor": ("low if k == guarantor and least < inf else -inf@", "-inf"),
    "crowd: a poor best member": ("most >= race.least and arm >= 0@", "arm >= 0"),
    "crowd: no sure arm needed": ("arms[arm, LEAF] <= race.sure@", "True"),
    "the bound not renewed": ("arms[arm, PULLS] - arms[arm, WON] <= race.allowed@", "True"),
    "a pulled arm's bell not renewed": ("learn(arm, x, tuning.loud, terms.gaussian, arms, trees)@", "None"),
    "bells not wound after a pull": ("wind(t, trees, race, rng)@", "None"),
    "the leader's price not watched": ("price < race.dearer or price == race.agreed@", "True"),
    "a rival's price not watched": ("or not spared(arm, arms, race)@", "or False"),
}
NUMBER = {None: 0, **{fault: number for number, fault in enumerate(FAULTS, start=1)}}
PARTS = "settle", "unusual", "disturbed", "contended", "crowd", "settled", "refresh", "keeps", "follow", "bells"


@cache
def machine(faulty):
    """Two loops around the module's functions, or around copies that can make the errors."""
    names = {**vars(st), "compiled_for": lambda: nb.njit(error_model="numpy"), "Limits": Limits}
    if faulty:
        source = "\n".join(inspect.getsource(getattr(getattr(st, part), "py_func", None)) for part in PARTS)
        for fault, (right, wrong) in FAULTS.items():
            assert source.count(right.replace("@", "")) == 1, fault
            right, after = right.split("@")
            lead = "or " if right.startswith("or ") else ""
            right, wrong = right.removeprefix(lead), wrong.removeprefix(lead)
            choice = f"{lead}(({wrong}) if arms[0, {COLUMNS}] == {NUMBER[fault]} else ({right}))"
            source = source.replace(lead + right + after, choice + after)
        exec(source, names)
    else:
        names["bells"] = nb.njit(error_model="numpy")(st.bells.py_func)
    exec(LOOPS, names)
    return names["stay"], names["walk"]


LOOPS = '''
@nb.njit(error_model="numpy")
def stay(rounds, terms, tuning, arms, trees, race, rng):
    """A pull loop without pulls: how often each arm was chosen."""
    K = arms.shape[0]
    counts, kinds = np.zeros(K, np.int64), np.zeros(5, np.int64)
    race.work = inf
    for t in range(rounds):
        if race.work >= tuning.lazy * K:
            refresh(terms, tuning, arms, trees, race)
            wind(t, trees, race, rng)
        if race.leader >= 0:
            arm = race.leader if t < race.bell else disturbed(terms, tuning, arms, trees, race, rng)
            kinds[0] += t >= race.bell
        elif race.leader == CONTENDED:
            arm = contended(terms, arms, trees, race, rng)
        elif race.leader == CROWD:
            arm = crowd(t, terms, tuning, arms, trees, race, rng)
        else:
            for k in range(K):
                arms[k, SCORE] = draw(arms[k, WON], arms[k, PULLS], terms.gaussian, rng)
            arm = cheapest(terms.alpha, arms[:, SCORE], arms[:, SCORE], arms[:, PRICE])
        if t >= race.bell:
            wind(t + 1, trees, race, rng)
        kinds[-race.leader if race.leader < 0 else 4] += 1
        counts[arm] += 1
    return counts, kinds


@nb.njit(error_model="numpy")
def walk(repeats, length, terms, tuning, start, trees, race, rng, outcomes, state, record, limits):
    """How often each sequence of pulls was played through the kernel, by its number in base K."""
    n, sums, now = state
    _, max_cost, ceiling, rate = limits
    K, arms = n.size, start.copy()
    counts, pulled = np.zeros(K**length, np.int64), np.zeros(K, np.int64)
    for _ in range(repeats):
        arms[:], trees[:], sums[:], n[:], pulled[:] = start, 0.0, 0.0, 0, 0
        path, now.rounds = 0, K
        refresh(terms, tuning, arms, trees, race)
        wind(K, trees, race, rng)
        for limit in range(K + 1, K + 1 + length):         # so the kernel is left and entered at every pull
            bells(terms, tuning, arms, trees, race, rng, outcomes, state, record, Limits(limit, max_cost, ceiling, rate))
            path *= K
            for k in range(K):
                path += k * (n[k] - pulled[k])
                pulled[k] = n[k]
        counts[path] += 1
    return counts
'''


def arrays(won, n, price, fault=None):
    """The kernel's arrays in the midst of a run, with the number of an error in one column more."""
    arms, trees, race = st.sampler(np.array(price, float))
    arms = np.hstack([arms, np.full((len(n), 1), float(NUMBER[fault]))])
    arms[:, WON], arms[:, PULLS] = won, n
    return arms, trees, race


# ---- 1. posteriors that stay as they are --------------------------------------------------------------

# Successes, pulls and prices of the arms.
STATES = {
    "one arm": ([3], [5], [0.5]),
    "new arms": ([0, 1, 1], [1, 1, 1], [0.2, 0.1, 0.3]),
    "a cheap and good one": ([90, 95], [200, 200], [0.1, 0.9]),
    "at the border": ([880, 90, 9], [2000, 180, 20], [0.1, 0.9, 0.5]),
    "cheap, but poor": ([60, 100, 100, 2], [200, 200, 190, 9], [0.0, 0.5, 0.6, 0.7]),
    "many cheap and poor": ([20, 30, 9, 300, 260], [80, 100, 40, 500, 500], [0.0, 0.1, 0.2, 0.5, 0.6]),
    "equal costs": ([30, 28, 25, 5], [60, 60, 50, 9], [0.5, 0.5, 0.5, 0.5]),
    "hardly any success": ([0, 1, 2], [50, 80, 90], [0.3, 0.2, 0.1]),
    "hardly any failure": ([50, 79, 88], [50, 80, 90], [0.3, 0.2, 0.1]),
}


def any_state(number):
    rng = np.random.default_rng([3, number])
    n = np.floor(10 ** rng.uniform(0, 3, 2 + number % 8))
    return rng.binomial(n.astype(int), rng.uniform(0.4, 0.6, n.size)), n, rng.integers(0, 4, n.size) / 4


STATES |= {f"random {number}": any_state(number) for number in range(10)}


@cache
def frozen_law(name, posterior, alpha):
    won, n, price = STATES[name]
    return law([score(posterior, *arm) for arm in zip(won, n, strict=True)], price, alpha)


def frozen_counts(name, posterior, alpha, kind, fault=None, rounds=20_000):
    return machine(fault is not None)[0](rounds * DEEP, told(posterior, alpha), KINDS[kind],
                                         *arrays(*STATES[name], fault), np.random.default_rng(5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_choices_follow_the_law_of_frozen_posteriors(posterior, kind):
    kinds = 0
    for name in STATES:
        for alpha in (0.0, 0.1, 0.5, 0.9) if kind != "each" else (0.1,):
            counts, found = frozen_counts(name, posterior, alpha, kind)
            kinds = kinds + found
            assert p_value(counts, frozen_law(name, posterior, alpha)) > ALARM, (name, alpha)
    # What the tuning is for did happen: rounds of the kind and, if settled, rounds in which a bell rang.
    least = {"settled": [4, 0], "settled, quiet": [4, 0], "crowd": [2], "lone": [2], "contended": [1], "few points": [1],
             "each": [3], "usual": []}[kind]
    assert all(kinds[which] > 10_000 * DEEP for which in least)
