"""What a million replications would cost on more than one machine: measured, and written as SCALING.md beside this.

    PYTHONPATH=lib python benchmarks/scaling.py [another file]      # about two minutes on an idle machine

Workers only play. Whatever they send passes through one client, which hands out tasks, takes results in and files
them; so that client, not the number of machines, is what limits a study whose replications are short.
"""

import os
import pickle
import platform
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from speed import FAMILIES, HERE, destination, full_budget

import costbandits as cb
from compendium import ledger, publication
from costbandits.analysis.regret import budgeted, knapsack
from costbandits.analysis.statistics import RESAMPLES, compare
from costbandits.checks import count, positive
from costbandits.studies import cluster
from costbandits.studies.store import Store
from costbandits.studies.study import Study

MILLION = 10**6
CORES = 8              # of a machine
MACHINES = (1, 10, 100)
TASK_SECONDS = cluster.SHORTEST / 2      # of play: there are two tasks for each core, one of which waits
BLOCKS = 1000          # means of blocks that stand for the rows of a long study in a bootstrap


@dataclass(frozen=True)
class Cost:
    """What a replication of a study costs, all its policies together.

    Attributes
    ----------
    seconds : float
        Of one core of a worker.
    sent, stored : float
        Bytes that go to the client, and that its store grows by.
    filing : float
        Seconds in which the client files it.
    """

    seconds: float
    sent: float = 0.0
    stored: float = 0.0
    filing: float = 0.0


@dataclass(frozen=True)
class Client:
    """What the client, with the scheduler, needs for a task, and for a replication in it, in seconds of a core."""

    task: float
    replication: float


def burden(cost, client):
    """Seconds of the client for one replication, by what they go to: tasks, results, store."""
    together = max(1.0, TASK_SECONDS / positive("seconds", cost.seconds))      # replications that share a task
    return {"tasks": client.task / together, "results": client.replication, "store": cost.filing}


def fed(cost, client):
    """How many cores one client keeps busy."""
    return cost.seconds / sum(burden(cost, client).values())


def wall(cost, client, replications, cores):
    """Seconds from the first pull to the last result: of the cores, or of the client if that takes longer."""
    return count("replications", replications) * cost.seconds / min(count("cores", cores), fed(cost, client))


