"""Runs of a small notebook in real kernels: to the end, into every fault, and killed at random moments.

The runs are forked from one process that has imported everything once, two at a time.
"""

import asyncio
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import random
import re
import select
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

import nbformat
import pytest
import yaml
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from reference import proving

from compendium import __main__ as command
from compendium import execution, page, preparation, publication
from compendium.terminal import Line, Watcher
from costbandits.studies.progress import Steps, announce
from costbandits.studies.store import Store

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["compendium.__main__", "compendium.execution", "nbconvert", __name__])
# A start polls every child of this process, also those of other threads, and an exit status can be read only once.
POLLS = threading.Lock()
REPLICATIONS, MORE, TABLES = 12, 24, 30

CELLS = [
    ("", """
version = 0         # of what is published, and seed of the simulation
fault = ""          # what goes wrong
more = 0            # further replications
output = ""         # folder for tables
store = ""          # file of finished replications"""),
    ("", """
import errno, os, sys, time
from pathlib import Path
import costbandits as cb
Path("../kernel.pid").write_text(str(os.getpid()))
from ipykernel.connect import get_connection_file
Path("../connection").write_text(get_connection_file())"""),
    ("", """
def slowly(runs):
    with open("../played.log", "a") as log:
        log.write(f"{runs.seed}\\n")
    time.sleep(0.05)
    return {"reward": runs.reward[..., -1]}"""),
    ("", f"""
cb.progress.announce({{"toy": 1}})
runs = cb.simulate({{"m": cb.MUCB()}}, cb.instances.bernoulli(3), cb.Budget(5.0), replications={REPLICATIONS} + more,
                   seed=version, store=store or None, reduce=slowly, progress="toy")
print("mean", runs["reward"].mean().round(3))"""),
    ("", """
if fault == "full":
    Path("/dev/full").write_text("x" * 100_000)
if fault == "dead":
    os.kill(os.getpid(), 9)
if fault == "stderr":
    print("careful", file=sys.stderr)
if fault == "workers":
    import joblib
    def forever(runs):
        with open("../workers.log", "a") as log:
            log.write(f"{os.getpid()}\\n")
        time.sleep(100)
    with joblib.parallel_config("loky", n_jobs=2):
        cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(5.0), 4, reduce=forever)"""),
    ("A <line> that \"rises\"", """
import matplotlib.pyplot as plt
plt.plot([0, 1])
plt.show()"""),
    ("", f"""
if output:
    for number in range({TABLES}):
        (Path(output) / f"table{{number}}.csv").write_text(f"{{version}}\\n" * 1000)
if output and more:
    (Path(output) / "ledger.csv").write_text(str(runs["reward"].tolist()))""")]


def table(version):
    return f"{version}\n" * 1000


def make_project(folder, **parameters):
    """A project with the notebook `toy`; the parameters are those of its paper profile."""
    for name in ("notebooks", "params/paper", "params/quick"):
        (folder / name).mkdir(parents=True)
    (folder / "params/quick/toy.yaml").touch()
    cells = [new_code_cell(source.strip(), metadata={"alt": alt} if alt else {}) for alt, source in CELLS]
    cells[0].metadata.tags = ["parameters"]
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Toy"), *cells]), folder / "notebooks/toy.ipynb")
    set_parameters(folder, **parameters)
    return folder


def set_parameters(folder, **parameters):
    (folder / "params/paper/toy.yaml").write_text(yaml.safe_dump(parameters))


class Run:
    """The command in a process group of its own; what it says is in a file."""

    def __init__(self, folder, *arguments):
        self.log = folder / "said.log"
        self.log.write_text("")
        self.process = FORKS.Process(target=_command, args=(folder, self.log, arguments))
        with POLLS:
            self.process.start()

    def said(self):
        return self.log.read_text()

    def goes_on(self):
        return not wait([self.process.sentinel], 0)

    def kill(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self):
        """The exit status; negative for a signal."""
        wait([self.process.sentinel], 60)
        with POLLS:
            return self.process.exitcode


def _command(folder, log, arguments):
    signal.signal(signal.SIGINT, signal.SIG_IGN)     # until the command itself takes care of it
    os.setsid()
    os.chdir(folder)
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    with open(1, "w", buffering=1, closefd=False) as sys.stdout, open(2, "w", buffering=1, closefd=False) as sys.stderr:
        status = command.main(arguments)
    os._exit(status)


PAPER, QUICK, DEEP = (("run", "toy", "--profile", profile) for profile in ("paper", "quick", "deep"))
REFRESH = ("refresh",)


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def visible(folder):
    """What a reader of the published folder sees: not what a publication has prepared under other names."""
    there = files(folder / "figures/toy")
    return {name: content for name, content in there.items() if not name.endswith(publication.PART)}


