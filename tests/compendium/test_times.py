"""What runs cost, and what they are expected to."""

import os
import subprocess
import sys

import pytest

from compendium import times

ONE = {"seconds": 100.0, "cpu": {"a study": 120.0, "another": 30.0, times.ELSE: 0.4}}


BUSY = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint('.', flush=True)\nsys.stdin.read()"


def test_what_processes_spend_is_kept_by_what_they_do(monkeypatch):
    monkeypatch.setattr(times, "SECOND", 100.0)
    meter = times.Meter(os.getpid())
    meter.look("before", now=True)
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        worker.stdout.read(1)
        meter.look("too soon")
        meter.look("a study", now=True)
        alone = times.Meter(worker.pid)
        alone.look("a worker", now=True)
        worker.stdin.close()
    assert set(meter.spent) == {"before", "a study"} and 0.4 < alone.spent["a worker"] <= meter.spent["a study"] < 10
    alone.look("nobody is left", now=True)
    late = times.Meter(worker.pid)
    late.look("a process that has ended", now=True)
    assert set(alone.spent) == {"a worker"} and not late.spent


def test_the_table_tells_what_the_next_run_will_take(tmp_path, monkeypatch):
    times.write(tmp_path, "one", ONE["seconds"], ONE["cpu"])
    times.write(tmp_path, "two", 30, {"x": 29.0, "y": 0.5, "z": 0.5})
    monkeypatch.setattr(times, "loop", lambda: 10.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / times.TABLE).write_text(text := times.table(tmp_path, ["one", "two"]))
    assert "10.0 ms, with 2 cores" in text and times.ELSE not in text
    assert [line for line in text.splitlines() if line.startswith("| ")][1:] == [
        "| **one** | | 150 | 1:40 |", "| | a study | 120 | |", "| | another | 30 | |",
        "| **two** | | 30 | 0:30 |", "| | x | 29 | |", "| | all smaller ones | 1 | |", "| all | | 180 | 2:10 |"]
    assert times.ahead(tmp_path, ["one"]) == 100 and times.ahead(tmp_path, ["one", "two"]) == 130
    # Of the 150 seconds of CPU, 100 were spent on both cores at once, and 50 on one alone.
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert times.ahead(tmp_path, ["one"]) == 50 + 100 / 4
    monkeypatch.setattr(times, "loop", lambda: 30.0)
    assert times.ahead(tmp_path, ["one"]) == 3 * 75
    assert times.ahead(tmp_path, ["one", "three"]) is None
    # Measured on four cores, of which at most three are more than one alone.
    monkeypatch.setattr(times, "loop", lambda: 10.0)
    (tmp_path / times.TABLE).write_text(times.table(tmp_path, ["one", "two"]))
    assert times.ahead(tmp_path, ["one"]) == pytest.approx(100)
    (tmp_path / times.TABLE).unlink()
    assert times.ahead(tmp_path, ["one"]) is None


def test_a_chapter_without_a_measurement_is_named(tmp_path):
    with pytest.raises(OSError, match=r"one\.times\.json"):
        times.table(tmp_path, ["one"])


def test_what_make_would_play_is_due(tmp_path):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for name, stamp, written in (("new", 2, 1), ("old", 1, 2), ("none", None, 1), ("unknown", 1, None)):
        for path, at in ((tmp_path / f"{name}.done", stamp), (inputs / name, written)):
            if at is not None:
                path.touch()
                os.utime(path, (at, at))
    assert times.due(["new", "old", "none", "unknown"], tmp_path, inputs) == ["old", "none"]
    # A paper's chapter follows its audit, and the guide to policies of one's own the tournament.
    assert times.due(["audit/new", "new", "unknown"], tmp_path, inputs) == ["audit/new", "new"]
    (tmp_path / "extend.done").touch()
    assert times.due(["new", "tournament", "extend"], tmp_path, inputs) == ["tournament", "extend"]
