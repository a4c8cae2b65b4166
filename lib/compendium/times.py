"""What a run of a chapter costs, by study, and how long runs will take on this machine.

A run leaves `<chapter>.times.json` beside its executed notebook. `benchmarks/rebuild.py` makes a table of them,
benchmarks/REBUILD.md, from which `make all` says beforehand how long it will take.
"""

import contextlib
import json
import os
import re
import time
import timeit
from collections import Counter
from pathlib import Path

import psutil

from . import publication
from .project import paper_of
from .terminal import minutes

TABLE = Path("benchmarks", "REBUILD.md")
ELSE = "everything else"
SECOND = 1.0        # between two looks at the processes
LEAST = 0.02        # of a chapter's CPU: studies with less have one line together
CHAPTER = re.compile(r"^\| \*\*([\w/]+)\*\* \| \| ([\d,]+) \| (\d+):(\d\d) \|$", re.M)
MACHINE = re.compile(r"([\d.]+) ms.*?(\d+) cores", re.S)


class Meter:
    """CPU-seconds of a process and of all that it has started, by what it was doing; workers that end are kept."""

    def __init__(self, pid: int):
        self.spent, self._pid, self._known, self._looked = Counter(), pid, {}, 0.0

    def look(self, doing: str, now: bool = False) -> None:
        """Put what was spent since the last look under `doing`; at most once a second, or `now`."""
        if not now and time.monotonic() - self._looked < SECOND:
            return
        self._looked = time.monotonic()
        with contextlib.suppress(psutil.Error):     # it may end at any moment, and that is for others to tell
            first = psutil.Process(self._pid)
            for process in (first, *first.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    used, name = process.cpu_times(), (process.pid, process.create_time())
                    self.spent[doing] += used.user + used.system - self._known.get(name, 0.0)
                    self._known[name] = used.user + used.system


def write(folder: Path, name: str, seconds: float, spent: dict[str, float]) -> None:
    """Leave what a chapter has cost, in seconds of time and of CPU by study, for the table."""
    text = json.dumps({"seconds": round(seconds, 1), "cpu": {what: round(s, 1) for what, s in spent.items()}}, indent=1)
    publication.replace(folder / f"{name}.times.json", text + "\n")


def loop() -> float:
    """Milliseconds that this machine takes for a fixed loop in Python, at its best: how fast it is."""
    return 1e3 * min(timeit.repeat("for i in range(200_000): x += i * i % 7", "x = 0", number=1, repeat=7))


def table(folder: Path, names: list[str]) -> str:
    """The table of these chapters, from what their last runs left in `folder`; OSError if one is missing."""
    lines = ["# What `make all` costs\n\n"
             f"Measured from an empty store where the loop of `compendium.times` takes {loop():.1f} ms, with "
             f"{os.cpu_count()} cores:\nseconds of CPU by chapter and study, and the time that a chapter took.\n\n"
             "| chapter | study | CPU-seconds | time |\n|---|---|--:|--:|"]
    whole, waited = 0.0, 0.0
    for name in names:
        told = json.loads((folder / f"{name}.times.json").read_text(encoding="utf-8"))
        studies = Counter(told["cpu"])
        whole, waited = whole + studies.total(), waited + told["seconds"]
        lines.append(f"| **{name}** | | {studies.total():,.0f} | {minutes(told['seconds'])} |")
        large = {what: spent for what, spent in studies.most_common() if spent >= LEAST * studies.total()}
        rest = studies.total() - sum(large.values())
        lines += [f"| | {what} | {spent:,.0f} | |" for what, spent in large.items()]
        lines += [f"| | all smaller ones | {rest:,.0f} | |"] * (rest >= 0.5)
    return "\n".join([*lines, f"| all | | {whole:,.0f} | {minutes(waited)} |"]) + "\n"


def ahead(root: Path, names: list[str]) -> float | None:
    """Seconds that these chapters are likely to take here, from an empty store; None if the table has not all of them.

    Of each the table has time and CPU, and so the part that runs on all cores; a machine's speed is that of its loop.
    """
    text = (root / TABLE).read_text(encoding="utf-8") if (root / TABLE).exists() else ""
    measured = {name: (60.0 * int(m) + int(s), float(cpu.replace(",", ""))) for name, cpu, m, s in
                CHAPTER.findall(text)}
    if not set(names) <= set(measured) or not (machine := MACHINE.search(text)):
        return None
    there, here, whole = max(int(machine[2]), 2), os.cpu_count() or 1, 0.0
    for seconds, cpu in map(measured.get, names):
        shared = max(cpu - seconds, 0.0) * there / (there - 1)
        whole += max(cpu - shared, 0.0) + shared / here
    return loop() / float(machine[1]) * whole


def due(names: list[str], home: Path, inputs: Path) -> list[str]:
    """Which chapters make still has to play: those without a stamp, or with one that is older than their inputs.

    And what follows them: a paper's chapter its audit, `extend` the tournament.
    """
    files = [(name, home / f"{name}.done", inputs / name) for name in names]
    late = {name for name, stamp, written in files if not stamp.exists()
            or (written.exists() and written.stat().st_mtime_ns > stamp.stat().st_mtime_ns)}
    late |= {"extend" if name == "tournament" else paper_of(name) for name in late}
    return [name for name in names if name in late]
