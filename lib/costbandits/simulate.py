"""Replications: instance, stacks, all policies, results.

One task is one replication with all its policies, so they share the stacks. Results do not depend on how many
workers share the tasks, on the backend that runs them, or on which policies play along.
"""

import contextlib
import numbers
import os
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property

import joblib
import numpy as np

from . import cluster, engine, fingerprint
from .bandits import Bandit
from .checks import count, require
from .distributions import check_sampler
from .policies.base import IndexRule, Problem, require_policies, takes_one
from .progress import Steps
from .stacks import INSTANCE, ORDER, POLICY, Stacks, stream
from .stops import StopRule
from .store import Store

STOPS = "Budget, HardBudget, AnytimeBudget, Horizon"
FIELDS = ("pulls", "rounds", "skips", "spent", "reward")
OUT_OF_BOUNDS = "index is out of bounds"     # what Numba says

joblib.register_parallel_backend("dask", cluster.dask)


@dataclass(repr=False)
class Results:
    """What every result of `simulate` knows of its study.

    Attributes
    ----------
    policies : list of str
        Labels, the first axis of every array.
    replications : ndarray of int, shape (R,)
    fractions : ndarray, shape (C,)
        Checkpoints as shares of the budget, or of the horizon.
    """

    policies: list
    replications: np.ndarray
    fractions: np.ndarray

    def __repr__(self):
        return (f"{type(self).__name__}: {', '.join(map(str, self.policies))}; "
                f"{len(self.replications):,} replications, {len(self.fractions)} checkpoints")

    def index(self, label):
        """Position of a policy on the first axis."""
        require(label in self.policies, "policy", label, f"must be one of {self.policies}")
        return self.policies.index(label)

    def frame(self, values):
        """A tidy DataFrame of an array (policy, replication[, checkpoint]): these columns, and value."""
        import pandas as pd
        values = np.asarray(values)
        shape = (len(self.policies), len(self.replications), len(self.fractions))
        require(values.shape in (shape, shape[:2]), "values.shape", values.shape, f"must be {shape} or {shape[:2]}")
        levels = {"policy": self.policies, "replication": self.replications, "checkpoint": self.fractions}
        names = list(levels)[:values.ndim]
        index = pd.MultiIndex.from_product([levels[name] for name in names], names=names)
        return pd.Series(values.ravel(), index, name="value").reset_index()


@dataclass(repr=False)
class Runs(Results):
    """Pull counts and totals of every run at every checkpoint.

    Attributes
    ----------
    pulls : int32 array of shape (policy, replication, checkpoint, arm)
    rounds, skips : int64 arrays of shape (policy, replication, checkpoint)
        Elapsed rounds, skipped ones included; skipped ones alone.
    spent, reward : float64 arrays of shape (policy, replication, checkpoint)
    bandits : list of Bandit, one per replication
    stops : list of stop rules, one per replication
    seed : int
    """

    pulls: np.ndarray
    rounds: np.ndarray
    skips: np.ndarray
    spent: np.ndarray
    reward: np.ndarray
    bandits: list
    stops: list
    seed: int

    def __repr__(self):
        one, kind = len(set(map(repr, self.stops))) == 1, type(self.stops[0]).__name__
        return f"{super().__repr__()}, {self.bandits[0].K} arms, {repr(self.stops[0]) if one else f'a {kind} for each'}"

    @property
    def unpulled(self):
        """How many arms have never been pulled, shape (policy, replication, checkpoint)."""
        return (self.pulls == 0).sum(axis=-1)


@dataclass(repr=False)
class Reduced(Results):
    """What `reduce` kept of each run: `values[name]`, also as `reduced[name]`, of shape (policy, replication, ...).

    Attributes
    ----------
    values : dict
    origin : bytes
        Digest of the seed, and of the bandit and the stop rule of replication 0: runs of one origin are paired.
    """

    values: dict
    origin: bytes

    def __repr__(self):
        return f"{super().__repr__()}; of each run: {', '.join(map(str, self.values))}"

    def __getitem__(self, name):
        require(name in self.values, "value", name, f"must be one of {list(self.values)}")
        return self.values[name]


