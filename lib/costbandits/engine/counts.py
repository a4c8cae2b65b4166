"""Counts drawn exactly from a keyed generator: binomial, hypergeometric, and 64 outcomes whose counts are given.

A probability is computed in Loader's form ("Fast and accurate computation of binomial probabilities", 2000): it has no
differences of large logarithms. With cells k of expectation e, the probability is a product over the cells of
exp(-correction(k) - distance(k, e)) / sqrt(2 pi k), times a factor that does not depend on the outcome. Here distance
is k log(k / e) - k + e, and correction is what Stirling's formula lacks.

A law whose most likely value, the mode, has a large probability is inverted outwards from the mode. Other laws are
sampled by the ratio of uniforms, whose bound needs nothing but that the law is log-concave.

The law of what is drawn differs from the exact one by rounding alone. In total variation that is at most the sum of

- 1e-13 for the probabilities, as measured against 70 digits at every size. They depend on k - e, which is computed in
  whole numbers first and so is right to a relative error: no count is rounded before it is subtracted.
- 1e-14 for inversion, which sums up to a few hundred probabilities against a uniform multiple of 2**-53.
- 4 w 2**-52 for the ratio of uniforms, where w is how far proposals reach: 0.86 standard deviations for halves and for
  p = 1/2, and about 3.1 at most. For halves of 2**50 that is 7e-9, for halves of 2**62 it is 5e-7. The bound lets the
  grid of uniforms meet each value as badly as it can in every one of its rows; in truth these errors mostly cancel.
"""

import math
from decimal import Decimal, localcontext

import numpy as np

from .compilation import njit
from .keyed import below, bits, uniform
from .numerics import excess

U = np.uint64
_LOW, _HALF = U(0xFFFFFFFF), U(32)
_0, _1, _6, _63 = U(0), U(1), U(6), U(63)
TABLED = 256                    # corrections below are read from a table
INVERTED = 0.025                # laws whose mode is likelier than this are inverted: standard deviations below 16
NEGLIGIBLE = 1e-18
FAR = 2.0**61                   # no count can be that far from the mode
ZERO = 1 / (2 * math.pi)        # what stands for k in sqrt(2 pi k) where k = 0
PI = "3.14159265358979323846264338327950288419716939937510"


def _corrections():
    """Log k! - (k + 1/2) log k + k - log(2 pi) / 2 with 40 digits, then rounded; 0 for k = 0."""
    with localcontext(prec=40):
        half, constant = Decimal("0.5"), (2 * Decimal(PI)).ln() / 2
        return np.array([0.0, *(float(Decimal(math.factorial(k)).ln() - (k + half) * Decimal(k).ln() + k - constant)
                                for k in range(1, TABLED))])


CORRECTION = _corrections()


@njit()
def _correction(k):
    """What Stirling's formula for log k! lacks."""
    if k < TABLED:
        return CORRECTION[k]
    inverse = 1.0 / float(k)
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))


@njit()
def _distance(k, mean, away):
    """The distance k log(k / mean) - k + mean, where away = k - mean is known without loss."""
    ratio = away / (k + mean)
    if abs(ratio) < 0.1:
        s = ratio * ratio
        tail = 1 / 9 + s * (1 / 11 + s * (1 / 13 + s / 15))
        return ratio * (away + 2.0 * k * s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * tail))))
    return -away if k == 0 else k * math.log(k / mean) - away


@njit()
def _cell(k, mean, away):
    """The logarithm of a cell's factor without its square root, negative."""
    return _correction(k) + _distance(float(k), mean, away)


@njit()
def _root(k):
    """What stands under the square root for a cell."""
    return float(k) if k > 0 else ZERO


@njit()
def _wide(a, b):
    """The product of two whole numbers below 2**63: its upper and its lower 64 bits."""
    a, b = U(a), U(b)
    lower, left, right = (a & _LOW) * (b & _LOW), (a >> _HALF) * (b & _LOW), (a & _LOW) * (b >> _HALF)
    middle = (lower >> _HALF) + (left & _LOW) + (right & _LOW)
    return (a >> _HALF) * (b >> _HALF) + (left >> _HALF) + (right >> _HALF) + (middle >> _HALF), a * b


@njit()
def _carry(base, part):
    """Both with the whole part of `part` moved to `base`."""
    whole = math.floor(part)
    return base + np.int64(whole), part - whole


@njit()
def _quotient(a, b, total):
    """The number a b / total, as a whole number and a fraction; a and b are at most total."""
    base = np.int64(float(a) * float(b) / float(total) * (1 - 2.0**-50))        # too small, if anything
    upper, lower = _wide(a, b)
    upper_base, lower_base = _wide(base, total)
    rest = float(upper - upper_base - U(lower < lower_base)) * 2.0**64 + float(lower - lower_base)
    return _carry(base, rest / float(total))