def duration(seconds):
    """Text of a duration with two digits: 45 s, 12 min, 7.5 h, 13 d."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= (2 if unit == "d" else 1) * size:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


# ---- the compendium's main studies ----


def regrets(runs):
    """What the notebook on omega-UCB keeps of a run."""
    return {"regret": budgeted(runs), "rounds": runs.rounds[:, :, -1]}


def plans(runs):
    """What the notebook on KUBE keeps of a run."""
    return {"regret": knapsack(runs), "rounds": runs.rounds, "spent": runs.spent, "unpulled": runs.unpulled}


def synthetic(make, stop=full_budget):
    """A synthetic setting of the omega-UCB paper, ten policies."""
    policies = {"omega 1/4": cb.OmegaUCB(0.25), "omega 1": cb.OmegaUCB(1.0), "omega* 1/4": cb.OmegaStarUCB(0.25),
                "omega* 1": cb.OmegaStarUCB(1.0), "m": cb.MUCB(), "c": cb.CUCB(), "i": cb.IUCB(),
                "Budget-UCB": cb.BudgetUCB(), "UCB-SC+": cb.UCBSCPlus(), "BTS": cb.BTS()}
    return Study(policies, make, stop, 0, np.geomspace(1e-3, 1, 37), 10**8, regrets)


def greedy(total):
    """KUBE and its rivals on 100 arms with extremely diverse costs."""
    policies = {f"{kind.__name__} {scale:g}": kind(scale) for scale in (1.0, 7.5**0.5, 40.0)
                for kind in (cb.KUBE, cb.FractionalKUBE)}
    shares = (0.05, 0.1, 0.2, 0.1 * (1e5 / total) ** (1 / 3))
    policies |= {f"epsilon-first {i}": cb.EpsilonFirst(share) for i, share in enumerate(shares)}
    return Study(policies, cb.instances.knapsack(100), cb.HardBudget(total), 0, np.ones(1), 10**8, plans)


def anytime():
    """Elumar et al., Figure 2."""
    means = (0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9), (0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85)
    bandit = cb.Bandit(*([cb.Beta(10 * m, 10 * (1 - m)) for m in side] for side in means))
    policies = {"SUAK": cb.SUAK(), "PDS": cb.PrimalDualSkip(), "USS 9": cb.UCBSimplexSkip(9.0),
                "USS 5": cb.UCBSimplexSkip(5.0)}
    policies |= {f"OPS {radius}": cb.OnePhaseSkip(radius) for radius in ("3logT", "3logt", "2logT")}
    return Study(policies, bandit, cb.AnytimeBudget(0.5, 2_500_000), 0, np.arange(1, 101) / 100, 10**8)


def subsidy(mean=0.45):
    """Sinha et al., Figure 2, at one of its 31 means."""
    pair = cb.Bandit([cb.Bernoulli(mean), cb.Bernoulli(0.5)], [cb.Constant(0.0), cb.Constant(1.0)])
    policies = {"CS-TS": cb.CSTS(0.1), "CS-UCB": cb.CSUCB(0.1), "CS-ETC": cb.CSETC(0.1), "blind": cb.BlindETC(),
                "commit once": cb.CommitOnce(0.1), "CS-TS, Gaussian": cb.CSTS(0.1, posterior="gaussian")}
    return Study(policies, pair, cb.Horizon(5000), 0, np.ones(1), 10**8)


# Name -> (study, replications that are measured).
STUDIES = {f"ω-UCB, {family} arms, K = {K}": (synthetic(make(K)), 30)
           for family, make in FAMILIES.items() for K in (10, 50, 100)}
STUDIES |= {f"KUBE, K = 100, B = {total:,.0f}": (greedy(total), 30) for total in (1e4, 1e5)}
STUDIES |= {"SUAK, Fig. 2": (anytime(), 3), "cost subsidy, Fig. 2, one mean": (subsidy(), 200)}
# Ten policies that hardly play: what remains is what the client has to do.
SHORT = synthetic(cb.instances.bernoulli(10), lambda bandit: cb.Budget(30.0 * float(bandit.cost_means.min())))


# ---- measurement ----


def price(study, replications):
    """The `Cost` of a replication, and the relative standard error of its seconds."""
    labels, seconds = list(study.policies), []
    study.play(replications, labels), study.keys(0)       # loads the compiled code; digests what all keys share
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
        results = []
        for replication in range(replications):
            start = time.process_time()
            results.append(study.play(replication, labels))
            seconds.append(time.process_time() - start)
        start = time.perf_counter()
        for replication, result in enumerate(results):
            keys = study.keys(replication)
            store.put((keys[label], values) for label, values in result.items())
        filing = (time.perf_counter() - start) / replications
        store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        stored = store.path.stat().st_size / replications
    mean = float(np.mean(seconds))
    error = float(np.std(seconds, ddof=1) / mean / replications**0.5)
    return Cost(mean, len(pickle.dumps(results[0], 5)), stored, filing), error


def measured_client(study, tasks=1000, replications=3000, pause=3.0):
    """The `Client`, and how many seconds two worker processes took for 100 replications of a study.

    The scheduler runs in the client's process, as it does in any local cluster. What both need is counted in seconds
    of a processor, less what they need when nothing is to do: the workers, which would have machines of their own,
    share this one with them.
    """
    import distributed
    with (distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50),
          joblib.parallel_config(backend="dask")):
        _played(SHORT, 20)       # both workers load the library
        idle, _ = _busy(lambda: time.sleep(pause))
        calls = (joblib.delayed(abs)(i) for i in range(tasks))
        task, _ = _busy(lambda: joblib.Parallel(batch_size=1)(calls), idle / pause)
        replication, _ = _busy(lambda: _played(SHORT, replications), idle / pause)
        return Client(task / tasks, replication / replications), _busy(lambda: _played(study, 100))[1]


def _busy(work, idle=0.0):
    """Seconds of a processor that this process needs beyond `idle` a second, and seconds on the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    clock = time.perf_counter() - clock
    return time.process_time() - cpu - idle * clock, clock


