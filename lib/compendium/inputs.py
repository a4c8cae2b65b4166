"""What decides the results and the page of each chapter, written down for make.

Make compares times of files, and a file is newer after a touch or a checkout. So make depends on files that are written
here if they change, build/inputs/<profile>/<chapter>: a line for each thing that decides, with a digest of what matters
in it. Comments and docstrings of a module do not, nor do outputs; comments in cells, claims and parameters do.

Make calls this script before everything, by its path, with the folder and the chapters: it imports nothing but the
standard library.
"""

import ast
import hashlib
import json
import os
import sys
from pathlib import Path

# Parts of the book's machinery that no notebook is run with.
IDLE = {Path("lib/compendium", f"{name}.py") for name in (
    "check", "inputs", "lab", "new", "outcome", "paper", "report", "times", "typography", "wasm")}
IDLE_FOLDERS = {Path("lib/compendium/skeleton"), Path("lib/compendium/site")}
TEST = "test_thompson"      # the law of Thompson sampling, tested at length by `make deep`
TESTED = ("environments", "engine", "fast", "policies", "studies")


def code(path):
    """A module without comments and docstrings."""
    text = path.read_bytes()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text         # whoever imports it says what is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) \
                and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree).encode()


def notebook(path):
    """The cells of a notebook with what decides how they are run and shown."""
    text = path.read_bytes()
    try:
        cells = [(cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags"), cell["metadata"].get("alt"))
                 for cell in json.loads(text)["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return text         # whoever runs it says what is wrong
    return json.dumps(cells).encode()


READERS = {".py": code, ".ipynb": notebook}


def lines(paths):
    """A line for each file: its path and a digest of what matters in it, or none if it is not there."""
    for path in paths:
        content = READERS.get(path.suffix, Path.read_bytes)(path) if path.is_file() else None
        yield f"{path.as_posix()} {hashlib.sha256(content).hexdigest()[:16] if content is not None else 'none'}\n"


def write(path, parts):
    text = "".join(parts)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main(folder, *chapters):
    """Write the files that are missing or out of date."""
    folder, lock = Path(folder), Path("requirements.lock")
    modules = {path for path in Path("lib").rglob("*.py") if path.parent not in IDLE_FOLDERS} - IDLE
    library = list(lines(sorted({*modules, *Path("lib/compendium").glob("*.j2")})))
    common = [*library, *lines([lock, *sorted(Path("data").glob("*.csv"))]),
              f"data of ads: {os.environ.get('COSTBANDITS_ADS') or 'in data, if there'}\n"]
    for name in chapters:
        claims = {Path("claims", f"{each}.yaml") for each in (name, name.removeprefix("audit/"))}
        own = lines([Path("notebooks", f"{name}.ipynb"), *sorted(claims)])
        parts = [*common, *own]
        for profile in sorted(Path("params").glob(f"*/{name}.yaml")):
            write(folder / profile.parts[1] / name, [*parts, *lines([profile])])
    tests = [Path("tests", name) for name in (f"policies/{TEST}.py", "reference.py", "chains.py")]
    write(folder / TEST, [*lines([*tests, lock]),
                          *(line for line in library if line.split("/")[2] in TESTED)])


if __name__ == "__main__":
    main(*sys.argv[1:])
