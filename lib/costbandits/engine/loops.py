"""The pull loops.

Three kernels share one step, `pull`. They differ in how they choose an arm:

* `full_scan` evaluates every arm's index in every round: the reference, and the path for indices that
  may fall while their arm rests;
* `lazy_scan` plays the very same arms, but evaluates an index only when it could matter;
* `free_choice` asks a `choose` function, for everything that is not an index.

Policies may bring a kernel of their own, made by `kernel`, from the same parts: `pull`, `seek`, `settle`, `finish`.

Policies come in as first-class functions of one fixed signature each (`INDEX`, `CHOICE`), so a kernel is
compiled once, cached on disk, and serves a policy typed into a notebook cell as well. Loops that spend their time
in the rule, as `lazy_scan` does, are compiled anew for each rule by `around`. Keep a rule and the helpers it calls
in one file: Numba's cache does not notice an edit to a callee that lives elsewhere.

A kernel returns when the run is done, when something is wrong, or when a stack ran out after a pull; in the
last case it is called again on the same arrays once more pages are drawn. All state lives in those arrays:

    n       (K,)    pulls of each position          sums   (4, K)  sums of reward, cost, reward^2, cost^2
    clock   (3,)    rounds, skips, next checkpoint  purse  (2,)    spent, collected reward
    marks   (C,)    spending at which checkpoint c is due; the run ends when the last one is passed. Where checkpoints
                    are counted in rounds these are infinite, and `Run` calls the kernel once for each
    pulls_at (C, K), clock_at (C, 2), purse_at (C, 2)  what was noted at each checkpoint
    top     (K,)    the most a pull of each position can cost, with `ceiling` and `rate`: after round t the spending may
                    not exceed ceiling + rate t, and an arm that could exceed it is not pulled. With a rate of 0 the
                    run ends when every arm could

Within the inner loops rounds and sums are plain local numbers, and `pull` takes and returns them: the same step
with its state in arrays costs ten times as much (37 against 3 ns a pull).
"""

import inspect
import math
import os
from functools import cached_property, lru_cache, partial

import numba as nb
import numpy as np
from numba import types as T

INDEX_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "constant", "params")
CHOICE_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "problem", "params", "memory", "rng")

_ints, _floats = T.int64[::1], T.float64[::1]
INDEX = T.float64(T.int64, T.int64, T.float64, T.float64, T.float64, T.float64, T.float64, _floats)
CHOICE = T.int64(T.int64, _ints, _floats, _floats, _floats, _floats, _floats, _floats, _floats, T.npy_rng)

# What a kernel returns; CLOSE: the ceiling is near, so that not every arm may still be affordable.
RUNNING, DONE, EMPTY, TOO_LONG, NO_SUCH_ARM, NOT_A_NUMBER, CLOSE, TOO_DEAR = range(8)

SKIP, IDLE = -1, -2     # what a choice returns to skip a round, or to pass one because its mixture says so

SLACK = 1e-9    # relative; covers the rounding of an index evaluated at two times

_stack = (T.float64[:, :, ::1], T.int32[:, ::1], _ints, T.int64)
_state = (_ints, T.float64[:, ::1], _ints, _floats)
_record = (_floats, T.int32[:, ::1], T.int64[:, ::1], T.float64[:, ::1], T.int64)
_limits = (_floats, T.float64, T.float64)


class Kernel:
    """A pull loop of one explicit signature, compiled when it is first called.

    Parameters
    ----------
    loop : function
    signature : Numba signature
    files : tuple of str
        What its compiled form rests on besides its own file and this one: an edit to any compiles it anew.
    cache : bool
    """

    def __init__(self, loop, signature, files=(), cache=True):
        self.py_func, self.signature, self.files, self.cache = loop, signature, files, cache

    @cached_property
    def compiled(self):
        made = nb.njit(cache=self.cache, nogil=True, error_model="numpy")(self.py_func)
        if not nb.config.DISABLE_JIT:
            if self.cache:
                # Numba's cache looks at the file of the loop only. What it calls from here counts as well.
                file, others = made._cache._cache_file, [os.stat(name) for name in (__file__, *self.files)]
                file._source_stamp = (file._source_stamp, *((other.st_mtime, other.st_size) for other in others))
                # Numba refuses whatever holds an address; that of a rule, which `around` brings, is never read.
                made._cache._impl.check_cachable = lambda result: True
            made.compile(self.signature)
            made.disable_compile()
        return made

    def __call__(self, *arguments):
        return self.compiled(*arguments)


