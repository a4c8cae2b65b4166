"""The command behind the Makefile: run a notebook under a profile and publish its results, or execute it in place.

    python -m compendium run omega_ucb --profile paper
    python -m compendium refresh
    python -m compendium new my_paper --title "My paper: what it asks"

All work from the project's folder. A run checks everything before any work begins, works in a folder of its own below
`build/`, and publishes only when the whole notebook has succeeded.
"""

import base64
import contextlib
import fcntl
import importlib
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from os.path import relpath
from pathlib import Path

from costbandits.checks import require
from costbandits.studies.store import StoreError

from . import cells, page, preparation, publication, settings, times
from .lab import quieten
from .project import AUDIT, PUBLISHED, notebooks
from .terminal import Line, minutes, say, text_of

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failed(Exception):
    """The work was begun and could not be done; the message is for the reader."""


def run(job, among=()):
    """Execute the notebook of a `preparation.Job`, one `among` others, then publish; it says what was published.

    Failed says if the notebook fails or its results cannot be published; what it has left is kept for inspection.
    """
    from .execution import Execution, with_papermill
    for module in page.PACKAGES:
        importlib.import_module(module)      # one that is missing shows now and not after hours
    where = f", notebook {among.index(job.name) + 1} of {len(among)}" if among else ""
    line = Line(f"{job.name} ({job.profile}{where})")
    with _scratch(job.home, job.name) as scratch, _told(job.name, f"Nothing is published; see {relpath(scratch)}"):
        if sum(publication.complete(folder) for folder in (job.folder, job.ledger) if folder):
            say(f"{job.name}: completed the publication of an earlier run, which was interrupted", sys.stderr)
        output, executed, html = (scratch / name for name in ("output", job.source.name, f"{job.source.stem}.html"))
        output.mkdir()
        kept = job.home / job.name
        kept.parent.mkdir(exist_ok=True)
        work = with_papermill(job.source, executed, {**job.parameters, "output": str(output)})
        execution = Execution(work, scratch, job.source.parent)
        notebook = execution.watched(line, job.cells)
        line.show("writing HTML", topic="HTML")
        html.write_text(page.html(notebook, job), encoding="utf-8")
        line.show("publishing", topic="publication")
        _ignore_signals()      # from here on it takes less than a second, and is done or not done
        _set_aside(output)
        changed = publication.publish(output, job.folder, job.record)
        with _told(job.name, f"{relpath(job.folder)} is published; the rest is in {relpath(scratch)}"):
            if job.ledger:
                publication.publish(output, job.ledger, job.record, only=("ledger*.csv",))
            for path in (executed, html):
                os.replace(path, kept.with_suffix(path.suffix))
            times.write(job.home, job.name, line.seconds(), execution.spent())
        shutil.rmtree(scratch)
        line.clear()
    files = len(publication.manifest(job.folder)["files"])
    standin = "; a stand-in took the place of the advertisement data" * (job.parameters.get("ads_file") == "")
    cpu = sum(execution.spent().values())
    return (f"{job.name} ({job.profile}), done in {minutes(line.seconds())} ({cpu:,.0f} seconds of CPU): "
            f"{files} files in {relpath(job.folder)}, {len(changed)} of them new or changed; the notebook as "
            f"{relpath(kept)}.html{standin}")


def _set_aside(output):
    """Rename the story of a run without the real data, so that it does not replace that of the published figures."""
    story = output / "story.json"
    if story.exists() and any(output.glob(f"*{publication.STANDIN}.*")):
        os.replace(story, output / f"story{publication.STANDIN}.json")


@contextlib.contextmanager
def _told(name, consequence):
    """Raise Failed where a run goes wrong, with one message that ends with the consequence."""
    from .execution import NotebookFailed
    try:
        yield
    except publication.Unfinished as error:
        raise Failed(f"{name}: {error}") from error
    except (NotebookFailed, OSError, ValueError) as error:
        raise Failed(f"{name}: {text_of(error)}\n{consequence}") from error


def refresh(root, name, build="build", consequence="The notebook stays as it is"):
    """Execute a committed notebook in place with the defaults of its parameters; whether that changed it.

    What differs between machines and moments is left out, so that the same results make the same bytes. Failed says if
    a cell fails, shows an error or writes to stderr, and ends with the consequence.
    """
    import nbformat

    from .execution import Execution, as_it_is, shown
    root = Path(root).resolve()
    path = root / "notebooks" / f"{name}.ipynb"
    notebook = preparation.read(root, name)
    before = path.read_bytes()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    line = Line(f"{name} (in place)")
    with _scratch(root / build / "refresh", name) as scratch, _told(name, consequence):
        Execution(as_it_is(notebook), scratch, path.parent).watched(line, len(notebook.cells))
        shutil.rmtree(scratch)
        for where, output in shown(notebook):
            require(output.get("name") != "stderr", f"{where}, stderr", output.get("text"), "must stay empty")
    quieten(notebook)
    for cell in notebook.cells if not name.startswith(AUDIT) else ():      # which has links to them
        _as_published(cell, root / "figures" / name)
    after = nbformat.writes(notebook) + "\n"
    if path.read_bytes() != before:
        raise Failed(f"{name}: was edited while it was executed\n{consequence}")
    if before != after.encode():
        publication.replace(path, after)
    return before != after.encode()


