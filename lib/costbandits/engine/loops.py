"""The pull loops of index policies and of choices.

They share one step, `pull`, and differ in how they choose an arm:

* `full_scan` evaluates every arm's index in every round: the reference, and the path for indices that
  may fall while their arm rests;
* `by_blocks` plays the very same arms, but evaluates an index only when it could matter, and pulls whole blocks at
  once where nothing in between could matter;
* `free_choice` asks a `choose` function, for everything that is not an index.

A policy may bring a loop of its own, made by `kernel`, from the same parts: `pull`, `checkpoint`, `end_run`.

Policies come in as first-class functions of one fixed signature each (`INDEX`, `CHOICE`), so a loop is compiled once,
and serves a policy typed into a notebook cell as well. Loops that spend their time in the rule, as `by_blocks` does,
are compiled anew for each rule by `compilation.around`.

A loop returns when the run is done, when something is wrong, or when a stack ran out after a pull; in the last case it
is called again once more outcomes are drawn. Rounds and sums are plain local numbers within the inner loops: with its
state in arrays the same step costs ten times as much (37 against 3 ns a pull).
"""

import functools
import math
from collections.abc import Callable

import numba as nb
import numpy as np
from numba import types as T
from numpy.typing import ArrayLike

from .compilation import Kernel, around, keep, ready
from .search import SLACK, index_at, lazy_argmax, lent, new_search
from .stacks import Stacks
from .state import NOW, TYPES, Record, State, new_limits, new_record
from .trees import KIND, LEAF, block, read_on, settle, skip, total

INDEX_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "constant", "params")
CHOICE_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "problem", "params", "memory", "rng")

_ints, _floats = T.int64[::1], T.float64[::1]
INDEX = T.float64(T.int64, T.int64, T.float64, T.float64, T.float64, T.float64, T.float64, _floats)
CHOICE = T.int64(T.int64, _ints, _floats, _floats, _floats, _floats, _floats, _floats, _floats, T.npy_rng)

LOWER = T.float64(T.int64, T.int64, T.int64, *(T.float64,) * 7, _floats)

SHORTEST = 4        # a block of fewer pulls is not worth a try
SHARE = 0.45        # of (relative lead) x (pulls so far): for about so many more pulls a leader is likely to stay ahead
FAR = 2.0**61       # no block is larger
LARGE = 1e9         # from such a spending on it is added up at every step

# What a loop returns; NEAR_CEILING: not every arm may still be affordable.
RUNNING, DONE, STACK_EMPTY, LAST_ROUND, NO_SUCH_ARM, NOT_A_NUMBER, NEAR_CEILING, UNAFFORDABLE = range(8)

SKIP, NULL_ARM = -1, -2     # what a choice returns to skip a round, or to play the null arm of its mixture


def kernel(*extra: T.Type) -> Callable[[Callable], Kernel]:
    """Make a pull loop a `Kernel`: its own arguments first, of these types, then those of `state`.

    >>> kernel(T.npy_rng)(lambda rng, outcomes, state, record, limits: DONE).signature.args[0]
    NumPyRandomGeneratorType
    """
    return lambda loop: Kernel(loop, T.int64(*extra, *TYPES))


@nb.njit(inline="always", error_model="numpy")
def pull(arm, n, sums, pool, at):
    """Pull one arm, add its reward and cost to what is known of it, and return them."""
    i = n[arm]
    row = at[arm] + i
    reward, cost = pool[row, 0], pool[row, 1]
    sums[0, arm] += reward
    sums[1, arm] += cost
    sums[2, arm] += reward * reward
    sums[3, arm] += cost * cost
    n[arm] = i + 1      # last: what the loops read next need not be loaded again
    return reward, cost


@nb.njit(inline="always", error_model="numpy")
def goes_on(arm, n, filled, arms):
    """Whether the next choice may follow a pull of this arm at once.

    An arm whose outcomes are counted may go on by blocks from a leaf's border. Any other must first read its next leaf:
    a loop that chose an arm and had to return for its outcomes would choose again, and so change a random choice's law.
    """
    return n[arm] < filled[arm] or (arms[arm, KIND] > 0 and arms[arm, KIND + 1] > 0)


