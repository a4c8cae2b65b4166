"""Cost-subsidy Thompson sampling by tangent bells plays exactly by its law, and these tests would notice if it did not.

The law is known without drawing: `law` integrates over the largest score, accurate to 1e-9. Counts are held against it
by chi-square tests that pool the cells expected below 10, and full runs against the definition by two-sample tests.
There are fewer than 2,000 p-values, each of which must exceed 1e-10: the seeds are fixed, but with fresh ones a false
alarm would have a probability below 1e-6, with room for the chi-square approximation. Errors made on purpose must give
a p-value below 1e-12. The environment variable COSTBANDITS_DEEP multiplies the sample sizes.
"""

import inspect
import os
from functools import cache
from itertools import product

import numba as nb
import numpy as np
import pytest
from chains import pearson as p_value
from reference import FIELDS, digest, in_plain_python, proving
from scipy import special, stats

import costbandits as cb
from costbandits.engine.compilation import Kernel, around
from costbandits.engine.driver import loop
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Game, Limits
from costbandits.fast import subsidy_thompson as st
from costbandits.fast import tails
from costbandits.fast.subsidy_thompson import USUAL, Bells, Tuning
from costbandits.fast.tails import LEVELS, LOW, TAILS, TOP, Scores
from costbandits.policies.cost_subsidy import cheapest

pytestmark = pytest.mark.slow

DEEP = int(os.environ.get("COSTBANDITS_DEEP", "1"))
ALARM, CAUGHT = 1e-10, 1e-12
# Tunings that prefer each kind of run, with levels that make rare branches common.
KINDS = {"usual": Tuning(), "each": Tuning(margin=1e9, crowd=1e9, contended=1e9),
         "settled": Tuning(margin=0.2, calm=20.0, dispute=1e9, loud=0.95, lazy=20.0),
         "settled, quiet": Tuning(margin=1.2, calm=20.0, dispute=1e9, loud=0.9),
         "crowd": Tuning(margin=1e9, crowd=-1e9, contended=1e9, depth=1.0, faint=0.6, lazy=20.0),
         "lone": Tuning(margin=1e9, crowd=-1e9, contended=1e9, depth=-0.5, faint=0.69, lazy=20.0),
         "contended": Tuning(margin=1e9, contended=-1e9, lazy=20.0),
         "few points": Tuning(margin=1e9, contended=-1e9, points=0.3, loud=0.3, lazy=20.0)}


def told(posterior, alpha, unknown=False, width=0.3):
    return float(alpha), float(width), unknown, posterior == "gaussian"


# ---- the law ----------------------------------------------------------------------------------------

def score(posterior, won, n):
    """The law of a score."""
    return stats.beta(won + 1, n - won + 1) if posterior == "beta" else stats.norm(won / n, n**-0.5)


def law(scores, price, alpha):
    """The probability, for each arm, that it is pulled: an integral over the largest score m, for each arm of it."""
    K, ranks = len(scores), np.argsort(np.argsort(price, kind="stable"))
    shares = special.ndtr(np.arange(-8.0, 8.01, 0.5))
    ends = np.concatenate([score.ppf(shares) for score in scores])
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


# ---- the kernel, and errors made on purpose -----------------------------------------------------------

