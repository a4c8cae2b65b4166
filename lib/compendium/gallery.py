"""Files a notebook's figures, tables, ledger rows and findings."""

import base64
import io
import json
import os
import textwrap
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython import get_ipython
from IPython.display import HTML, Markdown, display
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from costbandits.analysis import figures
from costbandits.checks import require

from . import live as moving
from . import preparation
from .project import AUDIT, COMMITTED, up
from .publication import STANDIN


def house_style():
    """Switch a notebook to the house style: figures with small images, tables with readable numbers."""
    mpl.rcdefaults()        # whatever a matplotlibrc says that was read
    mpl.rcParams["figure.max_open_warning"] = mpl.rcParamsDefault["figure.max_open_warning"]      # is none of them
    figures.use()
    pd.set_option("display.float_format", number, "display.html.border", 0, "display.max_colwidth", None,
                  "display.width", 150, "display.max_columns", 20, "display.max_rows", 100)
    if get_ipython() is not None:       # pragma: no cover - in a notebook
        get_ipython().run_line_magic("matplotlib", "inline")
        get_ipython().display_formatter.formatters["image/png"].for_type(mpl.figure.Figure, png)


def number(value):
    """A number as tables and sentences show it: three digits, or whole with commas from a thousand to ten million.

    >>> [number(value) for value in (0.12345, 12.345, 999.6, 12345.6, 1.5e12)]
    ['0.123', '12.3', '1,000', '12,346', '1.5e+12']
    """
    short = f"{value:.3g}"
    return f"{value:,.0f}" if abs(float(short)) >= 1e3 and abs(value) < 1e7 else short


def png(fig, origin=""):
    """The figure as PNG bytes in 96 colours, a third of the usual size; `origin` goes into its metadata."""
    raw, small, text = io.BytesIO(), io.BytesIO(), PngInfo()
    fig.savefig(raw, format="png", dpi=fig.dpi)
    text.add_text("Description", origin)
    # No dithering: it would put noise into plain areas.
    pixels = Image.open(raw).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    pixels.save(small, "PNG", optimize=True, pnginfo=text)
    return small.getvalue()


