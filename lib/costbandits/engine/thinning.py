"""Rounds in which chance may matter, found without a draw in the others.

A policy that departs from its leader in round t with a small probability p(t), independently of all else, need not draw
in every round. Over a stretch of rounds p(t) is at most some rate. The wait for the first success at that rate is
geometric; the round in which it comes is a *candidate*, and is accepted with probability p(t) / rate (Lewis and
Shedler, 1979). Nothing departs in the rounds before. A geometric wait has no memory, so one may start anew at any round
that was not chosen with an eye on the candidate.
"""

from math import log, log1p

import numpy as np

from .compilation import njit

# candidate: the rounds that are over when the next candidate comes, or when the stretch ends; until: those that are
# over when one must look ahead again; arm: for which this holds, where that matters; rate: of the stretch.
CLOCK = np.dtype([("candidate", "i8"), ("until", "i8"), ("arm", "i8"), ("rate", "f8")])


@njit()
def look_ahead(clock, rng, t, stretch, rate):
    """Set the clock to the first candidate among the rounds t + 1 ... t + stretch, or to their end if there is none."""
    wait = 0.0 if rate >= 1.0 else float(stretch)
    if 0.0 < rate < 1.0:
        wait = min(log(1.0 - rng.random()) / log1p(-rate), wait)
    clock.candidate, clock.rate = t + int(wait), min(rate, 1.0)
    clock.until = clock.candidate + 1 if wait < stretch else clock.candidate
