"""Thompson sampling with cost subsidy: the law of `cost_subsidy.by_draws`, exactly, with few draws.

A round draws a score of every arm from its posterior, and pulls the cheapest arm whose score is at least 1 - alpha
times the largest. Hardly any of these scores matter. What follows draws those that may ("tangent bells"; to our
knowledge not published before). It rests on two facts.

*Tails.* The density f of a score is log-concave. Beyond a level l it lies below the exponential that touches it at l,
f(l) exp(-g (x - l)) with g = -(log f)'(l), whose integral is q = f(l)/g. So with probability q a bell rings, x is l
plus an exponential number of rate g, and it is kept with probability f(x) / (f(l) exp(-g (x - l))): what is kept has
exactly the law of the score beyond l. Else, silent or a false alarm, the score lies on the usual side of l. In a tail
most bells are true: the ratio of f(l)/g and the tail's probability tends to 1.

*The line.* Each arm has a stretch of a line, of length -log(1 - q) or a little more, and a Poisson process of rate 1
runs along it: an arm's bell rings if a point falls on its stretch. The next point is one exponential number away,
however many arms it passes over, and a tree of sums says whose stretch it hit. A round is one passage, and while
nothing changes one passage follows the other: so the number of rounds without a bell is known at once.

A run is of one of four kinds, chosen anew from time to time with all its levels. The choice decides the speed alone.

* Settled: an arm, the leader, is pulled unless a bell rings. With levels h and l there are bells for: the leader's
  score below (1 - alpha) h; anybody else's above h; a guarantor's below l; that of an arm cheaper than the leader above
  (1 - alpha) l. In silence the leader is good enough and no cheaper arm is. If a bell is true, all other scores are
  drawn given that they lie on their usual sides. The leader learns in every round, but its posterior enters only by a
  bound of its bell's probability, `RACE.bound`, that holds until it has lost more than `RACE.allowed` rewards. What
  that rings too often is thinned out. So until round `RACE.bell` all that matters of its pulls is what they lost, and
  whole blocks of them are pulled at once.
* With a crowd: its members are drawn in every round, and the others have bells above 1 - alpha times a level that the
  best member nearly always exceeds; or above that level, if a cheaper member is nearly always good enough.
* Contended: all arms have bells above each of some levels. The largest score is the best above the first level, if
  there is one, or else above the next. It sets the bar. A second line, of bells above 1 - alpha times that level with
  the arms in the order of their prices, finds the first arm above the bar.
* Each arm is drawn, as the definition says, where that takes less time.
"""

from math import exp, factorial, inf, log, log1p, nan, pi, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import ROUNDING
from ..engine.compilation import compiled_for
from ..engine.loops import FAR, RUNNING, checkpoint, goes_on, pull
from ..engine.state import new_record
from ..engine.trees import KIND, block, read_on, skip, total
from ..engine.trees import LEAF as SMALLEST
from ..engine.trees import settle as settle_sums
from .cost_subsidy import cheapest, lowest_price

LEVELS = 4
# Tails of an arm: below one level, above LEVELS of them, above 1 - alpha times these. The first of each is the highest.
LOW, TOP, BAR, TAILS = 0, 1, 1 + LEVELS, 1 + 2 * LEVELS
# Columns of an arm: successes, or the sum of rewards; pulls; posterior mean and standard deviation; its cost, or a
# lower bound of it; a score; its leaf; and for each tail its level, the density there, the bell's chance. ARM is the
# arm of a leaf, MEMBER a list of arms.
WON, PULLS, MEAN, SPREAD, PRICE, SCORE, LEAF, ARM, MEMBER, LEVEL = range(10)
DENSITY, CHANCE, COLUMNS = LEVEL + TAILS, LEVEL + 2 * TAILS, LEVEL + 3 * TAILS
CONTENDED, CROWD, EACH = -1, -2, -3
# State of a run: the leader, or a kind; the round of the next bell, and the place on the line where it rings; work
# since all was chosen. If settled: the bound of the leader's bell, and how much reward it may have lost for that to
# hold; the level of cheaper arms; the price that the leader's may not reach, unless it is still `agreed`. With a crowd:
# what the best member must reach, the number of members, and the last leaf of an arm that may be pulled without asking
# all others.
RACE = np.dtype([("leader", "i8"), ("bell", "f8"), ("place", "f8"), ("work", "f8"),
                 ("bound", "f8"), ("allowed", "f8"), ("poor", "f8"), ("dearer", "f8"), ("agreed", "f8"),
                 ("least", "f8"), ("members", "i8"), ("sure", "i8")])


