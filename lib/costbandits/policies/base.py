"""What a policy is: a rule (an index of one arm, or a choice among all) and what it may know."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, astuple, dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, get_args

import numba as nb
import numpy as np
from numpy.typing import ArrayLike

from ..checks import Plain, count, flag, frozen, numbers, positive, require
from ..engine.compilation import address
from ..engine.plain import CHOICE, INDEX, Ruled, by_choosing, by_rule, by_scanning
from ..engine.run import Run
from ..engine.stops import StopRule
from ..environments.bandits import Bandit
from .rules import by_sums, compiled, parameters_of, require_current

REPEATED = "called twice, it does not say the same: what is random must not come from np.random or random"


@dataclass(frozen=True)
class Problem:
    """What a policy could be told before the first pull; its `prepare` picks what it may know.

    Arms stand in the replication's shuffled order. Arrays are read-only: all policies of a replication share them.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.75), cb.Bernoulli(0.5)], [cb.Constant(0.5), cb.Constant(0.25)])
    >>> problem = Problem.of(bandit, cb.HardBudget(100), order=[1, 0])
    >>> problem.cost_means, problem.known_costs
    (array([0.25, 0.5 ]), True)
    """
    K: int
    cost_means: np.ndarray
    budget: float                      # infinite where there is none
    known_costs: bool                  # no cost varies
    hard: bool = False                 # the budget may not be exceeded
    linear: object = None              # a `bandits.Linear`: what is known of a linear bandit
    reward_means: np.ndarray | None = None     # for policies to compare with, which know everything
    rate: float | None = None          # under an anytime budget, the spending per round that may not be exceeded
    horizon: int | None = None         # rounds, where they are what ends a run

    @classmethod
    def of(cls, bandit: Bandit, stop: StopRule, order: ArrayLike) -> "Problem":
        """What could be told of a bandit under a stop rule, its arms in a given order."""
        known = all(law.variance == 0 for law in bandit.costs)
        rewards, costs = frozen(bandit.reward_means[order]), frozen(bandit.cost_means[order])
        return cls(bandit.K, costs, stop.total, known, stop.hard, bandit.linear and bandit.linear.ordered(order),
                   rewards, stop.rate, stop.horizon)

    @property
    def min_cost(self) -> float:
        """Smallest expected cost (lambda in Xia et al.)."""
        return float(self.cost_means.min())


class Scale(NamedTuple):
    """The range of rewards that a policy is told, by which it divides them."""
    reward_scale: float


def index(function: Callable) -> Callable:
    """Compile an index of one arm: a number from (t, arm, p).

    t is the coming round, from 1. `arm.n` are the arm's pulls so far (at least 1), `arm.reward`, `arm.cost`,
    `arm.reward_sq` and `arm.cost_sq` the sums of its rewards, costs and their squares, and `arm.told` is its known
    constant, if any. p is the array of the policy's parameters, or, annotated by a NamedTuple of numbers, has their
    names. Dividing by 0 gives inf, and 0/0 NaN, which ends the study with an error; // and % of whole numbers give 0
    there. Raises ValueError if the function takes other arguments, uses what cannot be compiled, or returns no number.

    Until release 0.4 it may instead take (t, n, reward, cost, reward_sq, cost_sq, constant, params).

    >>> from typing import NamedTuple
    >>> class Bonus(NamedTuple):
    ...     bonus: float
    >>> @cb.index
    ... def density(t, arm, p: Bonus):
    ...     return (arm.reward + p.bonus) / arm.cost
    >>> runs = cb.simulate({"mine": cb.IndexPolicy(density, [0.5])}, cb.instances.bernoulli(3), cb.Horizon(7))
    >>> sorted(runs.pulls[0, 0, -1].tolist())
    [1, 2, 4]
    """
    return compiled(function, "index")


def choose(function: Callable) -> Callable:
    """Compile a choice among all arms: a position, -1 to skip the round, or -2 to pass it.

    A round that is passed belongs to the policy's mixture (the null arm of the literature) and is no skip.

    Its arguments are (t, spent, arms, told, p, memory, rng): t is the coming round, from 1, and `spent` the sum of all
    costs; `arms.n`, `arms.reward`, `arms.cost`, `arms.reward_sq` and `arms.cost_sq` are arrays over arms, where n may
    be 0; `told` is what `prepare` returned, p the parameters as in `index`, `memory` the policy's own array (zeros at
    the start) and `rng` its random generator. Raises ValueError as `index` does, and if no whole number is returned.

    Until release 0.4 it may instead take (t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng).

    >>> @cb.choose
    ... def in_turn(t, spent, arms, told, p, memory, rng):
    ...     return (t - 1) % arms.n.size
    >>> runs = cb.simulate({"mine": cb.ChoosePolicy(in_turn)}, cb.instances.bernoulli(3), cb.Horizon(7))
    >>> sorted(runs.pulls[0, 0, -1].tolist())
    [2, 2, 3]
    """
    return compiled(function, "choose")


rule = nb.njit(error_model="numpy")     # compiles a rule of the library, or what it learns by: see `NamedRule`


def checked(check: Callable | tuple, default: Any = MISSING) -> Any:
    """A field of a policy whose value is looked at when the policy is made.

    `check` takes the field's name and its value, and raises ValueError; a tuple holds all that is allowed. None is
    allowed, too, where the field's annotation says so.

    >>> @dataclass(frozen=True)
    ... class Bold(Policy):
    ...     boldness: float = checked(positive, default=1.0)
    >>> Bold(0)
    Traceback (most recent call last):
    ValueError: boldness = 0: must be a finite number above 0
    """
    return field(default=default, metadata={"check": check})


def takes_one(name: str, function: Callable, argument: str) -> None:
    """Raise ValueError if a function cannot be called with one argument."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        require(False, name, function, f"must take one argument, {argument}")
    except ValueError:      # some functions don't tell
        pass