@lru_cache(256)
def around(kernel, rule):
    """A kernel with a rule compiled into it, to be called without its first argument.

    A quarter faster than calling the rule by its address, for a second of compiling: only rules of modules can be
    cached, for a cell of a notebook has no file that lasts.
    """
    if nb.config.DISABLE_JIT:
        return partial(kernel.py_func, rule)
    loop, made_in = nb.njit(error_model="numpy")(kernel.py_func), rule.py_func.__module__
    # Spelled out: of *arguments Numba could not be told the types.
    names = ", ".join(list(inspect.signature(kernel.py_func).parameters)[1:])
    outer = eval(compile(f"lambda {names}: loop(rule, {names})", __file__, "eval"), {"loop": loop, "rule": rule})
    outer.__module__ = __name__
    outer.__qualname__ = f"{kernel.py_func.__name__}_around_{made_in}_{rule.py_func.__qualname__}"
    files = kernel.py_func.__code__.co_filename, rule.py_func.__code__.co_filename
    return Kernel(outer, T.int64(*kernel.signature.args[1:]), files, made_in.startswith("costbandits."))


def kernel(*extra):
    """Make a pull loop a `Kernel`: its own arguments first, of these types, then the common ones."""
    signature = T.int64(*extra, *_stack, *_state, *_record, *_limits)
    return lambda loop: Kernel(loop, signature)


def ready(rule, signature):
    """The rule, compiled for this signature; those of the library wait until they are played."""
    if not nb.config.DISABLE_JIT and signature.args not in rule.overloads:
        rule.compile(signature)
    return rule


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
def _note(n, clock, purse, pulls_at, clock_at, purse_at):
    c = clock[2]
    for k in range(n.size):
        pulls_at[c, k] = n[k]
    for i in range(2):
        clock_at[c, i] = clock[i]
        purse_at[c, i] = purse[i]
    clock[2] = c + 1


@nb.njit(error_model="numpy")
def settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at, max_rounds):
    """Write the state back, note the checkpoints just passed, and say whether and why the run stops."""
    clock[0], purse[0], purse[1] = t, spent, collected
    while clock[2] < marks.size and spent >= marks[clock[2]]:
        _note(n, clock, purse, pulls_at, clock_at, purse_at)
    if clock[2] == marks.size:
        return DONE
    if t >= max_rounds:
        return TOO_LONG
    return EMPTY if n[arm] == filled[arm] else RUNNING


@nb.njit(error_model="numpy")
def finish(t, spent, collected, n, clock, purse, marks, pulls_at, clock_at, purse_at):
    """Write the state back and note it at all checkpoints that are left: no arm is affordable any more."""
    clock[0], purse[0], purse[1] = t, spent, collected
    while clock[2] < marks.size:
        _note(n, clock, purse, pulls_at, clock_at, purse_at)
    return DONE


@kernel(T.FunctionType(INDEX), _floats, _floats)
def full_scan(index, constant, params, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """Pull the affordable arm with the largest index, ties to the lowest position; each arm once to begin with."""
    K, status = n.size, RUNNING
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        going, due = True, marks[clock[2]]
        while going:
            arm, best = -1, -math.inf
            # An arm that was passed over in the first K rounds was too dear, and stays so.
            for k in range(K if t < K else 0):
                if n[k] == 0 and spent + top[k] <= ceiling:
                    arm = k
                    break
            for k in range(K if arm < 0 else 0):
                if spent + top[k] <= ceiling:
                    value = index(t + 1, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k], params)
                    if value != value:
                        clock[0] = t
                        return NOT_A_NUMBER
                    if value > best or arm < 0:
                        arm, best = k, value
            if arm < 0:
                return finish(t, spent, collected, n, clock, purse, marks, pulls_at, clock_at, purse_at)
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


