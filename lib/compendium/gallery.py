"""Files a notebook's figures, tables, ledger rows and findings."""

import io
import json
import textwrap
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from costbandits.analysis import figures
from costbandits.checks import require


def house_style():
    """Switch a notebook to the house style, with small images."""
    from IPython import get_ipython  # only in a notebook
    figures.use()
    if get_ipython() is not None:
        get_ipython().run_line_magic("matplotlib", "inline")
        get_ipython().display_formatter.formatters["image/png"].for_type(mpl.figure.Figure, png)


def png(fig, dpi=None, origin=""):
    """The figure as PNG bytes in 96 colours, a third of the usual size; `origin` goes into its metadata."""
    raw, small, text = io.BytesIO(), io.BytesIO(), PngInfo()
    fig.savefig(raw, format="png", dpi=dpi or fig.dpi)
    text.add_text("Description", origin)
    # No dithering: it would put noise into plain areas.
    pixels = Image.open(raw).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    pixels.save(small, "PNG", optimize=True, pnginfo=text)
    return small.getvalue()


class Gallery:
    """Files a notebook's figures and tables, or nothing when there is no folder to file them in.

    Parameters
    ----------
    notebook : str
        Name of the notebook, such as "omega_ucb"; the current folder holds it.
    output : str
        Folder to write to; "" writes nothing (quick runs).
    profile : str
    seed : int
        With the notebook's name and the profile they stand in each picture's metadata.
    """

    def __init__(self, notebook, output="", profile="", seed=0):
        self.notebook, self.output = notebook, Path(output) if output else None
        self.origin = json.dumps({"notebook": notebook, "profile": profile, "seed": seed})
        self._story = {"figures": {}, "findings": []}
        if self.output:
            self.output.mkdir(parents=True, exist_ok=True)

    def add(self, name, fig=None, table=None, says=""):
        """File a figure as SVG and PNG and the table behind it as CSV, under `name`.

        A figure that `says` something, in one sentence, is shown with it by the README and REPRODUCTION.md.
        """
        if not self.output:
            return
        if says:
            self._story["figures"][name] = says
            self._tell()
        if fig is not None:
            # Neither when nor with which version: the same picture is the same bytes.
            quiet = {"Date": None, "Creator": None, "Description": self.origin}
            fig.savefig(self.output / f"{name}.svg", metadata=quiet)
            # The layout is found; finding it again for each further picture would take most of the time.
            fig.set_layout_engine("none")
            (self.output / f"{name}.png").write_bytes(png(fig, mpl.rcParams["savefig.dpi"], self.origin))
        if table is not None:
            counted = table.index.nlevels == 1 and list(table.index) == list(range(len(table)))
            require(counted or None not in table.index.names, f"index of table {name}", list(table.index.names),
                    "must be named, or just count the rows")
            table.to_csv(self.output / f"{name}.csv", float_format="%.6g", lineterminator="\n", index=not counted)

    def finding(self, text, holds=True):
        """Print a result in one or two sentences and file it for the README; nothing if it does not hold.

        Parameters
        ----------
        text : str
            Markdown, its numbers computed from tables at paper scale (`published`).
        holds : bool
            Whether the tables still say so.
        """
        if holds:
            print(textwrap.fill(text.replace("**", ""), 100))
            self._story["findings"].append(text)
            self._tell()

    def _tell(self):
        if self.output:
            story = json.dumps(self._story, indent=1, ensure_ascii=False)
            (self.output / "story.json").write_text(story + "\n", encoding="utf-8")

    def published(self, name):
        """The table `name` at paper scale: of this run if it files its tables, else as committed."""
        path = (self.output or Path("..") / "figures" / self.notebook) / f"{name}.csv"
        return pd.read_csv(path) if path.exists() else pd.DataFrame()
