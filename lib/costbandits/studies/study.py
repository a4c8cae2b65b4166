"""A study: all that decides its results, and how one of its replications is played."""

import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .. import fast as kernels
from ..checks import ours, require
from ..engine import driver, fingerprint
from ..engine.run import RuleError, Run
from ..engine.stacks import INSTANCE, ORDER, POLICY, Stacks, stream
from ..engine.stops import FURTHEST, StopRule, require_usable
from ..environments.bandits import Bandit
from ..environments.distributions import check_sampler
from ..environments.joint import Units
from ..policies.base import REPEATED, IndexPolicy, IndexRule, Policy, Problem
from . import keys
from .runs import FIELDS, Runs

PATIENCE = 10**8    # rounds of a policy that plays them one by one, where max_rounds is not given
PROBED = 10**4      # rounds for which promises are checked against the full scan
CHECKED = {0, *(1 << i for i in range(32))}     # replications after the first in which they are
STOPS = "Budget, HardBudget, AnytimeBudget, Horizon"


class Game(NamedTuple):
    """What the policies of a replication are faced with, before any outcome is drawn."""
    replication: int
    bandit: Bandit
    stop: StopRule
    order: np.ndarray       # (K,)    the arms by their positions
    problem: Problem
    end: tuple              # what a `Run` is told of the stop rule: due, max_cost, ceiling, rate, ends


