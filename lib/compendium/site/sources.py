"""The site's pages as Markdown and notebooks, laid out in a folder as Sphinx reads them."""

import os
import re
import tomllib
from pathlib import Path

from costbandits.checks import require

from .. import mathematics, outcome, report
from ..project import chapters, paper_of
from ..project import claims as claims_of
from . import api, ledger, results
from .architecture import with_picture
from .chapters import chapter
from .links import Links

FONT = "_static/math.woff"
TERM, ENTRY = re.compile(r"^- \*\*(.+?)\*\*: ", re.MULTILINE), r"\n\1\n  "
GENERATED = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)
# Pages of the repository that are pages of the site as they are.
COMMITTED = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "data/README.md",
             "benchmarks/SCALING.md")


def repository(root):
    """The address of the repository: of the workflow that builds the site, or as pyproject.toml has it; else ""."""
    if os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{os.environ['GITHUB_REPOSITORY']}"
    project = tomllib.loads((Path(root) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "")


def lay_out(root, build):
    """Write the sources of the site to the folder `build`/site-source, which is returned."""
    root, build = Path(root), Path(build)
    rows, _ = report.collect(root)
    book = ledger.Book(root, rows, claims_of(root))
    names = chapters(root)
    written = {path.relative_to(root / "book").as_posix(): path.read_text(encoding="utf-8")
               for path in sorted((root / "book").rglob("*.md"))}
    generated = {"ledger.md": ledger.page(book), "contradicted.md": ledger.contradicted(book), **api.pages(),
                 **{f"claims/{name}.md": ledger.claims_page(book, name) for name in book.names}}
    committed = [name for name in COMMITTED if (root / name).exists()]
    pages = [*written, *generated, *committed, *(f"notebooks/{name}.ipynb" for name in names)]
    links = Links(root, pages, book.page_of(), repository(root))
    texts = {**generated,
             **{name: _filled(links.rewritten(text, f"book/{name}"), book) for name, text in written.items()},
             **{name: links.rewritten(with_picture((root / name).read_text(encoding="utf-8")), name)
                for name in committed},
             **{f"notebooks/{name}.ipynb": chapter(root, name, build, links) for name in names}}
    head, dash, terms = texts["glossary.md"].partition("\n- **")      # a list in Markdown becomes Sphinx's glossary
    texts["glossary.md"] = f"{head}\n```{{glossary}}{TERM.sub(ENTRY, dash + terms)}```\n"
    contents = {**{name: text.encode() for name, text in texts.items()}, FONT: mathematics.font(),
                **{name: path.read_bytes() for name, path in _copies(root, names, links.files).items()}}
    return _write(build / "site-source", contents)


def _filled(text, book):
    """A page of book/ with what is generated in the place of its marks, such as `<!-- findings -->`."""
    root, names, printed = book.root, chapters(book.root), book.root / "benchmarks/BENCHMARKS.txt"
    lists = {"chapters": [f"notebooks/{name}" for name in names if name == paper_of(name)],
             "audits": [f"notebooks/{name}" for name in names if name != paper_of(name)],
             **{folder: [f"{folder}/{name}" for name in names if (root / f"book/{folder}/{name}.md").exists()]
                for folder in ("questions", "coverage")},
             "claims": [f"claims/{name}" for name in book.names],
             "rooms": [f"api/{room}" for room in (*api.ROOMS, "compendium")]}
    parts = {"findings": lambda: outcome.findings(root, list(book.rows.notebook.unique())),
             "totals": lambda: outcome.totals(book.rows, book.claims, root, lambda name: f"claims/{name}.md"),
             "choices": lambda: outcome.choices(root), "glance": lambda: results.glance(book),
             "squares": lambda: results.squares(book), "luck": lambda: results.luck(root),
             "short": lambda: results.short(root), "gallery": lambda: results.gallery(root),
             "benchmarks": lambda: f"```text\n{printed.read_text(encoding='utf-8').rstrip()}\n```",
             "binder": lambda: _binder(repository(root)),
             **{name: lambda name=name: "\n".join(lists[name]) for name in lists}}
    unknown = set(GENERATED.findall(text)) - set(parts)
    require(not unknown, "marks of book/", sorted(unknown), f"must be of {', '.join(parts)}")
    return GENERATED.sub(lambda found: parts[found[1]](), text)


def _binder(address):
    """A badge that opens the notebooks on Binder; nothing where no server knows the repository."""
    _, known, place = address.partition("github.com/")
    return f"[Open in Binder](https://mybinder.org/v2/gh/{place}/HEAD?urlpath=lab/tree/notebooks)" * bool(known)


def _copies(root, names, linked):
    """Path on the site -> path of a file that is taken as it is."""
    own = [path for path in (root / "book").rglob("*") if path.is_file() and path.suffix not in (".md", ".py", ".pyc")]
    made = [path for name in names for kind in ("svg", "csv") for path in (root / "figures" / name).glob(f"*.{kind}")]
    return {**{path: root / path for path in [*linked, "figures/ledger.csv"]},
            **{path.relative_to(root / "book").as_posix(): path for path in own},
            **{f"downloads/{name}.ipynb": root / f"notebooks/{name}.ipynb" for name in names},
            **{path.relative_to(root).as_posix(): path for path in [*made, *(root / "claims").rglob("*.yaml")]}}


def _write(folder, contents):
    """Bring a folder in line with these files; what is the same keeps its time, so that Sphinx does not read it."""
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in contents:
            path.unlink()
            # Sphinx leaves the page that it made of it, and links to that would count as alive.
            (folder.parent / "site" / path.relative_to(folder)).with_suffix(".html").unlink(missing_ok=True)
    for name, content in contents.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return folder