def _as_published(cell, folder):
    """Put the published pictures, of the full run, in the place of those that a cell has filed and drawn."""
    files = [folder / f"{name}.png" for name in cells.filed(cell.source)]
    files = [file for file in files if file.exists() or not file.with_suffix(".csv").exists()]     # no mere tables
    drawn = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    for output, file in zip(drawn, files, strict=False):
        if file.exists():
            output.data["image/png"] = base64.b64encode(file.read_bytes()).decode() + "\n"


@contextlib.contextmanager
def _scratch(home, name):
    """A new folder to work in, for one run of a notebook at a time; those of earlier runs are removed."""
    # A folder for each notebook: whatever two names begin or end with, their files do not meet.
    stage = home / "stage" / name
    stage.mkdir(parents=True, exist_ok=True)
    with open(stage / "lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"notebook = {name!r}: is being run by another process; wait for it or end it") from None
        # The kernel of a run that was killed may live for another second, so no two runs share a folder.
        for old in stage.glob("run-*"):
            shutil.rmtree(old, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix="run-", dir=stage))
        try:
            yield scratch
        except KeyboardInterrupt:
            shutil.rmtree(scratch, ignore_errors=True)
            raise


@contextlib.contextmanager
def _interruptible():
    """Let each signal that ends a program raise KeyboardInterrupt, once: the clean-up is not interrupted again.

    A hang-up that the caller ignores, as nohup does, stays ignored.
    """
    def interrupt(*_):
        _ignore_signals()
        raise KeyboardInterrupt
    before = {number: signal.signal(number, interrupt) for number in SIGNALS
              if (number, signal.getsignal(number)) != (signal.SIGHUP, signal.SIG_IGN)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main(arguments=None):
    """The command; its exit status: 0, 1 for a failed notebook, 2 for bad input, 130 when interrupted."""
    parser = settings.begin("compendium", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="execute a notebook under a profile and publish its results")
    runs.set_defaults(work=_run, left="nothing published, finished replications are kept")
    runs.add_argument("notebook")
    runs.add_argument("--profile", required=True, help="a folder of params/")
    runs.add_argument("--among", nargs="+", default=(), metavar="NOTEBOOK", help="all that are run, to say how many")
    runs.add_argument("--done", metavar="FILE", help="for make: made at the end, as old as the beginning")
    refreshes = commands.add_parser("refresh", help="execute committed notebooks in place")
    refreshes.set_defaults(work=_refresh, left="the notebook at hand stays as it is")
    refreshes.add_argument("notebook", nargs="*", help="all by default")
    news = commands.add_parser("new", help="lay out the chapter of another paper")
    news.set_defaults(work=_new, left="nothing is laid out")
    news.add_argument("name", help="of the notebook, and of everything that belongs to it")
    news.add_argument("--title", required=True, help="heading of the chapter")
    options = parser.parse_args(arguments)
    try:
        with _interruptible():
            options.work(options)
        return 0
    except KeyboardInterrupt:
        said, status = f"interrupted: {options.left}", 130
    except Failed as error:
        said, status = error, 1
    except (ValueError, OSError, StoreError, ModuleNotFoundError) as error:
        said, status = f"costbandits: {text_of(error)}", 2
    say(said, sys.stderr)
    return status


def _run(options):
    began = time.time_ns()
    job = preparation.prepare(".", options.notebook, options.profile, options.build)
    require(not options.among or job.name in options.among, "--among", options.among, f"must have {job.name!r}")
    settings.isolate(options.build)
    home = Path(options.done).parent if options.done else None
    if home and job.profile == PUBLISHED:
        left = times.due(options.among, Path(options.build), Path(options.build, "inputs", job.profile))
        if (seconds := times.ahead(Path(), [*{job.name, *left}])) is not None:
            told = f"{len(left)} chapters are" if len(left) > 1 else "one chapter is"
            lasts = f"{math.ceil(seconds / 60)} minutes" if seconds > 60 else "a minute"
            say(f"{told} to be played: about {lasts} on this machine, less if replications are in the store",
                sys.stderr)
    say(run(job, options.among), sys.stdout)
    if home:
        home.mkdir(parents=True, exist_ok=True)
        publication.replace(options.done, "", began)     # for make an edit during the run comes after it


def _refresh(options):
    settings.isolate(options.build)
    names = options.notebook or notebooks(".")
    require(names, "notebooks", "none", "must be in notebooks/ of the current folder")
    for name in names:
        print(f"{name}: {'refreshed' if refresh('.', name, options.build) else 'unchanged'}")


def _new(options):
    from . import new
    settings.isolate(options.build)
    name, title = options.name, " ".join(options.title.split())
    new.check(".", name, options.title)
    with _scratch(Path(options.build).resolve() / "new", name) as scratch:
        files = new.lay_out(scratch, name, title, partial(refresh, consequence="Nothing is laid out"))
        _ignore_signals()
        new.write(".", scratch, name, title, files)
        shutil.rmtree(scratch)
    print(new.named("remains.txt", name), end="")


if __name__ == "__main__":
    sys.exit(main())