@nb.njit(inline="always", error_model="numpy")
def above(value):
    """A bound that stays above `value` when rounding is not on our side."""
    return value + SLACK * abs(value) if value > -math.inf else value


@nb.njit(error_model="numpy")
def seek(index, t, plan, bound, n, sums, constant, params, last):
    """The arm with the largest index at round t + 1, ties to the lowest position; -1 if an index is not a number.

    For an index that does not decrease while its arm rests. `plan` holds the leader, the round at which the bounds
    expire, by how many rounds they look ahead, how many evaluations were in vain, and the leader's rival; `bound[k]` is
    the index of k at the round of expiry, hence no less than at any round until then, and `bound[K]` that of the rival,
    the largest but for the leader's. While the leader's exact index exceeds that, a kernel need not call this. Else
    those whose bound reaches the best index so far are evaluated exactly, the rival first. Bounds are renewed when they
    expire, then twice as far ahead, or when K evaluations were in vain, then half as far; never beyond round `last`,
    where an index need not have a value.
    """
    K, sound = n.size, True
    leader, expires, stride, wasted, rival, most = plan[0], plan[1], plan[2], plan[3], plan[4], bound[n.size]
    if t >= expires:
        stride = min(2 * stride, last) if wasted < K else max(stride // 2, 1)
        expires, wasted, most = min(t + stride, last), 0, -math.inf
        for k in range(K):
            bound[k] = above(index(expires, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k], params))
            sound = sound and bound[k] == bound[k]
            if k != leader and bound[k] > most:
                rival, most = k, bound[k]
    arm = leader
    best = index(t + 1, n[arm], sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm], constant[arm], params)
    sound = sound and best == best
    if not best > most:
        for i in range(-1, K):
            k = i if i >= 0 else rival
            fresh = k != leader and k != arm and (i < 0 or k != rival)
            # At equal index the lower position wins, so a higher one must exceed the best to matter.
            if fresh and (bound[k] > best or (bound[k] == best and k < arm)):
                value = index(t + 1, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k], params)
                wasted += 1
                if value > best or (value == best and k < arm):
                    arm, best = k, value
        if arm != leader:
            wasted -= 1
            bound[leader] = above(index(expires, n[leader], sums[0, leader], sums[1, leader], sums[2, leader],
                                        sums[3, leader], constant[leader], params))
            most = -math.inf
            for k in range(K):
                if k != arm and bound[k] > most:
                    rival, most = k, bound[k]
    plan[0], plan[1], plan[2], plan[3] = arm, expires if wasted < K else t, stride, wasted
    plan[4], bound[K] = rival, most
    return arm if sound else -1


@nb.njit(error_model="numpy")
def safe_below(top, ceiling):
    """The spending below which every arm is affordable, with a little to spare."""
    return (ceiling - top.max()) * (1 - SLACK) if ceiling < math.inf else math.inf


@kernel(T.FunctionType(INDEX), _floats, _floats, _floats, _ints)
def lazy_scan(index, constant, params, bound, plan, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """The same arms as `full_scan`, found by `seek`, for an index that does not decrease while its arm rests.

    Leaves off where the ceiling comes near; the first K pulls must be affordable.
    """
    K, status, pause = n.size, RUNNING, safe_below(top, ceiling)
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        if spent >= pause:
            status = CLOSE
            break
        going, due = True, min(marks[clock[2]], pause)
        while going:
            arm = t
            if t >= K:
                arm = plan[0]
                if not (t < plan[1] and index(t + 1, n[arm], sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm],
                                              constant[arm], params) > bound[K]):
                    arm = seek(index, t, plan, bound, n, sums, constant, params, max_rounds)
                if arm < 0:
                    clock[0] = t
                    return NOT_A_NUMBER
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


