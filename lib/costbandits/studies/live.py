"""A policy as it is defined, one pull at a time: what `Agent` asks for an arm.

No policy needs code of its own here. An index is evaluated on the sums of what was told. Any other rule is played by a
loop that waits with a choice until that arm's outcome is at hand, and then takes it up. The loop is compiled: it also
plays through the pulls under way, again after each outcome that is told, for each outcome may change all that follows.
"""

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..checks import require
from ..engine.compilation import around, compiled_for, ready
from ..engine.driver import END, step
from ..engine.plain import INDEX
from ..engine.state import Arms, Outcome, new_record
from ..policies.base import ChoiceRule, IndexRule, NamedRule, Policy, Problem


@dataclass(frozen=True)
class Unknown:
    """What a policy can be told where nobody knows the arms' means: a `Problem` that refuses to tell them.

    >>> Unknown("UCBB2", K=2, prices=None, budget=9.0).min_cost
    Traceback (most recent call last):
    ValueError: UCBB2, mean costs = 'unknown': must be known to the policy; name prices, arms={name: price}, or ...
    """
    policy: str
    K: int
    prices: np.ndarray | None
    budget: float
    hard: bool = False
    rate: float | None = None
    horizon: int | None = None
    linear = None
    min_cost = Problem.min_cost

    @property
    def known_costs(self) -> bool:
        """Whether every pull of an arm costs the same, a price that is known."""
        return self.prices is not None

    @property
    def cost_means(self) -> np.ndarray:
        """The prices; ValueError where they are unknown."""
        require(self.known_costs, f"{self.policy}, mean costs", "unknown", "must be known to the policy; name prices, "
                "arms={name: price}, or give it what it asks for, as min_cost")
        return self.prices

    @property
    def reward_means(self) -> np.ndarray:
        """Always ValueError."""
        require(False, f"{self.policy}, mean rewards", "unknown",
                "must be known to the policy, so it plays simulations only")


@compiled_for()
def evaluate(index, t, n, sums, constant, params, values):
    """The indices at round t, from pulls and the sums of rewards, costs and their squares; infinite without a pull."""
    for k in range(n.size):
        values[k] = np.inf
        if n[k] > 0:
            values[k] = index(t, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], constant[k], params)