class Outcome:
    """What one run has said and left."""

    def __init__(self, folder, *arguments):
        self.folder, self.before = folder, files(folder / "figures")
        run = Run(folder, *arguments)
        self.status, self.said, self.figures = run.end(), run.said(), files(folder / "figures")
        self.notebook = (folder / "notebooks/toy.ipynb").read_bytes()
        self.kept = {path.name: path.read_text() for path in folder.glob("build/stage/toy/run-*/*") if path.is_file()}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Outcomes by name, two lanes at a time."""
    def good():
        folder = make_project(tmp_path_factory.mktemp("{odd} 'name'"), version=1)
        yield from (("paper", Outcome(folder, *PAPER)), ("again", Outcome(folder, *PAPER)))
        yield "quick", Outcome(folder, *QUICK)

    def bad():
        folder = make_project(tmp_path_factory.mktemp("bad"), version=2)
        (folder / "stage").mkdir()
        (folder / "stage" / "table0.csv").write_text("old")
        publication.publish(folder / "stage", folder / "figures" / "toy", {"profile": "paper"})
        for fault in ("full", "dead"):
            set_parameters(folder, version=2, fault=fault)
            yield fault, Outcome(folder, *PAPER)
        yield from (("refreshed", Outcome(folder, *REFRESH)), ("refreshed again", Outcome(folder, *REFRESH)))
        path = folder / "notebooks/toy.ipynb"
        path.write_text(path.read_text().replace('fault = \\"\\"', 'fault = \\"stderr\\"'))
        yield "stderr", Outcome(folder, *REFRESH)

    tmp_path_factory.getbasetemp()      # made by the first who asks, and not by two at once
    with ThreadPoolExecutor(2) as pool:
        return dict(pair for lane in pool.map(lambda lane: list(lane()), (good, bad)) for pair in lane)


@pytest.mark.slow
def test_a_run_publishes_and_leaves_the_notebook_and_its_page(outcomes):
    run = outcomes["paper"]
    assert run.status == 0, run.said
    assert {name for name in run.figures if name.endswith("csv")} == {f"toy/table{n}.csv" for n in range(TABLES)}
    assert publication.audit(run.folder / "figures" / "toy") == []
    (record,) = publication.manifest(run.folder / "figures" / "toy")["runs"].values()
    assert record["profile"] == "paper" and record["parameters"] == {"version": 1, "fault": "", "more": 0}
    executed = nbformat.read(run.folder / "build/toy.ipynb", as_version=4)
    assert all(cell.execution_count for cell in executed.cells if cell.cell_type == "code")
    assert 'alt=\'A &lt;line&gt; that "rises"\'' in (run.folder / "build/toy.html").read_text()
    assert not any(path.is_dir() for path in (run.folder / "build/stage/toy").iterdir())


@pytest.mark.slow
def test_a_run_says_what_runs_and_how_far_it_is(outcomes):
    said = outcomes["paper"].said.splitlines()
    assert re.match(r"toy \(paper\) · 0:\d\d · the kernel starts", said[0])
    assert any("cell 6 of 9 · toy " in line and f"/{REPLICATIONS}" in line for line in said)
    assert said[-1].startswith("toy (paper), done in 0:") and f"{TABLES} files in figures/toy" in said[-1]
    assert len(said) < 10 and "Traceback" not in outcomes["paper"].said


@pytest.mark.slow
def test_the_same_run_again_changes_no_byte_and_plays_nothing(outcomes):
    run = outcomes["again"]
    assert run.status == 0 and run.figures == run.before and "0 of them new or changed" in run.said
    assert (run.folder / "played.log").read_text().split().count("1") == REPLICATIONS


@pytest.mark.slow
def test_the_quick_profile_publishes_nothing(outcomes):
    run = outcomes["quick"]
    assert run.status == 0 and run.figures == run.before
    assert (run.folder / "build/quick/figures/toy/table0.csv").read_text() == table(0)
    assert (run.folder / "build/quick/toy.html").exists()


@pytest.mark.parametrize(("fault", "said"), [("full", ["cell 7 failed, In [6]", "OSError", "No space left on device"]),
                                             ("dead", ["the kernel died in cell 7"])])
@pytest.mark.slow
def test_a_failing_notebook_publishes_nothing_and_says_why(outcomes, fault, said):
    run = outcomes[fault]
    assert run.status == 1 and run.figures == run.before != {}
    assert all(text in run.said for text in [*said, "Nothing is published; see build/stage/toy/run-"]), run.said
    assert fault == "dead" or "No space left on device" in run.kept["toy.ipynb"]


@pytest.mark.slow
def test_refreshing_executes_in_place_and_a_second_time_changes_no_byte(outcomes):
    first, second = outcomes["refreshed"], outcomes["refreshed again"]
    assert (first.status, second.status) == (0, 0), first.said
    assert first.notebook.decode().splitlines() == second.notebook.decode().splitlines()     # says which line changed
    assert first.notebook == second.notebook and first.notebook.endswith(b"}\n")
    assert "toy: refreshed" in first.said and "toy: unchanged" in second.said
    notebook = nbformat.reads(first.notebook.decode(), as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(CELLS) + 1))
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags", "alt"} for cell in notebook.cells)


@pytest.mark.slow
def test_refreshing_refuses_stderr_and_leaves_the_notebook_alone(outcomes):
    run = outcomes["stderr"]
    assert run.status == 1 and "careful" in run.said and "cell 6" in run.said and "stays as it is" in run.said
    assert b"execution_count\": 3" in run.notebook and b"careful" not in run.notebook.split(b'fault == \\"stderr')[0]


SHOWN = [
    ("class A:\n    def _repr_latex_(self):\n        raise KeyError('tex')\ndisplay(A())", "cell 2 failed", "'tex'"),
    ("class A:\n    def __repr__(self):\n        return 7\n[A()]", "cell 2 failed", "returned non-string"),
    ("try:\n    [][1]\nexcept IndexError:\n    get_ipython().showtraceback()", "cell 2 failed", "IndexError"),
    ("import ipywidgets\nwith ipywidgets.Output():\n    float('x')", "a widget shows an error", "could not convert"),
    ("raise SystemExit", "cell 2", "SystemExit"), ("%nothing", "cell 2 failed", "%nothing` not found")]


class Hung(BaseException):
    """Kernel and client wait for each other."""


def unhung(work, seconds=120):
    """What `work` returns; it begins anew, once, if kernel and client wait for each other, as they seldom have."""
    def late(*_):
        raise Hung

    before = signal.signal(signal.SIGALRM, late)
    try:
        for again in (True, False):
            signal.alarm(seconds)
            try:
                return work()
            except Hung:
                if not again:
                    raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_what_is_edited_while_it_is_refreshed_stays(tmp_path):
    folder = make_project(tmp_path)
    path = folder / "notebooks/toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    edit = "file = open('toy.ipynb', 'a')\nfile.write('\\n') and file.close()"
    notebook.cells = [notebook.cells[1], new_code_cell(edit)]
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(command.Failed, match=r"^toy: was edited while it was executed\nThe notebook stays as it is"):
        unhung(lambda: command.refresh(folder, "toy"))
    assert path.read_bytes() == before + b"\n"


@pytest.mark.slow
@pytest.mark.parametrize(("source", "where", "why"), proving(SHOWN, *SHOWN[1:3], *SHOWN[4:]))
def test_a_notebook_that_shows_an_error_has_failed_though_its_cells_go_on(tmp_path, source, where, why):
    """Refreshing it changes no byte, and a run of it publishes nothing."""
    folder = make_project(tmp_path)
    path = folder / "notebooks/toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [notebook.cells[1], new_code_cell(source), new_code_cell("open('../on', 'w').close()")]
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(command.Failed, match=f"(?s){where}.*{re.escape(why)}.*The notebook stays as it is"):
        unhung(lambda: command.refresh(folder, "toy"))
    assert path.read_bytes() == before and (folder / "on").exists() == ("widget" in where)
    played = where.replace("2", "3")        # behind the parameters that papermill has put in
    with command._interruptible(), pytest.raises(command.Failed, match=f"(?s){played}.*{re.escape(why)}"):
        unhung(lambda: command.run(preparation.prepare(folder, "toy", "paper")))
    assert not (folder / "figures").exists() and list(folder.glob("build/stage/toy/run-*/toy.ipynb"))


def test_what_a_widget_writes_to_stderr_is_found():
    """A widget keeps what is written while it is open, and no cell has it."""
    hidden = {"a": {"state": {"outputs": [{"output_type": "stream", "name": "stderr", "text": "careful"}]}},
              "b": {"state": {"value": 3}}}
    notebook = new_notebook(cells=[new_markdown_cell("x"), new_code_cell(outputs=[new_output("stream", text="1")])])
    assert [where for where, _ in execution.shown(notebook)] == ["cell 2"]
    notebook.metadata["widgets"] = {execution.WIDGETS: {"state": hidden}}
    assert [(where, output["text"]) for where, output in execution.shown(notebook)] == [
        ("cell 2", "1"), ("a widget", "careful")]


class Gone:
    """No kernel at all."""

    def __init__(self, *arguments):
        pass

    def shutdown_kernel(self, now):
        raise AssertionError

    def kill(self):
        pass


@pytest.mark.parametrize(("error", "type", "said"), [
    (CellExecutionError("Traceback\nZeroDivisionError: float", "ZeroDivisionError", "float"), execution.NotebookFailed,
     "cell 3 failed:\nTraceback\nZeroDivisionError: float"), (OSError(28, "No space left"), OSError, "No space left")])
def test_what_ends_an_execution_is_said_with_its_cell(tmp_path, monkeypatch, error, type, said):
    def work(kernel, on_cell_start, on_cell_executed):
        on_cell_start("a cell", 2)
        raise error

    monkeypatch.setattr(execution, "Kernel", Gone)
    with pytest.raises(type, match=said):
        execution.Execution(work, tmp_path, tmp_path).watched(Line("toy"), 5)


def test_a_refreshed_notebook_shows_the_published_pictures(tmp_path):
    (tmp_path / "old.png").write_bytes(b"published")
    (tmp_path / "numbers.csv").write_text("x\n1\n")
    drawn = [new_output("display_data", {"image/png": "quick"}) for _ in range(2)]
    filed = 'gallery.add("numbers", table=t)\ngallery.add("old", fig)\ngallery.add("new", fig)'
    cell = new_code_cell(filed, outputs=drawn)
    command._as_published(cell, tmp_path)
    assert [output.data["image/png"] for output in drawn] == ["cHVibGlzaGVk\n", "quick"]


def test_a_hang_up_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with command._interruptible():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN != signal.getsignal(signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with pytest.raises(KeyboardInterrupt), command._interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupted_refresh_says_what_is_left(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    assert command.main(["refresh"]) == 2 and "must be in notebooks/" in capsys.readouterr().err
    monkeypatch.setattr(command, "refresh", interrupted)
    assert command.main(["refresh", "toy"]) == 130
    assert capsys.readouterr().err == "interrupted: the notebook at hand stays as it is\n"


# Killed at random moments.


def kernel_is_gone(folder):
    """Wait for the kernel of a killed run to end by itself; it looks for its parent every second."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        pid = int((folder / "kernel.pid").read_text())
        for _ in range(400):
            os.kill(pid, 0)
            time.sleep(0.05)
        return False
    return True


