"""What a user has set for other programs, in a home, a file or the environment, decides nothing here.

Figures, tables and notebooks would have other bytes under another matplotlibrc, locale or IPython profile. The Makefile
does the same for what it starts without this package, and fixes what BLAS and NumPy use of a processor: without make
the last bit of a sum may be another.
"""

import argparse
import contextlib
import os
import sys
import warnings
from pathlib import Path

from .terminal import text_of

# Python's own that change what a program prints or runs; matplotlib's; and where Jupyter would find other templates.
DROPPED = ("PYTHONOPTIMIZE", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONIOENCODING", "PYTHONHASHSEED", "PYTHONINSPECT",
           "PYTHONVERBOSE", "PYTHONDEVMODE", "PYTHONPROFILEIMPORTTIME", "MATPLOTLIBRC", "MPLBACKEND", "JUPYTER_PATH",
           "JPY_SESSION_NAME")
FIXED = {"PYTHONUTF8": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
# Below the folder for what is not committed. A home may be one that nobody may write to.
PLACES = {"IPYTHONDIR": "ipython", "JUPYTER_RUNTIME_DIR": "jupyter", "MPLCONFIGDIR": "matplotlib"}


def begin(name, told):
    """The parser of a command. A Python without docstrings and `assert` is refused; odd terminals end no command."""
    if sys.flags.optimize:
        print(f"costbandits: PYTHONOPTIMIZE = {sys.flags.optimize}: must be unset, for docstrings are part of the "
              "book, and `assert` checks it", file=sys.stderr)
        sys.exit(2)
    if "PYTHONWARNINGS" in os.environ:      # back to Python's own: `error` would end a command as it imports
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):       # in the place of a terminal, something that is no file
            stream.reconfigure(errors="replace")
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=told.partition("\n")[0])
    parser.add_argument("--build", default="build", help="folder for everything that is not committed")
    return parser


def command(name, told, work, arguments):
    """The exit status of a command without further arguments: that of `work(build)`, or 2 if an input is wrong."""
    build = Path(begin(name, told).parse_args(arguments).build)
    try:
        return work(build)
    except (ValueError, OSError) as error:
        print(f"costbandits: {text_of(error)}", file=sys.stderr)
        return 2


def isolate(build):
    """Keep the user's settings out of the kernels, and the kernels' files out of the user's home."""
    for name in DROPPED:
        os.environ.pop(name, None)
    os.environ.update(FIXED)
    os.environ.update({name: str(Path(build).resolve() / folder) for name, folder in PLACES.items()})