def require_policies(policies: dict) -> None:
    """Raise ValueError unless `policies` is a dict label -> policy, ready to play."""
    hint = ": {'any label': policy}" * isinstance(policies, Policy)
    require(isinstance(policies, dict) and len(policies) > 0, "policies", policies,
            f"must be a non-empty dict label -> policy{hint}")
    for label, policy in policies.items():
        require_policy(f"policies[{label!r}]", policy)


def require_policy(name: str, policy: object) -> None:
    """Raise ValueError, calling it `name`, unless this is a policy, ready to play."""
    hint = ""
    if isinstance(policy, type):
        hint = f"; call the class: {policy.__name__}(...)"
    elif callable(policy):
        hint = "; a rule under @cb.index becomes one by cb.IndexPolicy(rule), under @cb.choose by cb.ChoosePolicy"
    require(isinstance(policy, Policy), name, policy, f"must be a policy{hint}")
    require_current(name, getattr(policy, "rule", None))


def require_known_costs(policy: "Policy", problem: Problem) -> None:
    """Raise ValueError where costs are random."""
    require(problem.known_costs, f"{type(policy).__name__}, costs", "random",
            "the policy must know every cost in advance: Constant(value), or an agent's arms={name: price}")


def require_hard(policy: "Policy", problem: Problem) -> None:
    """Raise ValueError unless costs are known and the budget is hard."""
    require_known_costs(policy, problem)
    require(problem.hard, "stop", "no hard budget", f"{type(policy).__name__} needs HardBudget(total)")


def require_soft(policy: "Policy", problem: Problem) -> None:
    """Raise ValueError under a hard budget."""
    require(not problem.hard, "stop", "a hard budget",
            f"{type(policy).__name__} may draw an arm that is not affordable any more")


def _floats(values):
    return np.array(values, float, ndmin=1).ravel()     # a copy: loops are compiled for arrays that may be written


def _own_numbers(name, given):
    return _floats(numbers(name, given, -np.inf, np.inf, "must be a sequence of numbers"))


