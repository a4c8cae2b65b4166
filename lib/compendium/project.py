"""What the project is made of, and where it stands; a paper is known by its name in all of these places."""

from pathlib import Path

from costbandits.analysis import ledger

CHAPTERS = "notebooks/chapters.txt"     # the names of the notebooks, in the order of the book
PUBLISHED = "paper"     # the profile whose figures, tables and ledger are committed
DEEP = "deep"           # more replications of the same in the same store; its ledger and findings are committed


def chapters(root):
    """The names of the notebooks in the order of the book."""
    return (Path(root) / CHAPTERS).read_text(encoding="utf-8").split()


def claims(root, name=None):
    """The claims of a notebook's paper, or of all; a dict id -> Claim, empty if there are none."""
    names = chapters(root) if name is None else [name]
    paths = [Path(root) / "claims" / f"{each}.yaml" for each in names]
    return {id: claim for path in paths if path.exists() for id, claim in ledger.load(path).items()}