@nb.njit(error_model="numpy")
def pull_many(arm, m, spent, collected, due, n, sums, outcomes):
    """Pull one arm m times, or until `due` is spent or its law must be sampled in Python; what is spent and collected.

    Costs must not be negative unless `due` is infinite. If outcomes are counted, its running time hardly grows with m.
    """
    pool, at, filled, arms, laws, _, counts, _, _ = outcomes
    end, whole = n[arm] + m, arms[arm, KIND] > 0 and arms[arm, KIND + 1] > 0
    before = spent - sums[1, arm]
    while n[arm] < end and spent < due:
        i, size = n[arm], 0
        if i == filled[arm]:
            size = end - i if whole else 0
            while size >= LEAF:
                size = block(arm, i, size, outcomes)
                reward, cost = total(arm, 0, outcomes), total(arm, 1, outcomes)
                if spent + cost < due:
                    skip(arm, n, sums, outcomes)
                    spent, collected = spent + cost, collected + reward
                    break
                size >>= 1
            if size < LEAF:
                read_on(arm, n, sums, outcomes)
                if i == filled[arm]:
                    break
        if size < LEAF:
            last = min(end, filled[arm])
            while n[arm] < last and spent < due:
                reward, cost = pull(arm, n, sums, pool, at)
                spent, collected = spent + cost, collected + reward
            if n[arm] == filled[arm]:
                settle(arm, sums, arms, laws, counts)
                spent = before + sums[1, arm]       # without the rounding of so many additions
    return spent, collected


@nb.njit(error_model="numpy")
def note(state, record):
    """Note where the run stands as its next checkpoint."""
    c = state.now.checkpoint
    record.pulls[c] = state.n
    record.noted[c] = state.now
    state.now.checkpoint = c + 1


@nb.njit(error_model="numpy")
def add_up(state):
    """Reward and spending as sums over arms, which are the same in whatever order the arms were pulled."""
    reward, spent = 0.0, 0.0
    for k in range(state.n.size):       # one after the other: NumPy and Numba have other orders of their own
        reward, spent = reward + state.sums[0, k], spent + state.sums[1, k]
    state.now.reward, state.now.spent = reward, spent


@nb.njit(inline="always", error_model="numpy")
def approach(spent, due):
    """The spending at which the money is to be added up anew: at which a thousandth is left of what is left now.

    A running sum of a million costs is off by more than the stop rules allow for. If it is corrected there, and again
    where a thousandth of that is left, then what decides when a run ends is a sum of no more than a thousand costs.
    Where so much is due that a small cost might be lost in a sum, the money is added up at every step.
    """
    if due < LARGE:
        return due - 0.001 * (due - spent)
    return -math.inf if due < math.inf else math.inf


@nb.njit(error_model="numpy")
def afresh(due, state):
    """What is spent and collected, added up over the arms, and the spending at which to do so again."""
    add_up(state)
    return state.now.spent, state.now.reward, approach(state.now.spent, due)


@nb.njit(error_model="numpy")
def checkpoint(arm, t, spent, collected, outcomes, state, record, limits):
    """Write the state back, note the checkpoints just passed, and say whether and why the run stops.

    Without an anytime budget the money is added up over the arms, and a loop that may end by it goes on with that: a
    running sum is off after a million additions, and beyond 2**53 it stands still.
    """
    now = state.now
    if state.n[arm] == outcomes.filled[arm]:
        read_on(arm, state.n, state.sums, outcomes)
    now.rounds, now.spent, now.reward = t, spent, collected
    if limits.rate == 0.0:
        add_up(state)
    while now.checkpoint < record.due.size and now.spent >= record.due[now.checkpoint]:
        note(state, record)
    if now.checkpoint == record.due.size:
        return DONE
    if t >= limits.last_round:
        return LAST_ROUND
    return STACK_EMPTY if state.n[arm] == outcomes.filled[arm] else RUNNING


@nb.njit(error_model="numpy")
def end_run(t, state, record):
    """Write the state back and note it at all checkpoints that are left: no arm is affordable any more."""
    now = state.now
    now.rounds = t
    add_up(state)
    while now.checkpoint < record.due.size:
        note(state, record)
    return DONE