@dataclass(frozen=True)
class Study:
    """Everything that decides the results, apart from how they are computed."""

    policies: dict
    bandits: object
    stop: object
    seed: int
    fractions: np.ndarray
    max_rounds: int
    reduce: object = None
    first: int = 0       # the replication in which promises of user-written policies are checked
    arms: int | None = None    # K, once the first instance has shown it
    checked: set = field(default_factory=set, compare=False, repr=False)

    def instance(self, replication):
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
        require((stop.horizon or 0) <= self.max_rounds, "max_rounds", self.max_rounds,
                f"must be at least the horizon ({stop.horizon})")
        for label, policy in self.policies.items():
            require(policy.skips or stop.rate is None, f"policies[{label!r}]", policy,
                    "must be able to skip rounds under an anytime budget (SUAK, ..., your own by cb.choose)")
        self._check_laws(bandit)
        return bandit, stop

    def example(self):
        """The first instance, made twice: it must come from `rng` alone, or what was played could not be looked up.

        What is the reader's own is tried out on it: laws, and what policies are told and remember.
        """
        (first, stop), (again, _) = (self.instance(self.first) for _ in range(2))
        same = (np.array_equal(first.reward_means, again.reward_means)
                and np.array_equal(first.cost_means, again.cost_means))
        require(same, f"bandits(rng) in replication {self.first}", self.bandits,
                "made twice, its arms differ: draw all that is random from rng, not from np.random or random")
        for law in (*first.rewards, *first.costs):
            if not type(law).__module__.startswith("costbandits."):
                check_sampler(law)
        problem = Problem.of(first, stop, np.arange(first.K))
        for label, policy in self.policies.items():
            policy.check(problem)
            policy.rehearse(f"policies[{label!r}]", problem)
        return first

    @cached_property
    def _specimen(self):
        return self.instance(0)

    @cached_property
    def origin(self):
        """Digest of the seed, and of the bandit and the stop rule of replication 0."""
        bandit, stop = self._specimen
        return fingerprint.digest(self.seed, stop, fingerprint.instance(bandit))

    def _check_laws(self, bandit):
        for what, laws in (("reward", bandit.rewards), ("cost", bandit.costs)):
            low, high = min(law.support[0] for law in laws), max(law.support[1] for law in laws)
            for label, policy in self.policies.items():
                allowed = policy.support or (-np.inf, np.inf)
                require(allowed[0] <= low and high <= allowed[1], f"{what} support", (low, high),
                        f"policy {label!r} ({type(policy).__name__}) is made for {what}s in {allowed}")
            for law in laws:
                if type(law) not in self.checked:
                    self.checked.add(type(law))
                    if not type(law).__module__.startswith("costbandits."):
                        check_sampler(law)

    @cached_property
    def _parts(self):
        # Digests of what does not change with the replication. A function that makes instances is known by its code
        # and by an example of what it makes: to make each instance only to look up its results takes too long.
        policies = {label: fingerprint.digest(policy) for label, policy in self.policies.items()}
        bandit, stop = self._specimen
        makers = [maker for maker in (self.bandits, self.stop) if not isinstance(maker, Bandit | StopRule)]
        # A regret may use whatever a bandit knows to tell.
        reduce = self.reduce and (self.reduce, type(bandit))
        study = (self.fractions, self.max_rounds, self.seed, reduce, makers, stop)
        return policies, fingerprint.digest(study, fingerprint.instance(bandit), fingerprint.common())

    def keys(self, replication):
        """What a finished replication of each policy is filed under in the store."""
        policies, rest = self._parts
        return {label: fingerprint.digest(policy, rest, replication) for label, policy in policies.items()}

    def play(self, replication, labels):
        """Play one replication; dict label -> dict of arrays over checkpoints, arms in the bandit's order."""
        bandit, stop = self.instance(replication)
        order = stream(self.seed, replication, ORDER).permutation(bandit.K)
        stacks = Stacks(bandit, self.seed, replication, order)
        problem, (top, *limits) = Problem.of(bandit, stop, order), stop.limits(bandit)
        for label in labels:
            self.policies[label].check(problem)
        end = stop.marks(self.fractions), self.max_rounds, top[order], *limits, stop.ends(self.fractions)
        results = {}
        for label in labels:
            run = self._run(label, replication, problem, stacks, *end)
            pulls = np.empty_like(run.pulls_at)
            pulls[:, order] = run.pulls_at
            arrays = (pulls, run.clock_at[:, 0], run.clock_at[:, 1], run.purse_at[:, 0], run.purse_at[:, 1])
            results[label] = dict(zip(FIELDS, arrays, strict=True))
            if self.reduce is not None:
                results[label] = self._reduced(replication, results[label], bandit, stop)
        return results

    def _run(self, label, replication, problem, stacks, *end):
        policy = self.policies[label]

        def play(**options):
            run = engine.Run(stacks, *end)
            try:
                status = policy.play(run, problem, stream(self.seed, replication, POLICY), **options)
            except IndexError as error:
                require(str(error) != OUT_OF_BOUNDS, f"policies[{label!r}]", policy,
                        f"its rule reads beyond the end of an array: of {problem.K} arms, of {len(policy.parameters)} "
                        "params, or of what memory and prepare have made")
                raise
            if status != engine.DONE:
                raise RuntimeError(f"policy {label!r}, replication {replication}, round {run.clock[0] + 1}: "
                                   + self._trouble(status, len(run.n)))
            return run

        run = play()
        promised = isinstance(policy, IndexRule) and policy.monotone
        if promised and replication == self.first and not policy.rule.__module__.startswith("costbandits."):
            kept = np.array_equal(run.pulls_at, play(lazy=False).pulls_at) and policy.rises(run, problem)
            require(kept, f"policy {label!r} monotone", True,
                    "its index decreases while the arm rests: declare monotone=False")
        return run

    def _trouble(self, status, K):
        return {
            engine.TOO_LONG: f"the run did not end within max_rounds = {self.max_rounds}; allow more, or spend faster",
            engine.NO_SUCH_ARM: f"the policy returned an arm out of range; allowed are 0 to {K - 1}, -1 to skip and "
                                "-2 to pass",
            engine.TOO_DEAR: "the policy returned an arm that would exceed the budget; choose among the affordable",
            engine.NOT_A_NUMBER: "the index is not a number, as 0/0 or the root of a negative number are not; return "
                                 "np.inf where it is undefined, such as at a cost of 0"}[status]

    def _reduced(self, replication, arrays, bandit, stop):
        # Without its label: the same policy has the same result in the store whatever it is called.
        alone = {name: value[None, None] for name, value in arrays.items()}
        values = self.reduce(Runs(["policy"], np.array([replication]), self.fractions, bandits=[bandit], stops=[stop],
                                  seed=self.seed, **alone))
        kept = {name: np.asarray(value) for name, value in values.items()} if isinstance(values, dict) else {}
        require(kept and all(value.shape[:2] == (1, 1) and value.dtype.kind in "biufc" for value in kept.values()),
                "reduce(runs)", values, "must be a dict of arrays of numbers with leading axes (policy, replication)")
        return {name: value[0, 0] for name, value in kept.items()}


