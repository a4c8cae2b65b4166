"""What Sphinx has to know about these pages: formulas, places that links lead to, terms, code that a cell prints."""

import posixpath
import re
import zlib
from codeop import compile_command
from itertools import groupby
from pathlib import Path

from docutils import nodes
from pygments.lexers import PythonLexer
from pygments.token import Generic
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from .. import live
from ..mathematics import mathml

ANCHOR = re.compile(r'<a id="([^"]+)">')
TERM = re.compile(r"^(\w.*)\n  (.+(?:\n  .+)*)", re.MULTILINE)
EXAMPLE = re.compile(r"(^ *>>>.*?(?:\n\s*\n|\Z))", re.DOTALL | re.MULTILINE)
IMAGE, SIZE = re.compile(r'<img [^>]*?src="([^"]+)"'), re.compile(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"')
# What most of a line of code is: names and operators go without a colour of their own.
PLAIN = re.compile(r'<span class="[nopw]">([^<]*)</span>')
CLOSING = re.compile(r"[.,;:!?)\]’”]+")
GLOSSARY = "glossary"


def anchors(app, doctree):
    """Note the places of a page that links may name: `<a id=...>`, and cells under JupyterLab's names."""
    if app.env.docname.startswith("notebooks/"):      # it shows meanings of the glossary
        app.env.note_dependency(str(Path(app.srcdir) / f"{GLOSSARY}.md"))
    found = {place for node in doctree.findall(nodes.raw) for place in ANCHOR.findall(node.astext())}
    for node in doctree.findall(nodes.container):
        if node.get("nb_element") == "cell_code" and "cell-id" in node["cell_metadata"]:
            name = f"cell-id={node['cell_metadata']['cell-id']}"
            node["ids"].append(name)
            found.add(name)
    app.env.metadata[app.env.docname]["anchors"] = " ".join(sorted(found))


class Places(SphinxPostTransform):
    """Links to places that MyST does not know."""
    default_priority = 5

    def run(self, **kwargs):
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") == "doc":
                page, place = node["reftarget"], node.get("reftargetid")
            elif node.get("reftype") == "myst":
                page, place = self.env.docname, node["reftarget"]
            else:
                continue
            if place and place in self.env.metadata.get(page, {}).get("anchors", "").split():
                inside = nodes.inline("", "", *[child.deepcopy() for child in node.children])
                node.replace_self(make_refnode(self.app.builder, self.env.docname, page, place, inside))


class Terms(SphinxPostTransform):
    """The first time that a chapter uses a term of the glossary, the term leads there and shows its meaning."""
    default_priority = 200
    skipped = (nodes.reference, nodes.title, nodes.literal, nodes.table, nodes.strong, addnodes.pending_xref)

    def run(self, **kwargs):
        if not self.env.docname.startswith("notebooks/"):
            return
        glossary = (Path(self.env.srcdir) / f"{GLOSSARY}.md").read_text(encoding="utf-8")
        meanings = {term.lower(): (term, re.sub(r"[*`$\\]", "", " ".join(meaning.split())))
                    for term, meaning in TERM.findall(glossary)}
        pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, meanings), key=len, reverse=True))})(s?)\b", re.I)
        for paragraph in self.document.findall(nodes.paragraph):
            for text in [node for node in paragraph.findall(nodes.Text) if not self._inside(node)]:
                parts, end = [], 0
                for found in pattern.finditer(text):
                    if found[1].lower() in meanings:
                        term, meaning = meanings.pop(found[1].lower())
                        link = make_refnode(self.app.builder, self.env.docname, GLOSSARY,
                                            "term-" + re.sub(r"\W+", "-", term), nodes.Text(found[0]), meaning)
                        link["classes"].append("term")
                        parts += [nodes.Text(text[end:found.start()]), link]
                        end = found.end()
                if parts:
                    text.parent.replace(text, [*parts, nodes.Text(text[end:])])

    def _inside(self, node):
        while (node := node.parent) is not None and not isinstance(node, nodes.paragraph):
            if isinstance(node, self.skipped):
                return True
        return isinstance(node.parent, nodes.entry | nodes.caption)


