"""A Bernoulli factory: from coins that show heads with an unknown probability p, one that does so with C p.

Huber, "Nearly optimal Bernoulli factories for linear functions" (2013; Combinatorics, Probability and Computing 25,
2016). The lower bound of Sinha et al., "Multi-Armed Bandits with Cost Subsidy", reduces alpha > 0 to alpha = 0 with it.

To be decided is an event of probability (C p)^i, at first with i = 1. A flip turns i into i - 1 on heads, and adds
G - 1 on tails, G being geometric with mean C / (C - 1); that leaves the mean of (C p)^i as it is. At i = 0 the event
has happened. Once i is large, the event is improbable, and (C p)^i = b^-i (b C p)^i with a b > 1: a biased coin of our
own decides the first factor, and usually the whole; if not, it goes on with b C for C.
"""

from collections.abc import Callable
from math import ceil, log
from typing import NamedTuple

import numpy as np

from ..checks import number, require

GUARANTEE = 9.5            # times C / delta: most coins that are expected
_GAMMA = 0.5               # the share of the margin by which C p grows when the first factor has been decided
_WIDEST = 0.644            # Huber's guarantee asks for a margin of at most that
_LIMIT = 4.6               # divided by the margin: the i from which on the first factor is decided


class Flip(NamedTuple):
    """Whether a coin made by the factory shows `heads`, and how many flips of the given coin (`coins`) that took."""
    heads: bool
    coins: int


class Law(NamedTuple):
    """Probability that the factory shows `heads`, and the expected flips of the given coin (`coins`) that it takes."""
    heads: float
    coins: float


def _demand(factor, margin):
    number("factor", factor, allowed="must be a finite number above 1", above=1)
    number("margin", margin, allowed="must be in (0, 1)", above=0, below=1)


def _phases(factor, margin):
    """C, the i that ends a phase, and b of each phase."""
    limit, margin = _LIMIT / margin, min(margin, _WIDEST)
    while True:
        growth = 1 + _GAMMA * margin
        yield factor, ceil(limit), growth
        factor, margin, limit = factor * growth, (1 - _GAMMA) * margin, limit / (1 - _GAMMA)


def flip(coin: Callable[[], bool], factor: float, margin: float, rng: np.random.Generator) -> Flip:
    """Heads with probability C p, from coins with probability p (Huber, Algorithm 1).

    `coin` flips a coin: true with probability p <= (1 - margin) / factor, whatever it was before. With a larger p the
    result is biased, unnoticed. C (`factor`) is above 1, delta (`margin`) in (0, 1); `rng` is the factory's own.

    >>> rng = np.random.default_rng(0)
    >>> flip(lambda: rng.random() < 0.2, factor=2.0, margin=0.5, rng=rng)
    Flip(heads=True, coins=2)
    """
    _demand(factor, margin)
    i, coins = 1, 0
    for multiple, limit, growth in _phases(factor, margin):
        while 0 < i < limit:
            coins += 1
            i += -1 if coin() else int(rng.geometric((multiple - 1) / multiple)) - 1
        if i == 0 or rng.random() >= growth**-i:
            return Flip(i == 0, coins)


def guarantee(factor: float, margin: float) -> float:
    """9.5 C / delta: the most coins that `flip` takes on average if p <= (1 - delta) / C (Huber; Sinha et al., Eq. 4).

    >>> guarantee(factor=2.0, margin=0.5)
    38.0
    """
    _demand(factor, margin)
    return GUARANTEE * factor / margin


def law(p: float, factor: float, margin: float) -> Law:
    """The factory's output and its number of coins, exactly.

    A phase ends at i = 0 or above its limit, and by how much above does not depend on where it came from: the step that
    leads there is geometric. (C p)^i and i less its drift are martingales; they give the probabilities of the two ends
    and the expected length. Phases are summed until a further one has a probability below 1e-16.

    p, the probability of heads, is in [0, 1). Above (1 - margin) / factor it is not what the factory was made for:
    there C p may be 1 in some phase, where the formulas divide by 0. `factor` and `margin` as in `flip`.

    >>> np.round(law(0.2, factor=2.0, margin=0.5), 3)
    array([ 0.4  , 11.307])
    """
    _demand(factor, margin)
    allowed = "must be in [0, 1), and C p not 1 in any phase"
    number("p", p, 0, allowed=allowed, below=1)
    alive, heads, coins, reached = 1.0, 0.0, 0.0, None
    for multiple, limit, growth in _phases(factor, margin):
        target = multiple * p
        require(abs(target - 1) > 1e-9, "p", p, allowed)
        if reached is None:
            start, chance, above = np.ones(1), np.ones(1), 0.0
        else:
            # Having survived, i is the old limit less 1 plus a geometric number, whose ratio is now 1 / C.
            end = min(limit, reached + ceil(50 / log(multiple)))
            start = np.arange(reached, end, dtype=float)
            chance, above = (1 - 1 / multiple) * multiple ** (reached - start), multiple ** float(reached - end)
        top = limit - 1 + multiple / (multiple - 1)                     # mean of i at the upper end
        worth = target ** (limit - 1) * (multiple - 1) * p / (1 - p)    # mean of (C p)^i there
        up = (1 - target**start) / (1 - worth)
        heads += alive * chance @ (1 - up)
        coins += alive * (multiple - 1) / (1 - target) * (chance @ (up * top - start))
        alive *= (above + chance @ up) * growth ** (1.0 - limit) * (multiple - 1) / (multiple * growth - 1)
        if alive < 1e-16:
            return Law(float(heads), float(coins))
        reached = limit
