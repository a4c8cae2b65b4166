"""A policy as it is defined, one pull at a time: what `Agent` asks for an arm.

No policy needs code of its own here. An index is evaluated on the sums of what was told. Any other rule is called as
the engine calls it, waits with its choice until that arm's outcome is at hand, and then takes it up.
"""

import copy
from dataclasses import dataclass

import numpy as np

from ..checks import require
from ..engine.compilation import around, compiled_for, ready
from ..engine.driver import END, NULL_ARM
from ..engine.plain import CHOICE, INDEX
from ..engine.state import Arms, Outcome
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


class Steps:
    """A run of any other policy, as far as outcomes are told.

    `held` is the position that it waits for, SKIP or NULL_ARM before a round without a pull, or END; None before a
    choice.

    >>> steps = Steps(cb.BGreedy(), Unknown("BGreedy", K=2, prices=None, budget=9.0), rng=np.random.default_rng(0))
    >>> first = steps.choose()
    >>> steps.take(0.5, 0.25)
    >>> first, steps.held, steps.choose(), steps.arms.reward
    (0, None, 1, array([0.5, 0. ]))
    """

    def __init__(self, policy: Policy, problem: Unknown, rng: np.random.Generator):
        self.arms, self.rng, self.t, self.nulls, self.spent, self.held = Arms.of(problem.K), rng, 0, 0, 0.0, None
        self._learn, self._least = None, END
        if isinstance(policy, ChoiceRule):
            self._least = NULL_ARM      # the driver's other words are not a rule's to say
            rule, given = ready(policy.rule, CHOICE), (np.array(policy.prepare(problem), float, ndmin=1).ravel(),
                                                       policy.parameters)
            self.memory = np.zeros(policy.memory(problem.K))
            self._rule = lambda own: rule(own.t + 1, *own.arms, *given, own.memory, own.rng)
        else:
            rule, given, self.memory = ready(policy.rule), (policy.told(problem), policy.p), policy.remember(problem)
            self._rule = lambda own: rule(own.t + 1, own.spent, own.arms, *given, own.memory, own.rng)
            if policy.learn is not None:
                learn = ready(policy.learn)
                self._learn = lambda own, arm, *outcome: learn(own.t, arm, Outcome(*outcome), own.arms, *given,
                                                               own.memory, own.rng)

    def choose(self) -> int:
        """What the policy wants in the coming round: a position, SKIP or NULL_ARM; or END, if it knows none."""
        if self.held is None:
            self.held = int(self._rule(self))
        if not self._least <= self.held < self.arms.n.size:
            raise RuntimeError(f"round {self.t + 1}: the policy returned an arm out of range ({self.held})")
        return self.held

    def take(self, reward: float, cost: float) -> None:
        """Take up the outcome of the position that was waited for."""
        k, arms = self.held, self.arms
        for sums, more in zip(arms, (1, reward, cost, reward * reward, cost * cost), strict=True):
            sums[k] += more
        self.t, self.spent, self.held = self.t + 1, self.spent + cost, None
        if self._learn is not None:
            self._learn(self, k, reward, cost)

    def go_without(self) -> None:
        """Let the round pass in which nothing is to be pulled."""
        self.t, self.nulls, self.held = self.t + 1, self.nulls + 1, None

    def copy(self) -> "Steps":
        """Another run that stands where this one does."""
        twin = copy.copy(self)
        twin.arms, twin.memory, twin.rng = copy.deepcopy((self.arms, self.memory, self.rng))
        return twin


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
        tried.choose()
        tried.held = 0
        tried.take(0.5, 0.5)
