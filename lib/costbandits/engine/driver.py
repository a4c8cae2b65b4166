"""One driver for all policies: it asks for an arm, has it pulled, and stops where a run must stop.

What a policy does is four functions, compiled by `step` and inlined into the driver (`loop`):

* `choose(t, money, own, arms, limits, rng)` returns the arm of round t + 1, and for how many pulls it is good at most,
  of which no more are made than there are rounds; or one of the words SKIP, NULL_ARM, END, PAUSE and NOT_NUMBER, and
  any number.
* `advance(arm, m, t, money, own, arms, outcomes, rng)` pulls it, once or up to m times, and returns the money then, and
  how many rounds that took. (It may pull others, too, in rounds of their own.)
* `learn(arm, m, t, own, arms, outcomes, rng)` takes up what follows: m rounds were played, t are over.
* `goes_on(arm, arms, outcomes)` says whether the driver need not look up: there it adds up the money anew.

`own` is a tuple of the policy's own arrays and numbers, by name. A choice may be asked for again only if no random
number was drawn for it, so an arm whose law is sampled in Python is left as soon as its outcomes have run out.

With state in arrays a step costs ten times as much as with plain local numbers (37 against 3 ns a pull), and so do
arrays whose references are counted: tuples of arrays are lent to the driver without counts.
"""

from collections.abc import Callable
from math import inf

import numba as nb
from numba import types as T
from numba.core import cgutils
from numba.extending import intrinsic

from .compilation import apart, around, compiled_for, njit, uncounted
from .state import ARMS, LIMITS, MONEY, OUTCOMES, RECORD, STATE, Money, Outcome
from .trees import LEAF, added_up, block, is_counted, is_typed, read_on, settle, skip, total

MANY = 16           # pulls that are worth a call of `pull_many`
MOST = 2**20        # pulls that are made one by one in a step: about a tenth of a second
FAR = 2.0**61       # no block is larger
WHOLE = 2.0**53     # whole numbers from here on are rounded to even ones, or more
LARGE = 1e9         # where so much is due, spending is added up at every step

# What the driver returns; NEAR_CEILING: not every arm may still be affordable; OUT_OF_ROWS (of `Run.play` alone): a run
# has no outcomes left.
RUNNING, DONE, STACK_EMPTY, LAST_ROUND, NO_SUCH_ARM, NOT_A_NUMBER, NEAR_CEILING, UNAFFORDABLE, OUT_OF_ROWS = range(9)

# What `choose` returns instead of an arm: skip a round, or play the null arm of a mixture; end the run, for none is
# affordable; stop, for some arm may be too expensive; an index is not a number.
SKIP, NULL_ARM, END, PAUSE, NOT_NUMBER = -1, -2, -3, -4, -5

step = njit(inline="always")
jit = uncounted()           # for what steps call: it cannot make an array
inlined = uncounted(forceinline=True)       # by LLVM: to hand over many arrays takes long


# ---- arrays without counted references: to count them takes as long as ten indices, at each call -------

