"""The HTML page of an executed notebook; it needs nothing else, neither files nor a network."""

import importlib
from functools import partial
from html import escape

from . import sections
from .cells import folded

# What the HTML page is made with. The package nbconvert itself can be imported also where its exporters cannot.
PACKAGES = ("fontTools.subset", "math_core", "nbconvert.exporters.html", "nbconvert.filters.markdown_mistune",
            "ziamath")

# The usual template leaves out the alternative text of pictures, and loads scripts from elsewhere.
HTML_TEMPLATE = """{%- extends 'index.html.j2' -%}
{%- block html_head_js -%}<script>{{ resources.script }}</script>{%- endblock -%}
{%- block html_head_js_mathjax -%}<style>{{ resources.mathematics }}</style>{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block data_png scoped -%}
{%- set alt = 'alt="' ~ (cell.metadata.alt | escape_html) ~ '" ' if cell.metadata.alt else '' -%}
{{ super() | replace('<img ', '<img ' ~ alt, 1) }}
{%- endblock -%}
{%- block input_group -%}
{%- set name = cell.metadata.get('tags', []) | folded -%}
{%- if name and 'solution' not in cell.metadata.tags -%}
<details class="code"><summary>{{ name }}</summary>{{ super() }}</details>
{%- else -%}{{ super() }}{%- endif -%}
{%- endblock -%}
{%- block codecell -%}
{%- if 'solution' in cell.metadata.get('tags', []) -%}
<details class="jp-Cell"><summary>solution</summary>{{ super() }}</details>
{%- else -%}{{ super() }}{%- endif -%}
{%- endblock -%}"""

# A line of text as long as it is read easily, and a theorem in a box.
STYLE = """
main { max-width: 62rem; margin: auto; }
.jp-RenderedMarkdown blockquote { border: 1px solid #bbb; border-left: 4px solid #0072b2; background: #f4f8fb;
  margin: 1em 0; padding: .6em 1em; }
summary { color: #555; cursor: pointer; }
@media print { details:not(.code)::details-content { content-visibility: visible; } }
"""

# Nobody can open an answer on paper. Code that is folded stays so, unless the reader has opened it.
SCRIPT = """
const unfolded = [];
addEventListener("beforeprint", () => {
  unfolded.push(...document.querySelectorAll("details:not([open], .code)"));
  for (const each of unfolded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of unfolded.splice(0)) each.open = false; });
"""


def require_packages():
    """Raise ModuleNotFoundError if a package is missing that a page is made with."""
    for module in PACKAGES:
        importlib.import_module(module)


def _formula(tex, display=False):
    """A formula, or its source where that cannot be read: a run of hours does not fail over a slip of the pen."""
    from .mathematics import mathml
    try:
        return mathml(tex, display)
    except ValueError:
        return f"<code>{escape(tex)}</code>"


def html(notebook, job):
    """The page of an executed notebook; it needs nothing else, neither files nor a network."""
    from nbconvert import HTMLExporter
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
    from nbformat import NotebookNode

    from .mathematics import style
    # The parameters as they were given name folders of this machine; the manifest says what decides the results.
    cells = [cell for cell in notebook.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    notebook = NotebookNode({**notebook, "cells": cells})
    known = sections.numbers(cell.source for cell in cells if cell.cell_type == "markdown")

    def markdown(text):
        renderer = IPythonRenderer(escape=False, embed_images=True, path=str(job.source.parent))
        renderer.inline_math, renderer.block_math = _formula, partial(_formula, display=True)
        return MarkdownWithMath(renderer).render(sections.linked(text, known))

    exporter = HTMLExporter(raw_template=HTML_TEMPLATE, exclude_input_prompt=True, exclude_output_prompt=True)
    # To clean the HTML would take half of the time, and the code is our own.
    for name, function in {"markdown2html": markdown, "folded": folded, "clean_html": lambda code: code}.items():
        exporter.register_filter(name, function)
    resources = {"metadata": {"name": job.name, "path": str(job.source.parent)}, "mathematics": style() + STYLE,
                 "script": SCRIPT}
    return exporter.from_notebook_node(notebook, resources)[0]