class Tuning(NamedTuple):
    """What only speed depends on; the law is exact for all values."""

    loud: float = 0.7       # above this probability a bell is not worth having
    margin: float = 2.0     # a leader is this many standard deviations off every bell
    calm: float = 0.3       # a settled run has no more bells per round
    dispute: float = 5.0    # nor more than this divided by the number of arms
    points: float = 1.0     # a contended run has this times log(2 K) bells above its lowest level
    apart: float = 2.3      # and this many times fewer above the next
    depth: float = 3.0      # a crowd is prepared for scores so many standard deviations off
    faint: float = 0.3      # those outside ring so often at most
    beta: float = 36.0      # what takes how many nanoseconds: a draw from a Beta law,
    normal: float = 6.5     # from a normal law,
    crowd: float = 110.0    # a round with a crowd, beyond its draws,
    contended: float = 700.0    # a contended round
    lazy: float = 300.0     # after so many draws per arm all is chosen anew


def sampler(price: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.record]:
    """The kernel's arrays before the first pull: of the arms, of all lines, and of the run.

    The leaves of the trees are in the order of the prices.

    >>> [np.shape(part) for part in sampler(np.array([0.5, 0.25, 0.5]))]
    [(3, 36), (8, 8), ()]
    """
    K, order, race = price.size, np.argsort(price, kind="stable"), new_record(RACE)
    arms = np.zeros((K, COLUMNS))
    arms[:, PRICE], arms[:, ARM], arms[:, LEAF], race.leader = price, order, np.argsort(order), EACH
    return arms, np.zeros((2 << (K - 1).bit_length(), 2 * LEVELS)), race


# ---- tails ------------------------------------------------------------------------------------------

CERTAIN = 40.0              # the stretch of an arm that is drawn in every round: missed once in 1e17 rounds
# log n! = n log n - n + log(2 pi n) / 2 + this.
STIRLING = np.array([0.0] + [log(factorial(n)) - (n + 0.5) * log(n) + n - 0.5 * log(2 * pi) for n in range(1, 16)])


@nb.njit(error_model="numpy")
def stirling(n):
    """The remainder of Stirling's formula for n!, n = 1, 2, ..."""
    if n < 16.0:
        return STIRLING[int(n)]
    w = 1.0 / (n * n)
    return (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w / 1188.0)))) / n


@nb.njit(error_model="numpy")
def log_density(won, n, level, gaussian):
    """Logarithm of a posterior's density at a level; for huge n, too, where factorials would cancel (Loader, 2000)."""
    if gaussian:
        away = level - won / n
        return 0.5 * (log(n / (2.0 * pi)) - n * away * away)
    lost = n - won
    if won == 0.0:
        return log(n + 1.0) + n * log1p(-level)
    if lost == 0.0:
        return log(n + 1.0) + n * log(level)
    more = won - n * level
    return (log((n + 1.0) * sqrt(n / (2.0 * pi * won * lost))) + stirling(n) - stirling(won) - stirling(lost)
            - won * log1p(more / (n * level)) - lost * log1p(-more / (n * (1.0 - level))))


@nb.njit(inline="always", error_model="numpy")
def steepness(won, n, level, gaussian):
    """How fast the logarithm of the density falls at a level."""
    return n * level - won if gaussian else (n * level - won) / (level * (1.0 - level))


@nb.njit(inline="always", error_model="numpy")
def inside(level, gaussian):
    """Whether there is anything on both sides of a level."""
    return -inf < level < inf if gaussian else 0.0 < level < 1.0


@nb.njit(inline="always", error_model="numpy")
def assess(k, tail, loud, gaussian, arms):
    """The chance of an arm's bell, from the density at its level; 1 if the arm is drawn in every round."""
    slope = steepness(arms[k, WON], arms[k, PULLS], arms[k, LEVEL + tail], gaussian)
    size, density = -slope if tail == LOW else slope, arms[k, DENSITY + tail]
    arms[k, CHANCE + tail] = density / size if size > 0.0 and density <= loud * size else 1.0


@nb.njit(error_model="numpy")
def measure(k, tail, level, loud, gaussian, arms):
    """Set a level of an arm."""
    arms[k, LEVEL + tail], arms[k, CHANCE + tail] = level, 0.0
    if inside(level, gaussian):
        arms[k, DENSITY + tail] = exp(log_density(arms[k, WON], arms[k, PULLS], level, gaussian))
        assess(k, tail, loud, gaussian, arms)


