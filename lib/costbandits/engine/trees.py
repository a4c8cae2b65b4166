"""The outcomes of an arm as a tree, of which only what a run asks for is ever drawn.

The sequence of an arm's rewards, or of its costs, is cut into *leaves* of 64 outcomes. Two neighbours make a node of
level 1, two of those one of level 2, and so on; node j of level l begins at outcome 64 * 2**l * j. The *roots* are leaf
0 and, for each l, node 1 of level l: they lie side by side and have no end.

Of an outcome with finitely many values a root's counts are drawn first: how often each value occurs is multinomial.
How many of them fall into the first half of a node is then hypergeometric, and a leaf is a random arrangement of its
counts. Independent draws are exchangeable, so this is their law, exactly. All that belongs to a node is drawn from a
generator that begins at (key, stream, node): the outcomes do not depend on who reads them, how far, or in which order.
If reward and cost of a pull depend on each other, what is counted and arranged are pairs, from one stream for both.

Other laws fill their leaves by sampling: the reader's own, and those of too many values, in Python (`Stacks.read_on`),
for which loops return.
"""

import numpy as np
from numba import types as T

from .compilation import apart, njit
from .continuous import beta, clipped_log_normal, truncated_normal
from .counts import binomial, hypergeometric, scatter
from .keyed import start
from .state import ARMS, OUTCOMES

SHIFT = 6
LEAF = 1 << SHIFT
DEPTH = 64                          # room on a stack; pulls are below 2**62
BETA, NORMAL, TYPED, LOG_NORMAL = -1, -2, -3, -4    # kinds of laws whose values are not counted
PARAMETERS = 7                      # of a law, at most
# Columns of `Outcomes.trees`. Of the last two there are two each, for rewards and for costs.
HOME, ARM, USED, KIND, STREAM = 0, 1, 2, 3, 5
NODE, LEFT, READER, PLACE, FIRST = range(5)    # columns of `kept`
ROOT, SPLIT, LEAVES = range(3)      # what is drawn at a node
KEPT = 1 << 40                      # nodes further on are not kept for other policies
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

_inline = njit(inline="always")


@_inline
def is_counted(k, outcomes):
    """Whether rewards and costs of a position have finitely many values, so that they come in blocks."""
    return outcomes.trees[k, KIND] > 0 and outcomes.trees[k, KIND + 1] > 0


@_inline
def is_typed(k, outcomes):
    """Whether a law of a position must be sampled in Python."""
    return outcomes.trees[k, KIND] == TYPED or outcomes.trees[k, KIND + 1] == TYPED


@_inline
def are_pairs(k, trees):
    """Whether reward and cost of a position are read by one stream: then they are counted once."""
    return trees[k, STREAM] == trees[k, STREAM + 1]


@_inline
def slot_of(tag, kept):
    """Where the table of nodes and leaves has room for this one."""
    return np.int64((np.uint64(tag) * _SPREAD) >> np.uint64(32)) & (kept.shape[0] - 1)


@_inline
def tag_of(k, column, place, trees):
    """A number for a node of one stream, unlike those of all others; 0 if it is too far away to be kept."""
    return (place * 2 * trees.shape[0] + 2 * trees[k, ARM] + column) + 1 if place < KEPT else 0


@njit()
def add_root(k, n, trees, laws, level, counts, random):
    """Put the root that begins at outcome n on the empty stack."""
    size, leaf, V = 0, n >> SHIFT, counts.shape[3]
    while leaf > 1 << size:
        size += 1
    pairs = are_pairs(k, trees)
    for column in range(2 - pairs):
        kind, rest = trees[k, KIND + column], LEAF << size
        if kind > 1:
            start(random, random[4], trees[k, STREAM + column], ROOT, (2 * (leaf >> size) + 1) << size)
        for v in range(kind - 1):
            counts[k, column, 1, v] = binomial(random, rest, laws[k, column, V + v])
            rest -= counts[k, column, 1, v]
        if kind > 0:
            counts[k, column, 1, kind - 1] = rest
    for v in range(V if pairs else 0):          # to assign whole arrays takes Numba two seconds more
        counts[k, 1, 1, v] = counts[k, 0, 1, v]
    level[k, 1], level[k, 0] = size, 1


@njit()
def split(k, n, trees, level, counts, kept, random):
    """Replace the block that begins at outcome n by its halves."""
    d = level[k, 0]
    size = level[k, d] - 1
    place, half = (2 * (n >> (SHIFT + size + 1)) + 1) << (size + 1), LEAF << size
    pairs = are_pairs(k, trees)
    for column in range(2 - pairs):
        kind, tag = trees[k, KIND + column], tag_of(k, column, place, trees)
        slot, total, rest = slot_of(tag, kept), 2 * half, half
        known = tag > 0 and kept[slot, NODE] == tag
        if kind > 1 and not known:
            start(random, random[4], trees[k, STREAM + column], SPLIT, place)
            kept[slot, NODE] = tag
        for v in range(kind):
            whole = counts[k, column, d, v]
            first = kept[slot, FIRST + v] if known else rest
            if not known and v < kind - 1:
                first = hypergeometric(random, total, whole, rest)
            if kind > 1:                # else the slot is another node's
                kept[slot, FIRST + v] = first
            counts[k, column, d, v], counts[k, column, d + 1, v] = whole - first, first
            total, rest = total - whole, rest - first
    for v in range(counts.shape[3] if pairs else 0):
        counts[k, 1, d, v], counts[k, 1, d + 1, v] = counts[k, 0, d, v], counts[k, 0, d + 1, v]
    level[k, d] = level[k, d + 1] = size
    level[k, 0] = d + 1