class Punctuation(SphinxPostTransform):
    """A comma after a formula stays on its line."""
    default_priority = 300      # the terms are found by then

    def run(self, **kwargs):
        for formula in list(self.document.findall(nodes.math)):
            parent, place = formula.parent, formula.parent.index(formula)
            after = parent[place + 1] if place + 1 < len(parent) else None
            if isinstance(after, nodes.Text) and (mark := CLOSING.match(after)):
                parent[place:place + 2] = [nodes.inline("", "", formula, nodes.Text(mark[0]), classes=["kept"]),
                                           nodes.Text(after[mark.end():])]


class Printed(PythonLexer):
    """The library's code as a cell prints it, in colours, and sentences around it, without."""

    def get_tokens_unprocessed(self, text):
        start = 0
        for sentence, lines in groupby(text.splitlines(keepends=True), _sentence):
            part = "".join(lines)
            tokens = [(0, Generic.Output, part)] if sentence else super().get_tokens_unprocessed(part)
            yield from ((start + at, kind, value) for at, kind, value in tokens)
            start += len(part)


def _sentence(line):
    """Whether a line printed beside code is none: it stands at the margin, and no statement begins like it."""
    if line[0].isspace() or line.rstrip().endswith(":"):
        return False
    try:
        compile_command(line)
        return False
    except SyntaxError:
        return True


def readable(app, what, name, thing, options, lines):
    """Escape what reStructuredText would read as markup: a docstring is plain text, with code in backticks."""
    parts = EXAMPLE.split("\n".join(lines))
    for k in range(0, len(parts), 2):
        words = re.split(r"(``.*?``)", re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``\\ ", parts[k]), flags=re.DOTALL)
        words[::2] = [re.sub(r"([|*`]|(?<=\w)_(?!\w))", r"\\\1", part) for part in words[::2]]
        parts[k] = "".join(words)
    lines[:] = "".join(parts).split("\n")


def formula(self, node):
    """A formula in a line, or displayed: then it scrolls where it is wider than the page."""
    displayed = isinstance(node, nodes.math_block)
    text = mathml(node.astext(), displayed)
    self.body.append(f'<div class="math">{text}</div>' if displayed else text)
    raise nodes.SkipNode


def moving(app, page, template, context, doctree):
    """A page loads what draws its own pictures, and nothing else."""
    for picture in sorted(set(re.findall(r'data-live="(\w+)"', context.get("body", "")))):
        for name in live.scripts(picture):
            app.add_js_file(f"live/{name}.js", loading_method="defer")      # once, for whatever pictures
        app.add_css_file("live/live.css")


def light(app, page, template, context, doctree):
    """Code comes with a third of its marks; a picture keeps its place, and is loaded when a reader comes near."""
    paths = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}

    def sized(found):
        path = paths.get(posixpath.basename(found[1]))
        points = SIZE.search(path.read_text(encoding="utf-8")) if path and path.suffix == ".svg" else None
        sides = zip(("width", "height"), points.groups(), strict=True) if points else ()
        return " ".join(['<img loading="lazy"', *(f'{side}="{float(size) * 4 / 3:.0f}"' for side, size in sides),
                         found[0][5:]])

    context["body"] = IMAGE.sub(sized, PLAIN.sub(r"\1", context.get("body", "")))


def setup(app):
    """Called by Sphinx."""
    # Styles and scripts are taken from where the pages are laid out, with the font that was made there.
    app.config.html_static_path = [str(Path(app.srcdir) / "_static")]
    app.connect("doctree-read", anchors)
    app.connect("html-page-context", moving)
    app.connect("html-page-context", light)
    app.connect("autodoc-process-docstring", readable, priority=400)      # before the sections are read
    app.add_lexer("printed", Printed)
    for transform in (Places, Terms, Punctuation):
        app.add_post_transform(transform)
    app.add_html_math_renderer("mathml", inline_renderers=(formula, None), block_renderers=(formula, None))
    sources = b"".join(path.read_bytes() for path in sorted(Path(live.__file__).parent.rglob("*.py")))
    # With other code for pages than that of the last build, all are made anew.
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": zlib.crc32(sources)}
