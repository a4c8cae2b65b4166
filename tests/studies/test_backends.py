"""The same bits from one worker or two, threads, processes or a cluster, also when a worker dies."""

import importlib
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend
from joblib.externals.loky import get_reusable_executor
from pins import my_index
from reference import POLICIES, bits, proving, small_study

import costbandits as cb
from costbandits.studies import cluster
from costbandits.studies.store import Store
from costbandits.studies.study import Study

pytestmark = pytest.mark.slow

FIELDS = ("pulls", "rounds", "skips", "spent", "reward")


EVERYTHING = {**POLICIES, "mine": cb.IndexPolicy(my_index, (0.1,)),
              "mine, lazy": cb.IndexPolicy(my_index, (0.1,), monotone=True)}


def where(runs):
    return {"process": np.array([[os.getpid()]])}


def elsewhere():
    """Whether other processes than this one play."""
    played = cb.simulate({"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(5), replications=8, reduce=where)["process"]
    return os.getpid() not in played


FEW = {label: EVERYTHING[label] for label in ("omega 1/4", "BTS", "mine", "mine, lazy")}


@pytest.fixture(scope="module")
def alone():
    return bits(small_study(EVERYTHING, n_jobs=1), *FIELDS)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads(alone, n_jobs):
    assert bits(small_study(EVERYTHING, n_jobs=n_jobs), *FIELDS) == alone


class Plain(ThreadingBackend):
    """A backend that returns no results before the end, as joblib's "multiprocessing"."""

    supports_return_generator = False


joblib.register_parallel_backend("plain", Plain)


@pytest.mark.parametrize("backend", ["plain", pytest.param("multiprocessing", marks=pytest.mark.proof)])
def test_a_backend_without_generators_returns_results_in_the_end_and_takes_typed_functions(backend):
    """Joblib's "multiprocessing" pickles no lambda, either."""
    def played(**more):
        return cb.simulate({"m": cb.MUCB()}, lambda rng: cb.instances.beta(3)(rng), lambda bandit: cb.Budget(5),
                           replications=6, **more)

    first = played()
    with joblib.parallel_config(backend, n_jobs=2):
        assert played() == first and (backend == "plain" or elsewhere())


def test_the_number_of_workers_may_come_from_joblib(alone):
    with joblib.parallel_config(n_jobs=2):
        assert bits(small_study(EVERYTHING), *FIELDS) == alone


@pytest.fixture(scope="module")
def processes():
    """Two processes, the same for all tests that play in such: options of `joblib.parallel_config`."""
    yield {"backend": "loky", "n_jobs": 2}
    get_reusable_executor().shutdown(wait=True)


@pytest.mark.parametrize("policies", proving(["few", "all"], "all"))
def test_processes(processes, policies):
    study = EVERYTHING if policies == "all" else FEW
    with joblib.parallel_config(**processes):
        assert elsewhere() and bits(small_study(study), *FIELDS) == bits(small_study(study, n_jobs=1), *FIELDS)
        with pytest.raises(RuntimeError, match=r"policy 'm', replication \d, round 11: .*max_rounds = 10"):
            small_study({"m": cb.MUCB()}, max_rounds=10)


SESSION = textwrap.dedent("""
    import contextlib, sys
    import costbandits as cb, joblib, numpy as np

    def make(alpha):
        @cb.index
        def rule(t, n, reward, cost, reward_sq, cost_sq, constant, params):
            return np.inf if cost <= 0.0 else (reward + alpha * np.sqrt(n * np.log(t))) / cost
        return rule

    @cb.choose
    def lucky(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
        return int(rng.random() * len(n))

    def workers(backend):
        if backend == "dask":
            from distributed import Client
            return Client(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
        return contextlib.nullcontext()

    if __name__ == "__main__":
        policies = {"a": cb.IndexPolicy(make(0.3), monotone=True), "b": cb.ChoosePolicy(lucky)}
        study = policies, cb.instances.beta(5), cb.Budget(40), 6
        alone, threads = cb.simulate(*study, n_jobs=1), cb.simulate(*study, n_jobs=2)
        with workers(sys.argv[1]), joblib.parallel_config(backend=sys.argv[1], n_jobs=2):
            processes = cb.simulate(*study)
        for other in (threads, processes):
            assert np.array_equal(alone.pulls, other.pulls) and np.array_equal(alone.reward, other.reward)
        print("the same")
    """)


@pytest.mark.parametrize("backend", proving(["loky", "dask"], "dask"))
def test_a_policy_typed_into_a_session_plays_in_other_processes(backend):
    """As in a notebook: the rule is a closure of __main__, known to no module."""
    if backend == "dask":
        pytest.importorskip("distributed")
    done = subprocess.run([sys.executable, "-c", SESSION, backend], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the same\n", "")


@pytest.fixture(scope="module")
def cluster_of_two():
    """Two workers, each with a nanny that starts it anew when it dies."""
    distributed = pytest.importorskip("distributed")
    quietly = {"dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **quietly) as workers:
        yield workers


@pytest.fixture
def client(cluster_of_two):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster_of_two) as client, joblib.parallel_config(backend="dask"):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def lone_workers(tmp_path):
    """Two workers of another cluster that nobody starts anew, as when a machine is lost: dict pid -> Popen."""
    distributed = pytest.importorskip("distributed")
    quietly = {"dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=0, **quietly) as nobody, distributed.Client(nobody) as client:
        command = [sys.executable, "-m", "dask", "worker", nobody.scheduler_address, "--no-nanny", "--no-dashboard",
                   "--nthreads", "1", "--local-directory", str(tmp_path)]
        here = Path(__file__).parent
        path = os.pathsep.join([str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        workers = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **quiet) for _ in range(2)]
        try:
            with joblib.parallel_config(backend="dask"):
                client.wait_for_workers(2, timeout=60)
                yield {worker.pid: worker for worker in workers}
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def test_what_others_do_with_joblib_is_left_alone():
    assert not [name for name, made in joblib.parallel.BACKENDS.items() if made.__module__.startswith("costbandits")]


@pytest.mark.proof
def test_two_workers_of_a_cluster(alone, client):
    assert elsewhere() and bits(small_study(EVERYTHING), *FIELDS) == alone


def everything_unless_killed(runs, mark, home):
    """Keep all; the first worker that plays replication 7 is killed before it can tell anyone."""
    if runs.replications[0] == 7 and os.getpid() != home:
        try:
            with open(mark, "x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return {name: getattr(runs, name) for name in FIELDS}


def lose_a_worker(tmp_path, monkeypatch):
    """A study of which replication 7 takes its worker along, once; the process id of that worker."""
    mark, path = tmp_path / "killed", tmp_path / "store.sqlite"
    # Four replications are under way at first: the eighth is begun when some have ended, and it is not the last.
    study = {"policies": {"omega": cb.OmegaUCB(), "BTS": cb.BTS()}, "bandits": cb.instances.beta(5),
             "stop": cb.Budget(30), "replications": 12, "seed": 4, "checkpoints": 5,
             "reduce": partial(everything_unless_killed, mark=str(mark), home=os.getpid())}
    survived = cb.simulate(**study, store=path)
    killed = int(mark.read_text())
    with joblib.parallel_config(backend="threading"):
        alone = cb.simulate(**study, n_jobs=1)
        with Store(path) as filed:
            assert len(filed) == 2 * 12
        monkeypatch.setattr(Study, "play", None)        # nothing is played again
        stored = cb.simulate(**study, store=path)
    for name in FIELDS:
        assert alone[name].tobytes() == survived[name].tobytes() == stored[name].tobytes()
    return killed


@pytest.mark.proof
def test_a_worker_is_killed(client, tmp_path, monkeypatch):
    before = client.run(os.getpid)
    killed = lose_a_worker(tmp_path, monkeypatch)
    assert killed in before.values()
    client.wait_for_workers(2, timeout=60)
    assert killed not in client.run(os.getpid).values()


@pytest.mark.proof
def test_a_worker_is_lost_for_good(lone_workers, tmp_path, monkeypatch):
    killed = lose_a_worker(tmp_path, monkeypatch)
    assert lone_workers.pop(killed).wait(30) == -signal.SIGKILL
    assert [worker.poll() for worker in lone_workers.values()] == [None]


def be_another_version():
    cluster.library = lambda: b"of last year"


def be_yourself():
    importlib.reload(cluster)


def test_workers_with_another_version_are_refused(client):
    study = {"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(5), 4
    other = next(iter(client.run(be_another_version, workers=list(client.scheduler_info()["workers"])[:1])))
    try:
        with pytest.raises(ValueError, match=rf"workers = \['{other}'\]: must have the same library"):
            cb.simulate(*study)
    finally:
        client.run(be_yourself)
    assert cb.simulate(*study).pulls.shape == (1, 4, 50, 3)


def kill_any(runs, home):
    if os.getpid() != home:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.proof
def test_a_task_that_kills_its_workers_ends_the_study(cluster_of_two, client, monkeypatch):
    """The last test of the cluster: it leaves no worker alive."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster_of_two.scheduler, "allowed_failures", 0)      # instead of 3: one is enough
    reduce = partial(kill_any, home=os.getpid())
    with pytest.raises(distributed.scheduler.KilledWorker, match="died while running it"):
        cb.simulate({"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(5), 20, reduce=reduce)


def test_more_workers_than_tasks_and_what_cannot_be_sent_to_them(monkeypatch, processes):
    asked, lock, study = [], threading.Lock(), ({"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(5))
    parallel = joblib.Parallel
    monkeypatch.setattr(joblib, "Parallel", lambda n_jobs, **more: asked.append(n_jobs) or parallel(n_jobs, **more))
    for n_jobs in (1000, 2, -10**6):
        cb.simulate(*study, 3, n_jobs=n_jobs)
    assert asked == [3, 2, -1000]
    with joblib.parallel_config(**processes), pytest.raises(ValueError, match=r"cannot pickle '_thread\.lock'"):
        cb.simulate(*study, 3, reduce=lambda runs: (lock, {"spent": runs.spent})[1])


@pytest.mark.parametrize(("error", "said"), [(pickle.PicklingError("a lock"), "a lock"),
                                             (pickle.PicklingError(), "PicklingError")])
def test_what_cannot_be_sent_is_told_also_without_a_cause(error, said):
    with pytest.raises(ValueError, match=rf"cannot be sent to other processes, .* cannot \({said}\)$"), \
            importlib.import_module("costbandits.studies.simulate")._stopped(_ for _ in ()):
        raise error


@pytest.mark.proof
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at processes in /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    code = textwrap.dedent("""
        import os, time, joblib, costbandits as cb
        def forever(runs):
            open(str(os.getpid()), "w").close()
            time.sleep(100)
        if __name__ == "__main__":
            with joblib.parallel_config("loky", n_jobs=2):
                cb.simulate({"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(5), 4, reduce=forever)
        """)
    (tmp_path / "code.py").write_text(code)
    parent, limit = subprocess.Popen([sys.executable, "code.py"], cwd=tmp_path), time.monotonic() + 60
    while len(workers := list(tmp_path.glob("[0-9]*"))) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    limit = time.monotonic() + 10
    while any(Path("/proc", worker.name).exists() for worker in workers) and time.monotonic() < limit:
        time.sleep(0.05)
    assert len(workers) == 2 and not any(Path("/proc", worker.name).exists() for worker in workers)
