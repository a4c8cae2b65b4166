"""A notebook's code, told apart from its prose and outputs; and which cell is being executed, if any."""

import hashlib
import json
import re
import sys
from pathlib import Path

NAMES = {"solution": "solution", "skip-execution": "a slider, in JupyterLab", "hide-input": "code",
         "parameters": "parameters"}


def folded(tags):
    """What a folded cell of code is called on a page; None if it stays open."""
    return next((name for tag, name in NAMES.items() if tag in tags), None)


def filed(source):
    """The names under which a cell files figures and tables."""
    return re.findall(r'gallery\.add\(\s*f?"(\w+)', source)


def cells(path):
    """The cells of code of a notebook's file, as dicts with `id`, `execution_count` and `source` (a str)."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in raw if cell["cell_type"] == "code"]


def notebook(path):
    """Digest of the code that makes a notebook's results: prose, sliders and solutions do not change it."""
    return short([cell["source"] for cell in cells(path)
                  if not {"skip-execution", "solution"} & set(cell["metadata"].get("tags", []))])


def short(thing: object) -> str:
    """A digest of 16 digits of anything that JSON can hold.

    >>> short(["x = 1"])
    '2d0de73cf02c85a7'
    """
    return hashlib.sha256(json.dumps(thing).encode()).hexdigest()[:16]


def digest(source: str) -> str:
    """Digest of a cell's code; line ends after its last line do not count."""
    return short(source.rstrip("\n"))


def executing() -> tuple[str, int | None]:
    """Digest of the cell that a notebook's kernel executes, and how many it has executed; ("", None) elsewhere."""
    # IPython is there only if a notebook has loaded it. With papermill and nbclient a cell knows its text, not its id.
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return (digest(shell.history_manager.input_hist_raw[-1]), shell.execution_count) if shell else ("", None)
