"""One run of one policy, called until it ends."""

import math
import signal
import traceback
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .driver import DONE, LAST_ROUND, RUNNING, STACK_EMPTY, note
from .stacks import Stacks
from .state import NOW, Arms, Game, Record, State, new_limits, new_record


class RuleError(Exception):
    """A rule raised its `__cause__`, in this round.

    >>> print(RuleError(7))
    7
    """


def _is_the_rules(error):
    """Whether an error is a rule's: those of the machine are not, nor what the handler of a signal raised."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
    return not isinstance(error, OSError | MemoryError) and handlers.isdisjoint(
        frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__))


class Run:
    """One run of one policy: its state, and the loops' calls on it.

    Checkpoints are due at a spending, `due`, or with `ends` at these rounds; the run ends at the last of them, or else
    at `max_rounds`. The other arguments are those of `state.Limits`.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.25)] * 2)
    >>> run = Run(Stacks(bandit, seed=0, replication=0, order=[0, 1]), due=[5.0], max_rounds=100)
    >>> from costbandits.policies.base import Problem
    >>> cb.UCB1().play(run, Problem.of(bandit, cb.Budget(5), [0, 1]), None) == DONE, int(run.state.arms.n.sum())
    (True, 20)
    """

    def __init__(self, stacks: Stacks, due: ArrayLike, max_rounds: int, max_cost: ArrayLike | None = None,
                 ceiling: float = math.inf, rate: float = 0.0, ends: np.ndarray | None = None):
        K, C = len(stacks.laws), len(due)
        self.stacks, self.outcomes, self.max_rounds, self.ends = stacks, stacks.outcomes(), max_rounds, ends
        self.state = State(Arms.of(K), new_record(NOW))
        self.record = Record(np.ascontiguousarray(due, float), np.zeros((C, K), np.int64), np.zeros(C, NOW))
        self.limits = new_limits(max_rounds, np.zeros(K) if max_cost is None else max_cost, ceiling, rate)
        self.worked_on = ()     # the last loop's own arguments, for tests to look at

    @np.errstate(over="ignore")     # without compilation NumPy warns of numbers that are meant to overflow
    def play(self, loop: Callable, *own: object, pause: float = math.inf) -> int:
        """Call `loop(*own, game)` until the run ends; its status. Draws outcomes when a stack is empty.

        From a spending of `pause` on `choose` is asked anew whether it can go on.
        """
        self.worked_on, now = own, self.state.now
        while True:
            last = self.max_rounds if self.ends is None else self.ends[now.checkpoint]
            self.stacks.read_on(self.outcomes, self.state.arms)
            limits = self.limits._replace(last_round=int(last), pause=float(pause))
            try:
                status = loop(*own, Game(self.outcomes, self.state, self.record, limits))
            except Exception as error:
                if _is_the_rules(error):
                    raise RuleError(int(now.rounds) + 1) from error
                raise
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
