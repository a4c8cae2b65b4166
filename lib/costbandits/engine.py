"""The pull loops.

Three kernels share one step, `pull`. They differ in how they choose an arm:

* `full_scan` evaluates every arm's index in every round: the reference, and the path for indices that
  may fall while their arm rests;
* `lazy_scan` plays the very same arms, but evaluates an index only when it could matter;
* `free_choice` asks a `choose` function, for everything that is not an index.

Policies come in as first-class functions of one fixed signature each (`INDEX`, `CHOICE`), so a kernel is
compiled once, cached on disk, and serves a policy typed into a notebook cell at full speed. Keep a rule and
the helpers it calls in one file: Numba's cache does not notice an edit to a callee that lives elsewhere.

A kernel returns when the run is done, when something is wrong, or when a stack ran out after a pull; in the
last case it is called again on the same arrays once more pages are drawn. All state lives in those arrays:

    n       (K,)    pulls of each position          sums   (4, K)  sums of reward, cost, reward^2, cost^2
    clock   (3,)    rounds, skips, next checkpoint  purse  (2,)    spent, collected reward
    marks   (C,)    spending at which checkpoint c is due; the run ends when the last one is passed
    pulls_at (C, K), clock_at (C, 2), purse_at (C, 2)  what was noted at each checkpoint

Within the inner loops rounds and sums are plain local numbers, and `pull` takes and returns them: the same step
with its state in arrays costs ten times as much (37 against 3 ns a pull).
"""

import math

import numba as nb
import numpy as np
from numba import types as T

INDEX_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "constant", "params")
CHOICE_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "problem", "params", "memory", "rng")

_ints, _floats = T.int64[::1], T.float64[::1]
INDEX = T.float64(T.int64, T.int64, T.float64, T.float64, T.float64, T.float64, T.float64, _floats)
CHOICE = T.int64(T.int64, _ints, _floats, _floats, _floats, _floats, _floats, _floats, _floats, T.npy_rng)

RUNNING, DONE, EMPTY, TOO_LONG, NO_SUCH_ARM, NOT_A_NUMBER = range(6)   # what a kernel returns

SLACK = 1e-9    # relative; covers the rounding of an index evaluated at two times

_stack = (T.float64[:, :, ::1], T.int32[:, ::1], _ints, T.int64)
_state = (_ints, T.float64[:, ::1], _ints, _floats)
_record = (_floats, T.int32[:, ::1], T.int64[:, ::1], T.float64[:, ::1], T.int64)


def _kernel(*extra):
    """Compile with one explicit signature: first-class rule, its own arguments, then the common ones."""
    return nb.njit(T.int64(*extra, *_stack, *_state, *_record), cache=True, nogil=True, error_model="numpy")


@nb.njit(inline="always", error_model="numpy")
def pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums, max_rounds):
    """Pull one arm and book its reward and cost; `going` is False once there is something to `settle`."""
    slot = n[arm]
    page, line = table[arm, slot >> shift], slot & ((1 << shift) - 1)
    reward, cost = pool[page, line, 0], pool[page, line, 1]
    n[arm] = slot + 1
    sums[0, arm] += reward
    sums[1, arm] += cost
    sums[2, arm] += reward * reward
    sums[3, arm] += cost * cost
    t, spent, collected = t + 1, spent + cost, collected + reward
    going = spent < due and t < max_rounds and slot + 1 < filled[arm]
    return going, t, spent, collected


@nb.njit(error_model="numpy")
def settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at, max_rounds):
    """Write the state back, note the checkpoints just passed, and say whether and why the run stops."""
    clock[0], purse[0], purse[1] = t, spent, collected
    while clock[2] < marks.size and spent >= marks[clock[2]]:
        c = clock[2]
        pulls_at[c] = n
        clock_at[c] = clock[:2]
        purse_at[c] = purse
        clock[2] = c + 1
    if clock[2] == marks.size:
        return DONE
    if t >= max_rounds:
        return TOO_LONG
    return EMPTY if n[arm] == filled[arm] else RUNNING


@_kernel(T.FunctionType(INDEX), _floats, _floats)
def full_scan(index, constant, params, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds):
    """Pull the arm with the largest index, ties to the lowest position; each arm once to begin with."""
    K, status = n.size, RUNNING
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        going, due = True, marks[clock[2]]
        while going:
            arm = t
            if t >= K:
                arm, best = 0, -math.inf
                for k in range(K):
                    value = index(t + 1, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k], params)
                    if value != value:
                        clock[0] = t
                        return NOT_A_NUMBER
                    if value > best:
                        arm, best = k, value
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


@nb.njit(inline="always", error_model="numpy")
def ceiling(value):
    """A bound that stays above `value` when rounding is not on our side."""
    return value + SLACK * abs(value) if value > -math.inf else value