@njit()
def _product(N, p):
    """The number N p, as a whole number and a fraction."""
    large = float(N)
    small = float(N - np.int64(large))
    high = large * p
    base = np.int64(high)
    return _carry(base, (high - float(base)) + (excess(large, p, high) + small * p))


@njit()
def _binomial_law(N, p):
    """What `_binomial_weight` needs, and the factor that makes probabilities of its weights."""
    base, part = _product(N, p)
    law = N, base, part, float(N) * p, float(N) * (1 - p)
    return law, math.exp(_correction(N)) * math.sqrt(float(N) * ZERO)


@njit()
def _binomial_weight(x, law):
    """The probability of x, up to a factor."""
    N, base, part, mean, rest = law
    away = float(x - base) - part
    return math.exp(-_cell(x, mean, away) - _cell(N - x, rest, -away)) / math.sqrt(_root(x) * _root(N - x))


@njit()
def _hypergeometric_law(total, marked, drawn):
    """What `_hypergeometric_weight` needs, and the factor that makes probabilities of its weights."""
    base, part = _quotient(marked, drawn, total)
    others, left = total - marked, total - drawn
    a, b, c, d, all_ = float(marked), float(others), float(drawn), float(left), float(total)
    law = marked, drawn, others - drawn, base, part, a * c / all_, a * d / all_, b * c / all_, b * d / all_
    margins = _correction(marked) + _correction(others) + _correction(drawn) + _correction(left)
    return law, math.exp(margins - _correction(total)) * math.sqrt(a * b * c * d / all_ * ZERO)


@njit()
def _hypergeometric_weight(x, law):
    """The probability of x, up to a factor."""
    marked, drawn, rest, base, part, mean, mean_a, mean_b, mean_c = law
    away = float(x - base) - part
    a, b, c = marked - x, drawn - x, rest + x
    exponent = _cell(x, mean, away) + _cell(a, mean_a, -away) + _cell(b, mean_b, -away) + _cell(c, mean_c, away)
    return math.exp(-exponent) / math.sqrt(_root(x) * _root(a) * _root(b) * _root(c))


@njit(forceinline=True)
def _invert(state, chance, a, b, c, d, step):
    """How far from a value of probability `chance` a draw is, by inversion outwards from there, above before below.

    The probability of the value j above, divided into the next one's, is (a - j) (b - step j) to
    (c + j + 1) (d + step (j + 1)): step is 1 for a hypergeometric law and 0 for a binomial one. Beyond the support
    probabilities are 0 and stay 0. What rounding leaves over (about 1e-15) goes to the value itself.
    """
    u = uniform(state) - chance
    above = below_ = chance
    j = 0.0
    while u >= 0 and above + below_ > NEGLIGIBLE:
        above *= (a - j) * (b - step * j) / ((c + j + 1) * (d + step * (j + 1)))
        below_ *= (c - j) * (d - step * j) / ((a + j + 1) * (b + step * (j + 1)))
        j += 1
        u -= above
        if u < 0:
            return np.int64(j)
        u -= below_
        if u < 0:
            return np.int64(-j)
    return np.int64(0)


@njit()
def _width(chance, bend):
    """How far to either side of the mode proposals must reach.

    Let f(y) be the probability of mode + round(y), divided by that of the mode, `chance`. The ratio of uniforms needs
    a bound of |y| sqrt(f(y)). There are two, and the better one counts.

    Devroye (1987): every log-concave law has f(y) <= exp(1 + chance / 2 - chance |y|). The bound is largest at
    |y| = 2 / chance.

    If the logarithm of the ratio of neighbours falls by at least `bend` from each value to the next, then
    f(y) <= exp(bend / 8 - bend (|y| - 1)**2 / 2) for |y| >= 1. This bound is largest where
    |y| (|y| - 1) = 2 / bend. It is the better one, and close to a normal law, for halves and for p = 1/2.
    """
    y = 0.5 + math.sqrt(0.25 + 2 / bend)
    if y < 2 / chance:
        return y * math.exp(bend / 16 + 0.5 / y - 0.5)
    return 2 / chance * math.exp(chance / 4 - 0.5)


@njit(forceinline=True)
def _propose(state, width):
    """A distance from the mode, and the square that f of it must reach: a ratio of uniforms."""
    v = 1.0 - uniform(state)
    y = (2.0 * uniform(state) - 1.0) * width / v
    return np.int64(math.floor(min(max(y, -FAR), FAR) + 0.5)), v * v