class Victim:
    """A project that publishes version after version, while its runs are killed."""

    def __init__(self, folder, lane):
        self.folder, self.random, self.version = make_project(folder), random.Random(lane), 0
        self.statuses = []
        self.next_version()
        start = time.monotonic()
        assert self.finish() == 0
        self.duration = time.monotonic() - start
        self.next_version()

    def next_version(self):
        self.version += 1
        set_parameters(self.folder, version=self.version)

    def stored(self):
        """How many finished replications of this version the store holds; all of those of older versions are there."""
        with Store(self.folder / "build/store.sqlite") as store:
            return len(store) - REPLICATIONS * (self.version - 1)

    def played(self):
        log = self.folder / "played.log"
        return log.read_text().split().count(str(self.version)) if log.exists() else 0

    def kill_once(self, number, while_publishing):
        stored, played = self.stored(), self.played()
        before, torn = visible(self.folder), (self.folder / "figures/toy" / publication.JOURNAL).exists()
        run, start = Run(self.folder, *PAPER), time.monotonic()
        if while_publishing:
            while "publishing" not in run.said() and run.goes_on():
                time.sleep(0.002)
            time.sleep(self.random.uniform(0, 0.05))
        else:
            time.sleep(self.random.uniform(0, self.duration))
        run.kill(number)
        status = run.end()
        assert status in (0, 130 if number == signal.SIGINT else -number), run.said()
        assert status != 130 or run.said().endswith("interrupted: nothing published, finished replications are kept\n")
        assert kernel_is_gone(self.folder)
        self.assert_old_or_new()
        # An interrupted run publishes nothing of its own; it may have completed what an earlier one had begun.
        assert status != 130 or visible(self.folder) == before or torn
        assert self.played() - played <= REPLICATIONS - stored
        self.statuses.append(status)
        if status == 0:       # killed too late, if a machine that was busy is not any more
            self.duration = min(self.duration, time.monotonic() - start)
            self.assert_complete()
            self.next_version()

    def assert_old_or_new(self):
        tables = {name: content for name, content in visible(self.folder).items() if "table" in name}
        assert len(tables) == TABLES
        assert set(tables.values()) <= {table(self.version - 1).encode(), table(self.version).encode()}

    def assert_complete(self):
        published = files(self.folder / "figures/toy")
        assert {content for name, content in published.items() if "table" in name} == {table(self.version).encode()}
        assert len(published) == TABLES + 1 and publication.audit(self.folder / "figures/toy") == []
        assert self.stored() == REPLICATIONS

    def finish(self):
        missing, played = REPLICATIONS - (self.stored() if self.version > 1 else 0), self.played()
        run = Run(self.folder, *PAPER)
        status = run.end()
        assert status == 0, run.said()
        self.assert_complete()
        assert self.played() - played == missing
        return status