def simulate(policies, bandits, stop, replications=1, seed=0, checkpoints=50, n_jobs=None, progress=False,
             max_rounds=10**8, store=None, reduce=None):
    """Play policies against bandits, all on the same reward stacks.

    Parameters
    ----------
    policies : dict
        Label -> policy.
    bandits : Bandit or callable
        One bandit for all replications, or a function rng -> Bandit that makes a fresh one for each (fixed K).
    stop : stop rule or callable
        `Budget(total)`, `HardBudget(total)`, `AnytimeBudget(rate, horizon)` or `Horizon(rounds)`, or a function
        bandit -> rule.
    replications : int or sequence of int
        How many, or which ones.
    seed : int
    checkpoints : int or increasing sequence of fractions in (0, 1]
        A number means equal steps. Checkpoint f is the state after the pull at which the spending first reaches
        f times the budget (under a horizon: after the round, f times the horizon); the run ends at the last one, or
        when no arm is affordable.
    n_jobs : int, optional
        Workers, threads unless `joblib.parallel_config` names another backend; by default 1 or what it says.
    progress : bool or str
        Show a bar in a terminal, with this label.
    max_rounds : int
        A run that needs more is an error.
    store : path, optional
        File of finished replications: what it holds is not played again, what it lacks is added.
    reduce : callable, optional
        From the `Runs` of one policy (labelled "policy") in one replication to a dict of arrays with leading axes
        (policy, replication); only these are kept. For studies whose pull counts would not fit into memory.

    Returns
    -------
    Runs, or Reduced when `reduce` is given

    Raises
    ------
    ValueError
        For bad arguments, before any pull is made (for fresh instances: before that instance is played).
    RuntimeError
        With policy, replication and round: for a run beyond `max_rounds`, an arm that is out of range or might exceed
        a hard or anytime budget, an index that is NaN.
    StoreError, OSError
        If the store is damaged or belongs to something else, or the disk is full.
    """
    study, ids = _checked(policies, bandits, stop, replications, seed, checkpoints, n_jobs, max_rounds, reduce)
    require(store is None or (isinstance(store, str | os.PathLike) and str(store) != ""), "store", store,
            "must be the path of a file")
    label = None if progress is False else progress if isinstance(progress, str) else "simulate"
    with Steps(label, len(ids)) as steps, (Store(store) if store else contextlib.nullcontext()) as filed:
        pieces = list(_collect(study, ids, n_jobs, filed, steps))
    stacked = _stacked([[piece[label] for piece in pieces] for label in study.policies])
    common = {"policies": list(study.policies), "replications": np.array(ids, np.int64), "fractions": study.fractions}
    if reduce is not None:
        return Reduced(**common, values=stacked, origin=study.origin)
    instances = [study.instance(replication) for replication in ids]
    return Runs(**common, **stacked, bandits=[bandit for bandit, _ in instances], stops=[stop for _, stop in instances],
                seed=study.seed)


