"""House style: one colour and line style per policy in all notebooks, and the kinds of figure that several use."""

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from seaborn.utils import relative_luminance

from ..checks import count, require
from .statistics import resamples

# Okabe and Ito's colours, safe for the colour-blind, a darker yellow; line styles tell the rest apart, also in grey.
BLACK, ORANGE, SKY, GREEN, YELLOW = "#000000", "#E69F00", "#56B4E9", "#009E73", "#C9B800"
BLUE, RED, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
SOLID, DASHED, DOTTED, DENSE, SPARSE, MIXED = "-", *((0, dashes) for dashes in (
    (5, 2), (1, 1.5), (1, 1), (1, 3), (3, 1, 1, 1)))

# label -> (colour, line style). No two policies of one cast look alike (ω-UCB and ω-UCB 1/4 are the same policy).
CASTS = {
    "ω-UCB": (BLUE, SOLID), "ω-UCB 1/4": (BLUE, SOLID), "ω-UCB 1": (BLUE, DASHED),
    "ω*-UCB 1/4": (SKY, SOLID), "ω*-UCB 1": (SKY, DASHED),
    "m-UCB": (RED, SOLID), "c-UCB": (RED, DASHED), "i-UCB": (RED, DOTTED), "b-greedy": (GREY, MIXED),
    "Budget-UCB": (PURPLE, SOLID), "UCB-SC+": (ORANGE, SOLID), "BTS": (GREEN, SOLID), "UCB-B2": (BLACK, DENSE),
    "KL-UCB-SC": (ORANGE, MIXED), "KL-UCB-SC+": (ORANGE, DENSE), "KL-UCB-SC 1/4": (ORANGE, SPARSE),
    "ω-KL-UCB 1": (GREEN, SPARSE), "ω-KL-UCB 1/4": (GREEN, DENSE),
    "UCB-BV1": (PURPLE, DASHED), "vUCB-BV1": (ORANGE, DOTTED), "UCB1": (YELLOW, SOLID),
    "ε-greedy 1": (SKY, MIXED), "ε-greedy 3": (SKY, DOTTED), "ε-greedy 5": (SKY, SPARSE),
    "Budget-CB": (RED, MIXED), "Budget-CB, printed radius": (RED, SPARSE), "Budget-CB, determinant": (RED, DENSE),
    "CB": (BLACK, DASHED),
    "KUBE": (BLACK, SOLID), "fractional KUBE": (ORANGE, DASHED),
    "ε-first 0.05": (GREEN, DOTTED), "ε-first 0.1": (GREEN, DASHED), "ε-first 0.2": (GREEN, MIXED),
    "ε-first, shrinking": (YELLOW, DASHED),
}, {
    "SUAK": (BLUE, SOLID), "OPS": (RED, SOLID), "OPS 3logt": (RED, DASHED), "OPS 2logT": (RED, DOTTED),
    "OPS 2.5logT": (RED, MIXED),
    "PDS": (GREEN, SOLID), "USS": (PURPLE, SOLID), "USS 5": (PURPLE, DASHED),
    "SUAK-2": (BLUE, DASHED), "ControlBudget": (BLACK, DASHED), "known means": (BLACK, DOTTED),
}, {
    "CS-TS": (GREEN, SOLID), "CS-TS, Gaussian": (GREEN, DASHED), "CS-UCB": (RED, SOLID), "CS-ETC": (BLUE, SOLID),
    "commit once": (SKY, DASHED), "blind": (BLACK, DOTTED), "PE-CS": (PURPLE, SOLID),
    "CS-elimination": (ORANGE, SOLID), "CS-VOI": (BLACK, SOLID),
}
POLICIES = {label: look for cast in CASTS for label, look in cast.items()}

PAGE = 9.6        # inches: the width of a figure that a page of the site shows with its letters in full size
STYLE = {
    "figure.dpi": 80, "figure.constrained_layout.use": True,
    "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8, "legend.frameon": False,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#E6E6E6", "grid.linewidth": 0.6, "lines.linewidth": 1.5,
    "svg.hashsalt": "costbandits", "svg.fonttype": "none",
    "axes.prop_cycle": mpl.cycler(color=[BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW]),
}