@dataclass(frozen=True)
class Study:
    """Everything that decides the results, apart from how they are computed: as `cb.simulate` takes it.

    >>> study = Study({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(20), seed=0, fractions=np.array([1.0]),
    ...               max_rounds=1000)
    >>> study.play(replication=0, labels=["m"])["m"]["spent"]
    array([20.])
    """
    policies: dict
    bandits: object
    stop: object
    seed: int
    fractions: np.ndarray
    max_rounds: int | None
    reduce: object = None
    shuffle: bool = True
    fast: bool = True
    first: int = 0       # promises of user-written policies are checked in this replication, and 1, 2, 4, ... after it
    arms: int | None = None    # K, once the first instance has shown it
    checked: set = field(default_factory=set, compare=False, repr=False)
    given_up: list = field(default_factory=list, compare=False, repr=False)     # empty as long as somebody wants it

    def instance(self, replication: int) -> tuple[Bandit, StopRule]:
        """The bandit and stop rule of a replication, checked."""
        bandit = self.bandits
        if not isinstance(bandit, Bandit):
            bandit = bandit(stream(self.seed, replication, INSTANCE))
            require(isinstance(bandit, Bandit), f"bandits(rng) in replication {replication}", bandit,
                    "must return a Bandit" + "; its return is missing" * (bandit is None))
            require(self.arms in (None, bandit.K), f"bandits(rng) in replication {replication}", f"{bandit.K} arms",
                    f"must have as many arms in every replication ({self.arms})")
        stop = self.stop if isinstance(self.stop, StopRule) else self.stop(bandit)
        require(isinstance(stop, StopRule), f"stop(bandit) in replication {replication}", stop,
                f"must return a stop rule ({STOPS})")
        stop.check(bandit)
        if not ours(type(stop)):
            require_usable(stop, self.fractions, bandit)
        require((stop.horizon or 0) <= (self.max_rounds or FURTHEST), "max_rounds", self.max_rounds,
                f"must be at least the horizon ({stop.horizon})")
        for label, policy in self.policies.items():
            require(policy.skips or stop.rate is None, f"policies[{label!r}]", policy,
                    "must be able to skip rounds under an anytime budget (SUAK, ..., your own by cb.choose)")
        self._check_laws(bandit)
        return bandit, stop

    def rehearsed(self) -> "Study":
        """The study with `arms`, once its first instance has been tried.

        That is made twice: it must come from `rng` alone, or stored results could not be found again. The user's own
        laws are tried on it, and what each policy prepares and remembers.
        """
        (first, stop), (again, stop_again) = (self.instance(self.first) for _ in range(2))
        same = all(np.array_equal(getattr(first, means), getattr(again, means))
                   for means in ("reward_means", "cost_means"))
        require(same, f"bandits(rng) in replication {self.first}", self.bandits,
                "made twice, its arms differ: draw all that is random from rng, not from np.random or random")
        require(stop == stop_again or fingerprint.digest(stop) == fingerprint.digest(stop_again),
                f"stop(bandit) in replication {self.first}", self.stop, REPEATED)
        for law in (*first.rewards, *first.costs):
            if not ours(type(law)):
                check_sampler(law)
        problem = Problem.of(first, stop, np.arange(first.K))
        for label, policy in self.policies.items():
            policy.check(problem)
            policy.rehearse(f"policies[{label!r}]", problem)
        return replace(self, arms=first.K)

    @cached_property
    def _specimen(self):
        return self.instance(0)

    @cached_property
    def origin(self) -> bytes:
        """Digest of the seed, and of the bandit and the stop rule of replication 0."""
        bandit, stop = self._specimen
        return fingerprint.digest(self.seed, stop, keys.instance(bandit))

    def _check_laws(self, bandit):
        for what, laws, means in (("reward", bandit.rewards, bandit.reward_means),
                                  ("cost", bandit.costs, bandit.cost_means)):
            low, high = min(law.support[0] for law in laws), max(law.support[1] for law in laws)
            for label, policy in self.policies.items():
                allowed = (policy.reward_support if what == "reward" else policy.support) or (-np.inf, np.inf)
                require(allowed[0] <= low and high <= allowed[1], f"{what} support", (low, high),
                        f"policy {label!r} ({type(policy).__name__}) is made for {what}s in {allowed}"
                        + _scaling(policy, what, bandit) * (0 == allowed[0] <= low and high < np.inf)
                        + "; cut off what has no bound, as cb.TruncatedNormal does" * (not high - low < np.inf))
            for arm, law in enumerate(laws):
                if ours(type(law)):
                    continue
                require(law.mean == means[arm], f"{what} of arm {arm}", law,
                        f"its mean was {means[arm]} when it was first asked for: make another Bandit of a changed law")
                if type(law) not in self.checked:
                    self.checked.add(type(law))
                    check_sampler(law)

    @cached_property
    def _parts(self):
        # Digests of what does not change with the replication. A function that makes instances is known by its code
        # and by an example of what it makes: to make each instance only to look up its results takes too long.
        policies = {label: self._digest(policy) for label, policy in self.policies.items()}
        bandit, stop = self._specimen
        makers = [maker for maker in (self.bandits, self.stop) if not isinstance(maker, Bandit | StopRule)]
        # A regret may use whatever a bandit knows to tell.
        named = bandit.names is not None or bandit.units != Units()
        reduce = self.reduce and (self.reduce, type(bandit), *((bandit.names, bandit.units) if named else ()))
        study = (self.fractions, self.max_rounds, self.seed, reduce, makers, stop)
        study += () if self.shuffle else ("as given",)      # what was filed before there was a choice is found still
        return policies, fingerprint.digest(study, keys.instance(bandit), keys.common())

    def _digest(self, policy):
        # By its definition a policy gives the same results as by a kernel, or others of the same law.
        kernel = None if self.fast else kernels.kernel_of(policy)
        other = kernel is not None and kernel.same == "law"
        return fingerprint.digest(policy, "definition") if other else fingerprint.digest(policy)

    def keys(self, replication: int) -> dict[str, bytes]:
        """What a finished replication of each policy is filed under in the store."""
        policies, rest = self._parts
        return {label: fingerprint.digest(policy, rest, replication) for label, policy in policies.items()}

    def game(self, replication: int, labels: Iterable[str]) -> Game:
        """What these policies are faced with in a replication; ValueError if one of them cannot play it."""
        bandit, stop = self.instance(replication)
        order = stream(self.seed, replication, ORDER).permutation(bandit.K) if self.shuffle else np.arange(bandit.K)
        problem, (max_cost, *limits) = Problem.of(bandit, stop, order), stop.limits(bandit)
        for label in labels:
            self.policies[label].check(problem)
        end = stop.due(self.fractions), max_cost[order], *limits, stop.ends(self.fractions)
        return Game(replication, bandit, stop, order, problem, end)

    def play(self, replication: int, labels: Iterable[str]) -> dict[str, dict[str, np.ndarray]]:
        """Play one replication; dict label -> dict of arrays over checkpoints, arms in the bandit's order."""
        game, results = self.game(replication, labels), {}
        stacks = Stacks(game.bandit, self.seed, replication, game.order)
        for label in labels:
            found = self.run(label, game, stacks).record
            pulls = np.empty_like(found.pulls)
            pulls[:, game.order] = found.pulls
            results[label] = {"pulls": pulls, **{name: found.noted[name].copy() for name in FIELDS[1:]}}
            if self.reduce is not None:
                results[label] = self._reduced(replication, results[label], game.bandit, game.stop)
        return results

    def limit(self, policy: Policy, stacks: Stacks, stop: StopRule) -> int:
        """The round after which a run is given up."""
        return self.max_rounds or (max(PATIENCE, stop.horizon or 0) if self._one_by_one(policy, stacks) else FURTHEST)

    def player(self, label: str, game: Game, stacks: Stacks) -> Callable[..., Run]:
        """A function that plays a policy's run, up to a round, fast or by its definition; by default as the study says.

        It raises RuntimeError if something is wrong with the run, ValueError if a rule reads beyond an array.
        """
        policy, replication, problem = self.policies[label], game.replication, game.problem
        due, *limits, ends = game.end
        limit = self.limit(policy, stacks, game.stop)

        def play(rounds=limit, fast_too=self.fast):
            run = Run(stacks, due, rounds, *limits, None if ends is None else np.minimum(ends, rounds))
            run.given_up = self.given_up
            try:
                status = kernels.play(policy, run, problem, stream(self.seed, replication, POLICY), fast_too)
            except RuleError as told:
                error = told.__cause__
                # Numba and NumPy say so of an array that is too short.
                if not (isinstance(error, IndexError) and "out of bounds" in str(error)):
                    raise RuntimeError(f"policy {label!r}, replication {replication}, round {told}: its rule raised "
                                       f"{type(error).__name__}: {error}") from error
                status = None
            if status is None:
                require(False, f"policies[{label!r}]", policy,
                        f"its rule reads beyond the end of an array: it is given {problem.K} arms and "
                        f"{len(policy.parameters)} params; hand over what is missing by params=(...), "
                        "memory=lambda K: ... or prepare=...")
            if status not in (driver.DONE, driver.OUT_OF_ROWS) and not (status == driver.LAST_ROUND and rounds < limit):
                raise RuntimeError(f"policy {label!r}, replication {replication}, round {run.state.now.rounds + 1}: "
                                   + self._trouble(status, problem.K, policy, stacks, limit))
            return run

        return play

    def run(self, label: str, game: Game, stacks: Stacks) -> Run:
        """Play a policy's run to its end; what the reader's own policy promises is checked in some replications."""
        policy, problem, play = self.policies[label], game.problem, self.player(label, game, stacks)
        limit = self.limit(policy, stacks, game.stop)
        own = isinstance(policy, IndexPolicy) or not ours(type(policy))
        kernel = kernels.kernel_of(policy) if self.fast and own else None
        if kernel is None or kernel.broken is None or game.replication - self.first not in CHECKED:
            return play()
        probe = play(min(limit - 1, PROBED))
        self._check_promises(label, policy, kernel, problem, probe, play)
        run = play()
        if run.state.now.rounds > probe.state.now.rounds:
            self._refuse(label, policy, kernel.broken(policy, probe, problem, int(run.state.now.rounds)))
        return run

    def _check_promises(self, label, policy, kernel, problem, run, play):
        rounds = int(run.state.now.rounds)
        found = kernel.broken(policy, run, problem, rounds)
        if found is None and not np.array_equal(run.state.arms.n, play(run.max_rounds, False).state.arms.n):
            # No index that was evaluated broke its promise, yet pulls differ: from a round on, found by bisection.
            def differ(t):
                return not np.array_equal(*(play(t, fast_too).state.arms.n for fast_too in (True, False)))

            first = 1 + bisect.bisect_left(range(1, rounds), True, key=differ)
            found = "regular" if kernel.blocks(policy) else "monotone", first
        self._refuse(label, policy, found)

    def _refuse(self, label, policy, found):
        if found is not None:
            name, t = found
            require(name == "monotone" or policy.regular, f"policies[{label!r}]", policy,
                    f"at round {t} its lower is above its index within a block of pulls")
            why = {"monotone": "its index decreases while the arm rests",
                   "regular": "within a block of pulls its index falls below what the promise allows"}[name]
            require(False, f"policy {label!r} {name}", True, f"at round {t} {why}: declare {name}=False")

    def _trouble(self, status, K, policy, stacks, limit):
        more = "; max_rounds allows more" * (limit < FURTHEST)
        allowed = f"max_rounds = {limit}; allow more" if self.max_rounds else f"{limit:,} rounds{more}"
        return {
            driver.LAST_ROUND: f"the run did not end within {allowed}{self._one_by_one(policy, stacks)}",
            driver.NO_SUCH_ARM: f"the policy returned an arm out of range; allowed are 0 to {K - 1}, -1 to skip and "
                                "-2 for the null arm",
            driver.UNAFFORDABLE: "the policy returned an arm that would exceed the budget; choose one that fits",
            driver.NOT_A_NUMBER: "the index is not a number, as 0/0 or the root of a negative number are not; return "
                                 "np.inf where it is undefined, such as at a cost of 0"}[status]

    def _one_by_one(self, policy, stacks):
        """Why a run plays its rounds one by one, as the end of a sentence; an empty text where it does not."""
        kernel = kernels.kernel_of(policy)
        unbounded = ": its index is neither declared regular nor has it a lower" * isinstance(policy, IndexRule)
        name = type(policy).__name__
        why = (f"{name} is played by its definition" if not self.fast else
               f"no kernel plays {name}" if kernel is None else
               f"{name} does not pull in blocks{unbounded}" if not kernel.blocks(policy) else
               "these outcomes have too many values to be counted" if not stacks.counted else
               "some outcomes are below 0" if stacks.negative else "")
        return f" (rounds are played one by one, for {why})" if why else ""

    def _reduced(self, replication, arrays, bandit, stop):
        # Without its label: the same policy has the same result in the store whatever it is called.
        alone = {name: value[None, None] for name, value in arrays.items()}
        values = self.reduce(Runs(["policy"], np.array([replication]), self.fractions.copy(), bandits=[bandit],
                                  stops=[stop], seed=self.seed, **alone))
        try:
            kept = {name: np.asarray(value) for name, value in values.items()} if isinstance(values, dict) else {}
        except ValueError:      # a ragged list
            kept = {}
        require(kept and all(isinstance(name, str | int) and value.shape[:2] == (1, 1) and value.dtype.kind in "biufc"
                             for name, value in kept.items()), "reduce(runs)", values,
                "must be a dict from names to arrays of numbers with leading axes (policy, replication)")
        return {name: value[0, 0] for name, value in kept.items()}


def _scaling(policy, what, bandit):
    """How values from 0 on are brought into the range that a policy is made for, as the end of a sentence."""
    own = "".join(f", or give it {name}=that value" for name in ("reward_scale", "max_reward") if hasattr(policy, name))
    rows = any(getattr(law, "rows", None) is not None for law in bandit.outcomes or ())
    log = f", as from_log(..., max_{what}=the largest that can occur) does" * rows
    return f"; divide {what}s by their largest value{log}" + own * (what == "reward")