@kernel(T.FunctionType(INDEX), _floats, _floats)
def full_scan(index, constant, params, outcomes, state, record, limits):
    """Pull the affordable arm with the largest index, ties to the lowest position; each arm once to begin with."""
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    last, max_cost, ceiling, _ = limits
    K, status = n.size, RUNNING
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due = True, record.due[now.checkpoint]
        near = approach(spent, due)
        while going:
            arm, best = -1, -math.inf
            # An arm that was passed over in the first K rounds was too expensive, and stays so.
            for k in range(K if t < K else 0):
                if n[k] == 0 and spent + max_cost[k] <= ceiling:
                    arm = k
                    break
            for k in range(K if arm < 0 else 0):
                if spent + max_cost[k] <= ceiling:
                    value = index(t + 1, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k], params)
                    if value != value:
                        now.rounds = t
                        return NOT_A_NUMBER
                    if value > best or arm < 0:
                        arm, best = k, value
            if arm < 0:
                return end_run(t, state, record)
            reward, cost = pull(arm, n, sums, pool, at)
            t, spent, collected = t + 1, spent + cost, collected + reward
            if spent > near:
                spent, collected, near = afresh(due, state)
            going = spent < due and t < last and n[arm] < filled[arm]
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


@nb.njit(error_model="numpy")
def all_affordable_below(max_cost, ceiling):
    """The spending below which every arm is affordable, with a little to spare."""
    return (ceiling - max_cost.max()) * (1 - SLACK) if ceiling < math.inf else math.inf


keep(all_affordable_below)      # called from Python, too: a run whose loop is kept would compile nothing else

_search = tuple(map(nb.typeof, new_search(1)))


@functools.lru_cache(256)
def lower_of(index: Callable) -> Callable:
    """A lower bound of a regular index over a block: the old rewards spread over n + m pulls, the new costs over n.

    For any j < m its index after j more pulls is no less: it does not fall in the mean reward nor in t, and does not
    rise in the mean cost nor, at the same means, in n.

    >>> lower_of(cb.UCB1.rule)(2, 1, 3, 1.0, 0.5, 1.0, 0.25, 2.0, 1.5, 0.0, np.empty(0))     # 1/4, where ln(t - 1) is 0
    0.25
    """
    def lower(t, n, m, reward, cost, reward_sq, cost_sq, rewards, costs, constant, params):
        stretch = (n + m) / n
        return index(t, n + m, reward, (cost + costs) * stretch, reward_sq, cost_sq * stretch, constant, params)

    return nb.njit(error_model="numpy")(lower)


@nb.njit(error_model="numpy")
def no_lower(t, n, m, reward, cost, reward_sq, cost_sq, rewards, costs, constant, params):
    """Of an index that promises nothing for a block of pulls."""
    return -math.inf


@nb.njit(error_model="numpy")
def try_blocks(arm, m, t, spent, collected, due, most, lower, constant, params, n, sums, outcomes):
    """Pull the next block of the tree, of up to m outcomes, if that is safe."""
    i = n[arm]
    while m >= LEAF:
        m = block(arm, i, m, outcomes)
        r, c = total(arm, 0, outcomes), total(arm, 1, outcomes)
        if spent + c < due and lower(t + 1, i, m, sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm], r, c,
                                     constant[arm], params) > most:
            skip(arm, n, sums, outcomes)
            return m, spent + c, collected + r
        m >>= 1
    return 0, spent, collected