@nb.njit(error_model="numpy")
def learn(k, x, loud, gaussian, arms, trees):
    """The tails of an arm after its last reward x, and its stretches."""
    won, n = arms[k, WON], arms[k, PULLS]
    more = (n + 1.0) / (won if x == 1.0 else n - won) if not gaussian else 1.0
    for tail in range(TAILS):
        level = arms[k, LEVEL + tail]
        if inside(level, gaussian):
            arms[k, DENSITY + tail] *= more * (level if x == 1.0 else 1.0 - level)
            if gaussian or arms[k, DENSITY + tail] < 1e-250:        # what has vanished could not come back
                measure(k, tail, level, loud, gaussian, arms)
            else:
                assess(k, tail, loud, gaussian, arms)
    hang(k, arms, trees)


@nb.njit(inline="always", error_model="numpy")
def draw(won, n, gaussian, rng):
    """A score."""
    return won / n + rng.standard_normal() / sqrt(n) if gaussian else rng.beta(won + 1.0, n - won + 1.0)


@nb.njit(inline="always", error_model="numpy")
def falls_less(patience, won, lost, u, v):
    """Whether a Beta density falls below its tangent by less than this, in logarithms; these are hardly ever needed."""
    wide = 0.5 * (won * u * u / min(1.0, 1.0 + u) + lost * v * v / min(1.0, 1.0 - v))
    tight = 0.5 * (won * u * u / max(1.0, 1.0 + u) + lost * v * v / max(1.0, 1.0 - v))
    if wide < patience or tight >= patience:
        return wide < patience
    return won * (u - log1p(u)) - lost * (v + log1p(-v)) < patience


@nb.njit(error_model="numpy")
def kept(x, step, patience, level, won, n, gaussian):
    """Whether the score `level` + `step`, drawn from the tangent, is kept; `patience` is an exponential number."""
    if gaussian:
        return 0.5 * n * step * step < patience
    return 0.0 < x < 1.0 and falls_less(patience, won, n - won, step / level, step / (1.0 - level))


@nb.njit(inline="always", error_model="numpy")
def knock(level, chance, least, won, n, gaussian, rng):
    """A score beyond a level and above `least`, if the bell rings; nan for a false alarm."""
    if chance == 1.0:
        x = draw(won, n, gaussian, rng)
        x = x if x > level and x > least else nan
    else:
        step = rng.standard_exponential() / steepness(won, n, level, gaussian)
        x = level + step
        x = x if x > least and kept(x, step, rng.standard_exponential(), level, won, n, gaussian) else nan
    return x


# ---- the line ---------------------------------------------------------------------------------------

@nb.njit(inline="always", error_model="numpy")
def stretch(chance):
    """What a Poisson process of rate 1 hits with this probability or a little more: at least -log(1 - chance)."""
    return chance * (1.0 - 0.5 * chance) / (1.0 - chance) if chance < 1.0 else CERTAIN


@nb.njit(inline="always", error_model="numpy")
def thin(chance, u):
    """Whether a point on a stretch is a bell, by a uniform number; the first comparison errs on the safe side."""
    return u < 1.0 - 0.3 * chance * chance or u * (1.0 - exp(-stretch(chance))) < chance


@nb.njit(error_model="numpy")
def hang(k, arms, trees):
    """Give an arm its stretches of the lines. Of the first LEVELS, nodes 2 i and 2 i + 1 of a tree add up to node i."""
    node = trees.shape[0] // 2 + int(arms[k, LEAF])
    trees[node, 0] = stretch(min(arms[k, CHANCE + TOP] + arms[k, CHANCE + LOW], 1.0))
    for line in range(1, 2 * LEVELS):
        trees[node, line] = stretch(arms[k, CHANCE + TOP + line])
    while node > 1:
        node >>= 1
        for line in range(LEVELS):
            trees[node, line] = trees[2 * node, line] + trees[2 * node + 1, line]


@nb.njit(inline="always", error_model="numpy")
def locate(line, place, trees):
    """The leaf whose stretch holds a place of the line, and where that stretch ends."""
    node, half, rest = 1, trees.shape[0] // 2, place
    while node < half:
        node *= 2
        if rest >= trees[node, line] and trees[node + 1, line] > 0.0:
            rest -= trees[node, line]
            node += 1
    return node - half, place - rest + trees[node, line]


