"""Tails of the scores' laws, and the lines on which their bells ring: what `subsidy_thompson` rests on and explains.

Below, `own` is its `Bells`.
"""

from math import exp, factorial, inf, log, log1p, nan, pi, sqrt
from typing import NamedTuple

import numpy as np

from ..engine.driver import inlined, jit, step

LEVELS = 4
# Tails of an arm: below one level, above LEVELS of them, above 1 - alpha times these. The first of each is the highest.
LOW, TOP, BAR, TAILS = 0, 1, 1 + LEVELS, 1 + 2 * LEVELS


class Scores(NamedTuple):
    """What is known of each arm's score, and of each of its tails."""
    won: np.ndarray         # (K,)          successes, or the sum of rewards
    pulls: np.ndarray       # (K,)
    mean: np.ndarray        # (K,)          of the posterior,
    spread: np.ndarray      # (K,)          and its standard deviation
    price: np.ndarray       # (K,)          the arm's cost, or a lower bound of it
    drawn: np.ndarray       # (K,)          the score of this round; nan while it is not drawn
    level: np.ndarray       # (K, TAILS)
    density: np.ndarray     # (K, TAILS)    at the level
    chance: np.ndarray      # (K, TAILS)    that the bell rings


# log n! = n log n - n + log(2 pi n) / 2 + this.
STIRLING = np.array([0.0] + [log(factorial(n)) - (n + 0.5) * log(n) + n - 0.5 * log(2 * pi) for n in range(1, 16)])


@jit
def stirling(n):
    """The remainder of Stirling's formula for n!, n = 1, 2, ..."""
    if n < 16.0:
        return STIRLING[int(n)]
    w = 1.0 / (n * n)
    return (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w / 1188.0)))) / n


@jit
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


@step
def steepness(won, n, level, gaussian):
    """How fast the logarithm of the density falls at a level."""
    return n * level - won if gaussian else (n * level - won) / (level * (1.0 - level))


@step
def inside(level, gaussian):
    """Whether there is anything on both sides of a level."""
    return -inf < level < inf if gaussian else 0.0 < level < 1.0


@step
def assess(k, tail, own):
    """The chance of an arm's bell, from the density at its level; 1 if the arm is drawn in every round."""
    scores, loud = own.scores, own.tuning.loud
    slope = steepness(scores.won[k], scores.pulls[k], scores.level[k, tail], own.gaussian)
    size, density = -slope if tail == LOW else slope, scores.density[k, tail]
    scores.chance[k, tail] = density / size if size > 0.0 and density <= loud * size else 1.0


@inlined
def measure(k, tail, level, own):
    """Set a level of an arm."""
    scores, gaussian = own.scores, own.gaussian
    scores.level[k, tail], scores.chance[k, tail] = level, 0.0
    if inside(level, gaussian):
        scores.density[k, tail] = exp(log_density(scores.won[k], scores.pulls[k], level, gaussian))
        assess(k, tail, own)


@inlined
def update(k, x, own):
    """The tails of an arm after its last reward x, and its stretches."""
    scores, gaussian = own.scores, own.gaussian
    won, n = scores.won[k], scores.pulls[k]
    more = (n + 1.0) / (won if x == 1.0 else n - won) if not gaussian else 1.0
    for tail in range(TAILS):
        level = scores.level[k, tail]
        if inside(level, gaussian):
            scores.density[k, tail] *= more * (level if x == 1.0 else 1.0 - level)
            if gaussian or scores.density[k, tail] < 1e-250:        # what has vanished could not come back
                measure(k, tail, level, own)
            else:
                assess(k, tail, own)
    hang(k, own)


@step
def draw(won, n, gaussian, rng):
    """A score."""
    return won / n + rng.standard_normal() / sqrt(n) if gaussian else rng.beta(won + 1.0, n - won + 1.0)


@jit
def kept(x, ahead, patience, level, won, n, gaussian):
    """Whether x, `ahead` of the level, is kept: its log density is below the tangent by less than `patience`.

    Which is an exponential number, so that x is kept with the ratio of the two as its probability.
    """
    if gaussian:
        return 0.5 * n * ahead * ahead < patience
    if not 0.0 < x < 1.0:
        return False
    lost, u, v = n - won, ahead / level, ahead / (1.0 - level)
    wide = 0.5 * (won * u * u / min(1.0, 1.0 + u) + lost * v * v / min(1.0, 1.0 - v))
    tight = 0.5 * (won * u * u / max(1.0, 1.0 + u) + lost * v * v / max(1.0, 1.0 - v))
    if wide < patience or tight >= patience:        # nearly always
        return wide < patience
    return won * (u - log1p(u)) - lost * (v + log1p(-v)) < patience