def _collect(study, ids, n_jobs, store, steps):
    """Yield each replication's results in order, from the store where it has them; file the others as they come."""
    keys = [study.keys(replication) if store is not None else {} for replication in ids]
    known = [{label: values for label, key in each.items() if (values := store.get(key)) is not None} for each in keys]
    missing = [[label for label in study.policies if label not in found] for found in known]
    tasks = (joblib.delayed(study.play)(r, labels) for r, labels in zip(ids, missing, strict=True) if labels)
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    with _stopped(parallel(tasks) if any(missing) else (_ for _ in ())) as played:
        shapes = None
        for key, found, labels in zip(keys, known, missing, strict=True):
            fresh = next(played) if labels else {}
            shapes = _same_shapes(shapes, *found.values(), *fresh.values())
            if fresh and store is not None:
                store.put((key[label], values) for label, values in fresh.items())
            found.update(fresh)
            steps.step()
            yield found


@contextlib.contextmanager
def _stopped(played):
    """Close a generator of joblib's whatever happens: else its workers would play on after an error or Ctrl-C."""
    try:
        yield played
    finally:
        with warnings.catch_warnings(action="ignore"):       # that some results are not used
            played.close()


def _same_shapes(shapes, *results):
    """The shapes of the arrays of all results so far."""
    for result in results:
        other = {name: value.shape for name, value in result.items()}
        require(shapes in (None, other), "reduce(runs)", other,
                f"names and shapes must be the same for every run ({shapes})")
        shapes = other
    return shapes


def _stacked(results):
    """From a dict of arrays for each (policy, replication) to a dict of arrays (policy, replication, ...)."""
    return {name: np.stack([[result[name] for result in row] for row in results]) for name in results[0][0]}