def use() -> None:
    """Switch matplotlib to the house style.

    >>> with mpl.rc_context():
    ...     cb.figures.use()
    ...     mpl.rcParams["font.size"]
    9.0
    """
    plt.rcParams.update(STYLE)


def style(label: str) -> dict:
    """Line properties of a policy by its label in the figures, for matplotlib; grey for one that is not ours.

    `cb.figures.POLICIES["mine"] = "#D55E00", "--"` gives one of yours a colour and a line.

    >>> cb.figures.style("BTS")
    {'color': '#009E73', 'linestyle': '-'}
    """
    colour, line = POLICIES.get(label, (GREY, SOLID))
    return {"color": colour, "linestyle": line}


def ink(colour: str) -> str:
    """This colour for text on white, darkened where its contrast is less than 4.5 (WCAG 2.1, level AA).

    >>> [cb.figures.ink(colour) for colour in ("#0072B2", "#E69F00")]
    ['#0072b2', '#9e6d00']
    """
    shades = (share * np.array(mpl.colors.to_rgb(colour)) for share in np.linspace(1, 0, 201))
    return mpl.colors.to_hex(next(shade for shade in shades if 1.05 / (relative_luminance(shade) + 0.05) >= 4.5))


def name_lines(ax: Axes, ends: dict[str, float], gap: float = 0.055) -> None:
    """Write each line's name right of its end, where a thin line leads to it; names that would overlap move apart.

    `ends` maps labels to the y of the line's last point; `gap`, in heights of the axis, is the least between names.

    >>> ax = Figure().add_subplot()
    >>> cb.figures.name_lines(ax, {"BTS": 0.5, "m-UCB": 0.5})
    >>> [(name.get_text(), round(float(name.xyann[1]), 4)) for name in ax.texts]
    [('BTS', 0.4725), ('m-UCB', 0.5275)]
    """
    require(len(ends) > 0, "ends", ends, "must be a dict label -> y with at least one line")
    ax.margins(x=0)         # lines end where the axis ends, unless its limits were set
    to_axis = ax.transAxes.inverted().transform
    heights = {label: to_axis(ax.transData.transform((ax.get_xlim()[1], y)))[1] for label, y in ends.items()}
    labels = sorted(heights, key=heights.get)
    # Less a step for each name below it, no height may fall: the nearest such heights are an isotonic regression.
    steps = gap * np.arange(len(labels))
    placed = isotonic_regression([heights[label] for label in labels] - steps).x
    for label, y in zip(labels, np.clip(placed, 0.0, 1.0 - steps[-1]) + steps, strict=True):
        colour = style(label)["color"]
        leader = {"arrowstyle": "-", "color": colour, "lw": 0.7, "relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 1}
        ax.annotate(label, (1, np.clip(heights[label], 0, 1)), xycoords="axes fraction", annotation_clip=False,
                    xytext=(12, y), textcoords=("offset points", "axes fraction"), arrowprops=leader,
                    va="center", fontsize=8, color=ink(colour))


def curves(ax: Axes, x: ArrayLike, runs: dict[str, np.ndarray], band: str | None = None,
           center: str = "mean") -> dict[str, float]:
    """Draw one curve per policy over x, the mean or median of its runs; returns where each one ends, for `name_lines`.

    x has shape (C,), the runs of each label (replication, C). `band` is None, "interval" (95 % bootstrap interval of
    the mean), "spread" (the 10-90 % quantiles of the runs), or "deviation" (a standard deviation either way).

    >>> ends = cb.figures.curves(Figure().add_subplot(), [1, 2], {"BTS": np.array([[1.0, 3.0], [1.0, 4.0]])})
    >>> float(ends["BTS"])
    3.5
    """
    bands = {"interval": lambda values: np.quantile(resamples(len(values)) @ values, [0.025, 0.975], axis=0),
             "spread": lambda values: np.quantile(values, [0.1, 0.9], axis=0),
             "deviation": lambda values: values.mean(axis=0) + np.outer([-1, 1], values.std(axis=0))}
    require(band is None or band in bands, "band", band, f"must be None or one of {list(bands)}")
    require(center in ("mean", "median"), "center", center, "must be 'mean' or 'median'")
    ends = {}
    for label, values in runs.items():
        shape = np.shape(values)
        require(len(shape) == 2 and shape[1] == len(x), f"runs[{label!r}].shape", shape, f"must be (any, {len(x)})")
        middle = values.mean(axis=0) if center == "mean" else np.median(values, axis=0)
        ax.plot(x, middle, **style(label), marker="" if len(x) > 1 else "o")        # a line of one point is invisible
        ends[label] = middle[-1]
        if band is not None:
            low, high = bands[band](values)
            ax.fill_between(x, low, high, color=style(label)["color"], alpha=0.15, linewidth=0)
    return ends


def _grid(number, columns, size, **shared):
    """A figure with `number` axes in rows, and these axes in order; `size` is that of one of them, in inches.

    They are narrower where the figure would be wider than a page and its text would be shrunk.
    """
    rows = -(-number // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(min(size[0] * columns, PAGE), size[1] * rows), squeeze=False,
                             sharex=True, layout="constrained", **shared)
    for ax, above in zip(axes[-1], axes[max(rows - 2, 0)], strict=True):
        if ax in axes.flat[number:]:
            ax.remove()
            above.tick_params(labelbottom=True, which="both")      # now nothing below it shows its ticks
    return fig, axes.flat[:number]


def _require_parts(name, parts, kind, allowed):
    """Refuse anything but a dict of parts of this kind, none of them empty; the message names types, not arrays."""
    ok = isinstance(parts, dict) and len(parts) > 0 and all(isinstance(p, kind) and len(p) > 0 for p in parts.values())
    told = {title: type(part).__name__ for title, part in parts.items()} if isinstance(parts, dict) else type(parts)
    require(ok, name, told, f"must be a dict title -> {allowed}; neither it nor any of these may be empty")


def panels(x: ArrayLike, groups: dict[str, dict[str, np.ndarray]], columns: int = 3, band: str | None = None,
           center: str = "mean", height: float = 2.9, xlabel: str = "share of the budget spent",
           ylabel: str = "regret (reward units)") -> Figure:
    """One panel of `curves` per setting on logarithmic axes, policies named at the right end; returns the figure.

    `groups` maps titles to the `runs` of `curves`. `height` is of a panel, in inches; `columns` panels make a row. The
    labels of the axes have to be given where x is no share of the budget, or what is shown no regret.

    >>> figure = cb.figures.panels([0.1, 1.0], {"ten arms": {"BTS": np.array([[1.0, 3.0], [2.0, 4.0]])}}, columns=1)
    >>> [ax.get_title() for ax in figure.axes]
    ['ten arms']
    >>> plt.close(figure)
    """
    _require_parts("groups", groups, dict, "dict label -> array")
    fig, axes = _grid(len(groups), count("columns", columns), (4.3, height))
    for ax, (title, runs) in zip(axes, groups.items(), strict=True):
        ends = curves(ax, x, runs, band, center)
        ax.set(xscale="log", yscale="log", title=title, xlim=(x[0], x[-1]) if len(x) > 1 else None)
        name_lines(ax, ends)
    fig.supxlabel(xlabel, fontsize=9)
    fig.supylabel(ylabel, fontsize=9)
    return fig


def forest(tables: dict[str, pd.DataFrame], xlabel: str, columns: int = 3, height: float = 2.5) -> Figure:
    """Intervals of ratios, one panel per setting and one line per rival, with a mark at 1; returns the figure.

    `tables` maps titles to what `statistics.table` makes: a (the rival), ratio_estimate, ratio_low and ratio_high.

    >>> table = pd.DataFrame({"a": ["BTS"], "ratio_estimate": [2.0], "ratio_low": [1.5], "ratio_high": [2.5]})
    >>> figure = cb.figures.forest({"ten arms": table}, "mean regret over that of ω-UCB", columns=1)
    >>> plt.close(figure)
    """
    _require_parts("tables", tables, pd.DataFrame, "DataFrame")
    fig, axes = _grid(len(tables), count("columns", columns), (3.8, height), sharey=True)
    for ax, (title, part) in zip(axes, tables.items(), strict=True):
        for y, row in enumerate(part.itertuples()):
            colour = style(row.a)["color"]
            ax.plot([row.ratio_low, row.ratio_high], [y, y], color=colour, lw=2)
            ax.plot(row.ratio_estimate, y, "o", ms=4, color=colour)
        ax.axvline(1, color="k", lw=0.8)
        ax.set(xscale="log", title=title, yticks=range(len(part)), yticklabels=part.a)
    axes[0].invert_yaxis()
    fig.supxlabel(xlabel, fontsize=9)
    return fig


def matrix(ax: Axes, shares: ArrayLike, labels: Sequence[str], title: str) -> None:
    """Head-to-head matrix: how often the row's policy beats the column's, in per cent; the diagonal is left blank.

    `shares`, of shape (policy, policy), are in [0, 1].

    >>> ax = Figure().add_subplot()
    >>> cb.figures.matrix(ax, [[0.5, 0.9], [0.1, 0.5]], ["BTS", "m-UCB"], "row beats column, % of replications")
    >>> [text.get_text() for text in ax.texts]
    ['90', '10']
    """
    square = (len(labels), len(labels))
    require(np.shape(shares) == square, "shares.shape", np.shape(shares), f"must be {square}, as there are labels")
    rates = pd.DataFrame(100 * np.asarray(shares), labels, labels).mask(np.eye(len(labels), dtype=bool))
    # One hue, so that a copy in grey tells winning from losing.
    _heat_map(ax, rates, title, 60, 6.5, annot=True, fmt=".0f", cmap="Blues", vmin=0, vmax=100, square=True)


def _heat_map(ax, table, title, rotation, size, **options):
    """A DataFrame as shaded cells with numbers of this font size; cells that are NaN stay blank."""
    sns.heatmap(table, ax=ax, annot_kws={"fontsize": size}, cbar=False, xticklabels=True, yticklabels=True, **options)
    ax.set(title=title, xlabel="", ylabel="")
    ax.set_xticks(ax.get_xticks(), table.columns, rotation=rotation, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.grid(False)
    # seaborn writes white on middle tones, where black is easier to read.
    for text, value in zip(ax.texts, table.to_numpy()[table.notna()], strict=True):
        text.set_color("w" if ax.collections[0].norm(value) > 0.6 else "k")


def landscape(ax: Axes, ratios: pd.DataFrame, unbeaten: pd.DataFrame, title: str) -> None:
    """Which policy for which problem: numbers in cells that darken from 1 to 100, a frame around the unbeaten.

    `ratios`, of shape (family, policy), are losses over that of the best policy of the row, 1 or more; NaN for a policy
    that does not play. `unbeaten`, of the same shape, says where to draw a frame.

    >>> ratios = pd.DataFrame([[1.0, 31.4]], index=["ten arms"], columns=["BTS", "UCB1"])
    >>> ax = Figure().add_subplot()
    >>> cb.figures.landscape(ax, ratios, ratios == 1, "random costs")
    >>> [text.get_text() for text in ax.texts], len(ax.patches)
    (['1', '31'], 1)
    """
    require(ratios.shape == unbeaten.shape, "unbeaten.shape", unbeaten.shape, f"must be that of ratios, {ratios.shape}")
    _heat_map(ax, ratios, title, 50, 7, annot=ratios.map(_brief), fmt="", cmap="YlGnBu",
              norm=mpl.colors.LogNorm(1, 100))
    for text in ax.texts:
        j, i = map(int, text.get_position())
        if unbeaten.iloc[i, j]:
            text.set_weight("bold")
            ax.add_patch(plt.Rectangle((j + 0.04, i + 0.06), 0.92, 0.88, fill=False, edgecolor=RED, linewidth=1.6))


def _brief(ratio):
    """A ratio in at most four characters: 1, 1.04, 3.2, 140, 9e3."""
    if ratio >= 999.5:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    text = f"{ratio:.2f}" if ratio < 1.995 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"
    return "1" if ratio == 1 else text