@step
def knock(level, chance, least, won, n, gaussian, rng):
    """A score beyond a level and above `least`, if the bell rings; nan for a false alarm."""
    if chance == 1.0:
        x = draw(won, n, gaussian, rng)
        return x if x > level and x > least else nan
    ahead = rng.standard_exponential() / steepness(won, n, level, gaussian)
    x = level + ahead
    return x if x > least and kept(x, ahead, rng.standard_exponential(), level, won, n, gaussian) else nan


CERTAIN = 40.0              # the stretch of an arm that is drawn in every round: missed once in 1e17 rounds


@step
def stretch(chance):
    """What a Poisson process of rate 1 hits with this probability or a little more: at least -log(1 - chance)."""
    return chance * (1.0 - 0.5 * chance) / (1.0 - chance) if chance < 1.0 else CERTAIN


@step
def thin(chance, u):
    """Whether a point on a stretch is a bell, by a uniform number; the first comparison errs on the safe side."""
    return u < 1.0 - 0.3 * chance * chance or u * (1.0 - exp(-stretch(chance))) < chance


@inlined
def hang(k, own):
    """Give an arm its stretches of the lines. Of the first LEVELS, nodes 2 i and 2 i + 1 of a tree add up to node i."""
    chance, trees = own.scores.chance, own.trees
    node = trees.shape[0] // 2 + own.leaf[k]
    trees[node, 0] = stretch(min(chance[k, TOP] + chance[k, LOW], 1.0))
    for line in range(1, 2 * LEVELS):
        trees[node, line] = stretch(chance[k, TOP + line])
    while node > 1:
        node >>= 1
        for line in range(LEVELS):
            trees[node, line] = trees[2 * node, line] + trees[2 * node + 1, line]


@step
def locate(line, place, own):
    """The arm whose stretch holds a place of the line, and where that stretch ends."""
    trees = own.trees
    node, half, rest = 1, trees.shape[0] // 2, place
    while node < half:
        node *= 2
        if rest >= trees[node, line] and trees[node + 1, line] > 0.0:
            rest -= trees[node, line]
            node += 1
    return own.at_leaf[node - half], place - rest + trees[node, line]


@jit
def arrange(k, low, top, own):
    """Set the levels of an arm, of which there are two at most."""
    for tail in range(TAILS):
        measure(k, tail, low if tail == LOW else top if tail == TOP else inf, own)
    hang(k, own)


@jit
def vouch(own):
    """Bound the leader's bell for all states in which it has lost at most so much more.

    The probability q falls with every success and rises with every failure: it is largest if the failures come first.
    The first guess of how many there may be errs on the safe side.
    """
    scores, trees, race, leader, gaussian = own.scores, own.trees, own.race, own.race.leader, own.gaussian
    won, n, level = scores.won[leader], scores.pulls[leader], scores.level[leader, LOW]
    race.bound, race.allowed = 0.0, inf
    rest = trees[1, 0] - trees[trees.shape[0] // 2 + own.leaf[leader], 0]
    if inside(level, gaussian):
        measure(leader, LOW, level, own)
        race.bound, race.allowed = scores.chance[leader, LOW], n - won
        if race.bound < 1.0:
            now = log_density(won, n, level, gaussian) - log(-steepness(won, n, level, gaussian))
            goal = max(now + 1.0, log(max(rest, 1e-9)))
            more = won - n * level
            per_loss = (more / n * (level + 0.5 * more / n) if gaussian else
                        log((n + 2.0) / (n - won + 1.0) * (1.0 - level)))
            room = np.floor(min((goal - now) / max(per_loss, 1e-300), n))
            while room >= 1.0:
                slope = -steepness(won, n + room, level, gaussian)
                bound = exp(min(log_density(won, n + room, level, gaussian) - log(slope), 0.0)) if slope > 0.0 else 1.0
                if bound <= min(3.0 * exp(min(goal, 0.0)), own.tuning.loud):
                    race.bound, race.allowed = bound, n - won + room
                    break
                room = np.floor(0.5 * room)
        scores.chance[leader, LOW] = race.bound
        hang(leader, own)
