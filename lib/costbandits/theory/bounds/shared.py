"""What the bounds of several papers share."""

from collections.abc import Callable
from math import inf

import numpy as np

from ...engine.numerics import bent

bent_each = np.vectorize(bent, otypes=[float])      # of arrays, number by number


def first_from(holds: Callable[[int], bool], start: int, most: int) -> float:
    """The first whole number from `start` on at which `holds`, which then goes on holding; inf if none up to `most`.

    >>> first_from(lambda n: n**2 > 50, start=1, most=1000)
    8
    """
    if not holds(most):
        return inf
    low, high = start - 1, start
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def steepest(heights: np.ndarray, places: np.ndarray) -> float:
    """The largest |difference of heights| / |difference of places| of two points; infinite above the same place.

    >>> steepest(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.5]))
    2.0
    """
    rise, run = (np.abs(np.subtract.outer(values, values)) for values in (heights, places))
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.divide(rise, run, out=np.zeros_like(rise), where=rise > 0).max())