# What stands in the source once, up to "@" or between two of them, is replaced by a choice between it and something
# wrong, by a number that stands behind the list of the crowd: so one compilation serves all errors. That takes 40
# CPU-seconds, so what they change is looked at each night, and their places in `make test`.
FAULTS = {
    "contended: no acceptance step": (
        "between(k, TOP + j, most, ceiling, own, rng)@", "eager(k, TOP + j, most, ceiling, own, rng)"),
    "contended: nor at the bar": (
        "between(k, BAR + j, bar, most, own, rng)@", "eager(k, BAR + j, bar, most, own, rng)"),
    "contended: scores above the level before": ("TOP + j, most, @ceiling@, own", "inf"),
    "contended: scores above the largest": ("BAR + j, bar, @most@, own", "inf"),
    "no acceptance step": (
        "knock(scores.level[k, tail], scores.chance[k, tail], -inf, scores.won[k], scores.pulls[k], gaussian, rng)@",
        "tangent(scores.level[k, tail], scores.won[k], scores.pulls[k], gaussian, rng)"),
    "silent arms drawn unconditioned": ("scores.level[k, low] <= y <= scores.level[k, top]@", "True"),
    "the wrong side": ("low > 0.0 and rng.random() * (low + top) < low@", "False"),
    "the leader's bell not thinned": ("rng.random() * race.bound >= scores.chance[k, LOW]@", "False"),
    "no guarantor": ("low if k == guarantor and least < inf else -inf@", "-inf"),
    "crowd: a poor best member": ("most >= race.least and arm >= 0@", "arm >= 0"),
    "crowd: no sure arm needed": ("own.leaf[arm] <= race.sure@", "True"),
    "the bound not renewed": ("scores.pulls[arm] - scores.won[arm] <= race.allowed@", "True"),
    "a pulled arm's bell not renewed": ("update(arm, x, own)@", "None"),
    "bells not wound after a pull": ("wind(t, own.trees[1, 0], race, rng)@", "None"),
    "the leader's price not watched": ("price < race.dearer or price == race.agreed@", "True"),
    "a rival's price not watched": ("not spared(arm, own)@", "False"),
}
NUMBER = {None: 0, **{fault: number for number, fault in enumerate(FAULTS, start=1)}}
PARTS = ("fill_in", "unusual", "disturbed", "contended", "crowd", "settled", "refresh", "holds",
         "silent", "choose", "advance", "learn")


@nb.njit
def tangent(level, won, n, gaussian, rng):
    """`knock` that keeps all that is drawn from the tangent."""
    return level + rng.standard_exponential() / tails.steepness(won, n, level, gaussian)


@nb.njit
def eager(k, tail, least, most, own, rng):
    """`between` that begins with such a score."""
    scores, gaussian = own.scores, own.gaussian
    level, chance, won, n = scores.level[k, tail], scores.chance[k, tail], scores.won[k], scores.pulls[k]
    x = tangent(level, won, n, gaussian, rng)
    if x > least and tails.thin(chance, rng.random()):
        while x > most:
            x = tails.knock(level, chance, least, won, n, gaussian, rng) if rng.random() < chance else np.nan
        return x
    return np.nan


@Kernel
def stay(refresh, wind, disturbed, contended, crowd, each, rounds, own, rng):
    """A pull loop without pulls, around functions like the module's: how often each arm was chosen."""
    K, race = own.draws.size, own.race
    counts, kinds = np.zeros(K, np.int64), np.zeros(5, np.int64)
    race.work = np.inf
    for t in range(rounds):
        if race.work >= own.tuning.lazy * K:
            refresh(own)
            wind(t, own.trees[1, 0], race, rng)
        if race.leader >= 0:
            arm = race.leader if t < race.bell else disturbed(own, rng)
            kinds[0] += t >= race.bell
        elif race.leader == st.CONTENDED:
            arm = contended(own, rng)
        elif race.leader == st.CROWD:
            arm = crowd(t, own, rng)
        else:
            arm = each(own, rng)
        if t >= race.bell:
            wind(t + 1, own.trees[1, 0], race, rng)
        kinds[-race.leader if race.leader < 0 else 4] += 1
        counts[arm] += 1
    return counts, kinds


