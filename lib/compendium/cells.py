"""A notebook's code, told apart from its prose and outputs."""

import json
import re
from pathlib import Path

from costbandits.analysis.cell import short

FILED = re.compile(r'gallery\.add\(\s*f?"(\w+)')


def folded(tags):
    """What a folded cell of code is called on a page; None if it stays open."""
    names = {"solution": "solution", "skip-execution": "a slider, in JupyterLab", "hide-input": "code",
             "parameters": "parameters"}
    return next((name for tag, name in names.items() if tag in tags), None)


def filed(source):
    """The names under which a cell files figures and tables."""
    return FILED.findall(source)


def cells(path):
    """The cells of code of a notebook's file, as dicts with `id`, `execution_count` and `source` (a str)."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in raw if cell["cell_type"] == "code"]


def notebook(path):
    """Digest of the code that makes a notebook's results: prose, sliders and solutions do not change it."""
    return short([cell["source"] for cell in cells(path)
                  if not {"skip-execution", "solution"} & set(cell["metadata"].get("tags", []))])