# ---- a round ----------------------------------------------------------------------------------------

@nb.njit(inline="always", error_model="numpy")
def before(k, arm, arms):
    """Whether k is pulled rather than `arm` if both are good enough."""
    return arms[k, PRICE] < arms[arm, PRICE] or (arms[k, PRICE] == arms[arm, PRICE] and k < arm)


@nb.njit(error_model="numpy")
def settle(low, top, terms, arms, race, rng):
    """The arm of a round, in which the scores not yet drawn lie between the levels of these tails."""
    for k in range(arms.shape[0]):
        x = arms[k, SCORE]
        while x != x:
            y = draw(arms[k, WON], arms[k, PULLS], terms.gaussian, rng)
            x = y if arms[k, LEVEL + low] <= y <= arms[k, LEVEL + top] else nan
        arms[k, SCORE] = x
    race.work += arms.shape[0]
    return cheapest(terms.alpha, arms[:, SCORE], arms[:, SCORE], arms[:, PRICE])


@nb.njit(error_model="numpy")
def unusual(k, terms, tuning, arms, race, rng):
    """The score of an arm whose stretch of the first line is hit; nan for a false alarm."""
    tail, low, top = TOP, arms[k, CHANCE + LOW], arms[k, CHANCE + TOP]
    if k == race.leader:
        measure(k, LOW, arms[k, LEVEL + LOW], tuning.loud, terms.gaussian, arms)
        if not thin(race.bound, rng.random()) or rng.random() * race.bound >= arms[k, CHANCE + LOW]:
            return nan
        tail = LOW
    elif not thin(low + top, rng.random()):
        return nan
    elif low > 0.0 and rng.random() * (low + top) < low:        # pragma: no cover - rare, in long compiled runs
        tail = LOW
    return knock(arms[k, LEVEL + tail], arms[k, CHANCE + tail], -inf, arms[k, WON], arms[k, PULLS], terms.gaussian, rng)


@nb.njit(error_model="numpy")
def disturbed(terms, tuning, arms, trees, race, rng):
    """The arm of a round of a settled run in which a bell rings."""
    place, quiet = race.place, True
    while place < trees[1, 0]:
        leaf, end = locate(0, place, trees)
        k = int(arms[leaf, ARM])
        x = unusual(k, terms, tuning, arms, race, rng)
        if x == x:
            if quiet:
                arms[:, SCORE] = nan
            quiet, arms[k, SCORE] = False, x
        race.work += 1.0
        place = end + rng.standard_exponential()
    return race.leader if quiet else settle(LOW, TOP, terms, arms, race, rng)


@nb.njit(error_model="numpy")
def contended(terms, arms, trees, race, rng):
    """The arm of a round of a contended run."""
    gaussian, half = terms.gaussian, trees.shape[0] // 2
    # The arm `best` of the largest score: above the first level, or else above the next.
    best, most, ceiling, level, points = -1, inf, inf, -1, 0
    while best < 0 and level < LEVELS - 1:
        level, ceiling = level + 1, most
        floor, place = arms[0, LEVEL + TOP + level], rng.standard_exponential()
        most = floor
        while place < trees[1, level]:
            leaf, end = locate(level, place, trees)
            k = int(arms[leaf, ARM])
            chance, won, n = arms[k, CHANCE + TOP + level], arms[k, WON], arms[k, PULLS]
            x = knock(floor, chance, most, won, n, gaussian, rng)
            if x > most and thin(chance, rng.random()):
                while x > ceiling:
                    x = knock(floor, chance, most, won, n, gaussian, rng) if rng.random() < chance else nan
                if x > most:
                    best, most = k, x
            points += 1
            place = end + rng.standard_exponential()
    if best < 0:
        race.work += points
        arms[:, SCORE] = nan
        return settle(LOW, TOP + level, terms, arms, race, rng)
    bar = (1.0 - terms.alpha) * most
    bar -= ROUNDING * bar
    # From here on only (best, most) is known: the other scores lie below `most`.
    floor, arm, ahead, leaf = arms[0, LEVEL + BAR + level], best, rng.standard_exponential(), 0
    last = arms.shape[0] if terms.unknown else int(arms[best, LEAF])
    while leaf < last:
        ahead -= trees[half + leaf, LEVELS + level]
        if ahead < 0.0:
            k = int(arms[leaf, ARM])
            if before(k, arm, arms):
                chance, won, n = arms[k, CHANCE + BAR + level], arms[k, WON], arms[k, PULLS]
                x = knock(floor, chance, bar, won, n, gaussian, rng)
                if x == x and thin(chance, rng.random()):
                    while x > most:
                        x = knock(floor, chance, bar, won, n, gaussian, rng) if rng.random() < chance else nan
                    if x == x:
                        arm = k
                        last = last if terms.unknown else 0
            points += 1
            ahead = rng.standard_exponential()
        leaf += 1
    race.work += points
    return arm


