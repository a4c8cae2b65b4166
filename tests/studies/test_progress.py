"""A bar where a person looks, in JupyterLab and in a terminal, and silence elsewhere."""

import sys
import threading
import time

import pytest
from numba.core.compiler_lock import global_compiler_lock

from costbandits.engine.compilation import compiling
from costbandits.studies import progress


@pytest.mark.parametrize(("lab", "kernel"), [(True, True), (True, False), (False, True)])
def test_a_bar_is_drawn_in_jupyterlab_and_not_where_a_program_executes_the_notebook(monkeypatch, capsys, lab, kernel):
    if lab:
        monkeypatch.setenv(progress.LAB, "notebooks/own.ipynb")
    else:
        monkeypatch.delenv(progress.LAB, raising=False)
    if kernel:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    else:       # a script that a notebook has started
        monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with progress.Steps("study", 2) as steps:
        steps.step(2)
    assert ("study: 100%" in capsys.readouterr().err) == (lab and kernel)


def test_a_bar_says_that_something_is_compiled(monkeypatch, capsys):
    """As long as it is, and not once a replication is finished."""
    monkeypatch.setenv(progress.LAB, "notebooks/own.ipynb")
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(progress.Steps, "PATIENCE", 0.01)
    with progress.Steps("study", 2) as steps:
        with global_compiler_lock:
            time.sleep(0.2)
            steps.step()
        steps.step()
    waiting, _, end = capsys.readouterr().err.rpartition("\r")
    assert "0/2" in waiting and "compiling, once" in waiting and "2/2" in end and "compiling" not in end


def test_whether_another_thread_compiles():
    found = []
    with global_compiler_lock:
        asking = threading.Thread(target=lambda: found.append(compiling()))
        asking.start()
        asking.join()
    assert found == [True] and not compiling()