def _played(study, replications, **options):
    return cb.simulate(study.policies, study.bandits, study.stop, replications, study.seed, study.fractions,
                       reduce=study.reduce, **options)


def memory(few=100, more=400):
    """Bytes of the client for each replication of a study with `reduce` and a store, at the peak."""
    def peak(replications):
        tracemalloc.start()
        try:
            with tempfile.TemporaryDirectory() as folder:
                _played(SHORT, replications, n_jobs=1, store=Path(folder) / "store.sqlite")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return (peak(more) - peak(few)) / (more - few)


def comparison(rows=MILLION):
    """Seconds of a paired comparison of a million rows: quantiles of all, a bootstrap of the means of blocks."""
    x, y = np.random.default_rng(0).lognormal(0, 2, (2, rows))
    compare(x[:BLOCKS], y[:BLOCKS])       # draws the resamples, which all comparisons share
    start = time.perf_counter()
    compare(*(each.reshape(BLOCKS, -1).mean(axis=1) for each in (x, y)))
    np.quantile(np.stack([x, y, x - y]), (0.5, 0.95, 0.99), axis=1)
    return time.perf_counter() - start


# ---- what it buys ----


def needed(rows):
    """Replications that would decide each undecided row of a ledger by its note, in order; inf where it names none."""
    notes = rows[rows.verdict == ledger.UNDECIDED].note
    found = notes.str.extract(r"about ([\d,]+) replications would decide", expand=False)
    return np.sort(found.str.replace(",", "").astype(float).fillna(np.inf).to_numpy())


def half_width(rows, replications=1000):
    """Median over a ledger's rows that rest on so many replications: half of the interval over the estimate."""
    rows = rows[(rows.replications == replications) & np.isfinite(rows.high - rows.low) & (rows.estimate != 0)]
    return float(np.median((rows.high - rows.low) / 2 / rows.estimate.abs()))


# ---- the page ----


@dataclass(frozen=True)
class Measured:
    """All that the page is computed from, apart from the ledgers.

    Attributes
    ----------
    prices : dict name -> (policies, replications, Cost, relative standard error of its seconds)
    client : Client
    hundred : float
        Seconds in which two workers played 100 replications of the first study.
    memory, comparison : float
        Bytes of the client for a replication; seconds for a comparison of a million rows.
    """

    prices: dict
    client: Client
    hundred: float
    memory: float
    comparison: float


def measure():
    """Measure everything; a few minutes."""
    client, hundred = measured_client(next(iter(STUDIES.values()))[0])
    prices = {name: (len(study.policies), number, *price(study, number)) for name, (study, number) in STUDIES.items()}
    return Measured(prices, client, hundred, memory(), comparison())


def costs_table(measured):
    """What was measured of each study."""
    heads = "a replication of", "policies", "played", "core-seconds", "result", "in the store", "filing"
    return _table(heads, [
        (name, policies, number, f"{cost.seconds:.2g} ± {100 * error:.0f} %", f"{cost.sent / 1e3:.1f} kB",
         f"{cost.stored / 1e3:.1f} kB", f"{1e3 * cost.filing:.2g} ms")
        for name, (policies, number, cost, error) in measured.prices.items()])