@pytest.mark.slow
@pytest.mark.parametrize(("lanes", "kills"), proving([(1, 1), (2, 6)], (2, 6)))
def test_killed_at_random_moments_files_are_old_or_new_and_the_next_run_completes(tmp_path, lanes, kills):
    def lane(number):
        victim = Victim(tmp_path / str(number), number)
        for kill in range(kills):
            victim.kill_once((signal.SIGINT, signal.SIGKILL)[(kill + number) % 2], while_publishing=kill % 3 == 2)
        victim.finish()
        return victim.statuses

    with ThreadPoolExecutor(2) as pool:
        statuses = [status for lane_statuses in pool.map(lane, range(lanes)) for status in lane_statuses]
    assert len(statuses) == lanes * kills and (kills < 6 or {130, -signal.SIGKILL} <= set(statuses))


def gone(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    return True


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("number", proving([signal.SIGINT, signal.SIGTERM, signal.SIGKILL],
                                           signal.SIGTERM, signal.SIGKILL))
@pytest.mark.slow
def test_a_run_that_is_ended_leaves_no_process_and_no_file_of_its_kernel(tmp_path, number):
    folder = make_project(tmp_path / "project", fault="workers")
    run, workers, limit = Run(folder, *PAPER), [], time.monotonic() + 60
    while len(workers) < 2 and run.goes_on() and time.monotonic() < limit:
        time.sleep(0.05)
        workers = (folder / "workers.log").read_text().split() if (folder / "workers.log").exists() else []
    assert len(workers) == 2, run.said()
    run.kill(number)
    assert run.end() == (-number if number == signal.SIGKILL else 130)
    limit = time.monotonic() + 10
    while (left := [pid for pid in workers if not gone(pid)]) and time.monotonic() < limit:
        time.sleep(0.05)
    connection = Path((folder / "connection").read_text())
    assert not left and kernel_is_gone(folder)
    assert connection.is_relative_to(folder / "build/stage/toy") and connection.exists() == (number == signal.SIGKILL)


@pytest.mark.slow
def test_an_interrupt_kills_the_kernel_once_and_waits_for_what_is_left(tmp_path, monkeypatch):
    kills, killed, ended = [], threading.Event(), threading.Event()
    monkeypatch.setattr(execution.Kernel, "kill", lambda self: (kills.append(1), killed.set()))

    def work(kernel, **hooks):
        killed.wait(30)
        time.sleep(0.3)
        ended.set()

    watched = execution.Execution(work, tmp_path, tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)       # what a shell runs with & ignores it
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        watched.watched(Line("toy", io.StringIO()), 1)
    signal.signal(signal.SIGINT, before)
    assert kills == [1] and ended.is_set()


def test_a_kernel_that_is_cancelled_while_it_starts_is_killed(tmp_path, monkeypatch):
    kernel = execution.Kernel(tmp_path, tmp_path / "kernel.log", {})
    started = []

    async def start(self, **options):
        started.append(1)
        self._cancelled = True

    monkeypatch.setattr(execution.AsyncKernelManager, "_async_start_kernel", start)
    monkeypatch.setattr(execution.Kernel, "kill", lambda self: started.append("killed"))
    asyncio.run(execution.Kernel.start_kernel(kernel))
    assert started == [1, "killed"]
    with pytest.raises(execution.DeadKernelError, match="interrupted"):
        asyncio.run(execution.Kernel.start_kernel(kernel))


def deep_lane(folder, signals):
    """A paper run, then a deep one that each signal ends when it has played a little; the committed bytes, plays."""
    make_project(folder, version=1)
    (folder / "params/deep").mkdir()
    (folder / "params/deep/toy.yaml").write_text(f"version: 1\nmore: {MORE}")
    assert Run(folder, *PAPER).end() == 0
    log = folder / "played.log"
    for number in signals:
        before, run = log.stat().st_size, Run(folder, *DEEP)
        while log.stat().st_size < before + 6 and run.goes_on():
            time.sleep(0.002)
        run.kill(number)
        assert run.end() in (130, -number) and kernel_is_gone(folder)
        assert not (folder / "figures/deep").exists()
    run = Run(folder, *DEEP, "--among", "other", "toy")
    assert run.end() == 0 and "toy (deep, notebook 2 of 2) · 0:00" in run.said(), run.said()
    with Store(folder / "build/store.sqlite") as store:
        assert len(store) == REPLICATIONS + MORE
    return files(folder / "figures/deep/toy"), log.read_text().split().count("1")


@pytest.mark.slow
@pytest.mark.parametrize("kills", proving([0, 2], 2))
def test_a_deep_run_goes_on_from_the_paper_profile_and_killed_makes_the_same_bytes(tmp_path, kills):
    with ThreadPoolExecutor(2) as pool:
        signals = [(), (signal.SIGKILL, signal.SIGINT)][:1 + (kills > 0)]
        lanes = [*pool.map(deep_lane, (tmp_path / "a", tmp_path / "b"), signals)]
    (whole, played), (pieced, played_in_pieces) = lanes[0], lanes[-1]
    assert pieced == whole and set(whole) == {"ledger.csv", publication.MANIFEST}
    assert played == REPLICATIONS + MORE == len(json.loads(whole["ledger.csv"])[0])
    # Each kill may lose the one replication that was being played.
    assert played <= played_in_pieces <= played + kills


@pytest.mark.parametrize("killed", ["among the renames", "after the last step"])
@pytest.mark.slow
def test_a_run_that_is_interrupted_after_a_killed_publication_says_what_it_did(tmp_path, killed):
    folder, figures = make_project(tmp_path / "project", version=2), tmp_path / "project/figures/toy"
    for version in (1, 2):
        (tmp_path / str(version)).mkdir()
        for number in range(TABLES):
            (tmp_path / str(version) / f"table{number}.csv").write_text(table(version))
    publication.publish(tmp_path / "1", figures, {"version": 1})
    with pytest.MonkeyPatch.context() as patch:
        if killed == "among the renames":
            patch.setattr(publication, "complete", lambda folder: None)     # prepared, journal written, nothing renamed
        publication.publish(tmp_path / "2", figures, {"version": 2})
    if killed == "among the renames":
        for number in range(5):
            os.replace(figures / f"table{number}.csv.part", figures / f"table{number}.csv")
    before = visible(folder)
    run = Run(folder, *PAPER)
    while "the kernel starts" not in run.said() and run.goes_on():
        time.sleep(0.01)
    run.kill(signal.SIGINT)
    assert run.end() == 130
    said = "completed the publication of an earlier run" in run.said()
    assert said == (killed == "among the renames") == (visible(folder) != before)
    assert publication.audit(figures) == [] and publication.manifest(figures)["runs"].popitem()[1] == {"version": 2}


def test_two_runs_of_a_notebook_at_a_time_are_refused(tmp_path, monkeypatch, capsys):
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    with command._scratch(tmp_path / "build", "toy"):
        assert command.main(PAPER) == 2
    assert "is being run by another process" in capsys.readouterr().err


@pytest.mark.parametrize("other", ["toy-mine", "toy.lock", "toy*"])
def test_runs_of_notebooks_with_similar_names_leave_each_other_alone(tmp_path, other):
    for one, two in ((other, "toy"), ("toy", other)):
        with command._scratch(tmp_path, one) as first:
            with command._scratch(tmp_path, two) as second:
                assert first.is_dir() and second.is_dir() and first != second
            assert first.is_dir()


# Without a kernel: what the runner does with an executed notebook, and the progress line.


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """A project in which executing the notebook takes no time; a new `table0.csv` against a published one."""
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "table0.csv").write_text("old")
    publication.publish(tmp_path / "old", tmp_path / "figures" / "toy", {})

    def watched(execution, line, cells):
        (scratch,) = tmp_path.glob("build/stage/**/toy/run-*")
        (scratch / "output" / "table0.csv").write_text("new")
        (scratch / "toy.ipynb").write_text((tmp_path / "notebooks/toy.ipynb").read_text())
        return nbformat.read(scratch / "toy.ipynb", as_version=4)

    monkeypatch.setattr("compendium.execution.Execution.watched", watched)
    return tmp_path


