"""Keyed random numbers are Philox and SFC64 to the bit, and places of a key have nothing to do with each other.

`LEVEL` is the probability that a right generator, with other keys, fails in a statistical test: for a whole test, split
evenly over its cases.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import digest, in_plain_python
from scipy import stats

from costbandits.engine import keyed
from costbandits.engine.compilation import compiled_for
from costbandits.engine.keyed import U, below, bits, start, uniform

LEVEL = 1e-6
WORDS = st.integers(0, 2**64 - 1)


@compiled_for()
def words(state, out):
    for i in range(len(out)):
        out[i] = bits(state)


@compiled_for()
def units(state, out):
    for i in range(len(out)):
        out[i] = uniform(state)


@compiled_for()
def whole_numbers(state, bound, out):
    for i in range(len(out)):
        out[i] = below(state, bound)


@compiled_for()
def first_words(keys, streams, purposes, places, states, out):
    """The state and the first words at many places."""
    for i in range(len(keys)):
        start(states[i], keys[i], streams[i], purposes[i], places[i])
        state = states[i].copy()
        for j in range(out.shape[1]):
            out[i, j] = bits(state)


def unsigned(*numbers):
    return np.array(numbers, np.uint64)


def begun(key, stream, purpose, place):
    state = np.zeros(4, np.uint64)
    keyed.start(state, U(key), stream, purpose, U(place))
    return state


def sfc64(state):
    """NumPy's generator in the same state."""
    generator = np.random.SFC64()
    generator.state = {**generator.state, "state": {"state": state.copy()}}
    return generator


# --- the published algorithms