@njit()
def binomial(state, N, p):
    """The number of successes among N trials of probability p; N is at most 2**62.

    The ratio of neighbours is (N - x) p to (x + 1) (1 - p). Its logarithm falls at a rate of 1 / (N - x) + 1 / (x + 1),
    which is at least 4 / (N + 1).
    """
    if N == 0 or p <= 0:        # pragma: no cover - in compiled draws
        return np.int64(0)
    if p >= 1:                  # pragma: no cover - in compiled draws
        return np.int64(N)
    law, scale = _binomial_law(N, p)
    q, mode = 1 - p, law[1]
    if float(N - mode) * p > float(mode + 1) * q:          # the mode is the mean, rounded down or up
        mode += 1
    top = _binomial_weight(mode, law)
    if scale * top > INVERTED:
        return mode + _invert(state, scale * top, float(N - mode), p, float(mode), q, 0.0)
    width = _width(scale * top, 4 / (float(N) + 1))
    while True:
        away, square = _propose(state, width)
        x = mode + away
        if 0 <= x <= N and square * top <= _binomial_weight(x, law):
            return x


@njit()
def hypergeometric(state, total, marked, drawn):
    """The number of marked ones among `drawn` of `total`, of which `marked` are marked; total is at most 2**62.

    The ratio of neighbours is a b to (x + 1) (c + 1) for the cells x, a = marked - x, b = drawn - x and c. Its
    logarithm falls at a rate of 1/a + 1/b + 1/(x + 1) + 1/(c + 1), where 1/a + 1/(x + 1) is at least 4 / (marked + 1),
    and so on. Where only one value is possible nothing is drawn.
    """
    least, most = max(0, marked + drawn - total), min(marked, drawn)
    if least == most:
        return np.int64(least)
    law, scale = _hypergeometric_law(total, marked, drawn)
    rest, mode = law[2], law[3]
    if float(marked - mode) * float(drawn - mode) > float(mode + 1) * float(rest + mode + 1):
        mode += 1                                          # the mode is the mean, rounded down or up
    top = _hypergeometric_weight(mode, law)
    if scale * top > INVERTED:
        return mode + _invert(state, scale * top, float(marked - mode), float(drawn - mode), float(mode),
                              float(rest + mode), 1.0)
    bend = max(1 / (float(marked) + 1) + 1 / (float(total - marked) + 1),
               1 / (float(drawn) + 1) + 1 / (float(total - drawn) + 1))
    width = _width(scale * top, 4 * bend)
    while True:
        away, square = _propose(state, width)
        x = mode + away
        if least <= x <= most and square * top <= _hypergeometric_weight(x, law):
            return x


@njit()
def _ones(word):
    """How many bits of a word are set: sums of bits in pairs, fours, bytes, and the sum of the bytes."""
    word = word - ((word >> _1) & U(0x5555555555555555))
    word = (word & U(0x3333333333333333)) + ((word >> U(2)) & U(0x3333333333333333))
    word = (word + (word >> U(4))) & U(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * U(0x0101010101010101)) >> U(56))


@njit(forceinline=True)
def _subset(state, ones):
    """A word of 64 bits with that many set, all such words equally likely.

    Bits are set one after the other, at positions drawn until a free one comes. From 22 on a random word is a shorter
    way to begin: given their number, its bits are a random subset, which is then filled up or (as its complement)
    thinned out.
    """
    few = min(ones, 64 - ones)
    word, missing, turned = _0, few, few != ones
    if few > 21:
        word = bits(state)
        missing = few - _ones(word)
        if missing < 0:
            word, missing, turned = ~word, -missing, not turned
    while missing > 0:
        pool = bits(state)
        for _ in range(10):                                # ten positions of 6 bits
            bit = _1 << (pool & _63)
            missing -= (word & bit) == 0
            word |= bit
            if missing == 0:
                break
            pool >>= _6
    return ~word if turned else word


@njit()
def _shuffle(state, counts, values, out):
    """What `scatter` does, for any number of values: Fisher and Yates, but the most common need no shuffle."""
    common, at = 0, 0                                      # np.argmax(counts) costs 30 ns
    for v in range(1, len(counts)):
        if counts[v] > counts[common]:
            common = v
    for v in range(len(counts)):
        if v != common:
            for _ in range(counts[v]):
                out[at] = values[v]
                at += 1
    for i in range(at, 64):
        out[i] = values[common]
    for i in range(at):
        j = i + below(state, 64 - i)
        out[i], out[j] = out[j], out[i]


@njit(forceinline=True)             # a call that counts references to four arrays costs 30 ns
def scatter(state, counts, values, out):
    """Write 64 outcomes, of which counts[v] are values[v], to `out` in random order, all orders equally likely.

    The counts are whole numbers with the sum 64.
    """
    if len(counts) == 2:
        word = _subset(state, counts[1])
        for i in range(64):
            out[i] = values[np.int64(word & _1)]
            word >>= _1
    else:
        _shuffle(state, counts, values, out)