def test_a_notebook_in_a_folder_has_its_own_places(executed):
    for folder, file in (("notebooks", "toy.ipynb"), ("params/paper", "toy.yaml")):
        (executed / folder / "audit").mkdir()
        shutil.copy(executed / folder / file, executed / folder / "audit")
    before = files(executed / "figures/toy")
    assert command.main(("run", "audit/toy", "--profile", "paper")) == 0 and files(executed / "figures/toy") == before
    assert publication.audit(executed / "figures/audit/toy") == []
    made = {path.relative_to(executed / "build").as_posix() for path in executed.glob("build/audit/*")}
    assert made == {"audit/toy.ipynb", "audit/toy.html", "audit/toy.times.json"}
    with pytest.raises(ValueError, match=re.escape("['audit/toy', 'toy']")):
        preparation.prepare(executed, "audit/to", "paper")


@pytest.mark.parametrize("missing", page.PACKAGES)
def test_a_package_that_the_page_needs_is_missed_before_any_work(executed, monkeypatch, capsys, missing):
    for module in page.PACKAGES:
        importlib.import_module(module)      # nbconvert would remember what it could not import
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr("compendium.execution.Execution.watched", lambda *_: pytest.fail("it has begun"))
    assert command.main(PAPER) == 2
    said = capsys.readouterr().err
    assert missing in said and "Traceback" not in said and not list(executed.glob("build/stage/*"))


