"""Plant errors one at a time, and see whether each is caught by the test that should: `make mutants`.

`python tests/mutants [WORD ...]` plants those whose file or reason has one of the words. Two trees in `build/mutants`
are worked on, never the checkout. First all tests that are named pass without an error. What Numba compiles there is
kept in a folder that only unaltered code has written to; each error works on a copy of it, which is then forgotten. If
a test misses an error, it is run once more with nothing compiled before, so no stale code can be the reason.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from errors import ERRORS, planted

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"
COMPILED = BUILD / "numba"      # stays: the library knows by its content whether it is still right
WORKERS, LIMIT = 2, 300
CAUGHT, MISSED, BROKEN, LATE = "caught", "MISSED", "BROKEN, and so not tested", "OUT OF TIME"
# Code that cannot be imported or compiled is no error that a test has caught.
UNUSABLE = re.compile(r"^E  .*\b(ImportError|ModuleNotFoundError|SyntaxError|IndentationError|NameError|numba\.core)\b",
                      re.MULTILINE)


def tree(source, name, *left_out):
    """A copy of a checkout below `build/mutants`."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(source, folder, symlinks=True, ignore=shutil.ignore_patterns(
        ".git", ".venv", ".hypothesis", ".ruff_cache", "build", *left_out))


def pytest(folder, compiled, nodes, *options, limit=LIMIT):
    """Run tests in a tree; what they print, and what came of it."""
    paths = os.pathsep.join(str(folder / part) for part in ("lib", "tests", "benchmarks"))
    # Plugins of the environment take longer to load than most of the tests to run.
    variables = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(compiled), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                 "PYTHONDONTWRITEBYTECODE": "" if compiled == COMPILED else "1"}
    try:
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not proof",
                               *options, *nodes],
                              cwd=folder, env={**os.environ, **variables}, timeout=limit, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace"), LATE
    if done.returncode > 1 or UNUSABLE.search(done.stdout):
        return done.stdout, BROKEN
    return done.stdout, CAUGHT if done.returncode else MISSED


def plant(error, folder, *options):
    """What becomes of an error in a tree, which is as before in the end."""
    path, compiled = folder / "lib" / error.file, folder / "build" / "numba"
    text, times = path.read_text(encoding="utf-8"), path.stat()
    try:
        path.write_text(text.replace(error.find, error.put), encoding="utf-8")
        os.utime(path, (0, 0))      # else Python might take the bytecode of the file as it was for current
        for known in (True, False):
            shutil.rmtree(compiled, ignore_errors=True)
            if known:
                shutil.copytree(COMPILED, compiled, copy_function=os.link)      # Numba replaces files, and edits none
            said, result = pytest(folder, compiled, error.nodes(), "-x", *options)
            if result != MISSED:
                break
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return said, result


def main(*words):
    errors = [error for error in planted(ERRORS)
              if not words or any(word in f"{error.file} {error.why}" for word in words)]
    if not errors:
        print(f"{' '.join(words)}: must be part of the file or of the reason of a planted error")
        return 2
    nodes, folders = sorted({node for error in errors for node in error.nodes()}), SimpleQueue()
    began = time.monotonic()
    COMPILED.mkdir(parents=True, exist_ok=True)
    first = tree(ROOT, "tree0", "__pycache__")
    print(f"{len(errors)} errors; first their tests as they are ...", flush=True)
    said, result = pytest(first, COMPILED, nodes, "-p", "xdist", "-n", str(WORKERS), "--dist", "loadfile", limit=3600)
    if result != MISSED:
        print(said[-4000:], "The tests must pass before errors are planted.", sep="\n")
        return 2
    for folder in (first, *(tree(first, f"tree{number}") for number in range(1, WORKERS))):
        folders.put(folder)

    def work(error):
        folder, start = folders.get(), time.monotonic()
        said, result = plant(error, folder)
        folders.put(folder)
        print(f"{result}, {time.monotonic() - start:.0f} s: {error.file}: {error.why}", flush=True)
        if result == BROKEN:
            print(said[-2000:], flush=True)
        return result

    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(work, errors))
    left = [f"{result}: {error.file}: {error.why}" for error, result in zip(errors, results, strict=True)
            if result != CAUGHT]
    print(f"{len(errors) - len(left)} of {len(errors)} errors caught, in {(time.monotonic() - began) / 60:.0f} minutes",
          *left, sep="\n")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
