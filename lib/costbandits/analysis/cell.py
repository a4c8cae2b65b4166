"""Which cell of a notebook is being executed, if any: the ledger files its rows under it."""

import hashlib
import json
import sys


def digest(source):
    """Digest of a cell's code, a str; line ends after its last line do not count."""
    return short(source.rstrip("\n"))


def short(thing):
    """A digest of 16 digits of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(thing).encode()).hexdigest()[:16]


def _shell():
    # IPython is there only if a notebook has loaded it.
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def executing():
    """Digest of the cell that a notebook's kernel is executing, "" where there is no notebook."""
    shell = _shell()
    # With papermill and nbclient a cell does not know its id, but its text.
    return digest(shell.history_manager.input_hist_raw[-1]) if shell else ""


def turn():
    """How many cells the notebook's kernel has executed, None where there is no notebook."""
    shell = _shell()
    return shell.execution_count if shell else None
