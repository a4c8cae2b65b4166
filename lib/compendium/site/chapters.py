"""A chapter as a page: the committed prose, with the outputs of `make all` where they are there."""

import base64
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from nbformat.v4 import new_markdown_cell
from PIL import Image

from .. import cells as code
from .. import live, publication, sections
from ..project import PUBLISHED, paper_of, up
from ..typography import plain, raised

# JupyterLab takes a displayed formula in the middle of a paragraph; MyST wants a paragraph of its own.
DISPLAYED = re.compile(r"^([> ]*)(\$\$(?:(?!\$\$).)+\$\$)$", re.DOTALL | re.MULTILINE)
# Of what cells print, only the library's code has lines like this; extension.py knows how to show it.
CODE = re.compile(r"^ {4,}\S.*[=:(]", re.MULTILINE)
# Axes as matplotlib writes them, with their box; and numbers beside a tick.
AXES = re.compile(r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="([^"]*)"(.*?)(?=<g id="axes_|\Z)', re.DOTALL)
NUMBERED = re.compile(r'id="ytick_\d+">(?:(?!id="ytick_).)*<g id="text_(?:(?!id="ytick_).)*id="ytick_', re.DOTALL)
SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
# What belongs to no axes, by its height; not what is turned, and stands at the left.
SHARED = re.compile(r'^  <g id="(?:text|legend)_(?:(?!^  </g>).)*?<text [^>]*? y="([\d.]+)"', re.DOTALL | re.MULTILINE)
LINK = re.compile(r'<img src="[./]+figures/[\w/]+/(\w+)\.png"')       # `gallery.add` writes it
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
            cells += [new_markdown_cell(prose(told), id=f"site-told-{cell['id']}")] if told else []
        else:
            text = prose(cell["source"])
            if picture and (caption := CAPTION.match(text)):
                text = text[caption.end():]
                picture["source"] = (f'<figure class="captioned">\n\n{picture["source"]}\n<figcaption>\n\n'
                                     f"{caption[0].strip()}\n\n</figcaption>\n</figure>\n")
            picture = None
            cells += [{**cell, "source": text}] * bool(text)
    cells.insert(1, new_markdown_cell(_about(root, name, outputs is not None), id="site-about"))
    return json.dumps({**notebook, "cells": cells}, ensure_ascii=False)


def executed(path, made):
    """Outputs of cells by their ids; None if no run is there, or one of other code or of a stand-in for the ads."""
    if not made.exists():
        return None
    ran = json.loads(made.read_text(encoding="utf-8")).get("metadata", {}).get("papermill", {})
    if ran.get("parameters", {}).get("ads_file") == "":
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
    drawn = [output for output in cell["outputs"] if "image/png" in output.get("data", {}) or _linked(output)]
    folder = Path(root) / "figures" / name
    filed = [figure for figure in code.filed(cell["source"]) if drawn and (folder / f"{figure}.svg").exists()]
    filed = filed or [*filter(None, (_linked(output) or _published(folder, output) for output in drawn))]
    if not filed:
        return [cell]
    cell["outputs"] = [output for output in cell["outputs"] if output not in drawn]
    figures = (_figure(root, name, figure, metadata.get("alt", ""), cell["id"]) for figure in filed)
    return [cell, new_markdown_cell("\n\n".join(figures), id=f"site-{cell['id']}")]


def _linked(output):
    """The published figure that an audit links to, or None."""
    found = LINK.match("".join(output.get("data", {}).get("text/html", "")))
    return found and found[1]


def _published(folder, output):
    """The figure that a function of the notebook has filed: the one with the pixels that a cell shows, or None."""
    with Image.open(io.BytesIO(base64.b64decode("".join(output["data"]["image/png"])))) as image:
        shown = np.asarray(image.convert("RGB"))
    return next((png.stem for png in sorted(folder.glob("*.png"))
                 if np.array_equal(shown, np.asarray(Image.open(png).convert("RGB")))), None)


def _readable(table):
    """A table of pandas with commas in all long whole numbers, and a dash for what does not apply."""
    table = re.sub(r"(?<=>)\d{4,}(?=</t[hd]>)", lambda found: f"{int(found[0]):,}", table)
    return re.sub(r"(?<=>)NaN(?=</t[hd]>)", "–", table)