@Kernel
def walk(refresh, wind, bells, repeats, length, start, own, rng, outcomes, state, record, limits):
    """How often each sequence of pulls was played through the kernel, by its number in base K."""
    arms, now, K = state.arms, state.now, own.draws.size
    counts, pulled = np.zeros(K**length, np.int64), np.zeros(K, np.int64)
    for _ in range(repeats):
        for mine, first in zip(own.scores[:6], start.scores[:6]):  # noqa: B905 - Numba knows no `strict`
            mine[:] = first
        for mine, first in zip(own.scores[6:], start.scores[6:]):  # noqa: B905
            mine[:] = first
        for sums in arms[1:]:
            sums[:] = 0.0
        own.trees[:], arms.n[:], pulled[:] = 0.0, 0, 0
        path, now.rounds = 0, K
        refresh(own)
        wind(K, own.trees[1, 0], own.race, rng)
        for last in range(K + 1, K + 1 + length):         # so the kernel is left and entered at every pull
            stop = Limits(last, limits.max_cost, limits.ceiling, limits.rate, limits.pause, limits.beat,
                          limits.near)
            bells(own, rng, Game(outcomes, state, record, stop))
            path *= K
            for k in range(K):
                path += k * (arms.n[k] - pulled[k])
                pulled[k] = arms.n[k]
        counts[path] += 1
    return counts


def with_errors():
    """The source of the functions that can err, with a choice wherever an error is made; each has one place."""
    plain = source = "\n".join(inspect.getsource(getattr(getattr(st, part), "py_func", getattr(st, part)))
                               for part in PARTS)
    for fault, (place, wrong) in FAULTS.items():
        before, right, after = place.split("@") if place.count("@") == 2 else ("", *place.split("@"))
        assert plain.count(before + right + after) == 1 and before + right + after in source, fault
        choice = f"(({wrong}) if own.member[-1] == {NUMBER[fault]} else ({right}))"
        source = source.replace(before + right + after, before + choice + after)
    return source


@cache
def machine(faulty):
    """Two loops around the module's functions, or around copies that can make the errors."""
    names = {**vars(st), "tangent": tangent, "eager": eager}
    if faulty:
        exec(with_errors(), names)
    made = loop(*(names[step] for step in ("choose", "advance", "learn", "if_counted")))
    refresh, wind, *steps = (names[name] for name in ("refresh", "wind", "disturbed", "contended", "crowd", "each"))
    bells = nb.njit(error_model="numpy")(made.py_func)
    return around(stay, refresh, wind, *steps), around(walk, refresh, wind, bells)


def test_each_error_has_its_place():
    compile(with_errors(), "with errors", "exec")


def midway(won, n, price, terms, tuning=USUAL, fault=None):
    """What the kernel works on in the midst of a run, with the number of an error behind the list of the crowd."""
    own = Bells.of(*terms, tuning, np.array(price, float), terms[-1])
    own.scores.won[:], own.scores.pulls[:] = won, n
    return own._replace(member=np.append(own.member, NUMBER[fault]))


# ---- 1. posteriors that stay as they are --------------------------------------------------------------

