"""What made a result: digests of the library, and of a notebook's code without its prose and outputs."""

import functools
import hashlib
import json
import sys
from pathlib import Path


@functools.cache
def library():
    """Digest of the library's files."""
    found, here = hashlib.sha256(), Path(__file__).parent
    for path in sorted(here.rglob("*.py")):
        found.update(f"{path.relative_to(here).as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def cells(path):
    """The cells of code of a notebook's file, as dicts with `id`, `execution_count` and `source` (a str)."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in raw if cell["cell_type"] == "code"]


def notebook(path):
    """Digest of a notebook's code: an edit of prose does not change it."""
    return _short([cell["source"] for cell in cells(path)])


def cell(source):
    """Digest of a cell of code; line ends after its last line do not count."""
    return _short(source.rstrip("\n"))


def executing():
    """Digest of the cell that a notebook's kernel is executing, "" where there is no notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    # With papermill and nbclient a cell does not know its id, but its text.
    return cell(shell.history_manager.input_hist_raw[-1]) if shell else ""


def turn():
    """How many cells the notebook's kernel has executed, None where there is no notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell.execution_count if shell else None


def _short(thing):
    return hashlib.sha256(json.dumps(thing).encode()).hexdigest()[:16]
