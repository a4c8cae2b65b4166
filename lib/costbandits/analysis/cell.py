"""Which cell of a notebook is being executed, if any: the ledger files its rows under it."""

import hashlib
import json
import sys


def short(thing: object) -> str:
    """A digest of 16 digits of anything that JSON can hold.

    >>> short(["x = 1"])
    '2d0de73cf02c85a7'
    """
    return hashlib.sha256(json.dumps(thing).encode()).hexdigest()[:16]


def digest(source: str) -> str:
    """Digest of a cell's code; line ends after its last line do not count.

    >>> digest("x = 1") == digest("x = 1\\n")
    True
    """
    return short(source.rstrip("\n"))


def executing() -> tuple[str, int | None]:
    """Digest of the cell that a notebook's kernel executes, and how many it has executed; ("", None) elsewhere.

    >>> executing()
    ('', None)
    """
    # IPython is there only if a notebook has loaded it. With papermill and nbclient a cell knows its text, not its id.
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return (digest(shell.history_manager.input_hist_raw[-1]), shell.execution_count) if shell else ("", None)