# Successes, pulls and prices of the arms.
STATES = {
    "one arm": ([3], [5], [0.5]),
    "new arms": ([0, 1, 1], [1, 1, 1], [0.2, 0.1, 0.3]),
    "a cheap and good one": ([90, 95], [200, 200], [0.1, 0.9]),
    "at the border": ([880, 90, 9], [2000, 180, 20], [0.1, 0.9, 0.5]),
    "cheap, but poor": ([60, 100, 100, 2], [200, 200, 190, 9], [0.0, 0.5, 0.6, 0.7]),
    "many cheap and poor": ([20, 30, 9, 300, 260], [80, 100, 40, 500, 500], [0.0, 0.1, 0.2, 0.5, 0.6]),
    "a guarantor": ([660, 1200, 150], [2000, 3000, 300], [0.0, 0.5, 0.9]),
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


def frozen_counts(name, posterior, alpha, kind, fault=None, rounds=50_000):
    own = midway(*STATES[name], told(posterior, alpha), KINDS[kind], fault)
    return machine(fault is not None)[0](rounds * DEEP, own, np.random.default_rng(5))


@pytest.mark.parametrize("every", proving([5, 1], 1))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_choices_follow_the_law_of_frozen_posteriors(posterior, kind, every):
    """In every fifth of the states and alphas, of which each comes with some of the other; or in all."""
    kinds = 0
    for name, alpha in [*product(STATES, (0.0, 0.1, 0.3, 0.9) if kind != "each" else (0.1,))][every // 2::every]:
        counts, found = frozen_counts(name, posterior, alpha, kind)
        kinds = kinds + found
        assert p_value(counts, frozen_law(name, posterior, alpha)) > ALARM, (name, alpha)
    # What the tuning is for did happen: rounds of the kind and, if settled, rounds in which a bell rang.
    least = {"settled": [4, 0], "settled, quiet": [4, 0], "crowd": [2], "lone": [2], "contended": [1],
             "few points": [1], "each": [3], "usual": []}[kind]
    assert all(kinds[which] > 10_000 * DEEP / every for which in least)


def caught(fault, posterior, kind, name, alpha):
    return p_value(frozen_counts(name, posterior, alpha, kind, fault)[0], frozen_law(name, posterior, alpha))


@pytest.mark.proof
@pytest.mark.parametrize(("fault", "kind", "name", "alpha"), [
    ("contended: no acceptance step", "few points", "at the border", 0.1),
    ("contended: nor at the bar", "contended", "a cheap and good one", 0.1),
    ("contended: scores above the level before", "contended", "a cheap and good one", 0.1),
    ("contended: scores above the largest", "contended", "at the border", 0.1),
    ("no acceptance step", "lone", "at the border", 0.1), ("no acceptance step", "settled", "a guarantor", 0.3),
    ("silent arms drawn unconditioned", "lone", "at the border", 0.1),
    ("silent arms drawn unconditioned", "settled", "a guarantor", 0.3),
    ("the wrong side", "settled", "a guarantor", 0.3), ("no guarantor", "settled", "a guarantor", 0.3),
    ("the leader's bell not thinned", "settled, quiet", "random 1", 0.5),
    ("crowd: a poor best member", "lone", "at the border", 0.0),
    ("crowd: no sure arm needed", "lone", "cheap, but poor", 0.5)])
def test_errors_change_the_law_of_choices(fault, kind, name, alpha):
    assert min(caught(fault, posterior, kind, name, alpha) for posterior in ("beta", "gaussian")) < CAUGHT


# ---- 2. whole paths through the kernel, in which the posteriors learn from outcomes fixed beforehand ------

NEVER, LUCKY, MIXED = [(0, 1)], [(1, 0)], [(1, 1), (0, 0), (0, 1), (1, 0), (0, 1)]
EQUAL = [(1, 0.9), (0, 0.9)]
# Successes, pulls and prices; outcomes of each arm, over and over; pulls; alpha; whether costs are unknown.
PATHS = {
    "two new arms": (([0, 1], [1, 1], [0.3, 0.6]), (MIXED, MIXED[::-1]), 8, 0.1, False),
    "three arms": (([9, 8, 2], [20, 20, 5], [0.1, 0.2, 0.5]), (MIXED, LUCKY, NEVER), 6, 0.1, False),
    "nothing to give up": (([9, 8, 2], [20, 20, 5], [0.1, 0.2, 0.5]), (NEVER, MIXED, MIXED), 6, 0.0, False),
    "a failing leader": (([20, 9], [25, 20], [0.0, 1.0]), (NEVER, MIXED), 9, 0.1, False),
    "a guaranteed leader": (([12, 24, 22], [60, 50, 30], [0.0, 0.5, 1.0]), (NEVER, NEVER, MIXED), 6, 0.5, False),
    "a lucky rival": (([60, 1], [100, 4], [1.0, 0.0]), ([(0, 0), (1, 0)], LUCKY), 8, 0.1, False),
    "a leader at rising cost": (([25, 12], [40, 20], [0.1, 0.5]), ([(0, 1), (1, 1)], MIXED), 8, 0.3, True),
    "a rival at falling cost": (([16, 13], [25, 14], [0.5, 0.9]), (EQUAL, LUCKY), 8, 0.2, True),
}
WIDTH = 0.3


def path_counts(case, posterior, kind, fault=None, repeats=20_000):
    start, outcomes, length, alpha, unknown = PATHS[case]
    K = len(start[0])
    stacks = Stacks(cb.Bandit([cb.Constant(0.5)] * K, [cb.Constant(0.5)] * K), 0, 0, range(K))
    run = Run(stacks, [np.inf], 1)
    for k in range(K):
        run.outcomes.pool[run.outcomes.at[k]:][:16] = np.resize(outcomes[k], (16, 2))
    run.outcomes.filled[:] = 16
    first, own = (midway(*start, told(posterior, alpha, unknown, WIDTH), KINDS[kind], fault) for _ in range(2))
    return machine(fault is not None)[1](repeats * DEEP, length, first, own, np.random.default_rng(2),
                                         run.outcomes, run.state, run.record, run.limits)


@cache
def path_law(case, posterior):
    """The law of all sequences of pulls: products of the probabilities of the choices."""
    (won, n, price), outcomes, length, alpha, unknown = PATHS[case]
    K = len(n)

    def chosen(pulls):
        gained = [np.resize(outcomes[k], (16, 2))[:pulls[k]] for k in range(K)]
        costs = [price[k] if not unknown or pulls[k] == 0
                 else max(gained[k][:, 1].sum() / pulls[k] - (WIDTH / pulls[k])**0.5, 0.0) for k in range(K)]
        return law([score(posterior, won[k] + gained[k][:, 0].sum(), n[k] + pulls[k]) for k in range(K)], costs, alpha)

    paths = {(0,) * K: {0: 1.0}}                           # pulls of each arm -> sequence -> probability
    for _ in range(length):
        longer = {}
        for pulls, known in paths.items():
            p = chosen(pulls)
            for k in range(K):
                after = longer.setdefault((*pulls[:k], pulls[k] + 1, *pulls[k + 1:]), {})
                after.update({path * K + k: q * p[k] for path, q in known.items()})
        paths = longer
    flat = {path: p for known in paths.values() for path, p in known.items()}
    return np.array([flat[path] for path in range(K**length)])


@pytest.mark.parametrize("every", proving([4, 1], 1))
@pytest.mark.parametrize("number, case", list(enumerate(PATHS)))
@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_paths_follow_their_law(posterior, number, case, every):
    """By every fourth tuning, each of which has its turn; or by all."""
    for kind in [*KINDS][number % every::every]:
        assert p_value(path_counts(case, posterior, kind), path_law(case, posterior)) > ALARM, kind


@pytest.mark.proof
@pytest.mark.parametrize(("fault", "kind", "case"), [
    ("the bound not renewed", "settled", "a failing leader"),
    ("a pulled arm's bell not renewed", "contended", "a failing leader"),
    ("a pulled arm's bell not renewed", "settled", "a lucky rival"),
    ("bells not wound after a pull", "settled", "a failing leader"),
    ("bells not wound after a pull", "crowd", "a failing leader"),
    ("the leader's price not watched", "settled", "a leader at rising cost"),
    ("a rival's price not watched", "settled", "a leader at rising cost")])
def test_errors_change_the_law_of_paths(fault, kind, case):
    assert min(p_value(path_counts(case, posterior, kind, fault), path_law(case, posterior))
               for posterior in ("beta", "gaussian")) < CAUGHT


@pytest.mark.proof
def test_the_functions_that_can_err_do_not_unless_told_to():
    for kind in KINDS:
        counts = [machine(faulty)[0](2000, midway(*STATES["random 4"], told("beta", 0.1), KINDS[kind]),
                                     np.random.default_rng(0))[0] for faulty in (False, True)]
        assert np.array_equal(*counts)


# ---- 3. full runs, against the definition -----------------------------------------------------------------

def bandit(K, rewards, costs):
    rng = np.random.default_rng(K)
    return cb.Bandit([rewards(mean) for mean in rng.uniform(0.3, 0.7, K)], [costs(mean) for mean in rng.random(K)])


def fractional(mean):
    return cb.Beta(3 * mean, 3 - 3 * mean)


# Thirty arms are contended for, as it is.
RUNS = {"two": bandit(2, cb.Bernoulli, cb.Constant), "six": bandit(6, cb.Bernoulli, cb.Constant),
        "six, fractional": bandit(6, fractional, cb.Constant), "six, unknown costs": bandit(6, fractional, fractional),
        "thirty": bandit(30, cb.Bernoulli, cb.Constant),
        "thirty, unknown costs": bandit(30, cb.Bernoulli, cb.Bernoulli)}


class Tuned(cb.CSTS):
    """With another tuning, by its name."""

    kind = "usual"

    def play(self, run, problem, rng):
        return st.play(self, run, problem, rng, KINDS[self.kind])


def tuned(kind, *arguments):
    return type(f"Tuned{kind}", (Tuned,), {"kind": kind})(*arguments)


@cache
def figures_of_runs(family, posterior, alpha, kind):
    """Regrets and pulls of three arms after a third and all of the rounds, shape (10, replications)."""
    arguments = alpha, posterior, "unknown" if "unknown" in family else "known"
    policy = cb.CSTS(*arguments, naive=True) if kind == "naive" else tuned(kind, *arguments)
    seed = 1 if kind == "naive" else 0
    runs = cb.simulate({"": policy}, RUNS[family], cb.Horizon(900), 300 * DEEP, seed=seed, checkpoints=3)
    regrets = cb.regret.quality(runs, alpha), cb.regret.cost(runs, alpha)
    best, cheap, dear = (find(means) for find, means in ((np.argmax, RUNS[family].reward_means),
                                                         (np.argmin, RUNS[family].cost_means),
                                                         (np.argmax, RUNS[family].cost_means)))
    pulls = [runs.pulls[0, ..., arm] for arm in (best, cheap, dear)]
    return [figure[..., at] for at in (0, 2) for figure in (*(regret[0] for regret in regrets), *pulls)]


PLAYED = [("beta", 0.1, "usual"), ("beta", 0.3, "settled"), ("gaussian", 0.1, "usual"), ("gaussian", 0.3, "settled"),
          ("beta", 0.0, "crowd"), ("gaussian", 0.3, "lone"), ("gaussian", 0.1, "contended")]
ALL = [(family, *played) for played in PLAYED for family in RUNS]
FEW = [(family, *played) for family, played in zip(
    ["six", "six, unknown costs", "thirty", "six, fractional"], PLAYED[::2], strict=True)]


@pytest.mark.parametrize(("family", "posterior", "alpha", "kind"), proving(ALL, *{*ALL} - {*FEW}))
def test_runs_are_distributed_as_those_of_the_definition(family, posterior, alpha, kind):
    pairs = zip(figures_of_runs(family, posterior, alpha, kind), figures_of_runs(family, posterior, alpha, "naive"),
                strict=True)
    assert min(stats.ks_2samp(*pair, method="asymp").pvalue for pair in pairs) > ALARM


# ---- 4. what the kernel keeps, and what it rests on ---------------------------------------------------------

def test_the_density_at_a_level():
    for n in (1, 2, 15, 16, 17, 1000, 10**6):
        for won in {0, 1, n // 3, n - 1, n}:
            for level in (0.01, won / n * 0.98 + 0.01, 0.5, 0.99):
                exact = stats.beta.logpdf(level, won + 1, n - won + 1)
                assert tails.log_density(float(won), float(n), level, False) == pytest.approx(exact, rel=1e-9, abs=1e-8)
                exact = stats.norm.logpdf(level, won / n, n**-0.5)
                assert tails.log_density(float(won), float(n), level, True) == pytest.approx(exact, rel=1e-12)


def test_a_chance_is_the_area_under_the_tangent_and_bounds_the_tail():
    rng = np.random.default_rng(6)
    for posterior in ("beta", "gaussian"):
        for _ in range(300):
            n = np.floor(10 ** rng.uniform(0, 5))
            won = rng.binomial(int(n), rng.random())
            level = float(np.clip(won / n + rng.normal() / n**0.5, 0.001, 0.999))
            own, known = midway([won], [n], [0.5], told(posterior, 0.1), Tuning(loud=0.95)), score(posterior, won, n)
            for tail, true in ((LOW, known.cdf(level)), (TOP, known.sf(level))):
                tails.measure(0, tail, level, own)
                q = own.scores.chance[0, tail]
                slope = abs((known.logpdf(level + 1e-7) - known.logpdf(level - 1e-7)) / 2e-7)
                assert q == 1.0 or (q == pytest.approx(known.pdf(level) / slope, rel=1e-3) and true <= q <= 0.95)


@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_what_is_learned_is_what_would_be_measured(posterior):
    rng, own = np.random.default_rng(7), midway([3, 20], [7, 50], [0.5, 0.2], told(posterior, 0.1))
    scores, trees = own.scores, own.trees
    for tail, level in enumerate([0.2, *np.linspace(0.9, 0.6, 8)]):
        for k in range(2):
            tails.measure(k, tail, level, own)
    for _ in range(500):
        k, x = rng.integers(2), 1.0 * (rng.random() < 0.5)
        scores.won[k] += x
        scores.pulls[k] += 1
        tails.update(k, x, own)
        afresh = own._replace(scores=Scores(*(part.copy() for part in scores)))
        for tail in range(TAILS):
            tails.measure(k, tail, scores.level[k, tail], afresh)
        for part, again in zip(scores, afresh.scores, strict=True):
            assert part == pytest.approx(again, rel=1e-9)
        assert trees[1, :LEVELS] == pytest.approx(trees[2:4, :LEVELS].sum(axis=0), rel=1e-15)


@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_the_leaders_bound_holds_until_it_has_lost_what_is_allowed(posterior):
    """In whatever order it wins and loses; and it does not rest on rewards that are 0 or 1 for a normal law."""
    rng, found = np.random.default_rng(8), 0
    for _ in range(200):
        n = np.floor(10 ** rng.uniform(1, 4))
        own = midway([np.floor(0.6 * n), np.floor(0.4 * n)], [n, n], [0.1, 0.5], told(posterior, 0.1))
        (won, pulls, *_), race, gaussian = own.scores, own.race, own.gaussian
        race.leader, level = 0, float(0.6 - rng.uniform(0, 5) * (0.24 / n) ** 0.5)
        tails.measure(0, LOW, level, own)
        tails.vouch(own)
        if race.bound >= 1.0:
            continue
        p = rng.choice([0.0, 0.3, 0.6, 1.0])
        while pulls[0] - won[0] <= race.allowed and pulls[0] < n + 500:
            tails.measure(0, LOW, level, own)
            assert own.scores.chance[0, LOW] <= race.bound * (1 + 1e-9)
            won[0] += rng.random() ** (1 / p - 1) if gaussian and 0 < p < 1 else 1.0 * (rng.random() < p)
            pulls[0] += 1
            found += 1
    assert found > 10_000


def test_a_point_on_a_stretch_is_a_bell_as_often_as_it_should_be():
    for q in [*np.linspace(0.001, 0.95, 200), 1.0]:
        hit = 1 - np.exp(-tails.stretch(q))
        assert q <= hit * (1 + 1e-12) and tails.thin(q, 0.0)
        if q < 1:
            # The share of uniform numbers that are taken is q / hit: the first comparison takes no more.
            assert 1 - 0.3 * q * q <= q / hit
            assert tails.thin(q, q / hit * (1 - 1e-9)) and not tails.thin(q, q / hit * (1 + 1e-9))


def test_whose_stretch_is_hit():
    rng = np.random.default_rng(9)
    for K in (1, 2, 5, 8, 13):
        own = midway(np.ones(K), np.full(K, 3), rng.random(K), told("beta", 0.1))
        chance = own.scores.chance
        for k in range(K):
            chance[k, TOP] = rng.choice([0.0, 0.1, 0.5, 1.0])
            tails.hang(k, own)
        ends = np.cumsum([tails.stretch(chance[arm, TOP]) for arm in own.at_leaf])
        assert own.trees[1, 0] == pytest.approx(ends[-1])
        for place in rng.random(50) * ends[-1]:
            arm, end = tails.locate(0, place, own)
            leaf = np.searchsorted(ends, place, side="right")
            assert arm == own.at_leaf[leaf] and end == pytest.approx(ends[leaf])


def bits():
    runs = [cb.simulate({kind: tuned(kind, 0.2, posterior)}, RUNS["six, fractional"], cb.Horizon(250), seed=2)
            for kind in ("settled", "crowd", "contended") for posterior in ("beta", "gaussian")]
    return [digest(*(getattr(each, name) for name in FIELDS)) for each in runs]


def test_without_the_compiler_not_a_bit_changes():
    assert in_plain_python("test_subsidy_thompson", "m.bits()") == bits()


@pytest.mark.parametrize(("posterior", "costs"), proving([*product(("beta", "gaussian"), ("known", "unknown"))],
                                                         ("beta", "unknown"), ("gaussian", "known")))
def test_blocks_change_nothing(posterior, costs):
    """Checkpoints that are nearer than a leaf leave no room for a block; the runs are those with few checkpoints."""
    D, prices = cb.Discrete, [cb.Bernoulli(c) if costs == "unknown" else cb.Constant(c) for c in (0.9, 0.3, 0.1)]
    for rewards in ([cb.Bernoulli(p) for p in (0.6, 0.5, 0.2)], [cb.Bernoulli(p) for p in (0.6, 0.47, 0.47)],
                    [D([0, 0.1, 1], [1 - p, p / 2, p / 2]) for p in (0.9, 0.5, 0.2)]):
        few, many = (cb.simulate({"p": cb.CSTS(0.2, posterior, costs)}, cb.Bandit(rewards, prices), cb.Horizon(60_000),
                                 4, checkpoints=count) for count in (5, 1500))
        for name in FIELDS:
            assert np.array_equal(getattr(few, name), getattr(many, name)[:, :, 299::300]), name
        assert (few.pulls[:, :, -1].max(axis=2) > 20_000).all()          # an arm that leads, at times


class Typed(cb.Bernoulli):
    """A subclass may sample as it likes: its outcomes are drawn in Python."""


@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_no_choice_is_made_twice(posterior):
    """Where an arm has no outcome left the loop returns before the next choice, not after it."""
    bandit = cb.Bandit([Typed(p) for p in (0.6, 0.55, 0.5)], [cb.Constant(c) for c in (0.9, 0.3, 0.1)])
    few, many = (cb.simulate({"p": cb.CSTS(0.1, posterior)}, bandit, cb.Horizon(3000), 4, checkpoints=count)
                 for count in (1, 3000))
    assert np.array_equal(few.pulls, many.pulls[:, :, -1:])


@pytest.mark.parametrize("posterior", ["beta", "gaussian"])
def test_one_arm_leaves_no_choice(posterior):
    one = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.5)])
    assert cb.simulate({"": cb.CSTS(0.1, posterior)}, one, cb.Horizon(50)).pulls[0, 0, -1] == [50]


@pytest.mark.parametrize("wrong", [1, 0, "yes", None])
def test_naive_is_true_or_false(wrong):
    with pytest.raises(ValueError, match=r"naive = .*: must be True or False"):
        cb.CSTS(0.1, naive=wrong)


@pytest.mark.parametrize(("K", "mean", "contends"), [(2, -0.5, 0), (3, -0.5, 0), (50, -0.8, 0), (50, 0.3, 1)])
def test_a_crowd_has_a_crowd_s_levels_if_there_are_none_to_contend_above(K, mean, contends):
    """No rewards in [0, 1] have a negative mean; there some of the levels would be negative, and all are refused."""
    tuning = Tuning(margin=1e9, contended=-1e9, crowd=-1e9)
    own = Bells.of(*told("gaussian", 0.1), tuning, np.linspace(0, 1, K), False)
    own.scores.pulls[:], own.scores.won[:] = 4.0, 4.0 * mean
    st.refresh(own)
    assert (own.race.leader == st.CONTENDED) == contends
    if not contends:
        found = own.scores.level.copy(), own.scores.chance.copy(), own.trees.copy()
        st.summon(own)
        assert all(map(np.array_equal, found, (own.scores.level, own.scores.chance, own.trees)))
