"""Replications, scheduled: instance, stacks, all policies, results.

One task is one replication with all its policies, so they share the stacks. Results do not depend on how many
workers share the tasks, on the backend that runs them, or on which policies play along.
"""

import contextlib
import functools
import os
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral

import joblib
import numpy as np

from ..checks import affordable, count, flag, numbers, require
from ..engine.stops import FURTHEST, StopRule
from ..environments.bandits import Bandit
from ..policies.base import Policy, require_policies, takes_one
from . import cluster
from .progress import Steps
from .runs import Reduced, Runs
from .store import Store
from .study import STOPS, Study

MOST_CHECKPOINTS, MOST_WORKERS = 10**6, 1000


def simulate(policies: dict[str, Policy], bandits: Bandit | Callable[[np.random.Generator], Bandit],
             stop: StopRule | Callable[[Bandit], StopRule], replications: int | Sequence[int] = 1, seed: int = 0,
             checkpoints: int | Sequence[float] = 50, n_jobs: int | None = None, progress: bool | str = False,
             max_rounds: int | None = None, store: str | os.PathLike | None = None,
             reduce: Callable[[Runs], dict[str, np.ndarray]] | None = None, shuffle: bool = True,
             fast: bool = True) -> Runs | Reduced:
    """Play policies against bandits, all on the same reward stacks; returns Runs, or Reduced if `reduce` is given.

    Raises ValueError for bad arguments, before any pull is made (for fresh instances: before that instance is played),
    and when a rule reads beyond an array or breaks a promise. Raises RuntimeError, with policy, replication and round,
    for a run beyond `max_rounds`, an arm that is out of range or might exceed a hard or anytime budget, an index
    that is NaN, and an error of a rule. Raises StoreError or OSError if the store is damaged or belongs to something
    else, or the disk is full.

    >>> bandit = cb.Bandit([cb.Constant(0.9), cb.Constant(0.4)], [cb.Constant(1.0), cb.Constant(1.0)])
    >>> runs = cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(10), replications=2, checkpoints=[0.5, 1])
    >>> runs.pulls.tolist()
    [[[[4, 1], [9, 1]], [[4, 1], [9, 1]]]]

    Parameters
    ----------
    policies : dict label -> policy
    bandits : Bandit or callable
        One bandit for all replications, or a function rng -> Bandit that makes a fresh one for each (fixed K).
    stop : stop rule or callable
        `Budget(total)`, `HardBudget(total)`, `AnytimeBudget(rate, horizon)` or `Horizon(rounds)`, or a function
        bandit -> rule.
    replications : int, how many, or a sequence of int, which ones
    seed : int
    checkpoints : int or increasing sequence of fractions in (0, 1]
        A number means equal steps. Checkpoint f is the state after the pull at which the spending first reaches
        f times the budget (under a horizon: after the round, f times the horizon); the run ends at the last one, or
        when no arm is affordable.
    n_jobs : int, optional
        Workers, threads unless `joblib.parallel_config` names another backend; by default 1 or what it says.
    progress : bool or str
        Show a bar in a terminal or in JupyterLab, with this label.
    max_rounds : int, optional
        A run that needs more is an error; up to 2**62. By default 2**62 where a policy plays in blocks, which most do
        if all rewards and costs have few values. Where it plays round by round, 10**8, or the horizon if that is more.
    store : path, optional
        File of finished replications: what it holds is not played again, what it lacks is added. After Ctrl-C the error
        says how many are kept there.
    reduce : callable, optional
        From the `Runs` of one policy (labelled "policy") in one replication to a dict of arrays with leading axes
        (policy, replication); only these are kept. For studies whose pull counts would not fit into memory.
    shuffle : bool
        Whether each replication shuffles the arms before they are played. Of tied arms the first is pulled, and some
        rules ask for the first arm of a kind: with False that is the bandit's own order, in every replication.
    fast : bool
        False plays each policy by its definition, one round after the other: the very same pulls, or for policies that
        draw at random the same law. For teachers, and for whoever doubts a kernel.
    """
    study = new_study(policies, bandits, stop, seed, checkpoints, shuffle, fast)
    ids = _ids(replications, len(policies) * (600 + (80 * len(study.fractions) if reduce is None else 0)))
    _require_options(n_jobs, max_rounds, reduce, progress, store)
    study = replace(study, max_rounds=max_rounds and int(max_rounds), reduce=reduce, first=ids[0]).rehearsed()
    label = None if progress is False else progress if isinstance(progress, str) else "simulate"
    with Steps(label, len(ids)) as steps, (Store(store) if store else contextlib.nullcontext()) as filed:
        try:
            pieces = list(_collect(study, ids, n_jobs, filed, steps))
        except KeyboardInterrupt as interrupt:
            none = f"none of {len(ids):,} replications is kept; with store=\"runs.sqlite\" those that are finished are"
            some = f"{steps.kept:,} of {len(ids):,} replications are kept in {store}; the same call goes on from there"
            interrupt.args = (none if store is None else some,)
            raise
    arrays = {name: np.stack([[piece[label][name] for piece in pieces] for label in study.policies])
              for name in next(iter(pieces[0].values()))}
    common = {"policies": list(study.policies), "replications": np.array(ids, np.int64), "fractions": study.fractions}
    if reduce is not None:
        return Reduced(**common, values=arrays, origin=study.origin)
    instances, stops = map(list, zip(*map(study.instance, ids), strict=True))
    return Runs(**common, **arrays, bandits=instances, stops=stops, seed=study.seed)


