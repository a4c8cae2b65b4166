"""The arm with the largest index, found by evaluating few indices.

For an index that does not fall while its arm rests. Every arm but the leader, which was pulled last, has a bound: its
index at a later round, which is no less than at any round until then. While the leader's index exceeds all bounds it
is pulled again. Else the arms with the largest bounds are evaluated, until no bound reaches the best index. Bounds
stand in a tree: to change one, or to find the largest, takes log2(K) steps (5 to 10 ns at K = 1000).

`own` has `constant` and `params` of the index, and `search`, `tree` and `rivals`, which `new_search` makes.
"""

from math import inf

import numpy as np

from ..engine.driver import inlined, jit
from ..engine.numerics import with_slack
from ..engine.plain import index_at
from ..engine.state import new_record

LOWEST = -np.finfo(float).max      # and the largest number is -LOWEST
NEVER = 2**63 - 1

# How much of the gap to the best index a bound may close until it expires. The smaller, the more bounds expire; the
# larger, the more arms are evaluated in vain. From 1/8 to 1/4 the number of evaluations hardly changes.
SHARE = 0.125
LEAST = 8               # rounds for which a bound is good at least

# The leader; until which round no other arm's index exceeds `rival_bound`, or no earlier arm's if the leader's is
# infinite; the first arm that ties with the leader.
SEARCH = np.dtype([("leader", "i8"), ("expires", "i8"), ("rival_bound", "f8"), ("tied", "i8")])
NODE = np.dtype([("bound", "f8"), ("until", "i8")])
# How fast the arm's index last rose per round, and its last exact index; of one that ties with the leader, which is
# absent from the tree: its bound, the round until which that holds, and the next such arm.
ARM = np.dtype([("rate", "f8"), ("value", "f8"), ("bound", "f8"), ("until", "i8"), ("after", "i8")])


@inlined
def put(tree, k, bound, until):
    """Give arm k a bound that holds until this round; -inf and NEVER take the arm out of the tree."""
    one, i = np.uint64(1), np.uint64(tree.size // 2 + k)        # without a sign: no check for negative ones
    tree[i].bound, tree[i].until = bound, until
    while i > one:
        other = tree[i ^ one]
        bound, until = max(bound, other.bound), min(until, other.until)
        i = i >> one
        tree[i].bound, tree[i].until = bound, until


@inlined
def holder(column):
    """The arm from which a column of the tree has what its root has, the lowest position of several."""
    one, leaves, i = np.uint64(1), np.uint64(column.size // 2), np.uint64(1)
    while i < leaves:
        i = i << one
        i = i + np.uint64(column[i] != column[1])
    return np.int64(i - leaves)


@jit
def renew(index, t, k, value, best, own, arms, last):
    """Give arm k, whose index is `value`, a new bound, and return it: below the best index, for as long as possible.

    How long, up to 16 t rounds and round `last`, is guessed from how fast the index rose before; if the bound comes out
    too high, an eighth of the time is tried.
    """
    tree, rivals, constant, params = own.tree, own.rivals, own.constant, own.params
    known = -inf < value < inf and -inf < best < inf
    ahead, rate = min(16.0 * t, float(last - t)), rivals[k].rate
    if known and rate > 0.0:
        # Of an arm that ties with the best the bound is no help, however short it holds.
        ahead = min(SHARE * abs(best - value) / rate if value != best else float(rivals.size), ahead)
    ahead = min(max(int(ahead), LEAST), last - t)
    bound = with_slack(index_at(t + ahead, k, index, arms, constant, params))
    while bound >= best > value and ahead > LEAST:
        ahead = max(ahead // 8, LEAST)
        bound = with_slack(index_at(t + ahead, k, index, arms, constant, params))
    if -inf < value <= bound < inf:
        rivals[k].rate = (bound - value) / ahead
    put(tree, k, max(bound, LOWEST), t + ahead)
    return bound


@inlined
def lazy_argmax(index, t, own, arms, last):
    """The arm with the largest index at round t + 1, ties to the lowest position; -1 if an index is not a number.

    Since the last call only its answer may have been pulled, but for what `pulled` was told. No index is evaluated
    beyond round `last`, where it need not have a value.
    """
    search, tree, rivals, constant, params = own.search, own.tree, own.rivals, own.constant, own.params
    leaves, leader, aside = tree.size // 2, search.leader, search.tied
    arm, best = leader, index_at(t + 1, leader, index, arms, constant, params)
    sound = best == best
    rivals[leader].value, rivals[leader].after = best, aside
    k = aside
    while k >= 0:                       # bounds of arms that tied with the leader are no help
        value = index_at(t + 1, k, index, arms, constant, params)
        sound = sound and value == value
        rivals[k].value = value
        if value > best or (value == best and k < arm):
            arm, best = k, value
        k = rivals[k].after
    while sound and tree[1].until <= t:
        k = holder(tree.until)
        bound = renew(index, t, k, tree[leaves + k].bound, best, own, arms, last)
        sound = bound == bound
    aside = leader
    while sound and tree[1].bound >= best and tree[1].bound > -inf:
        k = holder(tree.bound)
        if tree[1].bound == best and k > arm:
            break
        value = index_at(t + 1, k, index, arms, constant, params)
        sound = value == value
        rivals[k].value, rivals[k].bound, rivals[k].until, rivals[k].after = (value, tree[leaves + k].bound,
                                                                      tree[leaves + k].until, aside)
        put(tree, k, -inf, NEVER)
        aside = k
        if value > best or (value == best and k < arm):
            arm, best = k, value
    tied, most, expires = -1, -inf, NEVER
    while sound and aside >= 0:
        k, aside = aside, rivals[aside].after
        if k != arm and k != leader and rivals[k].value == best and rivals[k].until > t + 1:
            rivals[k].after, tied = tied, k
            most, expires = max(most, rivals[k].bound), min(expires, rivals[k].until)
        elif k != arm:
            bound = renew(index, t, k, rivals[k].value, best, own, arms, last)
            sound = bound == bound
    search.leader, search.tied = arm, tied
    search.rival_bound, search.expires = max(most, tree[1].bound), min(expires, tree[1].until)
    if best == inf and (tree[1].bound < best or holder(tree.bound) > arm):
        search.rival_bound = -LOWEST        # later positions may be infinite, too, and earlier ones are not
    return arm if sound else -1


@jit
def pulled(k, own):
    """An arm other than the leader was pulled: its bound does not hold any more."""
    tree = own.tree
    own.search.expires = 0              # asks for a search in the next round
    if tree[tree.size // 2 + k].bound > -inf:
        put(tree, k, inf, 0)
    else:       # pragma: no cover - in compiled runs of many arms
        own.rivals[k].until = 0


def new_search(K: int) -> tuple[np.record, np.ndarray, np.ndarray]:
    """What `lazy_argmax` begins with: leader 0, and all others to be evaluated, as if they had tied with it.

    >>> search, tree, rivals = new_search(K=3)
    >>> int(search.leader), int(search.tied), rivals["after"].tolist()
    (0, 1, [-1, 2, -1])
    """
    search, tree, rivals = new_record(SEARCH), np.zeros(2 << (K - 1).bit_length(), NODE), np.zeros(K, ARM)
    tree["bound"], tree["until"] = -inf, NEVER
    rivals["after"] = np.arange(1, K + 1)
    rivals["after"][[0, -1]] = -1
    search.tied = 1 if K > 1 else -1
    return search, tree.view(np.recarray), rivals.view(np.recarray)