def test_a_run_leaves_a_stamp_as_old_as_its_beginning_if_it_succeeds(executed, monkeypatch):
    stamp, began = executed / "build/paper/toy.done", []

    def run(job, among):
        began.append(time.time())
        time.sleep(0.1)
        if not stamp.exists():
            raise command.Failed("a cell")
        return "done"

    monkeypatch.setattr(command, "run", run)
    asked = [*PAPER, "--done", str(stamp)]
    assert command.main(asked) == 1 and not stamp.exists()
    stamp.parent.mkdir(parents=True)
    stamp.touch()
    assert command.main(asked) == 0 and began[1] - 5 < stamp.stat().st_mtime < began[1]
    assert [path.name for path in stamp.parent.iterdir()] == ["toy.done"]


def test_what_is_still_to_be_played_is_counted_from_an_audit_too(executed, monkeypatch, capsys):
    monkeypatch.setattr(command, "run", lambda job, among: "done")
    monkeypatch.setattr(command.times, "ahead", lambda root, names: 30.0 * len(names))
    for name in ("other", "audit/other"):
        (executed / f"build/{name}.done").parent.mkdir(parents=True, exist_ok=True)
        (executed / f"build/{name}.done").touch()
    names = ["audit/other", "other", "third", "toy"]
    assert command.main([*PAPER, "--among", *names, "--done", "build/audit/toy.done"]) == 0
    assert capsys.readouterr().err.startswith("2 chapters are to be played: about a minute on this machine")


