"""JupyterLab saves a notebook as it was: what differs between machines and moments stays out of the file.

`make lab` hands `before_saving` to JupyterLab; `make refresh` writes notebooks in the same form. Nothing heavy is
imported here, for JupyterLab waits for it.
"""

import json
import subprocess
from contextlib import suppress
from copy import deepcopy
from pathlib import Path, PurePosixPath

METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            # As `jupyter nbconvert --to script` asks for it; not the version, which differs between machines.
            "language_info": {"file_extension": ".py", "name": "python", "nbconvert_exporter": "python"}}
KEPT = ("alt", "mystnb", "tags")      # of a cell's metadata: whatever else an editor adds is its own affair
# Tag -> what JupyterLab folds of such a cell until the reader opens it.
FOLDED = {"hide-input": {"source_hidden": True}, "solution": {"source_hidden": True, "outputs_hidden": True}}


def quieten(notebook):
    """Bring the metadata of a notebook (version 4), in place, into the form in which notebooks are committed."""
    notebook["metadata"].clear()
    notebook["metadata"].update(deepcopy(METADATA))
    for cell in notebook["cells"]:
        for name in cell["metadata"].keys() - KEPT:
            del cell["metadata"][name]
        for tag in cell["metadata"].get("tags", []):
            if tag in FOLDED:
                cell["metadata"]["jupyter"] = dict(FOLDED[tag])
            if tag == "skip-execution":              # a slider lives as long as its kernel
                cell["outputs"], cell["execution_count"] = [], None


def before_saving(model, path, contents_manager, **_):
    """A pre-save hook for Jupyter's contents manager: quieten the chapters, and leave other files alone.

    A chapter whose code, and whose outputs before the run, are those that git has keeps these outputs: the run has only
    put the pictures of few replications and bars of progress in their place.
    """
    path = PurePosixPath(path.strip("/"))
    if model["type"] == "notebook" and "notebooks" in path.parts[:-1]:
        quieten(model["content"])
        cells, committed = _code(model["content"]), _committed(Path(contents_manager.root_dir, path))
        if [_source(cell) for cell in cells] == [_source(cell) for cell in committed]:
            for cell, kept in zip(cells, committed, strict=True):
                cell.update(outputs=kept["outputs"], execution_count=kept["execution_count"])


def _committed(path):
    """The code cells of a notebook as git has it; none where git has not these, with these outputs."""
    with suppress(OSError, ValueError, subprocess.CalledProcessError):
        show = ["git", "show", f"HEAD:./{path.name}"]
        committed = _code(json.loads(subprocess.run(show, cwd=path.parent, capture_output=True, check=True).stdout))
        if committed == _code(json.loads(path.read_bytes())):
            return committed
    return []


def _code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _source(cell):
    return "".join(cell["source"])
