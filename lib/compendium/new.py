"""The chapter of another paper, laid out: every file that belongs to it, small, and such that its tests pass.

The files of the folder `skeleton` are copied, with the paper's name in the place of the word skeleton.
"""

import ast
import keyword
import os
import re
from pathlib import Path

import costbandits
from costbandits.checks import require

from . import publication
from .project import CHAPTERS, PUBLISHED

HERE = Path(__file__).parent / "skeleton"
NOTEBOOK = "notebooks/{name}.ipynb"
FILES = {"claims.yaml": "claims/{name}.yaml", "quick.yaml": "params/quick/{name}.yaml",
         "paper.yaml": f"params/{PUBLISHED}/{{name}}.yaml", "policy.py": "lib/costbandits/policies/{name}.py",
         "bounds.py": "lib/costbandits/theory/bounds/{name}.py", "test_policy.py": "tests/policies/test_{name}.py",
         "test_bounds.py": "tests/theory/test_bounds_{name}.py", "questions.md": "book/questions/{name}.md"}
# Other places in which the name may be taken.
TAKEN = ("figures/{name}", "lib/{name}", "params/*/{name}.yaml", "tests/**/test_{name}.py",
         "tests/**/test_bounds_{name}.py")
# Lists that name every chapter: the new row, and how the line begins before which it stands, as a pattern.
LISTS = {CHAPTERS: ("{name}", "tournament"),
         "notebooks/README.md": ("| [{name}]({name}.ipynb) | {title} | UCB1 |", r"\| \d+\. \[tournament\]")}
TITLE = "The title of the chapter"


def check(root, name, title):
    """Refuse a name that cannot be that of a module, or that anything in the project has, and an empty title."""
    root = Path(root)
    require(title.strip(), "title", title, "must say what the chapter asks")
    require(" ".join(title.split()).isprintable(), "title", title, "must be a line of text, in UTF-8")
    require(re.fullmatch("[a-z][a-z0-9_]*", name) and not keyword.iskeyword(name), "name", name,
            "must be lower-case letters, digits and _, like my_paper, and no keyword of Python")
    places = [place.format(name=name) for place in (NOTEBOOK, *FILES.values(), *TAKEN)]
    there = sorted(path.relative_to(root).as_posix() for place in places for path in root.glob(place))
    require(not there, "name", name, f"is taken: there is {''.join(there[:1])}")
    for taken in (name, _class(name)):
        require(not keyword.iskeyword(taken), "name", name, f"would make a class {taken}, a keyword of Python")
        require(taken not in {*dir(costbandits), *dir(costbandits.policies)}, "name", name,
                f"is taken: costbandits has {taken}")
    # A function of the paper's name would stand in the way of what the skeleton's code uses.
    words = {node.id for source in FILES if source.endswith(".py")
             for node in ast.walk(ast.parse((HERE / source).read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
    require(name not in words - {"skeleton"}, "name", name, "is a name that the chapter's first code uses, such as log")


def lay_out(scratch, name, title, refresh):
    """Write the files of a chapter below `scratch`, the notebook executed by `refresh(scratch, name)`; their paths."""
    files = {goal.format(name=name): named(source, name) for source, goal in FILES.items()}
    files[NOTEBOOK.format(name=name)] = _notebook(named("notebook.md", name).replace(TITLE, title, 1))
    for file, text in files.items():
        (scratch / file).parent.mkdir(parents=True, exist_ok=True)
        (scratch / file).write_text(text, encoding="utf-8")
    refresh(scratch, name)
    return list(files)


def _class(name):
    """The name of the class of a paper's policy."""
    return name.title().replace("_", "")


def named(source, name):
    """A text of the folder `skeleton` with the name in the place of that word."""
    text = (HERE / source).read_text(encoding="utf-8")
    return text.replace("skeleton", name).replace("Skeleton", _class(name))


def _notebook(text):
    """The notebook that a page of Markdown describes: each block of Python is a cell, with tags or alternative text."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
    cells = []
    for part in re.split(r"^(```python.*\n(?:.*\n)*?```)\n", text, flags=re.M):
        if found := re.fullmatch(r'```python ?([\w,-]*)(?:alt="(.*)")?\n((?:.*\n)*)```', part):
            tags, alt, source = found.groups()
            picture = {"alt": alt, "mystnb": {"image": {"alt": alt}}} if alt else {}
            metadata = {"tags": tags.split(",")} if tags else picture
            cells.append(new_code_cell(source.strip(), metadata=metadata))
        elif part.strip():
            cells.append(new_markdown_cell(part.strip()))
    return nbformat.writes(new_notebook(cells=cells)) + "\n"


def write(root, scratch, name, title, files):
    """Move the files of a chapter from `scratch` into the project, and put it on its lists: all, or nothing."""
    root, moved, title = Path(root), [], title.replace("|", r"\|")
    lists = {file: (root / file).read_text(encoding="utf-8") for file in LISTS}
    try:
        for file in files:
            os.replace(scratch / file, root / file)
            moved.append(root / file)
        for file, (row, place) in LISTS.items():
            lines = lists[file].splitlines()
            at = next((i for i, line in enumerate(lines) if re.match(place, line)), len(lines))
            lines.insert(at, row.format(name=name, title=title))
            publication.replace(root / file, "\n".join(lines) + "\n")
    except BaseException:
        for path in moved:
            path.unlink(missing_ok=True)
        for file, text in lists.items():
            (root / file).write_text(text, encoding="utf-8")
        raise
