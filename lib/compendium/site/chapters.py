"""A chapter as a page: the committed prose, with the outputs of `make all` where they are there."""

import json
import re
from pathlib import Path

import numpy as np
from PIL import Image

from .. import cells as code
from .. import live, publication, sections
from ..project import PUBLISHED, paper_of, up
from ..typography import plain, raised

# JupyterLab takes a displayed formula in the middle of a paragraph; MyST wants a paragraph of its own.
DISPLAYED = re.compile(r"^([> ]*)(\$\$(?:(?!\$\$).)+\$\$)$", re.DOTALL | re.MULTILINE)
# Of what cells print, only the library's code has lines like this; extension.py knows how to show it.
CODE = re.compile(r"^ {4,}\S.*[=:(]", re.MULTILINE)
# A numbered caption, which stands below its picture.
CAPTION = re.compile(r"\*\*Figure \d.*?(?=\n\n|\Z)\s*", re.DOTALL)
# What MyST is to read inside of a `details` stands between blank lines.
OPENED, FOLDED = re.compile(r"(</summary>)\s*"), re.compile(r"\s*(</details>)")


def chapter(root, name, build, links):
    """The notebook of a chapter as the site shows it, as JSON: each figure once, with its data, and code folded."""
    path = Path(root) / "notebooks" / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = executed(path, Path(build) / f"{name}.ipynb")
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    known = sections.numbers(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    paper = paper_of(name)
    pages = {id: f"{up(name)}{page}#{id}" for id, page in links.claims.items()
             if page == f"claims/{paper}.md" and id != paper}

    def prose(text):
        text = FOLDED.sub(r"\n\n\1", OPENED.sub(r"\1\n\n", text))
        text = sections.to_claims(sections.linked(text, known), pages)
        return DISPLAYED.sub(r"\1\n\1\2\n\1", links.rewritten(text, f"notebooks/{name}.ipynb"))

    cells, picture = [], None      # the picture above, without a caption so far
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = (outputs or {}).get(cell["id"], cell["outputs"])
            told = _told(cell)
            cells += (made := _code(root, name, cell))
            picture = made[1] if made[1:] else picture
            cells += [_cell(prose(told), f"told-{cell['id']}")] if told else []
        else:
            text = prose(cell["source"])
            if picture and (caption := CAPTION.match(text)):
                text = text[caption.end():]
                picture["source"] = (f'<figure class="captioned">\n\n{picture["source"]}\n<figcaption>\n\n'
                                     f"{caption[0].strip()}\n\n</figcaption>\n</figure>\n")
            picture = None
            cells += [{**cell, "source": text}] * bool(text)
    cells.insert(1, _cell(_about(root, name, outputs is not None), "about"))
    return json.dumps({**notebook, "cells": cells}, ensure_ascii=False)


def executed(path, made):
    """Outputs of the cells of an executed notebook by their ids; None if it is not there or has other code."""
    if not made.exists():
        return None
    found = {cell["id"]: cell for cell in code.cells(made)}
    same = all(cell["id"] in found and found[cell["id"]]["source"] == cell["source"] for cell in code.cells(path))
    return {id: cell["outputs"] for id, cell in found.items()} if same else None


def _told(cell):
    """What a cell has said in Markdown, taken out of its outputs: it is prose."""
    told = [output for output in cell["outputs"] if "text/markdown" in output.get("data", {})]
    cell["outputs"] = [output for output in cell["outputs"] if output not in told]
    text = "\n\n".join("".join(output["data"]["text/markdown"]) for output in told)
    return text if "$" in text else raised(text)


def _code(root, name, cell):
    """A cell of code, folded, and the published figures that it has filed."""
    metadata = cell["metadata"]
    metadata["cell-id"] = cell["id"]
    tags = {*metadata.get("tags", [])}
    prompt = code.folded(tags) or "code"
    printed = any(CODE.search("".join(output.get("text", ""))) for output in cell["outputs"])
    if "hide-input" in tags and not cell["outputs"]:
        tags.add("plumbing")      # nothing to see, unless all code is shown
    if not printed and "assert" in cell["source"] and any("text" in output for output in cell["outputs"]):
        tags.add("checked")      # what it prints was held to something
    metadata["tags"] = sorted({*tags, "hide-cell" if prompt == "solution" else "hide-input"} - {"parameters"})
    metadata["mystnb"] = {**metadata.get("mystnb", {}), "code_prompt_show": prompt,
                          **({"text_lexer": "printed"} if printed else {})}
    for output in cell["outputs"]:
        if "text/html" in output.get("data", {}):
            output["data"]["text/html"] = _readable("".join(output["data"]["text/html"]))
    rest = [output for output in cell["outputs"] if "image/png" not in output.get("data", {})]
    drawn = len(rest) < len(cell["outputs"])      # else it has filed a table
    filed = [figure for figure in code.filed(cell["source"]) if drawn and _file(root, name, figure, "svg").exists()]
    if not filed:
        return [cell]
    cell["outputs"] = rest
    figures = (_figure(root, name, figure, metadata.get("alt", ""), cell["id"]) for figure in filed)
    return [cell, _cell("\n\n".join(figures), cell["id"])]


def _readable(table):
    """A table of pandas with commas in all long whole numbers, and a dash for what does not apply."""
    table = re.sub(r"(?<=>)\d{4,}(?=</t[hd]>)", lambda found: f"{int(found[0]):,}", table)
    return re.sub(r"(?<=>)NaN(?=</t[hd]>)", "–", table)


def _figure(root, name, figure, alt, cell):
    """A published figure as SVG, with links to its data and to its cell."""
    place = f"{up(name)}figures/{name}/{figure}"
    data = f"[its data (CSV)]({place}.csv) · " * _file(root, name, figure, "csv").exists()
    image, moving = f"\n{still(root, name, figure, alt, place)}\n", _file(root, name, figure, "live.json")
    if moving.exists():
        image = live.wrapped(moving.read_text(encoding="utf-8"), image)
    return (f'<a id="figure-{figure}"></a>\n\n{image.strip()}\n\n'
            f":::{{container}} figure-links\n{data}[its cell](#cell-id={cell})\n:::\n")


def still(root, name, figure, alt, place):
    """A published figure as an image; a heat map keeps its shades in the dark, and a phone finds its panels."""
    image, file, png = f"![{plain(alt)}]({place}.svg)", *(_file(root, name, figure, kind) for kind in ("svg", "png"))
    if file.exists() and "QuadMesh" in file.read_text(encoding="utf-8"):
        image = f":::{{container}} heat\n{image}\n:::"
    cuts = " ".join(f"{cut:.3f}" for cut in panels(png)) if png.exists() else ""
    return f'<div data-cuts="{cuts}">\n\n{image}\n\n</div>' if cuts else image


def panels(png):
    """Where a picture falls into columns of panels, as shares of its width: a phone shows them one below the other."""
    blank = (np.asarray(Image.open(png).convert("L")) > 250).all(axis=0)
    ends = np.flatnonzero(np.diff(blank, prepend=False, append=False)).reshape(-1, 2) / blank.size
    cuts = [0.0]
    for start, end in ends:
        if end - start > 0.008 and (start + end) / 2 - cuts[-1] > 0.25 and (start + end) / 2 < 0.75:
            cuts.append(float((start + end) / 2))
    return cuts[1:]


def _file(root, name, figure, suffix):
    return Path(root) / "figures" / name / f"{figure}.{suffix}"


def _cell(text, id):
    return {"cell_type": "markdown", "id": f"site-{id}", "metadata": {}, "source": text}


def _about(root, name, full):
    """Which runs stand behind the page, and how to go on from reading to playing."""
    parts = [":::{container} about-page\n"]
    for run in publication.manifest(Path(root) / "figures" / name)["runs"].values():
        if run["profile"] == PUBLISHED and len(parts) == 1:
            versions = ", ".join(f"{package} {version}" for package, version in run["versions"].items()
                                 if package in ("python", "numpy", "numba"))
            numbers = ", ".join(f"{key} = {value:,{'g' * isinstance(value, float)}}" for key, value in
                                run["parameters"].items() if isinstance(value, int | float))
            parts.append(f"Figures, tables and verdicts are those of the full run ({numbers}; {versions}). ")
    parts.append("So are, on this page, the outputs of checks; those of the committed notebook are from few runs. "
                 if full else "Checks of the mathematics were executed with few runs. ")
    parts.append(f"To play with it, run `make lab` and open `notebooks/{name}.ipynb`, or take "
                 f"{{download}}`the notebook <{up(name)}downloads/{name}.ipynb>`.\n:::")
    return "".join(parts)


