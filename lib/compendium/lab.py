"""JupyterLab saves a notebook as it was: what differs between machines and moments stays out of the file.

`make lab` hands `before_saving` to JupyterLab; `make refresh` writes notebooks in the same form. Nothing heavy is
imported here, for JupyterLab waits for it.
"""

import json
import os
import subprocess
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            # As `jupyter nbconvert --to script` asks for it; not the version, which differs between machines.
            "language_info": {"file_extension": ".py", "name": "python", "nbconvert_exporter": "python"}}
KEPT = {"alt", "mystnb", "tags"}      # of a cell's metadata: whatever else an editor adds is its own affair
PATIENCE = 2.0        # seconds for git; meanwhile JupyterLab waits
# Tag -> what JupyterLab folds of such a cell until the reader opens it.
FOLDED = {"hide-input": {"source_hidden": True}, "solution": {"source_hidden": True, "outputs_hidden": True}}


def quieten(notebook):
    """Bring the metadata of a notebook (version 4), in place, into the form in which notebooks are committed."""
    notebook["metadata"].clear()
    notebook["metadata"].update(deepcopy(METADATA))
    for cell in notebook["cells"]:
        signed = {"trusted"} if cell["cell_type"] == "code" else set()      # Jupyter takes it out once it has signed
        for name in cell["metadata"].keys() - KEPT - signed:
            del cell["metadata"][name]
        for tag in cell["metadata"].get("tags", []):
            if tag in FOLDED:
                cell["metadata"]["jupyter"] = dict(FOLDED[tag])
            if tag == "skip-execution" and cell["cell_type"] == "code":      # a slider lives as long as its kernel
                cell["outputs"], cell["execution_count"] = [], None


def before_saving(model, path, contents_manager, **_):
    """A pre-save hook for Jupyter's contents manager: quieten the chapters, and leave other files alone.

    A chapter whose code, and whose outputs before the run, are those that git has keeps these outputs: the run has only
    put the pictures of few replications and bars of progress in their place.
    """
    path = Path(contents_manager.root_dir, path.strip("/"))
    if model["type"] == "notebook" and _is_chapter(path):
        quieten(model["content"])
        cells, committed = _code(model["content"]), _committed(path)
        if [_source(cell) for cell in cells] == [_source(cell) for cell in committed]:
            for cell, kept in zip(cells, committed, strict=True):
                cell.update(outputs=kept["outputs"], execution_count=kept["execution_count"])


def _is_chapter(path):
    """Whether chapters.txt, in the notebook's folder or the one above, names it."""
    return any((folder / "chapters.txt").exists() and path.relative_to(folder).with_suffix("").as_posix()
               in (folder / "chapters.txt").read_text(encoding="utf-8").split() for folder in path.parents[:2])


def _committed(path):
    """The code cells of a notebook as git has it; none where git has not these, with these outputs."""
    here = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        found = subprocess.run(["git", "show", f"HEAD:./{path.name}"], cwd=path.parent, env=here, timeout=PATIENCE,
                               stdin=subprocess.DEVNULL, capture_output=True, check=True)
        committed, on_disk = _code(json.loads(found.stdout)), _code(json.loads(path.read_bytes()))
        if [(_source(cell), cell["outputs"]) for cell in committed] == [
                (_source(cell), cell["outputs"]) for cell in on_disk]:
            return committed
    return []


def _code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _source(cell):
    return "".join(cell["source"])