def walls_table(measured):
    """How long a million replications take, and what the client is busy with."""
    machines = [f"{m} × {CORES} cores" for m in MACHINES]
    heads = "a million of", "core-hours", *machines, "client feeds, cores", "with", "store"
    rows = []
    for name, (_, _, cost, _) in measured.prices.items():
        limit, parts = fed(cost, measured.client), burden(cost, measured.client)
        times = [duration(wall(cost, measured.client, MILLION, m * CORES)) + "*" * (m * CORES > limit)
                 for m in MACHINES]
        rows.append((name, f"{MILLION * cost.seconds / 3600:,.0f}", *times, f"{limit:,.0f}",
                     max(parts, key=parts.get), f"{MILLION * cost.stored / 1e9:.1f} GB"))
    return _table(heads, rows)


def gains_table(width, errors):
    """What a thousand replications say, and a million: relative half-widths and errors of means among it."""
    shrink = (1000 / MILLION) ** 0.5
    rows = [(what, f"{100 * now:.2g} %", f"{100 * now * shrink:.2g} %") for what, now in (
        ("half of a 95 % interval over its estimate, median of the ledgers' rows", width),
        ("standard error of a mean regret, lightest tail", min(errors)),
        ("standard error of a mean regret, heaviest tail", max(errors)),
        ("half of the 95 % interval of a share near 50 %, in points", 0.98 / 1000**0.5))]
    return _table(("", "1,000 replications", "1,000,000"), [*rows, ("runs in the worst 1 %", "10", "10,000")])


