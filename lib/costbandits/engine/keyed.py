"""Random numbers with a name: a generator whose state is a function of a key and a place, and of nothing else.

A block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) is a bijection of 128 bits
for each key, so two places of one key never start from the same state. From there SFC64 (Doty-Humphrey; NumPy has it,
too) runs on: it is three times faster. The state is an array of four unsigned numbers.
"""

import numpy as np

from .compilation import njit

U = np.uint64
_LOW, _HALF = U(0xFFFFFFFF), U(32)
_M0, _M1, _W0, _W1 = U(0xD2511F53), U(0xCD9E8D57), U(0x9E3779B9), U(0xBB67AE85)
_1, _3, _11, _24, _40 = U(1), U(3), U(11), U(24), U(40)
UNIT = 2.0**-53


@njit()
def philox(key, a, b, c, d):
    """The block of the counter (a, b, c, d), each unsigned below 2**32, under a key of 64 bits: two numbers like it."""
    k0, k1 = key & _LOW, key >> _HALF
    for _ in range(10):
        x, y = _M0 * a, _M1 * c
        a, b, c, d = (y >> _HALF) ^ b ^ k0, y & _LOW, (x >> _HALF) ^ d ^ k1, x & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return (a << _HALF) | b, (c << _HALF) | d


@njit()
def start(state, key, stream, purpose, place):
    """Let the generator begin at a place: stream below 2**31, purpose below 2**32, place any number of 64 bits."""
    near, far, stream, purpose = U(place) & _LOW, U(place) >> _HALF, U(stream) << _1, U(purpose)
    state[0], state[1] = philox(key, near, far, stream, purpose)
    state[2], _ = philox(key, near, far, stream | _1, purpose)
    state[3] = _1


@njit(forceinline=True)
def bits(state):
    """The next 64 random bits."""
    a, b, c, w = state[0], state[1], state[2], state[3]
    out = a + b + w
    state[0], state[1], state[2] = b ^ (b >> _11), c + (c << _3), ((c << _24) | (c >> _40)) + out
    state[3] = w + _1
    return out


@njit(forceinline=True)
def uniform(state):
    """A multiple of 2**-53 in [0, 1), all equally likely."""
    return (bits(state) >> _11) * UNIT


@njit()
def below(state, bound):
    """A whole number from 0 to bound - 1, all equally likely, by Lemire's product; bound is at most 2**32."""
    bound = U(bound)
    product = (bits(state) >> _HALF) * bound
    if product & _LOW < bound:
        least = (_LOW + _1 - bound) % bound
        while product & _LOW < least:
            product = (bits(state) >> _HALF) * bound
    return np.int64(product >> _HALF)
