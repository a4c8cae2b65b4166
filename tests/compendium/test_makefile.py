"""The Makefile and the CI script, with small scripts in the place of Python, uv and make."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO = (f"run {name} --profile paper --among one two" for name in ("one", "two"))
DEEP = "run two --profile deep --among two"
COMPENDIUM = "-m compendium.report"
BENCH = ["benchmarks/speed.py", "benchmarks/scaling.py"]
PAPERS = ["omega_ucb", "budget_ucb", "kube", "suak", "cost_subsidy"]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path):
    """A project whose Python (`PY=./py`) writes down what it is asked to do, and publishes."""
    folder = tmp_path / "a project"
    for name in ("lib/costbandits/a.py", "lib/costbandits/engine.py", "lib/costbandits/policies/b.py",
                 "tests/test_thompson.py", "tests/reference.py", "notebooks/one.ipynb", "notebooks/two.ipynb",
                 "params/quick/one.yaml", "params/quick/two.yaml", "params/paper/one.yaml", "params/paper/two.yaml",
                 "params/deep/two.yaml", "params/claims.yaml", "requirements.in", "requirements.lock", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        os.utime(folder / name, (1e9, 1e9))
    shutil.copy(ROOT / "Makefile", folder)
    script(folder / "py", """echo "$*" >> log; test ! -e broken || exit 1
        published() { mkdir -p $1; touch $1/manifest.json $1/ledger.csv; }
        case "$*" in *compendium) touch README.md REPRODUCTION.md figures/ledger.csv;;
          *"deep --among"*) published figures/deep/two;; *) published figures/one; published figures/two;; esac""")
    return folder


def make(folder, *arguments, path=None, notebooks="one two", **environment):
    """Run make, without what this very test run has got from a make above it; (exit status, output)."""
    ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PY", "PYTHON", "PYTHONPATH", "COSTBANDITS_ADS"}
    environment = {**{key: value for key, value in os.environ.items() if key not in ours}, **environment}
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    chosen = [f"NOTEBOOKS={notebooks}"] if notebooks else []
    done = subprocess.run(["make", *chosen, *arguments], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def asked(folder):
    """What Python was asked to do since the last look, without the constant part."""
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return sorted(line.replace("-m compendium --build build ", "") for line in lines)


def test_help_lists_every_command():
    commands = set(re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()) - {"FORCE"}
    assert commands == {"all", "quick", "test", "deep", "lab", "refresh", "bench", "lock", "wheel", "lowest", "clean",
                        "distclean", "help"}
    status, said = make(ROOT, "help")
    assert status == 0 and sorted(re.findall(r"^  make (\w+) +\S.*$", said, re.MULTILINE)) == sorted(commands)


def test_all_runs_each_notebook_once_and_then_nothing(project):
    assert make(project, "-j2", "all", "PY=./py")[0] == 0
    assert asked(project) == [COMPENDIUM, ONE, TWO]
    status, said = make(project, "all", "PY=./py")
    assert (status, asked(project)) == (0, []) and "p to date" in said


@pytest.mark.parametrize(("change", "again"), [
    ("notebooks/one.ipynb", [ONE]), ("params/paper/two.yaml", [TWO]), ("params/claims.yaml", [ONE, TWO]),
    ("lib/costbandits/a.py", [ONE, TWO]), ("lib/costbandits/new.py", [ONE, TWO]), ("requirements.lock", [ONE, TWO]),
    ("data/KAG_conversion_data.csv", [ONE, TWO]), ("data/published_table.csv", [ONE, TWO]),
    ("params/quick/one.yaml", []), ("params/deep/two.yaml", [])])
def test_what_all_depends_on(project, change, again):
    make(project, "all", "PY=./py")
    asked(project)
    (project / change).parent.mkdir(exist_ok=True)
    (project / change).touch()
    os.utime(project / change)
    assert make(project, "all", "PY=./py")[0] == 0
    assert asked(project) == [COMPENDIUM] * bool(again) + again


def test_all_runs_again_when_the_data_comes_or_goes_or_the_figures_are_gone(project):
    make(project, "all", "PY=./py")
    asked(project)
    for environment in ({"COSTBANDITS_ADS": "elsewhere.csv"}, {}):
        make(project, "all", "PY=./py", **environment)
        assert asked(project) == [COMPENDIUM, ONE, TWO]
        make(project, "all", "PY=./py", **environment)
        assert asked(project) == []
    (project / "figures/two/manifest.json").unlink()
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, TWO]


@pytest.mark.parametrize("change", ["README.md", "figures/one/manifest.json", "figures/deep/two/manifest.json"])
def test_the_compendium_follows_what_it_reads_and_is_made_again_if_it_is_gone(project, change):
    make(project, "all", "PY=./py")
    asked(project)
    (project / change).parent.mkdir(parents=True, exist_ok=True)
    time.sleep(0.02)     # the clock of files goes in steps
    (project / change).touch()
    os.utime(project / change)
    for made in ("REPRODUCTION.md", "figures/ledger.csv", None):
        make(project, "all", "PY=./py")
        assert asked(project) == [COMPENDIUM]
        make(project, "all", "PY=./py")
        assert asked(project) == []
        if made:
            (project / made).unlink()


def test_deep_runs_the_studies_and_a_long_test_once_and_leaves_all_alone(project):
    thompson = "-m pytest -v tests/test_thompson.py"
    assert make(project, "-j2", "deep", "PY=./py")[0] == 0
    assert asked(project) == [COMPENDIUM, thompson, DEEP]
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM]
    (project / "figures/deep/two/manifest.json").unlink()
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM, DEEP]
    os.utime(project / "lib/costbandits/a.py")
    (project / "broken").touch()
    assert make(project, "deep", "PY=./py")[0] != 0
    (project / "broken").unlink()
    asked(project)
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, ONE, TWO]
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM, DEEP]


@pytest.mark.parametrize(("change", "studies"), [
    ("tests/test_thompson.py", []), ("tests/reference.py", []), ("requirements.lock", [DEEP]),
    ("lib/costbandits/engine.py", [DEEP]), ("lib/costbandits/policies/b.py", [DEEP]),
    ("lib/costbandits/policies/new.py", [DEEP])])
def test_the_long_test_is_repeated_for_what_it_tests(project, change, studies):
    make(project, "deep", "PY=./py")
    asked(project)
    (project / change).touch()
    os.utime(project / change)
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM, "-m pytest -v tests/test_thompson.py", *studies]


def test_the_long_test_follows_files_that_are_there():
    said = make(ROOT, "-pn", "help", notebooks=None)[1]
    (files,) = re.findall(r"deep/thompson\.done: (.*) \|", said)
    assert set(files.split()) >= {"tests/test_thompson.py", "tests/reference.py", "requirements.lock"} | {
        f"lib/costbandits/{name}.py" for name in ("engine", "stacks", "stops", "distributions", "bandits", "simulate",
                                                  "regret", "policies/base", "policies/rules", "policies/thompson")}
    assert "figures.py" not in files and "claims.yaml" not in files


def test_the_notebooks_of_no_paper_are_run_once_they_are_there(project):
    def planned():
        return re.findall(r"run (\w+) --profile paper", make(project, "-n", "all", "PY=./py", notebooks=None)[1])

    for name in PAPERS:
        (project / f"notebooks/{name}.ipynb").touch()
        (project / f"params/paper/{name}.yaml").touch()
    (project / "notebooks/extend.ipynb").touch()
    assert planned() == PAPERS
    (project / "params/paper/extend.yaml").touch()
    assert planned() == [*PAPERS, "extend"]


def test_a_failed_run_and_an_edit_during_a_run_leave_work_to_do(project):
    (project / "broken").touch()
    assert make(project, "all", "PY=./py")[0] != 0
    assert asked(project) == [ONE]
    (project / "broken").unlink()
    script(project / "py2", "./py $*; sleep 0.02; touch notebooks/one.ipynb")
    assert make(project, "all", "PY=./py2")[0] == 0
    assert asked(project) == [COMPENDIUM, ONE, TWO]
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, ONE]


def test_quick_leaves_the_stamps_of_all_alone(project):
    assert make(project, "quick", "PY=./py")[0] == 0
    assert asked(project) == [f"run {name} --profile quick --among one two" for name in ("one", "two")]
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, ONE, TWO]


def test_an_environment_that_exists_is_used_and_finds_the_library(project):
    script(project / "py3", 'echo "$PYTHONPATH" >> log')
    assert make(project, "refresh", "lab", PY="./py3")[0] == 0
    assert asked(project) == [f"{project}/lib"] * 2
    assert not (project / ".venv").exists()


def test_the_environment_of_a_copied_project_finds_the_library_of_the_copy(project):
    script(project / ".venv/bin/python", 'echo "$PYTHONPATH" >> log')
    (project / ".venv/.ready").touch()
    assert make(project, "refresh", "lab")[0] == 0
    assert make(project, "refresh", PYTHONPATH="mine")[0] == 0
    assert asked(project) == [f"{project}/lib"] * 2 + [f"{project}/lib:mine"]


OLD = 'case "$1" in --version) echo "Python 3.9.18";; *) exit 1;; esac'


@pytest.mark.parametrize("target", ["all", "test"])
def test_an_old_python_is_refused_in_one_line(project, tmp_path, target):
    script(tmp_path / "bin/python3", OLD)
    status, said = make(project, target, path=tmp_path / "bin")
    ours = [line for line in said.splitlines() if not line.startswith("make")]
    assert status != 0 and not (project / ".venv").exists()
    assert ours == [f"costbandits needs Python 3.11 or newer; python3 is 3.9.18. Try PYTHON=python3.12 make {target}"]
    status, said = make(project, target, PYTHON="python3.99")
    assert status != 0 and "there is no python3.99" in said


# A Python that makes environments of itself, and whose pip fails while a file `offline` exists.
ABLE = """case "$*" in
  "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo made >> log;;
  "-m pip install"*) echo "pip$(echo "$*" | sed 's/.* install//')" >> log; test ! -e offline;;
  -c*) exit 0;;
  *) echo "$*" >> log;;