class Policy(Plain):
    """Base of all policies.

    `support` is the range (low, high) of rewards and costs that the policy's analysis lives on; others are refused.
    Only a policy that `skips` rounds can keep an anytime budget; others are refused there.

    >>> cb.EpsilonGreedy(c=5, d=0.25).parameters, cb.EpsilonGreedy(c=5, d=0.25).skips
    (array([5.  , 0.25]), False)
    """
    support = None
    skips = False
    all_knowing = False     # told the means, for comparison: what no replay of a log can tell

    def __post_init__(self):
        for part in fields(self):
            check, value = part.metadata.get("check"), getattr(self, part.name)
            if isinstance(check, tuple):
                require(value in check, part.name, value, f"must be one of {check}")
            elif check is not None and not (value is None and type(None) in get_args(part.type)):
                check(part.name, value)

    @property
    def reward_support(self) -> tuple[float, float] | None:
        """`support` of rewards, where it is not that of costs."""
        return self.support

    @property
    def parameters(self) -> np.ndarray:
        """The rule's parameters as an array: `params` where the policy has been given some, else its fields."""
        return _floats(astuple(self)) if is_dataclass(self) else np.asarray(getattr(self, "params", ()), float)

    def check(self, problem: Problem) -> None:
        """Raise ValueError if the policy cannot play; asked before anyone has pulled an arm."""

    def prepare(self, problem: Problem) -> np.ndarray:
        """What the rule knows of the problem, as an array; nothing by default."""
        return np.zeros(problem.K)

    def rehearse(self, name: str, problem: Problem) -> None:
        """Raise ValueError, calling the policy `name`, if its own functions do not work."""
        takes_one(f"{name} prepare", self.prepare, "the Problem")
        told, again = (_own_numbers(f"{name} prepare(problem)", self.prepare(problem)) for _ in range(2))
        require(np.array_equal(told, again), f"{name} prepare", self.prepare, REPEATED)

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        """Play one run to its end, as the policy is defined, and return the driver's status."""
        raise NotImplementedError


@dataclass(frozen=True)
class _PerCost(Policy):
    """A policy that knows every cost, and divides rewards by their range before it compares them with costs."""
    reward_scale: float = checked(positive, 1.0)

    def check(self, problem: Problem) -> None:
        require_known_costs(self, problem)
        require(problem.min_cost >= 0, "smallest cost", problem.min_cost,
                f"{type(self).__name__} needs costs of 0 or more")

    def prepare(self, problem: Problem) -> np.ndarray:
        return problem.cost_means


class _Ruled(Policy):
    """A policy whose rule the engine calls with sums (`rules.by_sums`)."""
    rule = None

    def _take(self, maker, rule, params, **functions):
        """Take up what a user gives: a rule made by cb.index or cb.choose (`maker`), its numbers, and methods."""
        # Without compilation `index` and `choose` return the function as it is.
        made_by = maker if callable(rule) and nb.config.DISABLE_JIT else getattr(rule, "maker", None)
        cure = f"write @cb.{maker} above its def" if made_by is None else f"it is made by cb.{made_by}, which goes " \
               f"with {'cb.IndexPolicy' if made_by == 'index' else 'cb.ChoosePolicy'}"
        require(made_by == maker, "rule", rule, f"must be a function made by cb.{maker}; {cure}")
        for name, function in functions.items():
            require(function is None or callable(function), name, function, "must be a function")
            if function is not None:
                setattr(self, name, function)
        self.rule, self.params, P = by_sums(rule), _own_numbers("params", params), parameters_of(rule)
        require(P is None or self.params.size == len(P._fields), "params", params,
                f"must be one number for each of {getattr(P, '_fields', ())}")

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if vars(cls).get("rule") is not None:
            cls.rule = staticmethod(by_sums(cls.rule))


class IndexRule(_Ruled):
    """A policy that pulls the arm with the largest index after pulling each arm once.

    Subclasses state `rule`, a function made by `index`, and whether it is `monotone` and `regular`: `IndexPolicy` says
    what that promises. A monotone index need not be evaluated of every arm in every round; if it is also regular, an
    arm can be pulled many times at once.

    >>> issubclass(cb.UCB1, IndexRule), cb.UCB1().monotone, cb.UCB1().regular
    (True, True, True)
    """
    monotone = regular = True

    def constants(self, problem: Problem, name: str | None = None) -> np.ndarray:
        """What `prepare` tells of each arm, shape (K,); `name` is what errors call the policy."""
        told = _floats(self.prepare(problem))
        require(told.size == problem.K, f"{name or type(self).__name__} prepare(problem)", told,
                "must return one number per arm")
        return told

    def rehearse(self, name: str, problem: Problem) -> None:
        super().rehearse(name, problem)
        self.constants(problem, name)

    def play(self, run: Run, problem: Problem, rng: object) -> int:
        scan = functools.partial(by_scanning, address(self.rule, INDEX))
        return run.play(scan, self.constants(problem), self.parameters)