@_kernel(T.FunctionType(INDEX), _floats, _floats, _floats, _ints)
def lazy_scan(index, constant, params, bound, plan, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds):
    """The same arms as `full_scan`, for an index that does not decrease while its arm rests.

    `bound[k]` is the index of k at the future round `expires`, hence no less than at any round until then. While
    the leader's exact index exceeds `rival`, the largest bound of the others, it is pulled without a scan. Else
    those whose bound reaches the best index so far are evaluated exactly. Bounds are renewed when they expire,
    then twice as far ahead, or when K evaluations were in vain, then half as far.
    """
    K, status = n.size, RUNNING
    t, spent, collected = clock[0], purse[0], purse[1]
    leader, expires, stride, wasted, rival = plan[0], plan[1], plan[2], plan[3], bound[K]
    while status == RUNNING:
        going, due = True, marks[clock[2]]
        while going:
            arm = t
            if t >= K:
                if t >= expires or wasted >= K:
                    stride = 2 * stride if wasted < K else max(stride // 2, 1)
                    expires, wasted, rival = t + stride, 0, -math.inf
                    for k in range(K):
                        bound[k] = ceiling(index(expires, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k],
                                                 constant[k], params))
                        if bound[k] != bound[k]:
                            clock[0] = t
                            return NOT_A_NUMBER
                        if k != leader and bound[k] > rival:
                            rival = bound[k]
                arm = leader
                best = index(t + 1, n[arm], sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm], constant[arm],
                             params)
                if best != best:
                    clock[0] = t
                    return NOT_A_NUMBER
                if not best > rival:
                    for k in range(K):
                        # At equal index the lower position wins, so a higher one must exceed the best to matter.
                        if k != leader and (bound[k] > best or (bound[k] == best and k < arm)):
                            value = index(t + 1, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k],
                                          params)
                            wasted += 1
                            if value > best or (value == best and k < arm):
                                arm, best = k, value
                    if arm != leader:
                        wasted -= 1
                        bound[leader] = ceiling(index(expires, n[leader], sums[0, leader], sums[1, leader],
                                                      sums[2, leader], sums[3, leader], constant[leader], params))
                        leader, rival = arm, -math.inf
                        for k in range(K):
                            if bound[k] > rival and k != leader:
                                rival = bound[k]
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    plan[0], plan[1], plan[2], plan[3], bound[K] = leader, expires, stride, wasted, rival
    return status


@_kernel(T.FunctionType(CHOICE), _floats, _floats, _floats, T.npy_rng)
def free_choice(choose, problem, params, memory, rng, pool, table, filled, shift, n, sums, clock, purse,
                marks, pulls_at, clock_at, purse_at, max_rounds):
    """Pull what `choose` says; -1 skips the round, which costs nothing but time."""
    K, status = n.size, RUNNING
    t, spent, collected = clock[0], purse[0], purse[1]
    reward, cost, reward_sq, cost_sq = sums[0], sums[1], sums[2], sums[3]
    while status == RUNNING:
        going, due, arm = True, marks[clock[2]], 0
        while going:
            chosen = choose(t + 1, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng)
            if chosen < -1 or chosen >= K:
                clock[0] = t
                return NO_SUCH_ARM
            if chosen == -1:
                t += 1
                clock[1] += 1
                going = t < max_rounds
            else:
                arm = chosen
                going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                                  max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


class Run:
    """The arrays of one run of one policy, and the kernels' calls on them."""

    def __init__(self, stacks, marks, max_rounds):
        K, C = len(stacks.filled), len(marks)
        self.stacks, self.max_rounds = stacks, max_rounds
        self.n, self.sums = np.zeros(K, np.int64), np.zeros((4, K))
        self.clock, self.purse = np.zeros(3, np.int64), np.zeros(2)
        self.marks, self.pulls_at = np.ascontiguousarray(marks, float), np.zeros((C, K), np.int32)
        self.clock_at, self.purse_at = np.zeros((C, 2), np.int64), np.zeros((C, 2))

    def play(self, kernel, *rule):
        """Call `kernel(*rule, ...)` until the run ends, drawing pages whenever a stack is empty."""
        stacks = self.stacks
        while True:
            status = kernel(*rule, stacks.pool, stacks.table, stacks.filled, stacks.shift, self.n, self.sums,
                            self.clock, self.purse, self.marks, self.pulls_at, self.clock_at, self.purse_at,
                            self.max_rounds)
            if status != EMPTY:
                return status
            for position in np.flatnonzero(self.n == stacks.filled):
                stacks.grow(position)

    def by_index(self, index, constant, params, lazy):
        """Play an index policy; `lazy` promises that the index of a resting arm never decreases."""
        if not lazy:
            return self.play(full_scan, index, constant, params)
        bound = np.full(len(self.n) + 1, np.inf)
        # Leader 0, bounds that expire before the first free round, a first stride of 1.
        return self.play(lazy_scan, index, constant, params, bound, np.array([0, 0, 1, 0]))

    def by_choice(self, choose, problem, params, memory, rng):
        """Play a `choose` policy with its own memory and random stream."""
        return self.play(free_choice, choose, problem, params, memory, rng)