@apart(T.int64(T.int64, T.int64, T.int64, OUTCOMES))
def block(k, n, most, outcomes):
    """How many outcomes the next block holds, of no more than `most`, which is LEAF or more; n is a leaf's border."""
    _, _, _, trees, laws, level, counts, kept, random = outcomes
    if level[k, 0] == 0:
        add_root(k, n, trees, laws, level, counts, random)
    while LEAF << level[k, level[k, 0]] > most:
        split(k, n, trees, level, counts, kept, random)
    return LEAF << level[k, level[k, 0]]


@_inline
def total(k, column, outcomes):
    """The sum of the next block's outcomes."""
    found, d = 0.0, outcomes.level[k, 0]
    for v in range(outcomes.trees[k, KIND + column]):
        found += outcomes.counts[k, column, d, v] * outcomes.laws[k, column, v]
    return found


@_inline
def take(k, trees, level, counts):
    """Count the next block as read."""
    d = level[k, 0]
    for column in range(2):
        for v in range(trees[k, KIND + column]):
            counts[k, column, 0, v] += counts[k, column, d, v]
    level[k, 0] = d - 1


@_inline
def added_up(k, column, outcomes):
    """The sum of all outcomes that were read, and of their squares, from their counts."""
    once, squares = 0.0, 0.0
    for v in range(outcomes.trees[k, KIND + column]):
        value, often = outcomes.laws[k, column, v], outcomes.counts[k, column, 0, v]
        once += often * value
        squares += often * (value * value)
    return once, squares


@_inline
def settle(k, arms, outcomes):
    """The sums of all that was read, from its counts: they don't depend on how it was cut into blocks."""
    if outcomes.trees[k, KIND] > 0:
        arms.reward[k], arms.reward_sq[k] = added_up(k, 0, outcomes)
    if outcomes.trees[k, KIND + 1] > 0:
        arms.cost[k], arms.cost_sq[k] = added_up(k, 1, outcomes)


@apart(T.void(T.int64, T.int64, T.int64, T.int64, OUTCOMES))
def draw_leaf(k, column, n, row, outcomes):
    """Write the outcomes of the leaf that begins at outcome n into a column of the pool."""
    pool, _, _, trees, laws, level, counts, _, random = outcomes
    kind, out, V = trees[k, KIND + column], pool[row:row + LEAF, column], counts.shape[3]
    if kind == 1:
        out[:] = laws[k, column, 0]
    elif kind != TYPED:
        start(random, random[4], trees[k, STREAM + column], LEAVES, 2 * (n >> SHIFT) + 1)
        p = laws[k, column, 2 * V:]
        if kind > 1:
            scatter(random, counts[k, column, level[k, 0], :kind], laws[k, column], out)
        elif kind == BETA:
            beta(random, p[0], p[1], out)
        elif kind == NORMAL:
            truncated_normal(random, p, out)
        else:
            clipped_log_normal(random, p, out)


@apart(T.void(T.int64, T.int64, T.int64, T.boolean, OUTCOMES))
def read_leaf(k, n, row, known, outcomes):
    """Count the leaf that begins at outcome n as read, and write it into the pool unless it is known to be there."""
    counted = outcomes.trees[k, KIND] > 0 or outcomes.trees[k, KIND + 1] > 0
    if counted:
        block(k, n, LEAF, outcomes)
    if not known:
        for column in range(2):
            draw_leaf(k, column, n, row, outcomes)
    if counted:
        take(k, outcomes.trees, outcomes.level, outcomes.counts)


@apart(T.void(T.int64, ARMS, OUTCOMES))
def read_on(k, arms, outcomes):
    """After the last outcome that is in the pool: settle the sums, and read the next leaf unless it must be typed.

    A leaf stays in the pool for the other policies until another one needs its slot, and while it is being read. Slots
    get their places in the pool as they are needed: what is read together lies together.
    """
    at, filled, trees, kept = outcomes.at, outcomes.filled, outcomes.trees, outcomes.kept
    settle(k, arms, outcomes)
    if is_typed(k, outcomes):
        return
    i, row = arms.n[k], trees[k, HOME]
    tag = tag_of(k, 0, 2 * (i >> SHIFT) + 1, trees)
    slot = slot_of(tag, kept)
    mine, reader = tag > 0 and kept[slot, LEFT] == tag, kept[slot, READER]
    being_read = kept[slot, LEFT] > 0 and at[reader] + filled[reader] == (kept[slot, PLACE] + 1) << SHIFT
    if mine or (tag > 0 and not being_read):
        if kept[slot, PLACE] == 0:
            kept[slot, PLACE] = trees.shape[0] + trees[0, USED]
            trees[0, USED] += 1
        row = kept[slot, PLACE] << SHIFT
        kept[slot, LEFT], kept[slot, READER] = tag, k
    read_leaf(k, i, row, mine, outcomes)
    at[k], filled[k] = row - i, i + LEAF


@apart(T.void(ARMS, OUTCOMES))
def read_on_all(arms, outcomes):
    """Read on at each position of which all that was read has been pulled."""
    for k in range(arms.n.size):
        if arms.n[k] == outcomes.filled[k]:
            read_on(k, arms, outcomes)


@apart(T.void(T.int64, ARMS, OUTCOMES))
def skip(k, arms, outcomes):
    """Pull the next block as a whole."""
    level = outcomes.level
    arms.n[k] += LEAF << level[k, level[k, 0]]
    outcomes.filled[k] = arms.n[k]
    take(k, outcomes.trees, level, outcomes.counts)
    settle(k, arms, outcomes)