def _figure(root, name, figure, alt, cell):
    """A published figure as SVG, with links to its data and to its cell."""
    folder, place = Path(root) / "figures" / name, f"{up(name)}figures/{name}/{figure}"
    data = f"[its data (CSV)]({place}.csv) · " * (folder / f"{figure}.csv").exists()
    image, moving = f"\n{still(root, name, figure, alt, place)}\n", folder / f"{figure}.live.json"
    if moving.exists():
        image = live.wrapped(moving.read_text(encoding="utf-8"), image)
    return (f'<a id="figure-{figure}"></a>\n\n{image.strip()}\n\n'
            f":::{{container}} figure-links\n{data}[its cell](#cell-id={cell})\n:::\n")


def still(root, name, figure, alt, place):
    """A published figure as an image; a heat map keeps its shades in the dark, and a phone finds its panels."""
    image, file = f"![{plain(alt)}]({place}.svg)", Path(root) / "figures" / name / f"{figure}.svg"
    drawn, png = file.read_text(encoding="utf-8") if file.exists() else "", file.with_suffix(".png")
    if "QuadMesh" in drawn:
        image = f":::{{container}} heat\n{image}\n:::"
    parts = panels(drawn, png) if png.exists() else []
    return f'<div data-panels="{parts}">\n\n{image}\n\n</div>' if parts else image


def panels(svg, png):
    """Parts of a picture that a phone shows one below another, [top, bottom, left, right] as shares; [] for one panel.

    A panel without numbers beside it gets the first one's: [top, bottom, left, right of the numbers, left, right].
    """
    columns, ink = _columns(svg), np.asarray(Image.open(png).convert("L")) <= 250
    if len(columns) < 2:
        return []
    # A title or a key of the whole picture, above or below its panels, is a part of its own.
    first, last = min(column[2] for column in columns), max(column[3] for column in columns)
    height = float(SIZE.search(svg)[2])
    shared = [float(y) / height for y in SHARED.findall(svg)]
    above, below = [y for y in shared if y < first], [y for y in shared if y > last]
    rows = [at for at, _ in _blank(ink.any(axis=1))]
    top = min(at for at in rows if at > max(above)) if above else 0
    bottom = max(at for at in rows if at < min(below)) if below else 1
    cuts = [_cut(_rows(ink, top, bottom), left[1], right[0]) for left, right in pairwise(columns)]
    if None in cuts:
        return []
    names = [0, columns[0][0]]
    parts = [[top, bottom, *names * (not numbered), left, right] for (*_, numbered), left, right in
             zip(columns, [0, *cuts], [*cuts, 1], strict=True)]
    for place, start, end in [(0, 0, top)] * bool(above) + [(99, bottom, 1)] * bool(below):
        found = np.flatnonzero(_rows(ink, start, end).any(axis=0))
        parts.insert(place, [start, end, found[0] / ink.shape[1], (found[-1] + 1) / ink.shape[1]])
    return [[round(float(each), 3) for each in part] for part in parts]


def _columns(svg):
    """Columns of axes from left to right: their left, right, top and bottom, and whether numbers stand beside them."""
    boxes, columns = [], []
    for path, rest in AXES.findall(svg):
        at = np.array(re.findall(r"[\d.]+", path), float).reshape(-1, 2) / [*map(float, SIZE.search(svg).groups())]
        (left, top), (right, bottom) = at.min(axis=0), at.max(axis=0)
        boxes.append((left, right, top, bottom, bool(NUMBERED.search(rest))))
    for box in sorted(boxes):
        if columns and (box[0] < columns[-1][1] or box[1] - box[0] < 0.06):      # one below another; a scale of shades
            ends = zip(columns.pop(), box, (min, max, min, max, max), strict=True)
            box = tuple(outer(pair) for *pair, outer in ends)
        columns.append(box)
    return columns


def _rows(ink, top, bottom):
    return ink[round(top * len(ink)):round(bottom * len(ink))]


def _blank(inked):
    """Middle and width of each stretch without ink, as shares of the whole."""
    ends = np.flatnonzero(np.diff(~inked, prepend=False, append=False)).reshape(-1, 2) / inked.size
    return [((start + end) / 2, end - start) for start, end in ends.tolist()]


def _cut(ink, left, right):
    """Where to cut between two columns: the first gap wider than those inside of words, or the widest; or None."""
    gaps = [(at, wide) for at, wide in _blank(ink.any(axis=0)) if left < at < right]
    return next((at for at, wide in gaps if wide > 0.008), max(gaps, key=lambda gap: gap[1], default=(None,))[0])


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


