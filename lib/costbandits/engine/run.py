"""One run of one policy, called until it ends."""

import math
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .driver import DONE, LAST_ROUND, OUT_OF_ROWS, RUNNING, STACK_EMPTY, note
from .stacks import Stacks
from .state import NOW, Arms, Game, Limits, Record, State, new_record


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


class Pulse:
    """A thread that changes `beat` a few times a second while anybody plays, and ends when nobody does.

    It needs no lock: a player enters before it looks for the thread, which looks for players once more after it has
    said that it ends. After a fork the thread is gone, and the number of the process another.

    >>> pulse = Pulse()
    >>> pulse.enter("somebody"), pulse.process is None
    (None, False)
    >>> pulse.players.clear()
    """
    SECONDS = 0.25

    def __init__(self):
        self.players, self.process, self.beat = set(), None, np.zeros(1, np.int64)

    def enter(self, player: object) -> None:
        """Let it beat until this player has left (`players.discard`)."""
        if self.process not in (None, os.getpid()):
            self.players, self.process = set(), None
        self.players.add(player)
        if self.process is None:
            self.process = os.getpid()
            threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def _beat(self):
        while True:
            time.sleep(self.SECONDS)
            self.beat[0] += 1
            if not self.players:
                self.process = None
                if not self.players:
                    return
                self.process = os.getpid()


PULSE = Pulse()


class Run:
    """One run of one policy: its state, and the loops' calls on it.

    Checkpoints are due at a spending, `due`, or with `ends` at these rounds; the run ends at the last of them, or at
    `max_rounds`. The other arguments are those of `state.Limits`. Once `given_up` is true it ends by an error.

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
        self.limits = Limits(int(max_rounds), np.zeros(K) if max_cost is None else np.array(max_cost, float),
                             float(ceiling), float(rate))
        self.given_up = ()
        self.worked_on = ()     # the last loop's own arguments, for tests to look at

    def play(self, loop: Callable, *own: object, pause: float = math.inf) -> int:
        """Call `loop(*own, game)` until the run ends, and draw outcomes when a stack is empty; its status.

        From a spending of `pause` on `choose` is asked anew whether it can go on. A few times a second the loop comes
        back, so that Python handles signals.
        """
        self.worked_on, now, limits = own, self.state.now, self.limits._replace(pause=float(pause), near=np.zeros(1))
        PULSE.enter(self)
        try:
            while True:
                last = self.max_rounds if self.ends is None else self.ends[now.checkpoint]
                self.stacks.read_on(self.outcomes, self.state.arms)
                if (self.state.arms.n == self.outcomes.filled).any():
                    hard = limits.rate == 0 and limits.ceiling < math.inf
                    if not hard or now.spent + limits.max_cost.min() <= limits.ceiling:
                        return OUT_OF_ROWS
                    while now.checkpoint < len(self.record.due):     # no arm is affordable, with rows or without
                        note(self.state, self.record)
                    return DONE
                limits, status = limits._replace(last_round=int(last), beat=PULSE.beat), RUNNING
                while status == RUNNING:
                    if self.given_up:
                        raise RuntimeError("nobody wants this run any more")
                    try:
                        with np.errstate(all="ignore"):     # not compiled, NumPy warns of what is meant to be infinite
                            status = loop(*own, Game(self.outcomes, self.state, self.record, limits))
                    except Exception as error:
                        if _is_the_rules(error):
                            raise RuleError(int(now.rounds) + 1) from error
                        raise
                if status == LAST_ROUND and self.ends is not None:
                    status = self._note_round()
                if status not in (STACK_EMPTY, RUNNING):
                    return status
        finally:
            PULSE.players.discard(self)

    def _note_round(self):
        """Note the checkpoints due at this round."""
        now = self.state.now
        while now.checkpoint < len(self.ends) and self.ends[now.checkpoint] <= now.rounds:
            note(self.state, self.record)
        return DONE if now.checkpoint == len(self.ends) else RUNNING