@pytest.mark.slow
@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.write_text", "tempfile.mkdtemp", "os.replace"])
def test_a_full_disk_is_one_error_and_overwrites_nothing(executed, monkeypatch, capsys, call):
    before = files(executed / "figures")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device", "build")

    with monkeypatch.context() as patch:
        patch.setattr(call, full)
        assert command.main(PAPER) in (1, 2)
    said = capsys.readouterr().err
    assert "No space left on device: build" in said and "Traceback" not in said
    assert files(executed / "figures") == before
    assert command.main(PAPER) == 0
    assert (executed / "figures/toy/table0.csv").read_text() == "new"


@pytest.mark.parametrize(("made", "told"), [("table0.csv", "new"), ("table0_standin.csv", "old")])
def test_without_the_real_data_the_published_story_stays(executed, made, told):
    output, folder = executed / "output", executed / "figures/toy"
    for story in ("old", "new"):
        output.mkdir(exist_ok=True)
        (output / "story.json").write_text(story)
        (output / (made if story == "new" else "table0.csv")).write_text(story)
        command._set_aside(output)
        publication.publish(output, folder, {"story": story})
        shutil.rmtree(output)
    assert (folder / "story.json").read_text() == told and publication.audit(folder) == []


@pytest.mark.parametrize(("file", "told"), [("", True), ("ads.csv", False), (None, False)])
def test_a_run_with_a_stand_in_for_the_data_says_so(executed, file, told):
    job = preparation.prepare(".", "toy", "paper")
    given = {} if file is None else {"ads_file": file}
    with command._interruptible():
        said = command.run(replace(job, parameters={**job.parameters, **given}))
    assert said.endswith("; a stand-in took the place of the advertisement data") is told


