"""Numbers that stay right where the obvious formula loses its digits, and what comparisons leave for rounding."""

import math
from math import log, log1p

from .compilation import njit

SLACK = 1e-12           # relative; covers the rounding of an index evaluated at two times. It also decides where KUBE
                        # goes on by full scans, and which blocks BTS tries: another slack makes other runs, of the
                        # same law, and a new number of RESULTS


@njit(inline="always")
def with_slack(value):
    """A bound that stays above `value` when rounding is not on our side."""
    return value + SLACK * abs(value) if value > -math.inf else value


@njit()
def excess(x, y, z):
    """x y - z, as if without rounding of the product (Dekker)."""
    product, u, v = x * y, 134217729.0 * x, 134217729.0 * y
    x1, y1 = u - (u - x), v - (v - y)
    x2, y2 = x - x1, y - y1
    return (product - z) + (((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2)


@njit()
def bent(u):
    """log(1 + u) - u, to full relative precision."""
    if abs(u) > 0.2:
        return log1p(u) - u
    v = u / (2.0 + u)       # log(1 + u) is 2 artanh(v)
    w = v * v
    more = w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w * (1 / 13 + w * (1 / 15))))))
    return v * (2.0 * w * (1 / 3 + more) - u)


@njit()
def tail(x):
    """What Stirling's formula (x - 1/2) log x - x + log(2 pi)/2 lacks of log Gamma(x)."""
    y, product = x, 1.0
    while y < 8.0:
        product *= y
        y += 1.0
    z = 1.0 / y
    w = z * z
    found = z * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * (691 / 360360))))))
    if y > x:
        found += (y - 0.5) * log(y) - (x - 0.5) * log(x) - (y - x) - log(product)
    return found
