"""The chapter that `make new` lays out passes the tests that every chapter has to, and a bad name writes nothing."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from reference import proving
from test_notebooks import GUARDS

from compendium import __main__ as command
from compendium import new, project

ROOT = Path(__file__).resolve().parents[2]
NAME = "my_paper"
FILES = [place.format(name=NAME) for place in (new.NOTEBOOK, *new.FILES.values())]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A project with the places of one paper; the current folder."""
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    for file in (new.NOTEBOOK, "figures/{name}/manifest.json", "tests/analysis/test_{name}.py"):
        path = tmp_path / file.format(name="kube" if "tests" not in file else "figures")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / project.CHAPTERS).write_text("kube\ntournament\n")
    shutil.copy(ROOT / "notebooks/README.md", tmp_path / "notebooks")
    return tmp_path


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "said"), [
    ("", "lower-case"), ("My", "lower-case"), ("../x", "lower-case"), ("2nd", "lower-case"), ("class", "lower-case"),
    ("kube", "is taken: there is figures/kube"), ("figures", "is taken: there is tests/analysis/test_figures.py"),
    ("index", "is taken: costbandits has index"), ("budget", "is taken: costbandits has Budget"),
    ("none", "would make a class None, a keyword of Python"), ("log", "is a name that the chapter's first code uses")])
def test_a_bad_name_is_refused_in_one_line_and_nothing_written(empty, capsys, name, said):
    before = everything(empty)
    assert command.main(["new", name, "--title", "Mine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line and everything(empty) == before and not (empty / "build").exists()


@pytest.mark.parametrize("title", ["M\udce4rz", "a\x00b", "a\x1b[1mb"])
def test_a_title_in_another_encoding_is_refused(empty, capsys, title):
    """As Python has what a terminal in Latin-1 or EUC-JP has sent."""
    before = everything(empty)
    assert command.main(["new", NAME, "--title", title]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "must be a line of text, in UTF-8" in line and everything(empty) == before


def test_an_empty_title_is_refused(empty, capsys):
    before = everything(empty)
    assert command.main(["new", NAME, "--title", " "]) == 2
    assert "title = ' ': must say what the chapter asks" in capsys.readouterr().err and everything(empty) == before


@pytest.mark.parametrize("failing", [1, len(FILES), len(FILES) + 1])
def test_what_cannot_be_moved_as_a_whole_is_not_moved(empty, monkeypatch, failing):
    before, replace, calls = everything(empty), os.replace, []
    for file in FILES:
        (empty / "scratch" / file).parent.mkdir(parents=True, exist_ok=True)
        (empty / "scratch" / file).touch()

    def full(*paths):
        calls.append(paths)
        if len(calls) == failing:
            raise OSError(28, "No space left on device")
        replace(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space"):
            new.write(empty, empty / "scratch", NAME, "Mine", FILES)
    shutil.rmtree(empty / "scratch")
    after = {path: text for path, text in everything(empty).items() if path.suffix != ".part"}
    assert after == before


@pytest.mark.proof
def test_a_chapter_that_cannot_be_executed_is_not_laid_out(empty):
    """As the command of a shell: there the module that fails is __main__, which is no second module of another name."""
    before = everything(empty)
    ours = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    program = ("import runpy, sys; from compendium import new; from pathlib import Path; "
               "new.HERE = Path('skeleton'); sys.argv[1:] = ['new', 'my_paper', '--title', 'Mine']; "
               "runpy.run_module('compendium', run_name='__main__')")
    shutil.copytree(ROOT / "lib/compendium/skeleton", empty / "skeleton")
    page = empty / "skeleton/notebook.md"
    page.write_text(page.read_text() + "\n```python\nraise OSError(28, 'full')\n```\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=empty, env=ours, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback (most recent call last):\n  File \"<frozen runpy>" not in done.stderr
    assert done.stderr.strip().endswith("Nothing is laid out")
    shutil.rmtree(empty / "skeleton")
    assert {path: text for path, text in everything(empty).items() if path.parts[0] != "build"} == before


@pytest.mark.slow
@pytest.mark.parametrize("tests_too", proving([False, True], True))
def test_a_new_chapter_passes_its_tests_and_is_executed_as_refresh_does(tmp_path, tests_too):
    """`make new` has executed it; its tests and those of all chapters are run in processes of their own, or not."""
    for part in ("lib", "tests", "notebooks", "params", "claims", "benchmarks", "book", "pyproject.toml",
                 "ARCHITECTURE.md", "Makefile"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    ours = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}

    def run(*arguments):
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=ours, capture_output=True, text=True)

    made = run("compendium", "new", NAME, "--title", 'Mine: a "title"')
    assert made.returncode == 0, made.stderr
    assert made.stdout == new.named("remains.txt", NAME) and not list(tmp_path.glob("build/new/*/run-*"))
    chapters, at = project.chapters(ROOT), project.chapters(ROOT).index("tournament")
    assert project.chapters(tmp_path) == [*chapters[:at], NAME, *chapters[at:]]
    listed = re.findall(r"^\|.*?\[(\w+)\]\(\w+\.ipynb\)", (tmp_path / "notebooks/README.md").read_text(), re.M)
    assert listed.index(NAME) == listed.index("tournament") - 1
    schema = json.loads((ROOT / "figures/claims.schema.json").read_text())
    assert re.match(schema["$defs"]["claim"]["properties"]["id"]["pattern"], f"{NAME}_1")
    assert set(project.claims(tmp_path, NAME)) == {f"{NAME}_1"} <= set(project.claims(tmp_path))

    notebook = nbformat.read(tmp_path / FILES[0], as_version=4)
    assert notebook.cells[0].source.startswith('# Mine: a "title"\n')
    assert [list(guard(notebook)) for guard in GUARDS] == [[]] * len(GUARDS)
    assert not any("skeleton" in (tmp_path / file).read_text().lower() for file in FILES)
    code, tests = ([file for file in FILES if part in file] for part in (".py", "/test_"))
    checks = [("ruff", "check", *code)]
    if tests_too:
        checks += [("pytest", "--nbval", "--nbval-current-env", *FILES[:1], *tests),
                   ("pytest", "tests/compendium/test_architecture.py"),
                   ("pytest", "tests/compendium/test_lab.py", "-k", "first_page"),
                   ("pytest", "tests/compendium/test_notebooks.py", "tests/test_docs.py", "-k", NAME)]
    for check in checks:
        done = run(*check)
        assert done.returncode == 0, done.stdout
    assert not tests_too or "unchanged" in run("compendium", "refresh", NAME).stdout