class Index:
    """The indices of an `IndexRule`.

    >>> found = Index(cb.UCB1(), Unknown("UCB1", K=2, prices=None, budget=9.0))
    >>> found.values(4, np.array([3, 0]), np.ones((4, 2))).round(2)
    array([1.19,  inf])
    """

    def __init__(self, policy: IndexRule, problem: Unknown):
        self._evaluate = around(evaluate, ready(policy.rule, INDEX))
        self._own = policy.constants(problem), policy.parameters

    def values(self, t: int, n: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """The index of each arm at round t, shape (K,), from its pulls and sums (4, K)."""
        values = np.empty(n.size)
        self._evaluate(t, n, sums, *self._own, values)
        return values


class History:
    """Outcomes in the order in which they were told; those of an arm are a chain, which a run follows.

    >>> history = History().of_more(2)
    >>> history.add(1, 0.5, 0.25)
    >>> history.add(1, 1.0, 0.0)
    >>> history.of(0), history.of(1)
    ([], [0.5, 0.25, 1.0, 0.0])
    """

    def __init__(self):
        self.size, self.rows, self.after = 0, np.zeros((64, 2)), np.full(64, -1)     # the next of the same arm, or -1
        self.first, self.last = np.full((2, 0), -1)

    def of_more(self, arms: int) -> "History":
        """The same, and no outcome of so many more arms."""
        more = copy.copy(self)
        more.first, more.last = (np.append(part, np.full(arms, -1)) for part in (self.first, self.last))
        return more

    def add(self, k: int, reward: float, cost: float) -> None:
        """Count an outcome of arm k."""
        row, before = self.size, self.last[k]
        if row == len(self.rows):
            self.rows, self.after = np.append(self.rows, np.zeros((row, 2)), 0), np.append(self.after, np.full(row, -1))
        self.rows[row] = reward, cost
        (self.after if before >= 0 else self.first)[before if before >= 0 else k] = row
        self.last[k], self.size = row, row + 1

    def of(self, k: int) -> list[float]:
        """Rewards and costs of an arm, in turn."""
        found, row = [], self.first[k]
        while row >= 0:
            found += self.rows[row].tolist()
            row = self.after[row]
        return found


class Seen(NamedTuple):
    """What a run can read: a position's outcomes as they were told, then its `means` up to the `most` that there are.

    >>> Seen(np.array([[0.5, 0.25]]), np.array([-1]), *np.array([[0, -1], [2, 0]]), np.zeros((2, 2))).most
    array([2, 0])
    """
    rows: np.ndarray        # (m, 2)
    after: np.ndarray       # (m,)      the row that comes after each, of the same arm; -1 for none
    first: np.ndarray       # (K,)      the first row of each position; -1 for none
    most: np.ndarray        # (K,)
    means: np.ndarray       # (K, 2)


# Where a run stands: rounds, those without a pull among them; what its choice was, if it has made one; what it spent.
STANDS = np.dtype([("t", "i8"), ("nulls", "i8"), ("held", "i8"), ("spent", "f8")])
UNDECIDED = np.iinfo(np.int64).min


@compiled_for()
def play_on(choose, learn, told, p, memory, rng, arms, at, now, seen, nulls):
    """Play while outcomes are seen, through so many rounds without a pull; the choice that the run then waits with."""
    while True:
        if now.held == UNDECIDED:
            now.held = choose(now.t + 1, now.spent, arms, told, p, memory, rng)
        k = now.held
        if not END < k < arms.n.size or (now.nulls == nulls if k < 0 else arms.n[k] >= seen.most[k]):
            return k
        now.t += 1
        now.held = UNDECIDED
        if k < 0:
            now.nulls += 1
            continue
        row = seen.first[k] if arms.n[k] == 0 else seen.after[at[k]] if at[k] >= 0 else -1
        reward, cost = (seen.rows[row, 0], seen.rows[row, 1]) if row >= 0 else (seen.means[k, 0], seen.means[k, 1])
        at[k] = row
        arms.n[k] += 1
        arms.reward[k] += reward
        arms.cost[k] += cost
        arms.reward_sq[k] += reward * reward
        arms.cost_sq[k] += cost * cost
        now.spent += cost
        learn(now.t, k, Outcome(reward, cost), arms, told, p, memory, rng)


@step
def learn_nothing(t, arm, outcome, arms, told, p, memory, rng):
    """What a policy learns that goes by the sums alone."""


@functools.lru_cache(256)
def from_sums(rule: Callable) -> Callable:
    """A choice that the engine calls with sums, with the arguments of a `NamedRule`.

    >>> from_sums(cb.BTS.rule) is from_sums(cb.BTS.rule)
    True
    """
    @step
    def choose(t, spent, arms, told, p, memory, rng):
        return rule(t, arms.n, arms.reward, arms.cost, arms.reward_sq, arms.cost_sq, told, p, memory, rng)
    return choose


class Steps:
    """A run of any other policy, as far as outcomes are told.

    >>> steps = Steps(cb.BGreedy(), Unknown("BGreedy", K=2, prices=None, budget=9.0), rng=np.random.default_rng(0))
    >>> history = History().of_more(2)
    >>> history.add(0, 0.5, 0.25)
    >>> steps.go_on(Seen(history.rows, history.after, history.first, np.array([1, 0]), np.zeros((2, 2))), nulls=0)
    1
    >>> steps.arms.reward, int(steps.now.t)
    (array([0.5, 0. ]), 1)
    """

    def __init__(self, policy: Policy, problem: Unknown, rng: np.random.Generator):
        self.arms, self.rng, self.now = Arms.of(problem.K), rng, new_record(STANDS)
        self.at = np.full(problem.K, -1)       # the row of each position's last outcome; -1 for one that is imagined
        self.now.held = UNDECIDED
        if isinstance(policy, ChoiceRule):
            self._loop = around(play_on, from_sums(policy.rule), learn_nothing)
            self._own = np.array(policy.prepare(problem), float, ndmin=1).ravel(), policy.parameters
            self.memory = np.zeros(policy.memory(problem.K))
        else:
            self._loop = around(play_on, policy.rule, policy.learn or learn_nothing)
            self._own, self.memory = (policy.told(problem), policy.p), policy.remember(problem)

    def go_on(self, seen: Seen, nulls: int) -> int:
        """Play as far as outcomes are seen, and through so many rounds without a pull in all.

        Returns the position that the run waits for, SKIP or NULL_ARM before a round without a pull, or END if the
        policy knows no arm.
        """
        held = self._loop(*self._own, self.memory, self.rng, self.arms, self.at, self.now, seen, nulls)
        if not END <= held < self.arms.n.size:
            raise RuntimeError(f"round {self.now.t + 1}: the policy returned an arm out of range ({held})")
        return held

    def copy(self) -> "Steps":
        """Another run that stands where this one does."""
        twin = copy.copy(self)
        twin.arms, twin.at, twin.now, twin.memory = _copied((self.arms, self.at, self.now, self.memory))
        bits = type(self.rng.bit_generator)(SEED)       # ten times as fast as a deep copy
        bits.state = self.rng.bit_generator.state
        twin.rng = np.random.Generator(bits)
        return twin


SEED = np.random.SeedSequence(0)        # of generators whose state is set


def _copied(part):
    """Arrays, records and tuples of them and of numbers, copied."""
    if not isinstance(part, tuple):
        return part.copy() if hasattr(part, "copy") else part
    copies = map(_copied, part)
    return part._make(copies) if hasattr(part, "_make") else tuple(copies)


PLAYED = {IndexRule.play: Index, ChoiceRule.play: Steps, NamedRule.play: Steps}


def player(policy: Policy, problem: Unknown, rng: np.random.Generator) -> Index | Steps:
    """What plays the policy from here on; ValueError if it must know what nobody knows.

    >>> type(player(cb.BTS(), Unknown("BTS", K=2, prices=None, budget=9.0), np.random.default_rng(0))).__name__
    'Steps'
    """
    policy.check(problem)
    made = PLAYED.get(type(policy).play)
    require(made is not None, "policy", policy, "plays by a loop of its own; an agent needs an index or a choice")
    return made(policy, problem) if made is Index else made(policy, problem, rng)


def compile_steps(policy: Policy, problem: Unknown) -> None:
    """Compile all that the policy will need, by a round that does not count."""
    tried = player(policy, problem, np.random.default_rng(0))
    if isinstance(tried, Index):
        tried.values(2, np.ones(problem.K, np.int64), np.full((4, problem.K), 0.5))
    else:
        none = np.zeros(problem.K, np.int64)
        tried.go_on(Seen(np.zeros((0, 2)), none, none, none, np.zeros((problem.K, 2))), 0)