@pytest.mark.slow
def test_a_publication_that_stops_half_way_says_so(executed, monkeypatch, capsys):
    replace, calls = os.replace, []

    def full(*arguments):
        calls.append(arguments)
        if len(calls) > 1:     # the journal
            raise OSError(28, "No space left on device", "figures")
        replace(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        assert command.main(PAPER) == 1
    assert "the next run completes the publication" in capsys.readouterr().err
    assert command.main(PAPER) == 0 and publication.audit(executed / "figures/toy") == []


def test_what_fails_after_the_publication_does_not_say_that_nothing_is_published(executed, capsys):
    (executed / "build/toy.html").mkdir(parents=True)
    assert command.main(PAPER) == 1
    assert "figures/toy is published" in (said := capsys.readouterr().err) and "Nothing" not in said
    assert (executed / "figures/toy/table0.csv").read_text() == "new"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 40 columns: a stream to write to, and a function that reads what has been written."""
    monkeypatch.setenv("COLUMNS", "40")
    ours, theirs = os.openpty()

    def written():
        text = b""
        while select.select([ours], [], [], 0.05)[0]:
            text += os.read(ours, 10_000)
        return text.decode()

    with open(theirs, "w") as stream:
        yield stream, written
    os.close(ours)


def test_the_line_is_rewritten_in_a_terminal_and_never_longer_than_it(terminal):
    stream, written = terminal
    line = Line("toy", stream)
    line.show("a" * 100)
    line.show("b")
    line.clear()
    first, second, cleared = written().split("\r")[1:]
    assert len(first.removesuffix("\x1b[K")) == 39 and second == "toy · 0:00 · b\x1b[K" and cleared == "\x1b[K"


def test_of_two_runs_in_a_terminal_one_rewrites_its_line_and_the_other_writes_above_it(terminal):
    stream, written = terminal
    first, second = Line("one", stream), Line("two", stream)
    first.show("a")
    for number in range(3):
        second.show(str(number), topic="same")
    first.show("b")
    assert written() == "\rone · 0:00 · a\x1b[K" "\rtwo · 0:00 · 0\x1b[K\r\n" "\rone · 0:00 · b\x1b[K"
    first.clear()
    second.show("c", topic="same")     # the place is free
    assert written() == "\r\x1b[K" "\rtwo · 0:00 · c\x1b[K"
    second.clear()


def test_elsewhere_a_line_appears_for_a_new_topic_and_every_fifteen_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("compendium.terminal.time.monotonic", lambda: now[0])
    paper = io.StringIO()
    line = Line("toy", paper)
    for second in range(40):
        now[0] = 100.0 + second
        line.show(str(second), topic="late" if second >= 20 else "early")
    assert [text.rpartition(" ")[2] for text in paper.getvalue().splitlines()] == ["0", "15", "20", "35"]


def test_the_watcher_reads_what_the_studies_write(tmp_path, monkeypatch):
    now, path = [0.0], tmp_path / "progress"
    watcher = Watcher(path, clock=lambda: now[0])
    assert watcher.line() == ""
    monkeypatch.setenv("COSTBANDITS_PROGRESS", str(path))
    announce({"one": 1, "two": 3})
    assert watcher.line() == ""
    with Steps("one", 4) as steps:
        steps.step(2)
        steps.step(2)
        now[0] = 10.0
        assert watcher.line() == "25% of all · about 0:30 left"
    with Steps("two", 2) as steps:
        steps.step()
        steps._tell()
        now[0] = 40.0
        assert watcher.line() == "two 1/2 · 62% of all · about 0:30 left"
        with open(path, "a") as file:
            file.write(json.dumps({"label": "two", "done": 2, "total": 2})[:20])     # a line half written
        assert watcher.line() == "two 1/2 · 62% of all · about 0:30 left"
        with open(path, "a") as file:
            file.write("\n" + json.dumps({"label": "two", "done": 2, "total": 2}) + "\n")   # that stays so: a full disk
        now[0] = 50.0
        assert watcher.line() == "100% of all"


def test_the_share_of_what_was_announced_is_not_that_of_a_study_that_was_not(tmp_path, monkeypatch):
    watcher = Watcher(tmp_path / "progress")
    monkeypatch.setenv("COSTBANDITS_PROGRESS", str(watcher.path))
    announce({"one": 1})
    with Steps("one", 1) as steps:
        steps.step()
    with Steps("other", 4) as steps:
        steps.step()
        assert watcher.line() == "other 1/4" or watcher.line().startswith("other 0/4")
        assert "%" not in watcher.line()


def test_progress_that_cannot_be_written_stops_no_study(tmp_path, monkeypatch):
    monkeypatch.setenv("COSTBANDITS_PROGRESS", str(tmp_path / "missing" / "file"))
    with Steps("one", 1) as steps:
        steps.step()
    assert steps.done == 1


def test_a_notebook_that_is_not_there_is_told_from_those_that_are(executed, capsys):
    assert command.main(["refresh", "nothere"]) == 2
    assert "notebook = 'nothere': must be one of ['toy']" in capsys.readouterr().err
