"""JupyterLab saves a notebook as it was: what differs between machines and moments stays out of the file.

`make lab` hands `before_saving` to JupyterLab; `make refresh` writes notebooks in the same form. Nothing heavy is
imported here, for JupyterLab waits for it.
"""

from copy import deepcopy
from pathlib import PurePosixPath

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


def before_saving(model, path, **_):
    """A pre-save hook for Jupyter's contents manager: quieten the chapters, and leave other files alone."""
    if model["type"] == "notebook" and "notebooks" in PurePosixPath(path).parts[:-1]:
        quieten(model["content"])
