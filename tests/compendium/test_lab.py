"""What JupyterLab adds to a notebook when it saves it does not reach the file."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from nbconvert.exporters import get_exporter

from compendium import lab, project

ROOT = Path(__file__).resolve().parents[2]
HOOK = "compendium.lab.before_saving"
NOTEBOOKS = project.notebooks(ROOT)
OTHER = {"kernelspec": {"display_name": "Mine", "language": "python", "name": "mine"},
         "language_info": {"name": "python", "version": "3.99.0", "file_extension": ".py", "mimetype": "text/x-python",
                           "codemirror_mode": {"name": "ipython", "version": 3}},
         "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2}},
         # Visual Studio Code, Colab, nbextensions, and an editor that nobody has written yet
         "vscode": {"interpreter": {"hash": "31f2"}}, "colab": {"provenance": [], "toc_visible": True},
         "accelerator": "GPU", "toc": {"toc_window_display": True}, "varInspector": {"cols": {"lenName": 16}},
         "hide_input": False, "some_editor": {"opened": "2031-05-01"}}
OTHERS = {"trusted": True, "execution": {"iopub.execute_input": "2026-01-01T00:00:00Z"}, "collapsed": True,
          "ExecuteTime": {"end_time": "2026-01-01T00:00:00", "start_time": "2026-01-01"}, "scrolled": False,
          "vscode": {"languageId": "python"}, "colab": {"base_uri": "https://localhost:8080/"}, "outputId": "f00",
          "pycharm": {"name": "#%%"}, "papermill": {"duration": 1.0}, "some_editor": [1]}


def saved_by_lab(folder, path, edit=lambda cells: None):
    """Open a notebook, add what Lab and a kernel add, edit its cells, and save it."""
    manager = AsyncLargeFileManager(root_dir=str(folder), pre_save_hook=HOOK)
    model = asyncio.run(manager.get(path, type="notebook", content=True))
    model["content"] = json.loads(json.dumps(model["content"]))
    model["content"]["metadata"].update(OTHER)
    for cell in model["content"]["cells"]:
        cell["metadata"] |= OTHERS
    edit(model["content"]["cells"])
    asyncio.run(manager.save({key: model[key] for key in ("type", "format", "content")}, path))
    return (folder / path).read_bytes()


def laid_out(folder, name):
    """The path of a chapter in a folder of its own."""
    path = folder / f"notebooks/{name}.ipynb"
    path.parent.mkdir(parents=True)
    for file in (f"{name}.ipynb", "chapters.txt"):
        shutil.copy(ROOT / "notebooks" / file, folder / "notebooks" / file)
    return path


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_committed_notebook_that_is_saved_as_it_is_keeps_every_byte(tmp_path, name):
    path = laid_out(tmp_path, name)
    before = path.read_bytes()
    assert saved_by_lab(tmp_path, f"notebooks/{name}.ipynb") == before


@pytest.fixture
def chapter(tmp_path):
    """A folder under git with one chapter, and how to save it: with what a run leaves, and further edits."""
    path = laid_out(tmp_path, "extend")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "A chapter"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)

    def ran(*edits):
        def edit(cells):
            for count, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 31):
                cell["execution_count"], cell["outputs"] = count, [BAR]
            for change in edits:
                change(cells)
        return saved_by_lab(tmp_path, "notebooks/extend.ipynb", edit)
    ran.path = path
    return ran


BAR = {"output_type": "display_data", "data": {"text/plain": "9 of 9"}, "metadata": {}}


def bars(notebook):
    return sum(BAR["data"]["text/plain"] in str(cell.get("outputs")) for cell in json.loads(notebook)["cells"])


def first(kind, text):
    def change(cells):
        next(cell for cell in cells if cell["cell_type"] == kind)["source"] += text
    return change


def test_a_run_of_a_chapter_leaves_its_committed_outputs_and_a_reader_s_text_is_saved(chapter):
    before = chapter.path.read_bytes()
    assert chapter() == before
    edited = chapter(first("markdown", " More."))
    assert b" More." in edited and bars(edited) == 0
    assert b" More." in chapter() and bars(chapter()) == 0


def test_outputs_of_code_that_was_changed_are_the_reader_s_own(chapter):
    assert bars(chapter(first("code", "\n1 + 1"))) > 1


def test_outputs_that_are_not_committed_yet_are_not_taken_back(chapter):
    notebook = json.loads(chapter.path.read_bytes())
    for cell in notebook["cells"]:
        if cell.get("outputs"):
            cell["outputs"] = [BAR]
    chapter.path.write_text(json.dumps(notebook))
    assert bars(chapter()) > 1


@pytest.mark.parametrize("lost", [".git", "PATH", "time"])
def test_without_git_outputs_are_saved_as_they_are(chapter, monkeypatch, tmp_path, lost):
    """Or where it takes too long."""
    if lost == "PATH":
        monkeypatch.setenv("PATH", "")
    elif lost == "time":
        (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / "git").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setattr(lab, "PATIENCE", 0.2)
    else:
        shutil.rmtree(tmp_path / lost)
    assert bars(chapter()) > 1


def test_another_tag_or_another_folder_of_git_in_the_environment_is_no_change_of_code(chapter, monkeypatch):
    def tagged(cells):
        cells[-1]["metadata"]["tags"] = ["mine"]

    monkeypatch.setenv("GIT_DIR", "elsewhere")
    assert [bars(chapter(tagged)), bars(chapter(tagged))] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_committed_notebook_is_a_program_to_nbconvert(name):
    script, about = get_exporter("script")().from_filename(str(ROOT / f"notebooks/{name}.ipynb"))
    assert about["output_extension"] == ".py"
    compile(script, name, "exec")


@pytest.mark.parametrize("name", ["mine", "notebooks/mine"])
def test_a_notebook_of_the_reader_s_is_left_alone(tmp_path, name):
    shutil.copy(laid_out(tmp_path, "extend"), tmp_path / f"{name}.ipynb")
    assert json.loads(saved_by_lab(tmp_path, f"{name}.ipynb"))["metadata"]["kernelspec"] == OTHER["kernelspec"]


def test_a_chapter_that_is_trusted_stays_so(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    laid_out(tmp_path, "extend")
    saved_by_lab(tmp_path, "notebooks/extend.ipynb")
    model = asyncio.run(AsyncLargeFileManager(root_dir=str(tmp_path)).get("notebooks/extend.ipynb", content=True))
    assert all(cell["metadata"]["trusted"] for cell in model["content"]["cells"] if cell["cell_type"] == "code")


def test_make_lab_hands_over_the_hook():
    assert f"--FileContentsManager.pre_save_hook={HOOK}" in (ROOT / "Makefile").read_text()


def test_cells_fold_by_their_tags_and_not_by_what_a_reader_has_opened():
    cells = [{"cell_type": "code", "metadata": {"tags": [tag], "jupyter": {"source_hidden": False}}}
             for tag in ("hide-input", "solution", "other")]
    lab.quieten({"metadata": {}, "cells": cells})
    assert [cell["metadata"].get("jupyter") for cell in cells] == [
        {"source_hidden": True}, {"source_hidden": True, "outputs_hidden": True}, None]


def test_a_slider_is_saved_without_what_only_its_kernel_can_move():
    slider, other = ({"cell_type": "code", "metadata": {"tags": tags}, "outputs": [1], "execution_count": 7}
                     for tags in (["skip-execution", "nbval-skip"], []))
    text = {"cell_type": "markdown", "metadata": {"tags": ["skip-execution"]}}
    lab.quieten({"metadata": {}, "cells": [slider, other, text]})
    assert text.keys() == {"cell_type", "metadata"}
    assert (slider["outputs"], slider["execution_count"]) == ([], None)
    assert (other["outputs"], other["execution_count"]) == ([1], 7)


def test_the_first_page_leads_to_every_notebook():
    page = (ROOT / "notebooks/README.md").read_text()
    assert sorted(re.findall(r"\]\(([\w/]+)\.ipynb\)", page)) == NOTEBOOKS
    assert "default_url=/lab/tree/notebooks/README.md" in (ROOT / "Makefile").read_text()