def _checked(policies, bandits, stop, replications, seed, checkpoints, n_jobs, max_rounds, reduce):
    require_policies(policies)
    require(isinstance(bandits, Bandit) or callable(bandits), "bandits", bandits,
            "must be a Bandit or a function rng -> Bandit")
    require(isinstance(stop, StopRule) or callable(stop), "stop", stop,
            f"must be a stop rule ({STOPS}) or a function bandit -> rule")
    for name, given, argument in (("bandits", bandits, "rng"), ("stop", stop, "the bandit")):
        if callable(given):
            takes_one(name, given, argument)
    if isinstance(replications, numbers.Number) or not hasattr(replications, "__iter__"):
        ids = range(count("replications", replications))
    else:
        ids = [count("replications", r, low=0) for r in replications]
        require(len(ids) > 0 and len(set(ids)) == len(ids) and max(ids) < 2**63, "replications", replications,
                "must be distinct and below 2**63, at least one")
    if isinstance(checkpoints, numbers.Number):
        number = count("checkpoints", checkpoints)
        fractions = np.arange(1, number + 1) / number
    else:
        try:
            fractions = np.array(checkpoints, float)
        except (TypeError, ValueError):
            fractions = np.array(np.nan)
        require(fractions.ndim == 1 and fractions.size > 0 and bool(np.all(np.diff(fractions) > 0))
                and fractions[0] > 0 and fractions[-1] <= 1, "checkpoints", checkpoints,
                "must be a whole number, 1 or more, or increasing fractions in (0, 1]")
    require(count("max_rounds", max_rounds) < 2**31, "max_rounds", max_rounds,
            "must be below 2**31: pulls are counted in 32 bits")
    require(reduce is None or callable(reduce), "reduce", reduce, "must be a function from Runs to a dict of arrays")
    if n_jobs is not None:
        require(isinstance(n_jobs, numbers.Integral) and n_jobs != 0, "n_jobs", n_jobs, "must be a whole number, not 0")
    study = Study(dict(policies), bandits, stop, count("seed", seed, low=0), fractions, int(max_rounds), reduce,
                  first=ids[0])
    return replace(study, arms=study.example().K), [int(r) for r in ids]


def join(first, second):
    """The policies of two results side by side, on the replications they have in common.

    Both must come from the same seed, checkpoints and instances, so that their runs are paired.

    Parameters
    ----------
    first, second : Runs or Reduced
        Two of a kind; a label may stand in only one of them.

    Returns
    -------
    Runs or Reduced
        With the policies of `first` before those of `second`, replications in the order of `first`.
    """
    kinds = (type(first).__name__, type(second).__name__)
    require(isinstance(first, Results) and kinds[0] == kinds[1], "results", kinds, "must be two Runs or two Reduced")
    both, *rows = np.intersect1d(first.replications, second.replications, assume_unique=True, return_indices=True)
    order = np.argsort(rows[0])            # as they stand in the first
    both, rows = both[order], [row[order] for row in rows]
    require(len(both) > 0, "replications", (first.replications, second.replications), "must have some in common")
    require(np.array_equal(first.fractions, second.fractions), "fractions", second.fractions,
            "must be the same in both")
    twice = sorted(set(first.policies) & set(second.policies))
    require(not twice, "policies", twice, "a label may stand in only one of the two")

    def stacked(a, b):
        return np.concatenate([a[:, rows[0]], b[:, rows[1]]])

    common = {"policies": first.policies + second.policies, "replications": both, "fractions": first.fractions}
    if isinstance(first, Reduced):
        require(first.origin == second.origin, "results", "instances, stop rules or seeds", "must be the same in both")
        names = [set(each.values) for each in (first, second)]
        require(names[0] == names[1], "values", names, "must be the same in both")
        return Reduced(**common, values={name: stacked(first[name], second[name]) for name in first.values},
                       origin=first.origin)
    mine, theirs = ([(fingerprint.instance(each.bandits[i]), each.stops[i]) for i in at]
                    for each, at in zip((first, second), rows, strict=True))
    require(mine == theirs and first.seed == second.seed, "results", "instances, stop rules or seeds",
            "must be the same in both")
    arrays = {name: stacked(getattr(first, name), getattr(second, name)) for name in FIELDS}
    return Runs(**common, **arrays, bandits=[first.bandits[i] for i in rows[0]],
                stops=[first.stops[i] for i in rows[0]], seed=first.seed)