class NamedRule(Policy):
    """A policy that picks among all arms by `rule`, from (t, spent, arms, told, p, memory, rng); all are read by name.

    t is the coming round, from 1, and `spent` what was spent before it; `arms` has pulls and sums (`state.Arms`).
    Subclasses say what it is told, `told(problem)`, its parameters, `p`, and what it remembers, `remember(problem)`, as
    arrays, or tuples of arrays and numbers. It returns a position, SKIP, NULL_ARM, or END if none is affordable.

    With a `learn`, that is called after each pull, with (t, arm, outcome, arms, told, p, memory, rng): t rounds are
    over, and the last one paid `outcome.reward` and cost `outcome.cost`.

    >>> issubclass(cb.SUAK, NamedRule)
    True
    """
    rule = learn = None
    p: tuple = ()

    def told(self, problem: Problem) -> tuple:
        """What the rule is told of the problem."""
        return ()

    def remember(self, problem: Problem) -> tuple:
        """The policy's own arrays before the first round."""
        return ()

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        return run.play(by_rule(self.rule, self.learn), Ruled(self.told(problem), self.p, self.remember(problem)), rng)


class ChoiceRule(_Ruled):
    """A policy that picks among all arms by `rule`, a function made by `choose`.

    >>> cb.BTS().memory(K=10)           # numbers that it remembers from round to round
    23
    """

    def memory(self, K: int) -> int:
        """Size of the policy's own array."""
        return 0

    def rehearse(self, name: str, problem: Problem) -> None:
        super().rehearse(name, problem)
        takes_one(f"{name} memory", self.memory, "K")
        count(f"{name} memory(K)", self.memory(problem.K), low=0)

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        pick = functools.partial(by_choosing, address(self.rule, CHOICE))
        return run.play(pick, _floats(self.prepare(problem)), self.parameters, np.zeros(self.memory(problem.K)), rng)


class IndexPolicy(IndexRule):
    """Your own index policy, from a function made by `cb.index`.

    Parameters
    ----------
    rule : compiled index
    params : sequence of float
        Reaches the index as its last argument.
    monotone : bool
        Promise that the index of a resting arm never decreases with t: much faster. Checked in some replications (the
        first, and 1, 2, 4, 8, ... after it): along their first outcomes up to their last round, and against the full
        scan for 10,000 rounds. A promise that breaks only elsewhere goes unnoticed, and its runs are wrong.
    prepare : callable, optional
        From the `Problem`, which has K, cost_means, budget, known_costs, rate and horizon, among others, to the arms'
        constants, shape (K,); zeros by default.
    regular : bool
        Promise that the index also depends on t, n and the two means alone, never decreases with the mean reward, and
        never increases with the mean cost nor, at the same means, with n: then runs of 1e12 rounds take seconds where
        outcomes have finitely many values, and none is negative. Checked likewise. An index of variances, which is not
        regular, is as fast with a lower bound of its own (`fast.lower.lower_bound`).

    Examples
    --------
    >>> mine = cb.IndexPolicy(cb.UCB1.rule, monotone=True, regular=True, prepare=lambda problem: problem.cost_means)
    """

    def __init__(self, rule: Callable, params: ArrayLike = (), monotone: bool = False,
                 prepare: Callable[[Problem], ArrayLike] | None = None, regular: bool = False):
        self._take("index", rule, params, prepare=prepare)
        self.monotone, self.regular = flag("monotone", monotone), flag("regular", regular)
        require(monotone or not regular, "regular", regular, "only an index that is monotone can be regular, too")


class ChoosePolicy(ChoiceRule):
    """Your own policy as a choice among all arms, from a function made by `cb.choose`.

    Parameters
    ----------
    rule : compiled choice
    params : sequence of float
    memory : callable
        From K to the size of the policy's own array, which starts as zeros.
    prepare : callable, optional
        From the `Problem` to the array that reaches the rule as `told`.

    Examples
    --------
    >>> mine = cb.ChoosePolicy(cb.BGreedy.rule, memory=lambda K: 2 * K)
    """
    skips = True

    def __init__(self, rule: Callable, params: ArrayLike = (), memory: Callable[[int], int] | None = None,
                 prepare: Callable[[Problem], ArrayLike] | None = None):
        self._take("choose", rule, params, memory=memory, prepare=prepare)
