"""Links of the repository's pages, as they have to read on the site."""

import posixpath
import re
from pathlib import Path

from .. import outcome

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


class Links:
    """Where links lead on the site: `pages` are its paths, `claims` has the page of each claim and of each chapter's.

    Links to folders and modules, which are no pages, lead to the address `repository`; "" if it has none yet.
    """

    def __init__(self, root, pages, claims, repository=""):
        self.root, self.pages, self.claims, self.repository = Path(root), set(pages), claims, repository
        self.files = set()      # of the repository, which the site has to bring along

    def rewritten(self, text, here):
        """A text whose links lead from the page `here` to where the site has things."""
        return "".join(part if k % 2 and not part.lstrip().startswith("```{figure}") else
                       LINK.sub(lambda found: self._link(found[1], found[2], here), part)
                       for k, part in enumerate(CODE.split(text)))

    def _link(self, label, target, here):
        if re.match(r"[a-z]+:|#", target):
            return f"[{label}]({target})"
        path, hash, place = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
        goal = self._goal(path, place)
        if goal is None:
            return f"[{label}]({self.repository}/blob/HEAD/{path})" if self.repository else label
        goal += (hash + place) * ("#" not in goal)
        return f"[{label}]({posixpath.relpath(goal, posixpath.dirname(here.removeprefix('book/')) or '.')})"

    def _goal(self, path, place):
        """The page or file that a path of the repository is on the site; None if it is neither."""
        if path == "REPRODUCTION.md":
            return f"{self.claims[place]}#{place}" if place in self.claims else "ledger.md"
        if path == "README.md":
            return "index.md"
        if path.removeprefix("book/") in self.pages:      # a page of book/ stands at the top of the site
            return path.removeprefix("book/")
        there = self.root / path
        if there.is_file() and there.suffix != ".py":
            self.files.add(path)
            return path
        if there.is_dir() and path.startswith("figures/"):
            return f"results.md#{outcome.place(path.removeprefix('figures/'))}"
        return {"figures": "results.md", "claims": "ledger.md"}.get(path)