class Gallery:
    """Files the figures and tables of a notebook of the current folder in `output`; "" files nothing (quick runs).

    Name, profile and seed stand in each picture's metadata. In a notebook, a parameter that a reader has typed and that
    cannot be played is refused before anything is.
    """

    def __init__(self, notebook, output="", profile="", seed=0):
        if get_ipython() is not None:
            preparation.check(up(notebook), notebook, get_ipython().user_ns)
        self.notebook, self.output = notebook, Path(output) if output else None
        self.origin = json.dumps({"notebook": notebook, "profile": profile, "seed": seed})
        # Where results at paper scale are: of this run if it files its own, else as committed.
        self._published = self.output or Path(up(notebook)) / "figures" / notebook
        self._story, self._brief, self._ahead = {"figures": {}, "findings": []}, None, {}
        self._moving = {}      # name -> what moves it, and the figure that stands still
        if self.output:
            self.output.mkdir(parents=True, exist_ok=True)

    def add(self, name, fig=None, table=None, says="", live=None):
        """File a figure as SVG and PNG and the table behind it as CSV, under `name`.

        What a figure `says`, in one sentence, is shown with it on the site's page of results, and in the README if it
        is one of its three figures. A figure that moves has the name of its script in book/_static/live and the data
        that this needs, `live=("fillings", {...})`. Returns the table at paper scale (`published`), which the text
        speaks of, or `table` itself if there is none. A committed audit links to the published picture.
        """
        require(fig is not None or not says, "says", says, "must come with a figure")
        require(fig is not None or live is None, "live", live, "must come with a figure")
        for text in fig.findobj(mpl.text.Text) if fig is not None else ():
            # White paper makes coloured text pale; what is written in white stands on dark ground.
            if mpl.colors.to_hex(text.get_color()) != "#ffffff":
                text.set_color(figures.ink(text.get_color()))
        if live is not None:
            self._moving[name] = moving.told(*live), fig
        real = name.removesuffix(STANDIN)
        picture = self._published / f"{real}.png"
        if self.output:
            self._file(name, fig, table, says)
        elif fig is not None and COMMITTED in os.environ and self.notebook.startswith(AUDIT) and picture.exists():
            plt.close(fig)
            display(HTML(f'<img src="{picture.as_posix()}" alt="figures/{self.notebook}/{real}.png">'))
        elif fig is not None and not self._is_published(real, fig, table):
            said = f"A picture of this run. The text speaks of figures/{self.notebook}/{real}.png."
            fig.supxlabel("\n".join(filter(None, (fig.get_supxlabel(), said))), fontsize=7.5, color=figures.GREY)
        there = pd.DataFrame() if table is None else self.published(name)
        if there.empty:
            return table
        index = [key for key in table.index.names if key in there]
        return there.set_index(index) if index else there

    def live(self, name):
        """Show a figure that was added with `live` as the site does: it answers to sliders, without a kernel."""
        told, fig = self._moving[name]
        still = base64.b64encode(png(fig)).decode()
        display(HTML(moving.alone(told, f'<img alt="" src="data:image/png;base64,{still}">')))

    def _file(self, name, fig, table, says):
        if says:
            self._story["figures"][name] = says
            self._tell()
        if fig is not None:
            # First the PNG, whose hinted letters are wider: in its layout, which is found only once, those of the SVG
            # fit, too. Neither when nor with which version: the same picture is the same bytes.
            (self.output / f"{name}.png").write_bytes(png(fig, self.origin))
            fig.set_layout_engine("none")
            fig.savefig(self.output / f"{name}.svg", format="svg",
                        metadata={"Date": None, "Creator": None, "Description": self.origin})
        if name in self._moving:
            (self.output / f"{name}.live.json").write_text(self._moving[name][0], encoding="utf-8")
        if table is not None:
            (self.output / f"{name}.csv").write_text(_csv(name, table), encoding="utf-8")
            ahead = self._ahead.get(name.removesuffix(STANDIN))
            if ahead is not None:
                there = self.published(name)
                ahead.update(there.set_index(there.columns[0]))

    def _is_published(self, name, fig, table):
        """Whether the published picture, if any, shows the same: the same table, or without one the same pixels."""
        picture, numbers = (self._published / f"{name}{kind}" for kind in (".png", ".csv"))
        if not picture.exists():
            return True
        if table is not None:
            return numbers.exists() and numbers.read_text(encoding="utf-8") == _csv(name, table)
        drawn = io.BytesIO(png(fig))
        return np.array_equal(*(Image.open(file).convert("RGB") for file in (picture, drawn)))

    def ahead(self, name):
        """Show the table `name` as published before the section that makes it; a run that files shows its own there."""
        there = self.published(name)
        shown = there.set_index(there.columns[0]) if len(there) else Markdown("*A later section makes this table.*")
        self._ahead[name] = display(shown, display_id=True)

    def tell(self, text):
        """Show a sentence in Markdown; its numbers are computed, so that they are those of the published tables."""
        display(Markdown(textwrap.dedent(text).strip()))

    def brief(self):
        """Show the findings as published, at the head of a chapter; a run that files shows its own when it ends."""
        path = self._published / "story.json"
        told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else self._story
        self._brief = display(_listed(told["findings"]), display_id=True)

    def finding(self, text, holds=True, shown=""):
        """Show a result in one or two sentences and file it for the head of the chapter, README and site.

        The text is Markdown, its numbers computed from tables at paper scale (`published`). Nothing happens unless it
        `holds`: whether the tables still say so. `shown` is the section that shows it, such as "4.2".
        """
        if holds:
            text += f" (section {shown})" if shown else ""
            self.tell(text)
            self._story["findings"].append(text)
            self._tell()

    def _tell(self):
        if self.output:
            if self._brief is not None:
                self._brief.update(_listed(self._story["findings"]))
            story = json.dumps(self._story, indent=1, ensure_ascii=False)
            (self.output / "story.json").write_text(story + "\n", encoding="utf-8")

    def published(self, name):
        """The table `name` at paper scale: of this run if it files its tables, else as committed."""
        path = self._published / f"{name}.csv"
        return pd.read_csv(path) if path.exists() else pd.DataFrame()


def _csv(name, table):
    counted = table.index.nlevels == 1 and list(table.index) == list(range(len(table)))
    require(counted or None not in table.index.names, f"index of table {name}", list(table.index.names),
            "must be named, or just count the rows")
    return table.to_csv(float_format="%.6g", lineterminator="\n", index=not counted)


def _listed(findings):
    """Findings as a list; a hint as long as there are none."""
    return Markdown("\n".join(f"- {text}" for text in findings) or "*No results yet: `make all` fills this in.*")