@nb.njit(error_model="numpy")
def crowd(t, terms, tuning, arms, trees, race, rng):
    """The arm of a round of a run with a crowd."""
    K, heard, gaussian, rang = arms.shape[0], race.members, terms.gaussian, t >= race.bell
    for i in range(heard):
        k = int(arms[i, MEMBER])
        arms[k, SCORE] = draw(arms[k, WON], arms[k, PULLS], gaussian, rng)
    if rang:
        forget(arms)
        place = race.place
        while place < trees[1, 0] and heard < K:
            leaf, end = locate(0, place, trees)
            k = int(arms[leaf, ARM])
            arms[k, SCORE] = unusual(k, terms, tuning, arms, race, rng)
            if arms[k, SCORE] == arms[k, SCORE]:
                arms[heard, MEMBER] = k
                heard += 1
            place = end + rng.standard_exponential()
    race.work += heard
    most, arm = -inf, -1
    for i in range(heard):
        most = max(most, arms[int(arms[i, MEMBER]), SCORE])
    bar = (1.0 - terms.alpha) * most
    bar -= ROUNDING * abs(bar)
    for i in range(heard):
        k = int(arms[i, MEMBER])
        if arms[k, SCORE] >= bar and (arm < 0 or before(k, arm, arms)):
            arm = k
    if most >= race.least and arm >= 0 and arms[arm, LEAF] <= race.sure:
        return arm
    if not rang:
        forget(arms)
    return settle(LOW, TOP, terms, arms, race, rng)


@nb.njit(error_model="numpy")
def forget(arms):
    """Forget the scores of those outside the crowd."""
    for k in range(arms.shape[0]):
        if arms[k, LEVEL + TOP] < inf:
            arms[k, SCORE] = nan


# ---- levels -----------------------------------------------------------------------------------------

@nb.njit(error_model="numpy")
def estimate(gaussian, arms):
    """Posterior means and standard deviations."""
    for k in range(arms.shape[0]):
        won, n = arms[k, WON], arms[k, PULLS]
        mean = won / n if gaussian else (won + 1.0) / (n + 2.0)
        arms[k, MEAN] = mean
        arms[k, SPREAD] = 1.0 / sqrt(n) if gaussian else sqrt(mean * (1.0 - mean) / (n + 3.0))


@nb.njit(error_model="numpy")
def arrange(k, low, top, terms, tuning, arms, trees):
    """Set the levels of an arm, of which there are two at most."""
    for tail in range(TAILS):
        measure(k, tail, low if tail == LOW else top if tail == TOP else inf, tuning.loud, terms.gaussian, arms)
    hang(k, arms, trees)


@nb.njit(error_model="numpy")
def settled(terms, tuning, arms, trees, race):
    """Choose a leader and levels; False if no arm is far enough ahead."""
    K, part = arms.shape[0], 1.0 - terms.alpha
    leader = cheapest(terms.alpha, arms[:, MEAN], arms[:, MEAN], arms[:, PRICE])
    mean, spread, guarantor, margin = arms[leader, MEAN], arms[leader, SPREAD], leader, inf
    for k in range(K):
        if k != leader:
            margin = min(margin, (mean - part * arms[k, MEAN]) / (spread + part * arms[k, SPREAD]))
            if not before(k, leader, arms) and (arms[k, MEAN] - 3.0 * arms[k, SPREAD]
                                                 > arms[guarantor, MEAN] - 3.0 * arms[guarantor, SPREAD]):
                guarantor = k
    if not margin > tuning.margin:
        return False
    high, least = -inf, inf
    for k in range(K):
        if k != leader:
            high = max(high, arms[k, MEAN] + margin * arms[k, SPREAD])
            if before(k, leader, arms):
                gap = part * arms[guarantor, MEAN] - arms[k, MEAN]
                least = min(least, gap / (arms[k, SPREAD] + part * arms[guarantor, SPREAD]))
    low = arms[guarantor, MEAN] - least * arms[guarantor, SPREAD]
    enough = part * high
    if not least > tuning.margin or (K > 1 and not enough > 0.0) or (least < inf and not low > 0.0):
        return False
    race.leader, race.agreed, race.dearer = leader, arms[leader, PRICE], inf
    race.poor = part * low * (1.0 - 2.0 * ROUNDING)
    for k in range(K):
        top, below = high, low if k == guarantor and least < inf else -inf
        if k == leader:
            top, below = inf, max(enough, below) if K > 1 else -inf
        elif before(k, leader, arms):
            top = min(high, race.poor)
        else:
            race.dearer = min(race.dearer, arms[k, PRICE])
        arrange(k, below, top, terms, tuning, arms, trees)
    vouch(terms, tuning, arms, trees, race)
    return trees[1, 0] <= min(tuning.calm, tuning.dispute / K)