@kernel(T.FunctionType(INDEX), T.FunctionType(LOWER), _floats, _floats, *_search)
def by_blocks(index, lower, constant, params, search, tree, rivals, outcomes, state, record, limits):
    """The same arms as `full_scan`, for an index that does not decrease while its arm rests.

    The arm is found by `lazy_argmax`, and pulled many times at once where `lower`, a lower bound of its index until the
    end of a block, shows that it stays ahead. Returns NEAR_CEILING once some arm may be too expensive; the first K
    pulls must be affordable.
    """
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    arms, share = outcomes.arms, SHARE
    n, sums, now = lent(state.n), lent(state.sums), state.now
    constant, params, tree, rivals = lent(constant), lent(params), lent(tree), lent(rivals)
    last, max_cost, ceiling, _ = limits
    K, status, pause = n.size, RUNNING, all_affordable_below(max_cost, ceiling)
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        if spent >= pause:
            status = NEAR_CEILING
            break
        going, due, arm = True, min(record.due[now.checkpoint], pause), 0
        near = approach(spent, due)
        while going:
            arm, m = t, 0
            if t >= K:
                arm = search.leader
                value = index_at(t + 1, arm, index, n, sums, constant, params)
                if t < search.expires and value > search.rival_bound:
                    lead = 1.0 if value == math.inf else (value - search.rival_bound) / abs(value)
                    lead *= share * n[arm]
                    m = min(np.int64(min(lead, FAR)) if lead > 0.0 else 0, search.expires - t, last - t)
                else:
                    arm = lazy_argmax(index, t, search, tree, rivals, n, sums, constant, params, last)
                    if arm < 0:
                        now.rounds = t
                        return NOT_A_NUMBER
            done, i = 0, n[arm]
            if m >= LEAF and i == filled[arm] and arms[arm, KIND] > 0 and arms[arm, KIND + 1] > 0:
                done, spent, collected = try_blocks(arm, m, t, spent, collected, due, search.rival_bound, lower,
                                                    constant, params, n, sums, outcomes)
            if done == 0:
                if i == filled[arm]:
                    read_on(arm, n, sums, outcomes)
                    if i == filled[arm]:
                        break
                r, c, rr, cc, row = sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm], at[arm] + i
                m, s, w = min(m, filled[arm] - i), spent, collected
                if m >= SHORTEST:
                    for j in range(row, row + m):
                        x, y = pool[j, 0], pool[j, 1]
                        r, c, rr, cc, s, w = r + x, c + y, rr + x * x, cc + y * y, s + y, w + x
                    least = lower(t + 1, i, m, sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm],
                                  r - sums[0, arm], c - sums[1, arm], constant[arm], params)
                    if s < due and least > search.rival_bound:
                        done, spent, collected, n[arm] = m, s, w, i + m
                        sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm] = r, c, rr, cc
                        share = min(share * 1.1, 1.0)
                    else:
                        share = max(share * 0.6, 0.05)
                if done == 0:
                    reward, cost = pull(arm, n, sums, pool, at)
                    done, spent, collected = 1, spent + cost, collected + reward
                if n[arm] == filled[arm]:
                    settle(arm, sums, arms, outcomes.laws, outcomes.counts)
            t += done
            if spent > near:
                spent, collected, near = afresh(due, state)
            going = spent < due and t < last
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


@kernel(T.FunctionType(CHOICE), _floats, _floats, _floats, T.npy_rng)
def free_choice(choose, problem, params, memory, rng, outcomes, state, record, limits):
    """Pull what `choose` says, if anything: a round without a pull costs nothing but time."""
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    last, max_cost, ceiling, rate = limits
    K, status, least = n.size, RUNNING, max_cost.min()
    t, spent, collected = now.rounds, now.spent, now.reward
    reward_sums, cost_sums, reward_sq, cost_sq = sums[0], sums[1], sums[2], sums[3]
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        near = approach(spent, due)
        while going:
            if rate == 0.0 and spent + least > ceiling:
                return end_run(t, state, record)
            now.rounds = t          # for the message, if the rule raises an error
            chosen = choose(t + 1, n, reward_sums, cost_sums, reward_sq, cost_sq, problem, params, memory, rng)
            if chosen < NULL_ARM or chosen >= K:
                now.rounds = t
                return NO_SUCH_ARM
            if chosen < 0:
                t += 1
                now.skips += chosen == SKIP
                going = t < last
            elif spent + max_cost[chosen] > ceiling + rate * (t + 1):
                now.rounds = t
                return UNAFFORDABLE
            else:
                arm = chosen
                reward, cost = pull(arm, n, sums, pool, at)
                t, spent, collected = t + 1, spent + cost, collected + reward
                if spent > near:
                    spent, collected, near = afresh(due, state)
                going = spent < due and t < last and n[arm] < filled[arm]
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