@pytest.mark.parametrize(("counter", "key", "block"), [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1")])
def test_philox_is_that_of_the_known_answers(counter, key, block):
    """Those that come with Random123."""
    low, high = (int(word, 16) for word in key.split())
    first, second = keyed.philox(U(high << 32 | low), *(U(int(word, 16)) for word in counter.split()))
    assert f"{int(first):016x}{int(second):016x}" == block.replace(" ", "")


@given(state=st.lists(WORDS, min_size=4, max_size=4))
def test_bits_are_those_of_sfc64(state):
    out, state = np.zeros(40, np.uint64), unsigned(*state)
    expected = sfc64(state).random_raw(40)
    words(state, out)
    assert out.tolist() == expected.tolist()


def test_uniform_is_that_of_numpy():
    state, out = begun(1, 2, 3, 4), np.zeros(1000)
    expected = np.random.Generator(sfc64(state)).random(1000)
    units(state, out)
    assert out.tolist() == expected.tolist()


def test_a_place_is_two_blocks_of_philox():
    """Counters of different places differ; the number behind `stream << 1` is that of the block."""
    key, place = 0x0123456789ABCDEF, 0xFEDCBA9876543210
    near, far = U(place & 0xFFFFFFFF), U(place >> 32)
    one = keyed.philox(U(key), near, far, U(2 * 77), U(5))
    two = keyed.philox(U(key), near, far, U(2 * 77 + 1), U(5))
    assert begun(key, 77, 5, place).tolist() == [*map(int, one), int(two[0]), 1]


# --- whole numbers below a bound

def refusing(generator, bound):
    """Lemire's product, as he has it: whatever would make some numbers likelier is refused."""
    while True:
        product = (int(generator.random_raw()) >> 32) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


@given(key=WORDS, bound=st.one_of(st.integers(1, 2**32), st.sampled_from([1, 2, 3, 64, 2**31, 2**31 + 1, 3 * 2**30,
                                                                          2**32 - 1, 2**32])))
def test_below_refuses_what_would_be_biased(key, bound):
    state, out = begun(key, 0, 0, 0), np.zeros(30, np.int64)
    generator = sfc64(state)
    whole_numbers(state, bound, out)
    assert out.tolist() == [refusing(generator, bound) for _ in out]
    assert state.tolist() == generator.state["state"]["state"].tolist()      # nothing else was drawn


BOUNDS = [2, 3, 5, 7, 10, 63, 64, 100, 1000]
COARSE = [(3 * 2**30, 3), (2**32 - 2**30 + 1, 7), (2**31 + 1, 2), (2**32, 64), (2**32 - 1, 5)]


@pytest.mark.parametrize(("bound", "cells"), [(bound, bound) for bound in BOUNDS] + COARSE)
def test_below_is_uniform(bound, cells):
    """By the rest after division by `cells`: of 3 * 2**30 numbers a third would be twice as likely without refusal."""
    out = np.zeros(200_000, np.int64)
    whole_numbers(begun(1, 2, 3, bound), bound, out)
    assert 0 <= out.min() and out.max() < bound
    expected = [(bound - rest + cells - 1) // cells / bound * len(out) for rest in range(cells)]
    assert stats.chisquare(np.bincount(out % cells, minlength=cells), expected).pvalue > LEVEL / len(BOUNDS + COARSE)


# --- places

EDGES = [0, 1, 2, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**61, 2**62, 2**63, 2**64 - 1]


def test_no_two_places_begin_alike():
    places = [(0, stream, purpose, place) for stream in (0, 1, 2, 3, 2**30, 2**31 - 1)
              for purpose in (0, 1, 2, 3, 2**32 - 1) for place in EDGES]
    columns = [unsigned(*column) for column in zip(*places, strict=True)]
    states, out = np.zeros((len(places), 4), np.uint64), np.zeros((len(places), 1), np.uint64)
    first_words(*columns, states, out)
    assert len(set(map(tuple, states.tolist()))) == len(np.unique(out)) == len(places)
    for column in range(3):
        assert len(np.unique(states[:, column])) == len(places)


NEIGHBOURS = {"places": (0, 0, 0, 1), "places far on": (0, 0, 0, 2**32), "purposes": (0, 0, 1, 0),
              "streams": (0, 1, 0, 0), "keys": (1, 0, 0, 0), "keys far on": (2**32, 0, 0, 0)}


@pytest.mark.parametrize("which", NEIGHBOURS)
def test_neighbours_are_not_correlated(which):
    """Of the first four words at 20,000 neighbours each bit differs from the next one's in a half of all cases.

    So do all pairs of bits of one word, and the bits of different words.
    """
    count = 20_000
    columns = [np.arange(count, dtype=np.uint64) * U(step) for step in NEIGHBOURS[which]]
    states, out = np.zeros((count, 4), np.uint64), np.zeros((count, 4), np.uint64)
    first_words(*columns, states, out)
    ones = np.unpackbits(out.view(np.uint8).reshape(count, 32), axis=1).astype(np.float32) * 2 - 1
    here, there = ones[:-1], ones[1:]
    within, across = here.T @ here, here.T @ there
    z = np.concatenate([within[np.triu_indices(256, 1)], across.ravel(), here.sum(axis=0)]) / np.sqrt(count - 1)
    level = LEVEL / len(NEIGHBOURS) / 2
    assert np.abs(z).max() < stats.norm.isf(level / len(z) / 2)
    squares = (z**2).sum()          # of pairwise uncorrelated numbers, nearly normal
    assert abs(squares - len(z)) < stats.norm.isf(level / 2) * np.sqrt(2 * len(z))


def sampled():
    """A digest of all that is drawn at some places."""
    with np.errstate(over="ignore"):
        found = []
        for key, stream, purpose, place in [(0, 0, 0, 0), (1, 2, 3, 4), (2**64 - 1, 2**31 - 1, 2**32 - 1, 2**64 - 1)]:
            state = begun(key, stream, purpose, place)
            out = np.zeros(20, np.uint64), np.zeros(20), np.zeros(20, np.int64), np.zeros(20, np.int64)
            words(state, out[0])
            units(state, out[1])
            whole_numbers(state, 3 * 2**30, out[2])
            whole_numbers(state, 2**32, out[3])
            found += [*out, state]
        return digest(*found)


@pytest.mark.slow
def test_the_same_bits_in_plain_python():
    assert in_plain_python("test_keyed", "m.sampled()") == sampled()
