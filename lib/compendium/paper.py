"""The report for a journal: its numbers come from the committed results, and it is built as one page.

    python -m compendium.paper            from the project's folder; `make paper` calls it

In paper/paper.md a number that is a result is followed by a comment that names it, as in `129<!-- claims -->`, and a
table stands between `<!-- totals -->` and `<!-- end of totals -->`. Both are filled in here, and by `make all`. The
text is in the form that the Journal of Open Source Software takes, which is Pandoc's; `page` turns it into MyST.
"""

import re
import shutil
import sys
from pathlib import Path

import pandas as pd

from costbandits.checks import require

from . import check, ledger, outcome, publication, settings
from .project import claims as claims_of
from .typography import typeset
from .yaml12 import parse

PAPER, BENCHMARKS, LEDGER = "paper/paper.md", "benchmarks/BENCHMARKS.txt", "figures/ledger.csv"
NUMBER = re.compile(r"[^\s|]+(?=<!-- (\w+) -->)")
TABLE = re.compile(r"(?<=<!-- totals -->\n\n).*?(?=\n\n<!-- end of totals -->)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CITED = re.compile(r"(?<![\w@])@(\w+)")
SETTINGS = {"extensions": ["myst_nb", "sphinxcontrib.bibtex"], "bibtex_bibfiles": ["references.bib"],
            "root_doc": "paper", "project": "costbandits", "html_theme": "alabaster",
            "html_theme_options": {"nosidebar": True}, "html_show_sourcelink": False, "html_permalinks": False,
            "html_use_index": False}
LOOP, VECTORS = "plain Numba loop, omega-UCB, K={}", "NumPy over 100 replications, omega-UCB, K={}"


def made(root, rows, claims):
    """The paper with the numbers of these rows, path -> text; nothing where there is no paper."""
    path = Path(root) / PAPER
    return {PAPER: filled(path.read_text(encoding="utf-8"), root, rows, claims)} if path.exists() else {}


def filled(text, root, rows, claims):
    """The text of the paper with what is generated in it: all rows of the ledger, and the claims that were judged."""
    pulls = pd.read_csv(Path(root) / "figures/audit/exact/blocks_pulled.csv")
    pulls = pulls[pulls.compared == "every pull"]     # games in which the fast loops were compared with a full scan
    known = {**judged(rows, claims), **measured((Path(root) / BENCHMARKS).read_text(encoding="utf-8")),
             "games": f"{pulls.games.sum():,}", "length": f"{pulls.rounds.min():,}", "differ": str(pulls.differ.sum())}
    unknown = {found[1] for found in NUMBER.finditer(text)} - set(known)
    require(not unknown, f"{PAPER}, numbers", sorted(unknown), f"must be of {', '.join(known)}")
    totals = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", outcome.totals(rows, claims, root, lambda name: name))
    return NUMBER.sub(lambda found: known[found[1]], TABLE.sub(lambda _: totals, text))


def judged(rows, claims):
    """Numbers of the ledger."""
    ours = {id for id in rows.id.unique() if claims[id].ours}
    papers = ledger.summary(rows[~rows.id.isin(ours)], claims)
    wrong = papers.id[papers.standing == ledger.CONTRADICTED]
    checks = [(claims[id].second_check or ("none", ""))[0] for id in wrong]
    counts = {"claims": len(papers), "changed": outcome.looked_at(rows, claims), "questions": len(ours),
              "rows": len(rows), "reproduced": (papers.standing == ledger.REPRODUCED).sum(),
              "contradicted": len(wrong), "counterexamples": checks.count("counterexample")}
    return {name: str(count) for name, count in counts.items()}


def measured(text):
    """Numbers of the benchmarks' table."""
    def numbers(label):
        words = " +".join(map(re.escape, label.split()))
        found = re.search(rf"^{words} +(\S.*)$", text, re.MULTILINE)
        require(found, BENCHMARKS, label, "must be a row")
        return re.findall(r"\d[\d.]*(?:e[+-]\d+)?", found[1])

    seconds, rounds, indices, *_ = numbers("omega-UCB 1/4 1e+12")
    scan, lazy = numbers("UCB-BV1 (full scan)"), numbers("UCB-BV1 (lazy)")
    found = {"rounds": typeset(rounds), "indices": typeset(indices), "seconds": seconds, "scanning": scan[0],
             "searching": lazy[0], "thompson": numbers("BTS 1e+12")[0],
             "experiment": numbers("synthetic experiment, 9 x 100 x 8 policies")[0],
             "compiling": numbers("import and a first study, with its compilation")[0]}
    sampling = float(numbers("sampling a pair, Bernoulli")[0])
    for arms in (10, 100):
        (loop, *_, ours), (vectors, *_) = numbers(LOOP.format(arms)), numbers(VECTORS.format(arms))
        found |= {f"ours{arms}": ours, f"drawing{arms}": f"{int(ours) + sampling:.0f}",
                  f"loop{arms}": f"{int(loop):,}", f"vectors{arms}": f"{int(vectors):,}"}
    return found


def head(text):
    """The metadata of the paper, and its body."""
    _, metadata, body = re.split(r"^---\n", text, maxsplit=2, flags=re.MULTILINE)
    return parse(metadata, PAPER), body


def page(text):
    """The paper as MyST has it: title and authors above it, headings one level deeper, citations as roles."""
    metadata, body = head(text)
    affiliations = {str(each["index"]): each["name"] for each in metadata["affiliations"]}
    authors = ", ".join(f"{each['name']} ({affiliations[str(each['affiliation'])]})" for each in metadata["authors"])
    body = re.sub(r"^#", "##", COMMENT.sub("", body), flags=re.MULTILINE)
    body = re.sub(r"\[(@[^\]]+)\]", lambda found: f"{{cite:p}}`{','.join(CITED.findall(found[1]))}`", body)
    body = CITED.sub(r"{cite:t}`\1`", body)
    return f"# {metadata['title']}\n\n{authors}, {metadata['date']}\n{body}\n```{{bibliography}}\n```\n"


def build(root, folder):
    """Write the paper as one page to this folder; its faults, one text each."""
    from sphinx.cmd.build import build_main
    root, source = Path(root), Path(folder) / "source"
    require(Path(folder).resolve() != (root / PAPER).resolve().parent, "--build", Path(folder).parent,
            "must not be the project's folder: the paper itself stands there")
    shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    text = (root / PAPER).read_text(encoding="utf-8")
    shutil.copyfile(root / "paper" / head(text)[0]["bibliography"], source / "references.bib")
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        shutil.copy(root / "paper" / picture, source)
    (source / "paper.md").write_text(re.sub(r"(!\[[^\]]*\]\()[^)]*/", r"\1", page(text)), encoding="utf-8")
    conf = "".join(f"{key} = {value!r}\n" for key, value in SETTINGS.items())
    (source / "conf.py").write_text(conf, encoding="utf-8")
    warned = build_main(["-b", "html", "-W", "--keep-going", "-q", str(source), str(folder)])
    return ["Sphinx has warnings"] if warned else check.faults(folder)


def main(arguments=None):
    """The command; its exit status: 0, 1 if the page has a fault, 2 if an input is wrong."""
    def work(home):
        publication.write_stale(made(".", ledger.read(LEDGER), claims_of(".")))
        found = build(".", home / "paper")
        return check.tell(found, f"{home / 'paper/paper.html'}: the report, as one page")

    return settings.command("compendium.paper", __doc__, work, arguments)


if __name__ == "__main__":
    sys.exit(main())