def _table(heads, rows):
    lines = [heads, ("---", *["--:"] * (len(heads) - 1)), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def from_measurement(measured):
    """What the page's text leaves open, apart from what the ledgers say."""
    (first, (_, _, cost, _)), *_ = measured.prices.items()
    costs, client = [cost for _, _, cost, _ in measured.prices.values()], measured.client
    starved = {f"starved_{m}": sum(fed(cost, client) < m * CORES for cost in costs) for m in MACHINES}
    most = MACHINES[-1] * CORES
    return starved | {
        "provenance": provenance(), "costs": costs_table(measured), "walls": walls_table(measured),
        "first": first, "hundred": measured.hundred, "play": 100 * cost.seconds / 2, "together": TASK_SECONDS,
        "task_ms": 1e3 * client.task, "tasks": 1 / client.task, "replication_ms": 1e3 * client.replication,
        "stream": max(cost.sent * MILLION / wall(cost, client, MILLION, most) for cost in costs) / 1e6,
        "studies": len(costs), "memory_kb": measured.memory / 1e3, "chunk_gb": 20_000 * measured.memory / 1e9,
        "whole_gb": MILLION * measured.memory / 1e9, "comparison": measured.comparison,
        "pulls_gb": MILLION * 10 * 37 * 100 * np.dtype(np.int64).itemsize / 1e9, "resamples": RESAMPLES,
        "bootstrap_gb": 8 * RESAMPLES * MILLION / 1e9, "blocks": BLOCKS}


def from_ledgers(figures):
    """What the page's text leaves open and the committed ledger of all papers says."""
    rows = ledger.read(Path(figures) / "ledger.csv")
    tails = pd.read_csv(Path(figures) / "audit" / "omega_ucb" / "tails.csv")
    worst, found = tails.loc[tails["worst 1 % of variance"].idxmax()], needed(rows)
    named = found[np.isfinite(found)]
    return {"gains": gains_table(half_width(rows), tails["error of a mean of 100"] / 10**0.5),
            "tail_policy": worst.policy, "tail_setting": worst.setting, "tail": 100 * worst["worst 1 % of variance"],
            "undecided": len(found), "unnamed": len(found) - len(named), "asked": max(named, default=0),
            "at_2000": (named <= 2000).sum(), "at_10000": (named <= 10_000).sum(),
            "at_million": (named <= MILLION).sum()}


def provenance():
    """What was measured on."""
    packages = {"NumPy": "numpy", "Numba": "numba", "joblib": "joblib", "Dask": "distributed"}
    versions = ", ".join(f"{name} {version(package)}" for name, package in packages.items())
    return f"Python {platform.python_version()}, {versions}, {platform.machine()}, {os.cpu_count()} cores"


def page(measured, figures=HERE.parent / "figures"):
    """The text of SCALING.md."""
    return PAGE.format(**from_measurement(measured), **from_ledgers(figures))


PAGE = """\
# What a million replications would cost

Made by `python benchmarks/scaling.py` on {provenance}.
What is not measured in that run is computed from it, or from the committed ledgers.

## Measured

The *client* is the process that calls `cb.simulate`: it hands out tasks, takes results in, and files them in the store.
The table is about one replication at the paper's full budget, with all policies of the notebook's main study, on one
core. It has the mean of the replications played, with its standard error; what a replication sends to the client; and
what it takes in the client's store, in space and in time (*filing*).

{costs}

A client of two worker processes, with the scheduler in its process, needs {task_ms:.2g} ms of a core for a task
of Dask that does nothing (so {tasks:,.0f} tasks a second at most), and {replication_ms:.2g} ms and
{memory_kb:.0f} kB of memory for the result of a replication (ten policies, 37 checkpoints). As a check, with client
and workers on the same two cores, 100 replications of “{first}” took {hundred:.1f} s, of which {play:.1f} s are play.

## One, ten and a hundred machines

{walls}

\\* The client takes that long; the cores wait for it. *Client feeds* says how many cores one client keeps busy, and
*with* what most of its time goes to.

The time is that of the cores or that of the client, whichever is longer. We assume that

- every core is as fast as the one measured, also when its neighbours play;
- a task holds as many replications as make {together:g} s of play, at least one;
- the client hands out tasks, takes results in and files them one after another, with the scheduler on the same core;
- the start of the workers and the network cost nothing (the widest stream of results is {stream:.1f} MB a second).

Ten machines have more cores than one client feeds in {starved_10} of these {studies} studies, a hundred in
{starved_100}. In these studies more machines are of no use, but more clients are. Give each client a range of
replications and a store of its own: replication i has the same bits in whichever range it is played.

## What they would buy

{gains}

The percentages shrink as one over the root of the number, if the variance is what the runs so far show. With a
heavy tail this may be wrong: for {tail_policy} in the setting {tail_setting} of its chapter the worst 1 % of the runs
hold {tail:.1f} % of the variance. So ten of a thousand runs decide the mean and its error, and ten thousand of a
million.

Most verdicts need no million runs. {undecided} rows of the ledgers are undecided. By the numbers in their notes
2,000 replications would decide {at_2000} of them, 10,000 would decide {at_10000}, and a million {at_million}. The most
that a row asks for is {asked:,.0f}; rows that name no number: {unnamed}.

## How to

Keep little of each run (`reduce`), play in chunks, and let the store remember what is done:

```python
def final(runs):
    return {{"regret": cb.regret.budgeted(runs)[:, :, -1]}}

for a in range(0, 1_000_000, 20_000):
    part = cb.simulate(policies, instances, stop, range(a, a + 20_000), reduce=final, store="study.sqlite")
    np.save(f"regret_{{a:07}}.npy", part["regret"])
```

With regrets at 37 checkpoints a chunk of 20,000 takes {chunk_gb:.1f} GB of the client's memory, a million at
once {whole_gb:.0f} GB. Without `reduce`, the pulls of ten policies on 100 arms alone are {pulls_gb:.0f} GB,
held twice while they are put together. A bootstrap of a million rows is out of reach, too: {resamples:,} resamples
of them are {bootstrap_gb:.0f} GB. The means of {blocks:,} blocks of replications are independent and have the
same mean; `cb.statistics.compare` of these, with the quantiles of all rows, takes {comparison:.2g} s for a pair
of policies. Shares and medians need no bootstrap.
"""


def main(path):
    """Measure, and write the page."""
    publication.replace(path, page(measure()))
    print(f"written: {path}")


if __name__ == "__main__":
    main(destination("SCALING.md", __doc__))