@kernel(T.FunctionType(CHOICE), _floats, _floats, _floats, T.npy_rng)
def free_choice(choose, problem, params, memory, rng, pool, table, filled, shift, n, sums, clock, purse,
                marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """Pull what `choose` says, if anything: a round without a pull costs nothing but time."""
    K, status, least = n.size, RUNNING, top.min()
    t, spent, collected = clock[0], purse[0], purse[1]
    reward, cost, reward_sq, cost_sq = sums[0], sums[1], sums[2], sums[3]
    while status == RUNNING:
        going, due, arm = True, marks[clock[2]], 0
        while going:
            if rate == 0.0 and spent + least > ceiling:
                return finish(t, spent, collected, n, clock, purse, marks, pulls_at, clock_at, purse_at)
            chosen = choose(t + 1, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng)
            if chosen < IDLE or chosen >= K:
                clock[0] = t
                return NO_SUCH_ARM
            if chosen < 0:
                t += 1
                clock[1] += chosen == SKIP
                going = t < max_rounds
            elif spent + top[chosen] > ceiling + rate * (t + 1):
                clock[0] = t
                return TOO_DEAR
            else:
                arm = chosen
                going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                                  max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


class Run:
    """The arrays of one run of one policy, and the kernels' calls on them.

    With `ends`, the rounds at which checkpoints are due, the run ends at the last of these.
    """

    def __init__(self, stacks, marks, max_rounds, top=None, ceiling=math.inf, rate=0.0, ends=None):
        K, C = len(stacks.filled), len(marks)
        self.stacks, self.max_rounds = stacks, max_rounds
        self.n, self.sums = np.zeros(K, np.int64), np.zeros((4, K))
        self.clock, self.purse = np.zeros(3, np.int64), np.zeros(2)
        self.marks, self.pulls_at = np.ascontiguousarray(marks, float), np.zeros((C, K), np.int32)
        self.clock_at, self.purse_at = np.zeros((C, 2), np.int64), np.zeros((C, 2))
        self.top, self.ceiling = np.zeros(K) if top is None else np.ascontiguousarray(top, float), float(ceiling)
        self.rate, self.ends = float(rate), ends

    def play(self, loop, *rule):
        """Call the kernel `loop(*rule, ...)` until the run ends, drawing pages whenever a stack is empty."""
        stacks = self.stacks
        while True:
            end = self.max_rounds if self.ends is None else self.ends[self.clock[2]]
            status = loop(*rule, stacks.pool, stacks.table, stacks.filled, stacks.shift, self.n, self.sums,
                          self.clock, self.purse, self.marks, self.pulls_at, self.clock_at, self.purse_at,
                          end, self.top, self.ceiling, self.rate)
            if status == TOO_LONG and self.ends is not None:
                status = self._note_round()
            if status not in (EMPTY, RUNNING):
                return status
            for position in np.flatnonzero(self.n == stacks.filled):
                stacks.grow(position)

    def _note_round(self):
        """Note the checkpoints due at this round."""
        while self.clock[2] < len(self.ends) and self.ends[self.clock[2]] <= self.clock[0]:
            _note(self.n, self.clock, self.purse, self.pulls_at, self.clock_at, self.purse_at)
        return DONE if self.clock[2] == len(self.ends) else RUNNING

    def scout(self):
        """Arrays `bound` and `plan` of `seek`: leader 0, bounds that have expired, a first stride of 1."""
        return np.full(len(self.n) + 1, np.inf), np.array([0, 0, 1, 0, 0])

    def by_index(self, index, constant, params, lazy):
        """Play an index policy; `lazy` promises that the index of a resting arm never decreases."""
        status = CLOSE
        if lazy and self.top.sum() < safe_below(self.top, self.ceiling):
            status = self.play(around(lazy_scan, index), constant, params, *self.scout())
        return self.play(full_scan, ready(index, INDEX), constant, params) if status == CLOSE else status

    def by_choice(self, choose, problem, params, memory, rng):
        """Play a `choose` policy with its own memory and random stream."""
        return self.play(free_choice, ready(choose, CHOICE), problem, params, memory, rng)