class RuleError(Exception):
    """A rule raised its `__cause__`, in this round.

    >>> print(RuleError(7))
    7
    """


class Run:
    """One run of one policy: its state, and the loops' calls on it.

    Checkpoints are due at a spending, `due`, or with `ends` at these rounds; the run ends at the last of them, or else
    at `max_rounds`. The other arguments are those of `state.Limits`.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.25)] * 2)
    >>> run = Run(Stacks(bandit, seed=0, replication=0, order=[0, 1]), due=[5.0], max_rounds=100)
    >>> run.by_index(cb.UCB1.rule, np.zeros(2), np.empty(0), lazy=False) == DONE, int(run.state.n.sum())
    (True, 20)
    """

    def __init__(self, stacks: Stacks, due: ArrayLike, max_rounds: int, max_cost: ArrayLike | None = None,
                 ceiling: float = math.inf, rate: float = 0.0, ends: np.ndarray | None = None):
        K, C = len(stacks.laws), len(due)
        self.stacks, self.outcomes, self.max_rounds, self.ends = stacks, stacks.outcomes(), max_rounds, ends
        self.state = State(np.zeros(K, np.int64), np.zeros((4, K)), new_record(NOW))
        self.record = Record(np.ascontiguousarray(due, float), np.zeros((C, K), np.int64), np.zeros(C, NOW))
        self.limits = new_limits(max_rounds, np.zeros(K) if max_cost is None else max_cost, ceiling, rate)
        self.worked_on = ()     # the last loop's own arguments, for tests to look at

    @np.errstate(over="ignore")     # without compilation NumPy warns of numbers that are meant to overflow
    def play(self, loop: Callable, *rule: object) -> int:
        """Call the kernel `loop(*rule, ...)` until the run ends; its status. Draws outcomes when a stack is empty."""
        stacks, self.worked_on = self.stacks, rule
        while True:
            last = self.max_rounds if self.ends is None else self.ends[self.state.now.checkpoint]
            stacks.read_on(self.outcomes, self.state)
            try:
                status = loop(*rule, self.outcomes, self.state, self.record, self.limits._replace(last_round=int(last)))
            except Exception as error:
                # Loops of index policies write their count of rounds back when they return; there each round is a pull.
                now = self.state.now
                raise RuleError(max(int(self.state.n.sum() + now.skips), int(now.rounds)) + 1) from error
            if status == LAST_ROUND and self.ends is not None:
                status = self._note_round()
            if status not in (STACK_EMPTY, RUNNING):
                return status

    def _note_round(self):
        """Note the checkpoints due at this round."""
        now = self.state.now
        while now.checkpoint < len(self.ends) and self.ends[now.checkpoint] <= now.rounds:
            note(self.state, self.record)
        return DONE if now.checkpoint == len(self.ends) else RUNNING

    def search(self) -> tuple[np.record, np.ndarray, np.ndarray]:
        """What `lazy_argmax` begins with: leader 0, and all other arms still to be evaluated."""
        return new_search(len(self.state.n))

    def by_index(self, index: Callable, constant: np.ndarray, params: np.ndarray, lazy: bool,
                 lower: Callable = no_lower) -> int:
        """Play an index policy; `lazy` promises that the index of a resting arm never decreases.

        `lower` is a lower bound of the index over a block of pulls: `lower_of(index)` for a regular one. It is
        used only where no reward and no cost can be negative.
        """
        status, limits, lower = NEAR_CEILING, self.limits, no_lower if self.stacks.negative else lower
        if lazy and limits.max_cost.sum() < all_affordable_below(limits.max_cost, limits.ceiling):
            status = self.play(around(by_blocks, index, lower), constant, params, *self.search())
        return self.play(full_scan, ready(index, INDEX), constant, params) if status == NEAR_CEILING else status

    def by_choice(self, choose: Callable, problem: np.ndarray, params: np.ndarray, memory: np.ndarray,
                  rng: np.random.Generator) -> int:
        """Play a `choose` policy with its own memory and random stream."""
        return self.play(free_choice, ready(choose, CHOICE), problem, params, memory, rng)
