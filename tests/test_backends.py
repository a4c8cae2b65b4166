"""The same bits from one worker or two, threads, processes or a cluster."""

import os
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from reference import POLICIES, bits, small_study

import costbandits as cb

FIELDS = ("pulls", "rounds", "skips", "spent", "reward")


@cb.index
def my_index(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + params[0] * (t / n) ** 0.5


EVERYTHING = {**POLICIES, "mine": cb.IndexPolicy(my_index, (0.1,)),
              "mine, lazy": cb.IndexPolicy(my_index, (0.1,), monotone=True)}


def where(runs):
    return {"process": np.array([[os.getpid()]])}


def elsewhere():
    """Whether other processes than this one play."""
    played = cb.simulate({"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(5), replications=8, reduce=where)["process"]
    return os.getpid() not in played


@pytest.fixture(scope="module")
def alone():
    return bits(small_study(EVERYTHING, n_jobs=1), *FIELDS)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads(alone, n_jobs):
    assert bits(small_study(EVERYTHING, n_jobs=n_jobs), *FIELDS) == alone


def test_the_number_of_workers_may_come_from_joblib(alone):
    with joblib.parallel_config(n_jobs=2):
        assert bits(small_study(EVERYTHING), *FIELDS) == alone


def test_processes(alone):
    try:
        with joblib.parallel_config(backend="loky", n_jobs=2):
            assert elsewhere() and bits(small_study(EVERYTHING), *FIELDS) == alone
            with pytest.raises(RuntimeError, match=r"policy 'm', replication \d, round 11: .*max_rounds = 10"):
                small_study({"m": cb.MUCB()}, max_rounds=10)
    finally:
        get_reusable_executor().shutdown(wait=True)


def test_a_policy_typed_into_a_session_plays_in_other_processes():
    """As in a notebook: the rule is a closure of __main__, known to no module."""
    session = textwrap.dedent("""
        import costbandits as cb, joblib, numpy as np

        def make(alpha):
            @cb.index
            def rule(t, n, reward, cost, reward_sq, cost_sq, constant, params):
                return np.inf if cost <= 0.0 else (reward + alpha * np.sqrt(n * np.log(t))) / cost
            return rule

        @cb.choose
        def lucky(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
            return int(rng.random() * len(n))

        if __name__ == "__main__":
            policies = {"a": cb.IndexPolicy(make(0.3), monotone=True), "b": cb.ChoosePolicy(lucky)}
            study = policies, cb.instances.beta(5), cb.Budget(40), 6
            alone, threads = cb.simulate(*study, n_jobs=1), cb.simulate(*study, n_jobs=2)
            with joblib.parallel_config(backend="loky", n_jobs=2):
                processes = cb.simulate(*study)
            for other in (threads, processes):
                assert np.array_equal(alone.pulls, other.pulls) and np.array_equal(alone.reward, other.reward)
            print("the same")
        """)
    done = subprocess.run([sys.executable, "-"], input=session, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the same\n", "")


def test_two_workers_of_a_cluster(alone):
    distributed = pytest.importorskip("distributed")
    quietly = {"dashboard_address": None, "silence_logs": 50}
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, **quietly) as cluster,
          distributed.Client(cluster), joblib.parallel_config(backend="dask")):
        assert elsewhere() and bits(small_study(EVERYTHING), *FIELDS) == alone