def _collect(study, ids, n_jobs, store, steps):
    """Yield each replication's results in order, from the store where it has them; file the others as they come."""
    keys = [study.keys(replication) if store is not None else {} for replication in ids]
    known = [{label: values for label, key in each.items() if (values := store.get(key)) is not None} for each in keys]
    missing = [[label for label in study.policies if label not in found] for found in known]
    steps.kept = missing.count([])
    # Workers without a task would cost memory all the same.
    workers = n_jobs and min(max(int(n_jobs), -MOST_WORKERS), max(sum(map(bool, missing)), 1))
    backend = cluster.watched(joblib.parallel.get_active_backend(prefer="threads")[0])
    make, sent = functools.partial(joblib.Parallel, n_jobs=workers, backend=backend), study
    try:
        parallel = make(return_as="generator")
    except ValueError:      # joblib's "multiprocessing" cannot, and sends no function of the reader's by itself
        parallel = functools.partial(_in_the_end, make())
        sent = joblib.wrap_non_picklable_objects(study, keep_wrapper=False)
    tasks = (joblib.delayed(_play)(sent, r, labels, os.getpid()) for r, labels in zip(ids, missing, strict=True)
             if labels)
    with _stopped(parallel(tasks) if any(missing) else (_ for _ in ())) as played, contextlib.ExitStack() as end:
        # Threads cannot be ended from outside: they look whether what they play is given up.
        end.callback(study.given_up.append, True)
        shapes = None
        for key, found, labels in zip(keys, known, missing, strict=True):
            fresh = next(played) if labels else {}
            for arrays in (*found.values(), *fresh.values()):
                others, shapes = shapes, {name: value.shape for name, value in arrays.items()}
                require(others in (None, shapes), "reduce(runs)", shapes,
                        f"names and shapes must be the same for every run ({others})")
            if fresh and store is not None:
                store.put((key[label], values) for label, values in fresh.items())
                steps.kept += 1
            found.update(fresh)
            steps.step()
            yield found


def _in_the_end(parallel, tasks):
    yield from parallel(tasks)


def _play(study, replication, labels, parent):
    """Play one replication in a worker: this process, a thread of it, or another process."""
    _end_with(parent, os.getpid())
    return study.play(replication, labels)


