"""Everything that is wrong with a run is said before any work begins, and nothing is written."""

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from compendium import __main__ as command
from compendium import cells, preparation, publication
from costbandits.environments import ads
from costbandits.studies import keys

LIBRARY = Path(__file__).resolve().parents[2] / "lib"
PARAMETERS = """
seed = 1                # of all streams
budget = 100.0          # in units of the smallest cost
n_jobs = -1             # workers
sizes = [10, 50]        # numbers of arms
extras = {"rho": 0.25}  # more
exact = False           # or approximate
profile = "quick"       # or paper
output = ""             # folder for figures and tables
store = ""              # file of finished replications
ads_file = ""           # data of ads
"""


def write_notebook(folder, source=PARAMETERS):
    cell = new_code_cell(source, metadata={"tags": ["parameters"]})
    nbformat.write(new_notebook(cells=[cell]), folder / "notebooks" / "toy.ipynb")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose only notebook is `toy`; the current folder."""
    monkeypatch.delenv(ads.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    for profile in ("quick", "paper"):
        (tmp_path / "params" / profile).mkdir(parents=True)
        (tmp_path / "params" / profile / "toy.yaml").touch()
    (tmp_path / "notebooks").mkdir()
    write_notebook(tmp_path)
    return tmp_path


def set_paper(project, text):
    (project / "params" / "paper" / "toy.yaml").write_text(text)


def everything(project):
    return sorted(path.relative_to(project).as_posix() for path in project.rglob("*"))


def assert_refused(project, capsys, *said, notebook="toy", profile="paper", build="build"):
    """The command refuses in one line that contains `said`, and writes nothing."""
    before = everything(project)
    assert command.main(["--build", build, "run", notebook, "--profile", profile]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(text in line for text in said), line
    assert everything(project) == before


def test_a_folder_that_takes_no_file_is_refused(project, capsys, monkeypatch):
    def refused(**where):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(preparation.tempfile, "TemporaryFile", refused)
    assert_refused(project, capsys, "output folder cannot be written (Read-only file system)")


def test_a_parameter_without_a_default_takes_what_it_is_given():
    assert preparation._fits([1.0], None) and preparation._fits(None, None)


def test_a_plan_says_what_is_given_and_where_it_goes(project):
    set_paper(project, "budget: 1.5e+5\nsizes: [10]\n")
    paper, quick = (preparation.prepare(project, "toy", profile) for profile in ("paper", "quick"))
    assert paper.parameters == {"budget": 1.5e5, "sizes": [10], "profile": "paper", "ads_file": "",
                                "store": str(project / "build" / "store.sqlite")}
    assert (paper.home, paper.folder) == (project / "build", project / "figures" / "toy")
    assert (quick.home, quick.folder) == (project / "build" / "quick", project / "build" / "quick" / "figures" / "toy")
    assert paper.record["parameters"] == {"seed": 1, "budget": 1.5e5, "sizes": [10], "extras": {"rho": 0.25},
                                          "exact": False, "profile": "paper", "ads_file": ""}
    assert str(project) not in str(paper.record)


def test_who_plays_it_decides_no_result(project):
    before = preparation.prepare(project, "toy", "paper")
    set_paper(project, "n_jobs: 2")
    after = preparation.prepare(project, "toy", "paper")
    assert after.parameters["n_jobs"] == 2 and after.record == before.record


RECORD_AND_PICTURE = """
import json, matplotlib, pathlib
matplotlib.use("Agg")
import compendium
import matplotlib.pyplot as plt
from compendium import gallery, preparation
from costbandits.analysis import figures
figures.use()
fig, ax = plt.subplots()
ax.plot([0, 1], **figures.style("m-UCB"))
gallery.Gallery("toy", "pictures", "paper", 1).add("map", fig)
pictures = {path.name: path.read_bytes().hex() for path in pathlib.Path("pictures").iterdir()}
print(json.dumps([compendium.__doc__, preparation.prepare(".", "toy", "paper").record, pictures]))
"""


@pytest.mark.proof
def test_an_edited_docstring_of_the_library_changes_neither_the_record_of_a_run_nor_a_picture(project):
    edited = Path(shutil.copytree(LIBRARY, project / "elsewhere"))
    for path in edited.rglob("*.py"):
        path.write_text(re.sub(r'\A"""', '"""Edited: ', path.read_text()))
    told = []
    for library in (LIBRARY, edited):
        ours = {**os.environ, "PYTHONPATH": str(library)}
        done = subprocess.run([sys.executable, "-c", RECORD_AND_PICTURE], env=ours, capture_output=True, check=True)
        told.append(json.loads(done.stdout))
    (words, *before), (other_words, *after) = told
    assert other_words == f"Edited: {words}" and set(before[1]) == {"map.png", "map.svg"} and after == before


def test_a_deep_plan_goes_on_from_the_store_of_the_paper_profile(project):
    (project / "params" / "deep").mkdir()
    (project / "params" / "deep" / "toy.yaml").write_text("seed: 3")
    paper, deep = (preparation.prepare(project, "toy", profile) for profile in ("paper", "deep"))
    assert deep.parameters["store"] == paper.parameters["store"] and deep.record["parameters"]["seed"] == 3
    assert (deep.home, deep.folder) == (project / "build" / "deep", project / "build" / "deep" / "figures" / "toy")
    assert (paper.ledger, deep.ledger) == (None, project / "figures" / "deep" / "toy")


def test_the_record_follows_the_code_and_not_prose_and_outputs(project):
    code = preparation.prepare(project, "toy", "paper").record["code"]
    path = project / "notebooks" / "toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].execution_count = 7
    notebook.cells.insert(0, new_markdown_cell("# Prose"))
    nbformat.write(notebook, path)
    assert preparation.prepare(project, "toy", "paper").record["code"] == code
    write_notebook(project, PARAMETERS + "more = 1  # parameter")
    (project / "claims").mkdir()
    (project / "claims" / "other.yaml").write_text("O1: another paper's")
    assert preparation.prepare(project, "toy", "paper").record["code"]["claims"] == code["claims"]
    (project / "claims" / "toy.yaml").write_text("O1: x")
    after = preparation.prepare(project, "toy", "paper").record["code"]
    assert {part for part in code if after[part] != code[part]} == {"notebook", "claims"}


def test_the_record_of_a_run_has_all_that_decides_and_nothing_else(project, monkeypatch):
    """In the manifest stands what an author has to have, to get the same figures."""
    (project / "claims").mkdir()
    (project / "claims" / "toy.yaml").write_text("O1: x")
    versions = {name: f"{number}.0" for number, name in enumerate(("matplotlib", "numba", "numpy", "pandas", "scipy"))}
    monkeypatch.setattr(importlib.metadata, "version", versions.get)
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.1")
    set_paper(project, "budget: 5.0")
    assert preparation.prepare(project, "toy", "paper").record == {
        "notebook": "toy", "profile": "paper", "results": keys.RESULTS,
        "parameters": {"seed": 1, "budget": 5.0, "sizes": [10, 50], "extras": {"rho": 0.25}, "exact": False,
                       "profile": "paper", "ads_file": ""},
        "code": {"notebook": cells.short([PARAMETERS]), "claims": f"sha256:{hashlib.sha256(b'O1: x').hexdigest()}"},
        "versions": {"python": "3.99.1", **versions}}


def test_where_one_cell_ends_and_another_begins_counts(project):
    def digest(*sources):
        made = new_notebook(cells=[new_code_cell(source) for source in sources])
        nbformat.write(made, project / "notebooks" / "toy.ipynb")
        return cells.notebook(project / "notebooks" / "toy.ipynb")

    assert len({digest("a", "b"), digest("b", "a"), digest("ab"), digest("a\nb"), digest("a")}) == 5
    assert cells.digest("a") == cells.digest("a\n\n") != cells.digest(" a") != cells.digest("a ")


def test_the_data_of_ads_is_for_the_paper_and_deep_profiles(project, ads_file, monkeypatch):
    monkeypatch.setenv(ads.VARIABLE, os.path.relpath(ads_file))
    (project / "params" / "deep").mkdir()
    (project / "params" / "deep" / "toy.yaml").touch()
    paper, deep, quick = (preparation.prepare(project, "toy", profile) for profile in ("paper", "deep", "quick"))
    assert paper.parameters["ads_file"] == deep.parameters["ads_file"] == str(ads_file)
    assert quick.parameters["ads_file"] == ""
    assert paper.record["parameters"]["ads_file"].startswith("sha256:") and quick.record["parameters"]["ads_file"] == ""
    monkeypatch.delenv(ads.VARIABLE)
    (project / "data").mkdir()
    (project / "data" / ads.FILE).write_bytes(ads_file.read_bytes())
    assert preparation.prepare(project, "toy", "paper").parameters["ads_file"] == str(project / "data" / ads.FILE)


def test_missing_and_altered_data_are_refused(project, capsys, monkeypatch):
    monkeypatch.setenv(ads.VARIABLE, "nowhere.csv")
    assert_refused(project, capsys, "nowhere.csv", ads.VARIABLE, "Download")
    (project / "altered.csv").write_text(",".join(ads.COLUMNS) + "\n1,2,3\n")
    monkeypatch.setenv(ads.VARIABLE, "altered.csv")
    assert_refused(project, capsys, "altered.csv", "was altered")


def test_unknown_notebooks_and_profiles_are_refused_with_the_known_ones(project, capsys):
    assert_refused(project, capsys, "'tyo'", "['toy']", notebook="tyo")
    assert_refused(project, capsys, "'papper'", "['paper', 'quick']", profile="papper")
    (project / "params" / "other").mkdir()
    assert_refused(project, capsys, "'other'", "['paper', 'quick']", profile="other")


@pytest.mark.parametrize(("text", "said"), [
    ("bugdet: 1.0", ("'bugdet'", "'budget'", "'seed'", "did you mean budget?", "params/paper/toy.yaml")),
    ("output: here", ("'output'", "must be one of")), ("store: here", ("'store'",)), ("ads_file: x", ("'ads_file'",)),
    ("budget: 2:45", ("budget = '2:45'", "'2:45' is a text in YAML 1.2", "such as 100.0", "1.5e-4")),
    ("budget: 12_000", ("'12_000' is a text",)), ("budget: 0b101", ("is a text",)), ("budget: '7'", ("'7' is a text",)),
    ("budget: 1,5", ("'1,5' is a text",)), ("budget: .nan.", ("budget",)), ("budget: 1e999", ("budget = inf",)),
    ("seed: 2.5e+0", ("seed = 2.5: must be a whole number",)),
    ("seed: 4e18", ("seed = 4e+18", "write a whole number of this size with all of its digits")),
    ("sizes: [2e0, 3:00]", ("sizes = [2.0, '3:00']", "'3:00' is a text")), ("sizes: [1e1, 5e-1]", ("sizes",)),
    ("sizes: {a: 1}", ("sizes", "must be a list")), ("extras: {rho: 1_0}", ("extras", "'1_0' is a text")),
    ("extras: {1: 0.5}", ("params/paper/toy.yaml, line 1, key = 1: must be a text: write it in quotes",)),
    ("extras: {rho: 0.5, 'rho': 1}", ("line 1, key = 'rho': is there twice",)),
    ("exact: on", ("exact = 'on': must be True or False; write true or false",)),
    ("profile: 010", ("profile = 10: must be a text; write it in quotes",)),
    ("budget: true", ("budget", "True")), ("seed: 1.5", ("seed", "1.5")), ("seed: yes", ("seed", "'yes'")),
    ("seed: true", ("seed", "True")),
    ("sizes: 10", ("sizes", "[10, 50]")), ("sizes: [10, 1.5]", ("sizes",)), ("extras: {rho: low}", ("extras",)),
    ("exact: 1", ("exact = 1: must be True or False",)), ("seed:", ("seed", "None")),
    ("profile: quick", ("profile", "'paper'")),
    ("- seed", ("must map names",)), ("seed: [", ("not YAML",)),
    ("budget: .nan", ("budget = nan",)), ("budget: .inf", ("budget = inf",)), ("budget: -.inf", ("budget = -inf",)),
    ("budget: -1.0", ("budget = -1.0", "must be a finite number, above 0, such as 100.0")),
    ("budget: 0.0", ("budget = 0.0",)), ("seed: 0", ("seed = 0",)),
    ("sizes: []", ("sizes = []", "not empty")), ("sizes: [10, 0]", ("sizes",)), ("extras: {rho: .nan}", ("extras",)),
    ("seed: 1\nbudget: 2.0\nseed: 3", ("params/paper/toy.yaml, line 3, key = 'seed'", "twice"))])
def test_wrong_parameters_are_refused_by_name(project, capsys, text, said):
    set_paper(project, text)
    assert_refused(project, capsys, *said)


def test_a_profile_that_is_not_utf_8_is_named(project, capsys):
    (project / "params" / "paper" / "toy.yaml").write_bytes("# Größe\nseed: 1".encode("latin-1"))
    assert_refused(project, capsys, "params/paper/toy.yaml: not UTF-8")


@pytest.mark.parametrize(("text", "read"), [
    ("seed: 1.2e+2", 120), ("seed: 3e0", 3), ("seed: 009", 9), ("seed: 0o11", 9), ("n_jobs: -1.", -1),
    ("sizes: [1e1, 020, 30]", [10, 20, 30]), ("budget: 7e2", 700.0), ("budget: 070", 70),
    ("extras: {rho: 1e-1}", {"rho": 0.1}),
    ("extras: {rho: 5E-1, no: 2e+0}", {"rho": 0.5, "no": 2.0}), ("store_of: no", "no")])
def test_what_is_read_is_what_papermill_plays(project, text, read):
    """The numbers of YAML 1.2, and their types, reach the cell that papermill puts in; its own reader is not asked."""
    write_notebook(project, PARAMETERS + 'store_of = "x"   # a text\n')
    set_paper(project, text)
    key, job = text.partition(":")[0], preparation.prepare(project, "toy", "paper")
    notebook = papermill.execute_notebook(job.source, None, job.parameters, prepare_only=True, language="python",
                                          kernel_name="python3")
    exec(notebook.cells[1].source, played := {})
    assert repr(played[key]) == repr(read) == repr(job.parameters[key]) == repr(job.record["parameters"].get(key, read))


@pytest.mark.parametrize("text", ["budget: 150000", "seed: 0x10", "budget: 1e5", "n_jobs: 2", "n_jobs: -2",
                                  "extras: {}", "exact: true", "# empty"])
def test_right_types_pass(project, text):
    set_paper(project, text)
    preparation.prepare(project, "toy", "paper")


@pytest.mark.parametrize(("source", "said"), [
    ("seed = ", "parameters cell: invalid syntax, line 1"), ("x = {[]: 1}", "literal"),
    ("seed = 1", "output and store"), ("seed = int('1')", "seed = int('1')"), ("a = b = 1", "literal")])
def test_a_notebook_without_proper_parameters_is_refused(project, capsys, source, said):
    write_notebook(project, source)
    assert_refused(project, capsys, said)


def test_a_file_that_is_no_notebook_is_refused(project, capsys):
    for text in ("{", "[]", "null"):
        (project / "notebooks" / "toy.ipynb").write_text(text)
        assert_refused(project, capsys, "not a notebook")


def test_output_below_a_file_is_refused(project, capsys):
    (project / "file").touch()
    assert_refused(project, capsys, "file/build", "file, not a folder", build="file/build")
    (project / "figures").touch()
    assert_refused(project, capsys, "figures/toy", "figures is a file, not a folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_output_to_a_folder_that_may_not_be_written_is_refused(project, capsys):
    (project / "figures").mkdir(mode=0o500)
    assert_refused(project, capsys, "figures/toy", "Permission denied")


def test_a_damaged_manifest_and_a_damaged_store_are_refused(project, capsys):
    (project / "build").mkdir()
    (project / "build" / "store.sqlite").write_text("not a store at all, but long enough to look like one" * 100)
    assert_refused(project, capsys, "store.sqlite", "damaged")
    (project / "figures" / "toy").mkdir(parents=True)
    (project / "figures" / "toy" / publication.MANIFEST).write_text("{")
    assert_refused(project, capsys, "manifest.json", "damaged")