esac"""


def test_set_up_once_again_for_a_new_lock_and_anew_after_a_kill(project, tmp_path):
    python = {"PYTHON": str(script(tmp_path / "bin/able", ABLE))}
    installs = ["pip -qq --no-deps --no-build-isolation -e .", "pip -qq --require-hashes -r requirements.lock"]
    assert make(project, "bench", **python)[0] == 0
    assert asked(project) == [*BENCH, "made", *installs]
    make(project, "bench", **python)
    assert asked(project) == BENCH

    (project / ".venv/old").touch()
    os.utime(project / "requirements.lock")
    (project / "offline").touch()
    assert make(project, "bench", **python)[0] != 0
    assert asked(project) == installs[1:] and (project / ".venv/old").exists()

    (project / "offline").unlink()
    assert make(project, "bench", **python)[0] == 0
    assert asked(project) == [*BENCH, "made", *installs] and not (project / ".venv/old").exists()


@pytest.mark.parametrize("works", [True, False])
def test_uv_is_used_where_it_is_and_not_needed(project, tmp_path, works):
    python = script(tmp_path / "python/able", ABLE)
    script(tmp_path / "bin/uv", f'echo "uv $2" >> log; {"true" if works else "false"}')
    assert make(project, "bench", path=tmp_path / "bin", PYTHON=str(python))[0] == 0
    ways = [line.split()[0] for line in asked(project)]
    assert ways == (["-m", "-m", "made", "uv", "uv"] if works else ["-m", "-m", "made", "pip", "pip", "uv"])


def test_the_lock_is_replaced_only_when_it_could_be_resolved(project, tmp_path):
    (project / "requirements.lock").write_text("old")
    script(tmp_path / "bin/uv", 'while test "$1" != --output-file; do shift; done; echo new > "$2"; test ! -e offline')
    (project / "offline").touch()
    assert make(project, "lock", path=tmp_path / "bin")[0] != 0
    assert (project / "requirements.lock").read_text() == "old"
    (project / "offline").unlink()
    assert make(project, "lock", path=tmp_path / "bin")[0] == 0
    assert (project / "requirements.lock").read_text() == "new\n"


def test_clean_and_distclean_remove_what_was_made_and_nothing_else(project):
    def files():
        return {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}

    before = files()
    cached = {".venv/bin/python", "lib/costbandits/__pycache__/a.pyc", "lib/costbandits.egg-info/x"}
    for made in {"build/one.done"} | cached:
        (project / made).parent.mkdir(parents=True, exist_ok=True)
        (project / made).touch()
    assert make(project, "clean")[0] == 0
    assert files() - before == cached
    assert make(project, "distclean")[0] == 0
    assert files() == before


@pytest.mark.parametrize(("given", "there", "expected"), [
    ("", True, "{}/shared/data/facebook_ads/KAG_conversion_data.csv"), ("mine.csv", True, "mine.csv"),
    ("", False, ".")])
def test_ci_calls_make_test_with_the_data_where_it_is_at_hand(tmp_path, given, there, expected):
    script(tmp_path / "bin/make", 'echo "$*:$(pwd):$COSTBANDITS_ADS"')
    (tmp_path / "clone/.ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / "clone/.ci/run")
    data = tmp_path / "shared/data/facebook_ads/KAG_conversion_data.csv"
    if there:
        data.parent.mkdir(parents=True)
        data.touch()
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "COSTBANDITS_ADS": given}
    done = subprocess.run(["bash", str(tmp_path / "clone/.ci/run")], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, env=environment, check=True)
    goal, where, ads = done.stdout.strip().split(":")
    assert (goal, where) == ("test", f"{tmp_path}/clone")
    assert os.path.normpath(ads) == expected.format(tmp_path)


def test_this_python_is_one_that_the_makefile_takes():
    recent = re.search(r"^RECENT = -c '(.*)'$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert subprocess.run([sys.executable, "-c", recent]).returncode == 0
    assert subprocess.run([sys.executable, "-c", recent.replace("(3, 11)", "(99, 0)")]).returncode == 1
