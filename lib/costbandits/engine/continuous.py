"""Continuous outcomes from the keyed generator: exact samplers that fill the leaves of a stack.

Normal and exponential numbers come from ziggurats (Marsaglia and Tsang, "The ziggurat method for generating random
variables", 2000): the region under the density is covered by a strip with a tail and by rectangles, all of the same
area. The low bits of a word choose one of them, the high bits a point in it, which is nearly always below the density.

A Beta is the share of one Gamma in two. Gammas come from the cube of a normal number (Marsaglia and Tsang, "A simple
method for generating gamma variables", 2000). One uniform number decides whether both are kept or both drawn again.
"""

from math import erfc, exp, inf, log, pi, sqrt

import numpy as np

from .compilation import njit
from .keyed import UNIT, U, bits, uniform

LAYERS = 256
_1, _11, _LAYER = U(1), U(11), U(LAYERS - 1)


def _layers(density, inverse, start, tail):
    """Right ends of the layers of a ziggurat from the bottom to the top, and the density there.

    The second layer ends at `start`, beyond which `tail` is the area. The first end is that of a rectangle with the
    area of strip and tail; the last is 0, and `start` is right if the last layer has the same area, too.
    """
    area, ends = start * density(start) + tail, [start]
    while len(ends) < LAYERS - 1:
        ends.append(inverse(density(ends[-1]) + area / ends[-1]))
    ends = [area / density(start), *ends, 0.0]
    return np.array(ends), np.array([density(x) for x in ends])


START, EXP_START = 3.6541528853610088, 7.69711747013105       # where the top layer closes
X, DENSITY = _layers(lambda x: exp(-0.5 * x * x), lambda y: sqrt(-2.0 * log(y)), START,
                     sqrt(pi / 2) * erfc(START / sqrt(2)))
EXP_X, EXP_DENSITY = _layers(lambda x: exp(-x), lambda y: -log(y), EXP_START, exp(-EXP_START))


# Inlined by LLVM: to count references to the state at each call takes five times as long.

@njit(forceinline=True)
def exponential(state):
    """A draw of the exponential law with mean 1."""
    start = 0.0
    while True:
        word = bits(state)
        layer = word & _LAYER
        x = (word >> _11) * UNIT * EXP_X[layer]
        if x < EXP_X[layer + _1]:
            return start + x
        if layer == 0:
            start += EXP_START                            # beyond it the law begins anew
        elif EXP_DENSITY[layer] + uniform(state) * (EXP_DENSITY[layer + _1] - EXP_DENSITY[layer]) < exp(-x):
            return start + x


@njit(forceinline=True)
def tail(state):
    """A draw of the standard normal law beyond START (Marsaglia, 1964)."""
    beyond, room = 1.0, 0.0
    while room <= beyond * beyond:
        beyond, room = -log(1.0 - uniform(state)) / START, -2.0 * log(1.0 - uniform(state))
    return START + beyond


@njit(forceinline=True)
def normal(state):
    """A draw of the standard normal law."""
    while True:
        word = bits(state)
        layer = word & _LAYER
        x = ((word >> _11) * (2.0 * UNIT) - 1.0) * X[layer]
        if abs(x) < X[layer + _1]:
            return x
        if layer == 0:
            return tail(state) if x > 0.0 else -tail(state)
        if DENSITY[layer] + uniform(state) * (DENSITY[layer + _1] - DENSITY[layer]) < exp(-0.5 * x * x):
            return x


@njit(forceinline=True)
def refused(d, w):
    """Upper bound on the probability with which the Gamma d (1 + w)^3 is refused, for d of 2/3 or more."""
    return d * (w * w) * (w * w) * (0.75 + w * (0.82 * w - 0.6))


@njit()
def log_kept(d, w):
    """Logarithm of the probability with which that Gamma is kept, for w above -1; 9 d w^2 is the normal's square."""
    v = (1.0 + w) * (1.0 + w) * (1.0 + w)
    return d * (4.5 * w * w + 1.0 - v + 3.0 * log(1.0 + w))


@njit()
def beta(state, a, b, out):
    """Fill a 1-D array with independent draws of Beta(a, b), for all a, b above 0.

    A Gamma of a shape a below 1 is one of shape a + 1 times U^(1/a), which can be too small for a number: only the
    ratio of the two powers is computed, from its logarithm.
    """
    d, e = a + (a < 1.0) - 1.0 / 3.0, b + (b < 1.0) - 1.0 / 3.0
    sd, se, top = 1.0 / (3.0 * sqrt(d)), 1.0 / (3.0 * sqrt(e)), max(d, e)
    # So that 1/a is finite; which is larger does not change, and their ratio is beyond all numbers either way.
    scale = 1e100 if max(a, b) < 1e-200 else 1.0
    for i in range(len(out)):
        w = y = u = 0.0
        while True:
            w, y, u = sd * normal(state), se * normal(state), 1.0 - uniform(state)
            if w > -1.0 and y > -1.0 and (u < 1.0 - refused(d, w) - refused(e, y)
                                          or log(u) < log_kept(d, w) + log_kept(e, y)):
                break
        x, y = d / top * ((1.0 + w) * (1.0 + w) * (1.0 + w)), e / top * ((1.0 + y) * (1.0 + y) * (1.0 + y))
        if a < 1.0 or b < 1.0:
            power = 0.0
            if a < 1.0:
                power -= exponential(state) / (scale * a)
            if b < 1.0:
                power += exponential(state) / (scale * b)
            small = exp(-abs(power))
            x, y = x * (small if power < 0.0 else 1.0), y * (1.0 if power < 0.0 else small)
        out[i] = x / (x + y)


# Coefficients of PPND16 (Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988), from the
# highest power down: numerators and denominators near the median, in the tails, and far out.
MIDDLE = (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
          13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608)
MIDDLE_OVER = (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
               5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0)
TAIL = (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
        3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734)
TAIL_OVER = (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
             0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0)
FAR = (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
       0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772)
FAR_OVER = (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
            0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0)


@njit(forceinline=True)
def ratio(x, over, under):
    """The value at x of one polynomial over that of another."""
    p, q = over[0], under[0]
    for i in range(1, len(over)):
        p, q = p * x + over[i], q * x + under[i]
    return p / q


@njit()
def quantile(p):
    """The standard normal law's quantile: the inverse of its cdf, for p in [0, 1]."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * ratio(0.180625 - q * q, MIDDLE, MIDDLE_OVER)
    rest = p if q < 0.0 else 1.0 - p
    z = inf
    if rest > 0.0:
        r = sqrt(-log(rest))
        z = ratio(r - 1.6, TAIL, TAIL_OVER) if r <= 5.0 else ratio(r - 5.0, FAR, FAR_OVER)
    return -z if q < 0.0 else z


@njit()
def truncated_normal(state, law, out):
    """Fill a 1-D array with draws of a normal law conditioned to [low, high], by inversion.

    `law` holds the parent's mean and sd, low, high, and the attributes `_ends` and `_side` of `TruncatedNormal`.
    """
    mean, sd, low, high, start, end, side = law[0], law[1], law[2], law[3], law[4], law[5], law[6]
    for i in range(len(out)):
        z = side * quantile(start + (end - start) * uniform(state))
        out[i] = min(max(mean + sd * z, low), high)


@njit()
def clipped_log_normal(state, law, out):
    """Fill a 1-D array with draws of exp(mean + sd Z), clipped to [low, high]; law: mean, sd, low, high, log high."""
    for i in range(len(out)):
        x = min(law[0] + law[1] * normal(state), law[4])
        out[i] = min(max(exp(x), law[2]), law[3])