def _bare(context, builder, kind, value):
    if isinstance(kind, T.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if kind == T.npy_rng:
        generator = cgutils.create_struct_proxy(kind)(context, builder, value)
        generator.meminfo = cgutils.get_null_value(generator.meminfo.type)
        return generator._getvalue()
    if isinstance(kind, T.BaseTuple):
        parts = [_bare(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kind.types)]
        return context.make_tuple(builder, kind, parts)
    return value


@intrinsic
def _lent(typing, things):
    """The same array, generator or nested tuple, whose owner must outlive it, without reference counts."""
    return things(things), lambda context, builder, _, values: _bare(context, builder, things, values[0])


if nb.config.DISABLE_JIT:
    def _lent(things):
        return things


# ---- pulls -------------------------------------------------------------------------------------------

@step
def pull(arm, arms, outcomes):
    """Pull an arm whose outcomes are at hand, and add them to what is known of it; its reward and cost."""
    i = arms.n[arm]
    row = outcomes.at[arm] + i
    reward, cost = outcomes.pool[row, 0], outcomes.pool[row, 1]
    arms.reward[arm] += reward
    arms.cost[arm] += cost
    arms.reward_sq[arm] += reward * reward
    arms.cost_sq[arm] += cost * cost
    arms.n[arm] = i + 1      # last: what the driver reads next need not be loaded again
    return reward, cost


@step
def pull_once(arm, arms, outcomes):
    """Pull an arm, whether its outcomes are at hand or not; its reward and cost."""
    if arms.n[arm] == outcomes.filled[arm]:
        read_on(arm, arms, outcomes)
    reward, cost = pull(arm, arms, outcomes)
    if arms.n[arm] == outcomes.filled[arm]:
        settle(arm, arms, outcomes)
    return reward, cost


@step
def last_outcome(arm, arms, outcomes):
    """What the last pull of an arm paid and cost."""
    row = outcomes.at[arm] + arms.n[arm] - 1
    return Outcome(outcomes.pool[row, 0], outcomes.pool[row, 1])


@step
def one(arm, m, t, money, own, arms, outcomes, rng):
    """`advance` by a single pull."""
    reward, cost = pull_once(arm, arms, outcomes)
    return Money(money.spent + cost, money.collected + reward, money.due), 1


@step
def nothing(arm, m, t, own, arms, outcomes, rng):
    """`learn` nothing but the sums."""


@step
def in_leaf(arm, arms, outcomes):
    """`goes_on` until the outcomes at hand have run out."""
    return arms.n[arm] < outcomes.filled[arm]


@step
def if_counted(arm, arms, outcomes):
    """`goes_on` past that where outcomes are counted."""
    return arms.n[arm] < outcomes.filled[arm] or is_counted(arm, outcomes)


@step
def unless_typed(arm, arms, outcomes):
    """`goes_on` past that unless a law must be sampled in Python."""
    return arms.n[arm] < outcomes.filled[arm] or not is_typed(arm, outcomes)


@apart(MONEY(T.int64, T.int64, MONEY, ARMS, OUTCOMES))
def pull_many(arm, m, money, arms, outcomes):
    """Pull one arm m times, or until what is due is spent or its law must be sampled in Python; the money then.

    Costs must not be negative unless `due` is infinite. If outcomes are counted, its running time hardly grows with m;
    else no more than `MOST` are pulled.
    """
    n, filled, whole = arms.n, outcomes.filled, is_counted(arm, outcomes)
    (spent, collected, due), before = money, money.spent - arms.cost[arm]
    end = n[arm] + (m if whole else min(m, MOST))
    while n[arm] < end and spent < due:
        i, size = n[arm], 0
        if i == filled[arm]:
            size = end - i if whole else 0
            while size >= LEAF:
                size = block(arm, i, size, outcomes)
                reward, cost = total(arm, 0, outcomes), total(arm, 1, outcomes)
                if spent + cost < due:
                    skip(arm, arms, outcomes)
                    spent, collected = spent + cost, collected + reward
                    break
                size >>= 1
            if size < LEAF:
                read_on(arm, arms, outcomes)
                if i == filled[arm]:
                    break
        if size < LEAF:
            last = min(end, filled[arm])
            while n[arm] < last and spent < due:
                reward, cost = pull(arm, arms, outcomes)
                spent, collected = spent + cost, collected + reward
            if n[arm] == filled[arm]:
                settle(arm, arms, outcomes)
                spent = before + arms.cost[arm]       # without the rounding of so many additions
    return Money(spent, collected, due)


@step
def many(arm, m, t, money, own, arms, outcomes, rng):
    """`advance` by m pulls if they are many, and the law need not be sampled in Python on the way; else by one."""
    i = arms.n[arm]
    if m >= MANY:
        money = pull_many(arm, m, money, arms, outcomes)
    else:
        money, _ = one(arm, m, t, money, own, arms, outcomes, rng)
    return money, arms.n[arm] - i


# ---- checkpoints -------------------------------------------------------------------------------------

@njit()
def note(state, record):
    """Note where the run stands as its next checkpoint."""
    c = state.now.checkpoint
    for k in range(state.arms.n.size):
        record.pulls[c, k] = state.arms.n[k]
    record.noted[c] = state.now
    state.now.checkpoint = c + 1


@apart(T.UniTuple(T.float64, 2)(T.int64, ARMS, OUTCOMES))
def large_sums(k, arms, outcomes):
    """Reward and cost of a position where whole numbers are not exact any more, and a sum loses what is added to it."""
    if not is_counted(k, outcomes):
        return arms.reward[k], arms.cost[k]
    # Of all counts, which include the leaf, without what is left of the leaf.
    (reward, _), (cost, _), r, c = added_up(k, 0, outcomes), added_up(k, 1, outcomes), 0.0, 0.0
    for i in range(outcomes.at[k] + arms.n[k], outcomes.at[k] + outcomes.filled[k]):
        r, c = r + outcomes.pool[i, 0], c + outcomes.pool[i, 1]
    return reward - r, cost - c


@njit()
def add_up(state, outcomes=None):
    """Reward and spending as sums over arms, which are the same in whatever order the arms were pulled."""
    arms, reward, spent = state.arms, 0.0, 0.0
    for k in range(arms.n.size):        # one after the other: NumPy and Numba have other orders of their own
        more, paid = arms.reward[k], arms.cost[k]
        if outcomes is not None and max(abs(more), abs(paid)) >= WHOLE:     # to hand over all arrays takes long
            more, paid = large_sums(k, arms, outcomes)
        reward, spent = reward + more, spent + paid
    state.now.reward, state.now.spent = reward, spent


@step
def approach(spent, due):
    """The spending at which the money is to be added up anew: at which a thousandth is left of what is left now.

    A running sum of a million costs is off by more than the stop rules allow for; corrected there, and again where a
    thousandth of that is left, what ends a run is a sum of no more than a thousand costs. Where so much is due that a
    small cost might be lost in a sum, the money is added up at every step.
    """
    if due < LARGE:
        return due - 0.001 * (due - spent)
    return -inf if due < inf else inf


@apart(T.int64(T.int64, T.int64, T.float64, T.float64, OUTCOMES, STATE, RECORD, LIMITS))
def checkpoint(arm, t, spent, collected, outcomes, state, record, limits):
    """Write the state back, note the checkpoints just passed, and say whether and why the run stops.

    Without an anytime budget the loop goes on with money that was added up over the arms: a running sum is off after
    a million additions, and beyond 2**53 it stands still.
    """
    now, arms = state.now, state.arms
    if arms.n[arm] == outcomes.filled[arm]:
        read_on(arm, arms, outcomes)
    now.rounds, now.spent, now.reward = t, spent, collected
    if limits.rate == 0.0:
        add_up(state, outcomes)
    while now.checkpoint < record.due.size and now.spent >= record.due[now.checkpoint]:
        note(state, record)
    if now.checkpoint == record.due.size:
        return DONE
    if t >= limits.last_round:
        return LAST_ROUND
    return STACK_EMPTY if arms.n[arm] == outcomes.filled[arm] else RUNNING


@apart(T.int64(T.int64, OUTCOMES, STATE, RECORD))
def end_run(t, outcomes, state, record):
    """Write the state back and note it at all checkpoints that are left: no arm is affordable any more."""
    state.now.rounds = t
    add_up(state, outcomes)
    while state.now.checkpoint < record.due.size:
        note(state, record)
    return DONE


# ---- the driver --------------------------------------------------------------------------------------

@compiled_for()
def drive(choose, advance, learn, goes_on, own, rng, game):
    """Play until the run ends, something is wrong, outcomes must be drawn in Python, or it is called back; which."""
    state, record, own, rng = game.state, game.record, _lent(own), _lent(rng)
    outcomes, limits, arms = _lent(game.outcomes), _lent(game.limits), _lent(state.arms)
    K, now = arms.n.size, state.now
    last, max_cost, ceiling, rate, pause, beat, nears = limits
    status, arm, t, spent, collected, near, called = RUNNING, 0, now.rounds, now.spent, now.reward, nears[0], beat[0]
    while status == RUNNING:
        due = record.due[now.checkpoint]
        if spent < pause:
            due = min(due, pause)
        going, nears[0] = True, 0.0
        near = near if near != 0.0 else approach(spent, due)
        while going:
            now.rounds = t              # for the message, if a rule raises an error
            chosen, m = choose(t, Money(spent, collected, due), own, arms, limits, rng)
            if chosen >= 0:
                if chosen >= K:
                    return NO_SUCH_ARM
                if spent + max_cost[chosen] > ceiling + rate * (t + 1):
                    return UNAFFORDABLE
                arm = chosen
                money, done = advance(arm, min(m, last - t), t, Money(spent, collected, due), own, arms, outcomes, rng)
                t, spent, collected = t + done, money.spent, money.collected
                if spent > near:
                    add_up(state, outcomes)
                    spent, collected = now.spent, now.reward
                    near = approach(spent, due)
                going = spent < due and t < last and goes_on(arm, arms, outcomes)
                learn(arm, done, t, own, arms, outcomes, rng)
            elif chosen >= NULL_ARM:
                t += 1
                now.skips += chosen == SKIP
                going = t < last
            elif chosen == END:
                return end_run(t, outcomes, state, record)
            else:
                return NEAR_CEILING if chosen == PAUSE else NOT_A_NUMBER if chosen == NOT_NUMBER else NO_SUCH_ARM
            if going and beat[0] != called:         # called again, it goes on with the very next choice
                now.rounds, now.spent, now.reward, nears[0] = t, spent, collected, near
                return RUNNING
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected, near = now.spent, now.reward, 0.0
    return status


driven = step(drive.py_func)        # for loops that call functions by their addresses


def loop(choose: Callable, advance: Callable = one, learn: Callable = nothing,
         goes_on: Callable = in_leaf) -> Callable:
    """The driver with these steps compiled into it: what `Run.play` takes.

    >>> from costbandits.engine.run import Run
    >>> from costbandits.engine.stacks import Stacks
    >>> first = loop(step(lambda t, money, own, arms, limits, rng: (0, 1)))        # pulls the first arm
    >>> bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.25)] * 2)
    >>> run = Run(Stacks(bandit, seed=0, replication=0, order=[0, 1]), due=[5.0], max_rounds=100)
    >>> run.play(first, (), None) == DONE, run.state.arms.n
    (True, array([20,  0]))
    """
    return around(drive, choose, advance, learn, goes_on)