@functools.cache
def _end_with(parent, worker):
    """Let a worker process end soon after the process that started it, which if killed cannot end its workers."""
    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _stopped(played):
    """Close a generator of joblib's whatever happens: else its workers would play on after an error or Ctrl-C."""
    try:
        yield played
    except pickle.PicklingError as error:
        why = error.__cause__ or error
        last_line = (str(why).rstrip('"\n').splitlines() or [type(why).__name__])[-1].strip()
        raise ValueError("policies, bandits, stop or reduce: something in them cannot be sent to other processes, as "
                         f"locks and open files cannot ({last_line})") from error
    finally:
        with warnings.catch_warnings(action="ignore"):       # joblib warns that some results are not used
            played.close()


def new_study(policies: dict, bandits: object, stop: object, seed: int, checkpoints: int | Sequence[float],
              shuffle: bool, fast: bool) -> Study:
    """A study by arguments of `simulate`, each of which has been looked at.

    >>> new_study({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(9), 0, 2, True, True).rehearsed().arms
    3
    """
    require_policies(policies)
    require(isinstance(bandits, Bandit) or callable(bandits), "bandits", bandits,
            "must be a Bandit or a function rng -> Bandit")
    require(isinstance(stop, StopRule) or callable(stop), "stop", stop,
            f"must be a stop rule ({STOPS}) or a function bandit -> rule")
    require(not isinstance(stop, type), "stop", stop, "is a class; call it with its budget or its rounds")
    for name, given, argument in (("bandits", bandits, "rng"), ("stop", stop, "the bandit")):
        if callable(given):
            takes_one(name, given, argument)
    return Study(dict(policies), bandits, stop, count("seed", seed, low=0), _fractions(checkpoints), None,
                 shuffle=flag("shuffle", shuffle), fast=flag("fast", fast))


def _require_options(n_jobs, max_rounds, reduce, progress, store):
    require(store is None or (isinstance(store, str | os.PathLike) and str(store) not in ("", ":memory:")), "store",
            store, "must be the path of a file")
    require(isinstance(progress, bool | str), "progress", progress, "must be True, False or a label")
    if max_rounds is not None:
        require(count("max_rounds", max_rounds) <= FURTHEST, "max_rounds", max_rounds, "must be at most 2**62")
    require(reduce is None or callable(reduce), "reduce", reduce, "must be a function from Runs to a dict of arrays")
    if n_jobs is not None:
        whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
        require(whole and n_jobs != 0, "n_jobs", n_jobs, "must be a whole number, not 0")
        require(n_jobs <= MOST_WORKERS, "n_jobs", n_jobs, f"must be at most {MOST_WORKERS:,}; -1 is all cores")


def _fractions(checkpoints):
    """Checkpoints as fractions, shape (C,); ValueError unless they are a number or increasing fractions."""
    if not hasattr(checkpoints, "__len__"):
        number = count("checkpoints", checkpoints, high=MOST_CHECKPOINTS)
        return np.arange(1, number + 1) / number
    allowed = "must be a whole number, 1 or more, or increasing fractions in (0, 1]"
    fractions = numbers("checkpoints", checkpoints, allowed=allowed, shape=("C",)).copy()
    require(bool(np.all(np.diff(fractions) > 0)) and fractions[0] > 0 and fractions[-1] <= 1, "checkpoints",
            checkpoints, allowed)
    require(len(fractions) <= MOST_CHECKPOINTS, "checkpoints", checkpoints, f"must be at most {MOST_CHECKPOINTS:,}")
    return fractions


def _ids(replications, size):
    """Which replications; the results of each take about `size` bytes."""
    listed = (hasattr(replications, "__len__") and getattr(replications, "ndim", 1) == 1
              and not isinstance(replications, str | bytes | bytearray | dict))
    number = len(replications) if listed else count("replications", replications)
    affordable("replications", replications, number * size)
    ids = [count("replications", r, low=0) for r in replications] if listed else list(range(number))
    require(len(ids) > 0 and len(set(ids)) == len(ids) and max(ids) < 2**32, "replications", replications,
            "must be distinct and below 2**32, at least one")
    return ids