@nb.njit(error_model="numpy")
def vouch(terms, tuning, arms, trees, race):
    """Bound the leader's bell for all states in which it has lost at most so much more.

    The probability q falls with every success and rises with every failure, so it is largest if the failures come
    first. The first guess of how many there may be errs on the safe side.
    """
    leader, gaussian = race.leader, terms.gaussian
    won, n, level = arms[leader, WON], arms[leader, PULLS], arms[leader, LEVEL + LOW]
    race.bound, race.allowed = 0.0, inf
    rest = trees[1, 0] - trees[trees.shape[0] // 2 + int(arms[leader, LEAF]), 0]
    if inside(level, gaussian):
        measure(leader, LOW, level, tuning.loud, gaussian, arms)
        race.bound, race.allowed = arms[leader, CHANCE + LOW], n - won
        if race.bound < 1.0:
            now = log_density(won, n, level, gaussian) - log(-steepness(won, n, level, gaussian))
            goal = max(now + 1.0, log(max(rest, 1e-9)))
            more = won - n * level
            each = (more / n * (level + 0.5 * more / n) if gaussian else
                    log((n + 2.0) / (n - won + 1.0) * (1.0 - level)))
            room = np.floor(min((goal - now) / max(each, 1e-300), n))
            while room >= 1.0:
                slope = -steepness(won, n + room, level, gaussian)
                bound = exp(min(log_density(won, n + room, level, gaussian) - log(slope), 0.0)) if slope > 0.0 else 1.0
                if bound <= min(3.0 * exp(min(goal, 0.0)), tuning.loud):
                    race.bound, race.allowed = bound, n - won + room
                    break
                room = np.floor(0.5 * room)
        arms[leader, CHANCE + LOW] = race.bound
        hang(leader, arms, trees)


@nb.njit(error_model="numpy")
def common_level(gaussian, points, arms):
    """A level that so many scores exceed on average, as far as they are normal, had each a Poisson number of them."""
    K = arms.shape[0]
    low, high, enough = inf, -inf, exp(points)
    for k in range(K):
        low = min(low, arms[k, MEAN] - 3.0 * arms[k, SPREAD])
        high = max(high, arms[k, MEAN] + 6.0 * arms[k, SPREAD])
    high = high if gaussian else min(high, 1.0)
    for _ in range(12):
        level, product = 0.5 * (low + high), 1.0
        for k in range(K):
            z = max((level - arms[k, MEAN]) / arms[k, SPREAD], -6.0)
            if z < 6.0:
                product *= 1.0 + exp(-z * (1.5976 + 0.07056 * z * z))           # about 1/P(score < level)
            if product > enough:
                break
        low, high = (level, high) if product > enough else (low, level)
    return high


@nb.njit(error_model="numpy")
def summon(terms, tuning, arms, trees, race):
    """Choose who is drawn in every round, and the levels of all others."""
    K, part, high = arms.shape[0], 1.0 - terms.alpha, -inf
    race.least, race.members, race.sure = -inf, 0, K
    for k in range(K):
        race.least = max(race.least, arms[k, MEAN] - tuning.depth * arms[k, SPREAD])
        high = max(high, arms[k, MEAN] + tuning.depth * arms[k, SPREAD])
    # The first arm, by price, that is nearly always good enough; prices that are not known change places.
    for leaf in range(K - 1, -1, -1):
        k = int(arms[leaf, ARM])
        if arms[k, MEAN] - tuning.depth * arms[k, SPREAD] >= part * high and not terms.unknown:
            race.sure = leaf
    for k in range(K):
        level = race.least if arms[k, LEAF] > race.sure else part * race.least * (1.0 - 2.0 * ROUNDING)
        arrange(k, -inf, level if race.least > 0.0 else inf, terms, tuning, arms, trees)
        if not race.least > 0.0 or arms[k, CHANCE + TOP] > tuning.faint:
            arrange(k, -inf, inf, terms, tuning, arms, trees)
            arms[race.members, MEMBER] = k
            race.members += 1


@nb.njit(error_model="numpy")
def contend(terms, tuning, arms, trees):
    """Choose levels for a contended run; False if there are none."""
    K, part, gaussian = arms.shape[0], (1.0 - terms.alpha) * (1.0 - 2.0 * ROUNDING), terms.gaussian
    for j in range(LEVELS):
        level = common_level(gaussian, tuning.points * log(2.0 * K) * tuning.apart**(j + 1 - LEVELS), arms)
        if not (level > 0.0 and inside(level, gaussian)):
            return False
        for k in range(K):
            measure(k, TOP + j, level, tuning.loud, gaussian, arms)
            measure(k, BAR + j, part * level, tuning.loud, gaussian, arms)
    for k in range(K):
        measure(k, LOW, -inf, tuning.loud, gaussian, arms)
        hang(k, arms, trees)
    return True


@nb.njit(error_model="numpy")
def refresh(terms, tuning, arms, trees, race):
    """Choose what kind the run is of, and all levels, from the posteriors."""
    estimate(terms.gaussian, arms)
    if not settled(terms, tuning, arms, trees, race):
        summon(terms, tuning, arms, trees, race)
        each = tuning.normal if terms.gaussian else tuning.beta
        cost = min(each * arms.shape[0], each * race.members + tuning.crowd)
        race.leader, race.bell = EACH if cost == each * arms.shape[0] else CROWD, 0.0
        # Where prices change places, the line cannot be left at the first arm.
        if cost > tuning.contended * (2.0 if terms.unknown else 1.0) and contend(terms, tuning, arms, trees):
            race.leader = CONTENDED
    race.work = 0.0


@nb.njit(error_model="numpy")
def wind(t, trees, race, rng):
    """The round of the next bell of a settled run, and where on the line it rings."""
    length = trees[1, 0]
    far = rng.standard_exponential()
    rounds = np.floor(far / length) if length > 0.0 else inf
    race.bell, race.place = t + rounds, far - rounds * length if rounds < inf else 0.0


@nb.njit(inline="always", error_model="numpy")
def keeps(arm, terms, arms, race):
    """Whether what was assumed of the leader still holds after its pull."""
    price = arms[arm, PRICE]
    return race.leader < 0 or (arms[arm, PULLS] - arms[arm, WON] <= race.allowed
                               and (not terms.unknown or price < race.dearer or price == race.agreed))


@nb.njit(error_model="numpy")
def spared(arm, arms, race):
    """Whether a rival that has become cheaper, if costs are unknown, may keep its level."""
    if race.leader < 0 or arms[arm, LEVEL + TOP] <= race.poor:
        return True
    race.dearer = min(race.dearer, arms[arm, PRICE])
    return not before(arm, race.leader, arms)


@nb.njit(error_model="numpy")
def follow(t, arm, x, terms, tuning, arms, trees, race, rng):
    """Take up the last reward, and choose the next bell; not needed in a settled run's silent rounds."""
    K = arms.shape[0]
    if t > K and arm != race.leader and race.leader != EACH and arms[arm, LEVEL + TOP] < inf:
        learn(arm, x, tuning.loud, terms.gaussian, arms, trees)
        if race.leader != CONTENDED and (arms[arm, CHANCE + TOP] + arms[arm, CHANCE + LOW] > tuning.loud
                                         or not spared(arm, arms, race)):
            race.work = inf
    elif t > K and not keeps(arm, terms, arms, race):
        if arms[arm, PULLS] - arms[arm, WON] > race.allowed:
            vouch(terms, tuning, arms, trees, race)
        race.work = inf if race.bound >= 1.0 or not keeps(arm, terms, arms, race) else race.work
    if t == K or race.work >= tuning.lazy * K:
        refresh(terms, tuning, arms, trees, race)
    if race.leader == CROWD or race.leader >= 0:
        wind(t, trees, race, rng)


@nb.njit(error_model="numpy")
def pull_silently(arm, m, terms, arms, race, n, sums, outcomes):
    """Pull the leader's next block, of up to m silent rounds, if what was assumed of it holds throughout.

    How often, and what that costs and pays; its losses only grow, and its price is highest if all costs come first.
    """
    i = n[arm]
    while m >= SMALLEST:
        m = block(arm, i, m, outcomes)
        reward, cost = total(arm, 0, outcomes), total(arm, 1, outcomes)
        lost = arms[arm, PULLS] - arms[arm, WON] + (m - reward)
        price = (sums[1, arm] + cost) / i * (1.0 + ROUNDING) - sqrt(terms.width / (i + m)) if terms.unknown else -inf
        if lost <= race.allowed * (1.0 - ROUNDING) and price < race.dearer:
            skip(arm, n, sums, outcomes)
            return m, cost, reward
        m >>= 1
    return 0, 0.0, 0.0


@nb.njit(error_model="numpy")
def whole_rewards(gaussian, outcomes):
    """Whether posteriors learn the rewards as they are: without a Bernoulli trial of each."""
    arms, laws, whole = outcomes.arms, outcomes.laws, True
    for k in range(arms.shape[0]):
        whole = whole and arms[k, KIND] > 0 and arms[k, KIND + 1] > 0
        for v in range(arms[k, KIND]):
            whole = whole and (gaussian or laws[k, 0, v] == 0.0 or laws[k, 0, v] == 1.0)
    return whole


@compiled_for()
def bells(terms, tuning, arms, trees, race, rng, outcomes, state, record, limits):
    """Pull each arm once, then the cheapest one that is good enough by a score of each; hardly any score is drawn."""
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    alpha, unknown, gaussian = terms.alpha, terms.unknown, terms.gaussian
    # In one piece each, which is what drawing all of them needs.
    score, price, won, pulls = arms[:, SCORE].copy(), arms[:, PRICE].copy(), arms[:, WON].copy(), arms[:, PULLS].copy()
    K, status, last, lazy = n.size, RUNNING, limits.last_round, tuning.lazy * n.size
    whole, kinds = whole_rewards(gaussian, outcomes), outcomes.arms
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        while going:
            silent = race.leader >= 0 and t < race.bell
            if silent:
                arm = race.leader
            elif t < K:
                arm = t
            elif race.leader == EACH:
                for k in range(K):
                    if gaussian:
                        score[k] = won[k] / pulls[k] + rng.standard_normal() / sqrt(pulls[k])
                    else:
                        score[k] = rng.beta(won[k] + 1.0, pulls[k] - won[k] + 1.0)
                arm = cheapest(alpha, score, score, price)
                race.work += K
                silent = race.work < lazy
            elif race.leader == CONTENDED:
                arm = contended(terms, arms, trees, race, rng)
            elif race.leader == CROWD:
                arm = crowd(t, terms, tuning, arms, trees, race, rng)
                silent = t < race.bell and t > K and race.work < lazy and arms[arm, LEVEL + TOP] == inf
            else:
                arm = disturbed(terms, tuning, arms, trees, race, rng)
            done = 0
            if silent and race.leader >= 0 and whole and n[arm] == filled[arm]:
                m = min(np.int64(min(race.bell, 2.0 * FAR)), last) - t
                done, cost, reward = pull_silently(arm, m, terms, arms, race, n, sums, outcomes)
            if done == 0:
                if n[arm] == filled[arm]:
                    read_on(arm, n, sums, outcomes)
                reward, cost = pull(arm, n, sums, pool, at)
                if n[arm] == filled[arm]:
                    settle_sums(arm, sums, kinds, outcomes.laws, outcomes.counts)
            x, m = reward, max(done, 1)
            t, spent, collected = t + m, spent + cost, collected + reward
            going = spent < due and t < last and goes_on(arm, n, filled, kinds)
            if not (gaussian or whole or x == 0.0 or x == 1.0):
                x = 1.0 * (rng.random() < x)               # a fractional reward becomes a trial
            # At the end of a leaf the sum is that of counts, however it was cut into blocks.
            won[arm] = sums[0, arm] if gaussian and n[arm] == filled[arm] else won[arm] + x
            pulls[arm] += m
            arms[arm, WON], arms[arm, PULLS] = won[arm], pulls[arm]
            if unknown:
                price[arm] = arms[arm, PRICE] = lowest_price(arm, n, sums, terms.width)
            if not (silent and keeps(arm, terms, arms, race)):
                follow(t, arm, x, terms, tuning, arms, trees, race, rng)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
    return status
