"""The Makefile and the CI script, with small scripts in the place of Python, uv and make."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import pytest
from components import unnoticed
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from compendium import inputs

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO = (f"run {name} --profile paper --among one two --done build/{name}.done" for name in ("one", "two"))
DEEP = "run two --profile deep --among two --done build/deep/two.done"
COMPENDIUM, THOMPSON = "-m compendium.report", "-m pytest -v tests/policies/test_thompson.py"
MODULE = '"""A module."""\n\n\ndef double(x):\n    """Twice x."""\n    return 2 * x    # exactly\n'
BENCH = ["benchmarks/rebuild.py", "benchmarks/scaling.py", "benchmarks/speed.py"]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path):
    """A project whose Python (`PY=./py`) writes down what it is asked to do, and publishes."""
    folder = tmp_path / "a project"
    for name in ("lib/costbandits/a.py", "lib/costbandits/engine/c.py", "lib/costbandits/policies/b.py",
                 "lib/compendium/report.py", "tests/policies/test_thompson.py", "tests/reference.py", "claims/one.yaml",
                 "params/quick/one.yaml", "params/quick/two.yaml", "params/paper/one.yaml", "params/paper/two.yaml",
                 "params/deep/two.yaml", "params/quick/audit/one.yaml", "params/paper/audit/one.yaml",
                 "requirements.in", "requirements.lock", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        os.utime(folder / name, (1e9, 1e9))
    (folder / "notebooks").mkdir()
    (folder / "notebooks/chapters.txt").write_text("one\ntwo\n")
    for name in ("one", "two"):
        cells = [new_markdown_cell("# Title"), new_code_cell("x = 1", metadata={"alt": "A line"})]
        nbformat.write(new_notebook(cells=cells), folder / f"notebooks/{name}.ipynb")
    (folder / "lib/costbandits/a.py").write_text(MODULE)
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "lib/compendium/inputs.py", folder / "lib/compendium")
    script(folder / "py", f"""case "$1" in *inputs.py) exec "{sys.executable}" "$@";; esac""" + """
        for done; do :; done; began=$$.began; touch $began; test ! -e meanwhile || . ./meanwhile
        echo "$*" >> log; test ! -e broken || exit 1
        published() { mkdir -p $1; touch $1/manifest.json $1/ledger.csv; }
        case "$*" in *compendium.report) touch README.md REPRODUCTION.md figures/ledger.csv figures/claims.json;;
          *"deep --among"*) published figures/deep/two;; *) published figures/one; published figures/two;; esac
        case "$*" in *--done*) mkdir -p ${done%/*}; mv $began "$done";; esac""")
    return folder


def outside():
    """The environment without what this very test run has got from a make above it."""
    ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PY", "PYTHON", "PYTHONPATH", "COSTBANDITS_ADS"}
    return {key: value for key, value in os.environ.items() if key not in ours}


def make(folder, *arguments, path=None, notebooks="one two", **environment):
    """Run make; (exit status, output)."""
    environment = {**outside(), **environment}
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
    assert commands == {"all", "quick", "test", "check", "audits", "pages", "proof", "mutants", "coverage", "deep",
                        "lab", "site", "paper", "new", "refresh", "bench", "lock", "wheel", "lowest", "newest", "clean",
                        "distclean", "help"}
    status, said = make(ROOT, "help")
    assert status == 0 and sorted(re.findall(r"^  make (\w+) +\S.*$", said, re.MULTILINE)) == sorted(commands)


@pytest.mark.parametrize(("target", "told"), [
    ("kube", "There is no target kube. make help lists the commands; make build/<chapter>.done plays one of the"),
    ("build/kub.done", "There is no target build/kub.done. make help"),
    ("new", 'It needs a name and a title: make new PAPER=name TITLE="what it asks"')])
def test_what_make_cannot_do_it_says_in_a_sentence(project, target, told):
    status, said = make(project, target, PY="./py")
    assert status == 2 and told in said and asked(project) == []


def test_a_title_reaches_the_command_as_it_is_typed(project):
    script(project / "py3", 'for last; do :; done; printf "%s\\n" "$last" >> log')
    title = "Is $5, or $(shell touch ran) $\\omega$-UCB's `index` enough?"
    assert make(project, "new", "PAPER=x", f"TITLE={title}", PY="./py3")[0] == 0
    assert asked(project) == [title] and not (project / "ran").exists()


def test_all_runs_each_notebook_once_and_then_nothing(project):
    assert make(project, "-j2", "all", "PY=./py")[0] == 0
    assert asked(project) == [COMPENDIUM, ONE, TWO]
    status, said = make(project, "all", "PY=./py")
    assert (status, asked(project)) == (0, []) and "p to date" in said


def test_a_paper_is_played_after_its_audit(project):
    (project / "notebooks/audit").mkdir()
    shutil.copy(project / "notebooks/one.ipynb", project / "notebooks/audit/one.ipynb")
    status, said = make(project, "-n", "all", "PY=./py", notebooks="one two audit/one")
    assert status == 0 and re.findall(r"build run (\S+)", said) == ["audit/one", "one", "two"]
    change(project / "params/paper/audit/one.yaml")
    assert "build run audit/one" in make(project, "-n", "build/one.done", "PY=./py", notebooks="one two audit/one")[1]


def change(path, text="changed = 1\n"):
    """Put a line at the end of a file, which may be new."""
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + text)


def edit(**changes):
    """The change of a notebook that a function of it makes."""
    def edited(project):
        path = project / "notebooks/one.ipynb"
        notebook = nbformat.read(path, as_version=4)
        for name, value in changes.items():
            number, _, field = name.partition("_")
            notebook.cells[int(number[1:])][field] = value
        nbformat.write(notebook, path)
    return edited


def replaced(old, new):
    """The change of a module that writes one thing in the place of another."""
    def edited(project):
        assert old in MODULE
        (project / "lib/costbandits/a.py").write_text(MODULE.replace(old, new))
    return edited


def works_again(project, changed):
    """What `make all` asks for after a change of a project that was up to date."""
    make(project, "all", "PY=./py")
    asked(project)
    changed(project)
    assert make(project, "all", "PY=./py")[0] == 0
    again = asked(project)
    assert make(project, "all", "PY=./py")[0] == 0 and asked(project) == []
    return again


@pytest.mark.parametrize(("name", "again"), [
    ("params/paper/two.yaml", [TWO]), ("claims/one.yaml", [ONE]), ("claims/two.yaml", [TWO]),
    ("lib/costbandits/a.py", [ONE, TWO]), ("lib/costbandits/new.py", [ONE, TWO]), ("requirements.lock", [ONE, TWO]),
    ("data/KAG_conversion_data.csv", [ONE, TWO]), ("data/published_table.csv", [ONE, TWO]),
    ("lib/compendium/page.py", [ONE, TWO]), ("lib/compendium/paper.py", []), ("benchmarks/BENCHMARKS.txt", []),
    ("paper/paper.md", []), ("REPRODUCTION.md", []), ("lib/compendium/outcome.py", []),
    ("lib/compendium/report.py", []), ("notebooks/chapters.txt", []), ("lib/compendium/lab.py", None),
    ("lib/compendium/site/pages.py", None), ("lib/compendium/prose/choices.md", []),
    ("params/quick/one.yaml", None), ("params/deep/two.yaml", None), ("tests/reference.py", None)])
def test_what_all_depends_on(project, name, again):
    found = works_again(project, lambda project: change(project / name))
    assert found == ([] if again is None else [COMPENDIUM, *again])


@pytest.mark.slow
@pytest.mark.parametrize("changed", [
    replaced("2 * x", "3 * x"), replaced("2 * x", "2 * x +"), edit(c0_source="# Title\n\nMore."),
    edit(c1_source="x = 2"), edit(c1_metadata={"alt": "Another line"}),
    edit(c1_metadata={"alt": "A line", "tags": ["parameters"]}),
    lambda project: (project / "notebooks/one.ipynb").write_text("{")],
    ids=["a constant", "no Python", "a sentence", "code", "an alternative text", "a tag", "no notebook"])
def test_a_change_of_what_matters_runs_again(project, changed):
    assert ONE in works_again(project, changed)


@pytest.mark.slow
@pytest.mark.parametrize("changed", [
    replaced("Twice x", "Two times x"), replaced("A module", "A little module"), replaced("# exactly", "# no more"),
    replaced("\n\n\ndef", "\n\ndef"), edit(c1_outputs=[new_output("stream", text="1")], c1_execution_count=7),
    edit(c1_metadata={"alt": "A line", "execution": {"iopub.execute_input": "2026-01-01"}, "collapsed": True}),
    edit(c0_id="other", c1_id="another"),
    lambda project: [os.utime(path) for path in project.rglob("*") if path.suffix in (".py", ".ipynb", ".yaml", ".lock")
                     and path.name != "report.py"]],
    ids=["a docstring", "a module's docstring", "a comment", "an empty line", "outputs", "metadata", "ids", "times"])
def test_what_decides_no_result_runs_nothing(project, changed):
    assert works_again(project, changed) == []


def test_two_notebooks_at_a_time_look_once_and_a_dry_run_writes_nothing(project):
    before = sorted(project.rglob("*"))
    status, said = make(project, "-n", "all", "PY=./py")
    assert status == 0 and sorted(project.rglob("*")) == before
    assert said.count("inputs.py") == 1


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("change", ["README.md", "figures/one/manifest.json", "figures/deep/two/manifest.json"])
def test_the_compendium_follows_what_it_reads_and_is_made_again_if_it_is_gone(project, change):
    make(project, "all", "PY=./py")
    asked(project)
    (project / change).parent.mkdir(parents=True, exist_ok=True)
    time.sleep(0.02)     # the clock of files goes in steps
    (project / change).touch()
    os.utime(project / change)
    for made in ("REPRODUCTION.md", "figures/ledger.csv", "figures/claims.json", None):
        make(project, "all", "PY=./py")
        assert asked(project) == [COMPENDIUM]
        make(project, "all", "PY=./py")
        assert asked(project) == []
        if made:
            (project / made).unlink()


@pytest.mark.slow
def test_deep_runs_the_studies_and_a_long_test_once_and_leaves_all_alone(project):
    assert make(project, "-j2", "deep", "PY=./py")[0] == 0
    assert asked(project) == [COMPENDIUM, THOMPSON, DEEP]
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM]
    (project / "figures/deep/two/manifest.json").unlink()
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM, DEEP]
    change(project / "lib/costbandits/a.py")
    (project / "broken").touch()
    assert make(project, "deep", "PY=./py")[0] != 0
    (project / "broken").unlink()
    asked(project)
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, ONE, TWO]
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM, DEEP]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "again"), [
    ("tests/policies/test_thompson.py", [THOMPSON]), ("tests/reference.py", [THOMPSON]),
    ("requirements.lock", [THOMPSON, DEEP]), ("lib/costbandits/engine/c.py", [THOMPSON, DEEP]),
    ("lib/costbandits/policies/b.py", [THOMPSON, DEEP]), ("lib/costbandits/policies/new.py", [THOMPSON, DEEP]),
    ("lib/costbandits/a.py", [DEEP]), ("params/deep/two.yaml", [DEEP]), ("claims/one.yaml", [])])
def test_what_deep_depends_on(project, name, again):
    make(project, "deep", "PY=./py")
    asked(project)
    change(project / name)
    make(project, "deep", "PY=./py")
    assert asked(project) == [COMPENDIUM, *again]


@pytest.mark.slow
def test_the_long_test_follows_files_that_are_there(tmp_path):
    subprocess.run([sys.executable, "lib/compendium/inputs.py", tmp_path, "kube"], cwd=ROOT, check=True)
    assert (tmp_path / "paper/kube").read_text().count("\nnotebooks/") == 1
    files = dict(line.split() for line in (tmp_path / "test_thompson").read_text().splitlines())
    tests = {f"tests/{name}.py" for name in ("policies/test_thompson", "reference", "chains")}
    assert set(files) >= tests | {"requirements.lock"} | {
        f"lib/costbandits/{name}.py" for name in ("engine/stacks", "engine/stops", "environments/distributions",
                                                  "studies/simulate", "policies/base", "policies/thompson",
                                                  "fast/thompson")}
    assert "none" not in files.values() and not any("analysis" in name for name in files)


# For make: what is written anew when a file changes, or comes, of the chapters in the profiles that they have.
PROFILES = {"one": ("quick", "paper"), "two": ("quick", "paper", "deep"), "audit/one": ("quick", "paper")}
ALL = {f"{profile}/{name}" for name, profiles in PROFILES.items() for profile in profiles}
ONES, ITS_AUDIT = {"quick/one", "paper/one"}, {"quick/audit/one", "paper/audit/one"}
DECIDES = {"lib/costbandits/a.py": ALL, "lib/costbandits/theory/a.py": ALL, "lib/compendium/page.py": ALL,
           "lib/compendium/page.html.j2": ALL,
           **{f"lib/costbandits/{room}/b.py": ALL | {inputs.TEST} for room in (
               "environments", "engine", "fast", "policies", "studies")},
           "requirements.lock": ALL | {inputs.TEST}, "data/a.csv": ALL, "data/a.txt": set(),
           "notebooks/one.ipynb": ONES, "claims/one.yaml": ONES | ITS_AUDIT, "claims/other.yaml": set(),
           "notebooks/audit/one.ipynb": ITS_AUDIT, "claims/audit/one.yaml": ITS_AUDIT,
           "params/paper/one.yaml": {"paper/one"}, "params/deep/two.yaml": {"deep/two"}, "README.md": set(),
           "tests/policies/test_thompson.py": {inputs.TEST}, "tests/reference.py": {inputs.TEST},
           "tests/chains.py": {inputs.TEST},
           **{f"lib/compendium/{name}": set() for name in (
               "check.py", "inputs.py", "lab.py", "new.py", "outcome.py", "paper.py", "report.py", "times.py",
               "typography.py", "wasm.py", "site/a.py", "skeleton/a.py")}}


def written(module):
    """What is written down for each chapter and profile."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "write", lambda path, parts: found.update({path.as_posix(): "".join(parts)}))
        module.main("", *PROFILES)
    return found


def unseen(module):
    """Changes that are not written down where they decide, or are where they do not."""
    before = written(module)

    def wrong(expected):
        after = written(module)
        return {name for name in before if after[name] != before[name]} != expected

    if before != written(module) or set(before) != ALL | {inputs.TEST}:
        yield "all of it"
    for name, expected in DECIDES.items():
        path = Path(name)
        text = path.read_text() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((text or "") + "a = 1\n")
        if wrong(expected):
            yield name
        path.unlink() if text is None else path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSTBANDITS_ADS", "elsewhere.csv")
        if wrong(ALL):
            yield "the data of ads"
    text, cell = Path("notebooks/one.ipynb").read_text(), {"metadata": {"tags": ["b"], "alt": "b"}, "source": ["x"]}
    for name, value, decides in (("cell_type", "code", True), ("source", ["y"], True), ("metadata", {"alt": "b"}, True),
                                 ("metadata", {"tags": ["b"]}, True), ("outputs", ["z"], False), ("id", "c", False)):
        told = []
        for other in ({}, {name: value}):
            Path("notebooks/one.ipynb").write_text(json.dumps({"cells": [{"cell_type": "raw", **cell, **other}]}))
            told.append(written(module)["paper/one"])
        if (told[0] != told[1]) != decides:
            yield f"{name} of a cell"
    Path("notebooks/one.ipynb").write_text(text)


def test_each_thing_that_decides_a_chapter_is_written_down_for_make(project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.delenv("COSTBANDITS_ADS", raising=False)
    Path("lib/compendium/inputs.py").write_text("")     # quick to read
    assert {path.name for path in inputs.IDLE} == {Path(name).name for name, found in DECIDES.items()
                                                   if not found and name.startswith("lib/compendium")} - {"a.py"}
    assert unnoticed(inputs, ["main", "lines", "notebook"], unseen) == []


def test_what_python_or_json_cannot_read_is_compared_as_it_is(tmp_path):
    for name, read in (("a.py", inputs.code), ("a.ipynb", inputs.notebook)):
        (tmp_path / name).write_text("{ no")
        assert read(tmp_path / name) == b"{ no"


def test_the_chapters_are_those_of_the_list_in_its_order(project):
    for chapters in (["two", "one"], ["two", "one", "more"]):
        (project / "notebooks/chapters.txt").write_text("\n".join(chapters))
        said = make(project, "-n", "all", "PY=./py", notebooks=None)[1]
        assert re.findall(r"run (\w+) --profile paper", said) == chapters


def test_a_failed_run_and_an_edit_during_a_run_leave_work_to_do(project):
    (project / "broken").touch()
    assert make(project, "all", "PY=./py")[0] != 0
    assert asked(project) == [ONE]
    (project / "broken").unlink()
    script(project / "py2", "./py $*; case $1 in *inputs.py) ;; *) echo >> params/paper/one.yaml;; esac")
    assert make(project, "all", "PY=./py2")[0] == 0
    assert asked(project) == [COMPENDIUM, ONE, TWO]
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, ONE]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "profile"), [("all", "paper"), ("quick", "quick"), ("deep", "deep")])
def test_a_second_make_that_is_refused_hides_no_edit(project, target, profile):
    """The first one's run waits until a file `go` is there; the second one's is refused, as by the run's lock."""
    script(project / "meanwhile", """case "$*" in *"run two --profile"*) test ! -e running || exit 2
        touch running; while test ! -e go; do sleep 0.01; done; rm running;; esac""")
    first = threading.Thread(target=make, args=(project, target, "PY=./py"))
    first.start()
    while not (project / "running").exists():
        time.sleep(0.01)
    change(project / f"params/{profile}/two.yaml", "seed: 7\n")
    refused, _ = make(project, target, "PY=./py")
    (project / "go").touch()
    first.join()
    assert refused != 0
    asked(project)
    assert make(project, target, "PY=./py")[0] == 0
    assert f"two --profile {profile}" in " ".join(asked(project))
    make(project, target, "PY=./py")
    assert f"two --profile {profile}" not in " ".join(asked(project))


@pytest.mark.parametrize("target", ["all", "quick", "deep"])
def test_a_make_that_is_ended_ends_its_run(project, target):
    """Told by its number alone, as a batch system does; in a terminal all of them are told."""
    script(project / "py2", """case "$*" in *"run two --profile"*) trap 'touch told; exit 1' TERM; touch running
        while :; do sleep 0.01; done;; esac; exec ./py "$@" """)
    first = subprocess.Popen(["make", "NOTEBOOKS=one two", target, "PY=./py2"], cwd=project, env=outside(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not (project / "running").exists():
            time.sleep(0.01)
        time.sleep(0.3)     # until make has noted whom it has started, also on a busy machine
        first.terminate()
        assert first.wait(30) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
    assert (project / "told").exists() and not list((project / "build").rglob("two.done"))


def test_quick_leaves_the_stamps_of_all_alone(project):
    assert make(project, "quick", "PY=./py")[0] == 0
    assert asked(project) == [ONE.replace("paper", "quick").replace("build/", "build/quick/"),
                              TWO.replace("paper", "quick").replace("build/", "build/quick/")]
    make(project, "all", "PY=./py")
    assert asked(project) == [COMPENDIUM, ONE, TWO]


def test_an_environment_that_exists_is_used_and_finds_the_library(project):
    script(project / "py3", 'echo "$PYTHONPATH" >> log')
    assert make(project, "refresh", "lab", PY="./py3")[0] == 0
    assert asked(project) == [f"{project}/lib"] * 2
    assert not (project / ".venv").exists()


def test_lab_passes_options_on_and_what_it_starts_is_no_notebook_s(project):
    """A `!make test` in JupyterLab must not draw bars into the notebooks that it compares."""
    script(project / "py3", 'echo "$*, session ${JPY_SESSION_NAME-none}" >> log')
    assert make(project, "lab", PY="./py3", OPTIONS="--allow-root --port=9", JPY_SESSION_NAME="mine.ipynb")[0] == 0
    (said,) = asked(project)
    assert said.endswith(" --allow-root --port=9, session none") and "default_url=/lab/tree" in said


def test_the_shell_does_not_read_the_name_of_the_folder(project, monkeypatch):
    odd = project.rename(project.parent / "cost$HOME `touch ran` \"$(touch ran)\" it's")
    places = "JUPYTER_CONFIG_PATH", "IPYTHONDIR", "COVERAGE_FILE", "MPLCONFIGDIR", "PYTHONPATH"
    for name in places[:3]:      # those of the make that runs the tests
        monkeypatch.delenv(name, raising=False)
    script(odd / "py3", "".join(f'printf "%s\\n" "${name}" >> log; ' for name in places))
    assert [make(odd, target, PY="./py3")[0] for target in ("lab", "audits", "coverage")] == [0] * 3
    found = {line for line in asked(odd) if line not in ("", f"{odd}/lib", f"{odd}/build/matplotlib")}
    assert found == {f"{odd}/lib/compendium", f"{odd}/build/ipython", f"{odd}/build/coverage/data"}
    (odd / "build").rename(odd / "made")
    (odd / "build").touch()
    assert f"Nothing can be written to {odd}, where make puts" in make(odd, "lab", PY="./py3")[1]
    assert not [*odd.rglob("ran")]


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
    assert ways == ([*BENCH, "made", "uv", "uv"] if works else [*BENCH, "made", "pip", "pip", "uv"])


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
    cached = {".venv/bin/python", "lib/costbandits/__pycache__/a.pyc", "lib/costbandits.egg-info/x",
              "benchmarks/__pycache__/speed.pyc", "notebooks/.ipynb_checkpoints/one.ipynb"}
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
