"""The HTML page of an executed notebook; it needs nothing else, neither files nor a network."""

from functools import partial
from html import escape
from pathlib import Path

from . import sections
from .cells import folded

# What the HTML page is made with. The package nbconvert itself can be imported also where its exporters cannot.
PACKAGES = ("fontTools.subset", "math_core", "nbconvert.exporters.html", "nbconvert.filters.markdown_mistune",
            "ziamath")


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
        renderer.block_html = renderer.inline_html = str    # embedding pictures would close each tag where it opens
        return MarkdownWithMath(renderer).render(sections.linked(text, known))

    template = Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    exporter = HTMLExporter(raw_template=template, exclude_input_prompt=True, exclude_output_prompt=True)
    # To clean the HTML would take half of the time, and the code is our own.
    for name, function in {"markdown2html": markdown, "folded": folded, "clean_html": lambda code: code}.items():
        exporter.register_filter(name, function)
    resources = {"metadata": {"name": job.name, "path": str(job.source.parent)}, "mathematics": style()}
    return exporter.from_notebook_node(notebook, resources)[0]
