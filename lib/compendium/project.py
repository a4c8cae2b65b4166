"""What the project is made of, and where each part is.

A notebook has the same name in all of these places: notebooks/<name>.ipynb, params/<profile>/<name>.yaml,
figures/<name>. A paper's audit is named after it: `audit/kube` is that of `kube`, and judges claims/kube.yaml.
"""

import json
from pathlib import Path

from costbandits.checks import require

from . import ledger

CHAPTERS = "notebooks/chapters.txt"     # the names of the notebooks, in the order of the book
AUDIT = "audit/"       # before the name of a paper: its audit
COMMITTED = "COSTBANDITS_COMMITTED"     # in the environment where a committed notebook is executed or compared
PUBLISHED = "paper"     # the profile whose figures, tables and ledger are committed
DEEP = "deep"           # more replications of the same in the same store; its ledger is committed


def prose(name):
    """A text of ours that a generated page begins with."""
    return (Path(__file__).parent / "prose" / f"{name}.md").read_text(encoding="utf-8")


def chapters(root):
    """The names of the notebooks in the order of the book."""
    return (Path(root) / CHAPTERS).read_text(encoding="utf-8").split()


def notebooks(root):
    """The names of all notebooks that are there, in alphabetical order."""
    folder = Path(root) / "notebooks"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.ipynb")
                  if ".ipynb_checkpoints" not in path.parts)


def paper_of(name):
    """The paper that a notebook is about: that of audit/kube is kube."""
    return name.removeprefix(AUDIT)


def up(name):
    """The way from the folder of a notebook to that of the project: ../../ for audit/kube."""
    return "../" * (name.count("/") + 1)


def heading(root, name):
    """The first heading of a notebook."""
    cells = json.loads((Path(root) / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return "".join(cells[0]["source"]).partition("\n")[0].removeprefix("# ")


def claims_file(root, name):
    """The file, below the project's folder, of the claims that a notebook judges; None if it judges none.

    A paper's claims, claims/<paper>.yaml, are judged by its audit, if it has one, else by its own notebook. While both
    judge, claims/audit/<paper>.yaml has those of the audit.
    """
    root, paper = Path(root), paper_of(name)
    both = (root / f"claims/{AUDIT}{paper}.yaml").exists()
    if name == paper and not both and (root / f"notebooks/{AUDIT}{paper}.ipynb").exists():
        return None
    file = f"claims/{name if both else paper}.yaml"
    return file if (root / file).exists() else None


def claims(root, name=None):
    """The claims of a notebook's paper, or of all, as a dict id -> Claim.

    No two papers have one of the same id: links and rows would not tell them apart.
    """
    found, owner = {}, {}
    for each in chapters(root) if name is None else [name]:
        file = claims_file(root, each)
        for id, claim in ledger.load(Path(root, file)).items() if file else ():
            require(id not in found, f"{file}, claim", id, f"must be of one paper; {owner.get(id)} has it")
            found[id], owner[id] = claim, file
    return found
