"""House style: one colour and line style per policy in all notebooks, and the kinds of figure that several use."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import isotonic_regression

from ..checks import count, require

# Okabe and Ito's colours, safe for the colour-blind; line styles tell the rest apart, also in greyscale.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#C9B800",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
GREY = "#7F7F7F"

# label -> (colour, line style). Ours in blue, rivals in the other colours; no two alike in one cast.
CASTS = {
    "ω-UCB": (BLUE, "-"),
    "ω-UCB 1/4": (BLUE, "-"),
    "ω-UCB 1": (BLUE, (0, (5, 2))),
    "ω*-UCB 1/4": (SKY, "-"),
    "ω*-UCB 1": (SKY, (0, (5, 2))),
    "m-UCB": (RED, "-"),
    "c-UCB": (RED, (0, (5, 2))),
    "i-UCB": (RED, (0, (1, 1.5))),
    "b-greedy": (GREY, (0, (3, 1, 1, 1))),
    "Budget-UCB": (PURPLE, "-"),
    "UCB-SC+": (ORANGE, "-"),
    "BTS": (GREEN, "-"),
    "UCB-B2": (BLACK, (0, (1, 1))),
    "UCB-BV1": (PURPLE, (0, (5, 2))),
    "vUCB-BV1": (ORANGE, (0, (1, 1.5))),
    "UCB1": (YELLOW, "-"),
    "ε-greedy 1": (SKY, (0, (3, 1, 1, 1))),
    "ε-greedy 3": (SKY, (0, (1, 1.5))),
    "ε-greedy 5": (SKY, (0, (1, 3))),
    "Budget-CB": (RED, (0, (3, 1, 1, 1))),
    "Budget-CB, printed radius": (RED, (0, (1, 3))),
    "CB": (BLACK, (0, (5, 2))),
    "KUBE": (BLACK, "-"),
    "fractional KUBE": (ORANGE, (0, (5, 2))),
    "ε-first 0.05": (GREEN, (0, (1, 1.5))),
    "ε-first 0.1": (GREEN, (0, (5, 2))),
    "ε-first 0.2": (GREEN, (0, (3, 1, 1, 1))),
    "ε-first, shrinking": (YELLOW, (0, (5, 2))),
}, {
    "SUAK": (BLUE, "-"),
    "OPS": (RED, "-"),
    "OPS 3logt": (RED, (0, (5, 2))),
    "OPS 2logT": (RED, (0, (1, 1.5))),
    "PDS": (GREEN, "-"),
    "USS": (PURPLE, "-"),
    "USS 5": (PURPLE, (0, (5, 2))),
}, {
    "CS-TS": (GREEN, "-"),
    "CS-TS, Gaussian": (GREEN, (0, (5, 2))),
    "CS-UCB": (RED, "-"),
    "CS-ETC": (BLUE, "-"),
    "commit once": (SKY, (0, (5, 2))),
    "blind": (BLACK, (0, (1, 1.5))),
    "PE-CS": (PURPLE, "-"),
}
POLICIES = {label: look for cast in CASTS for label, look in cast.items()}

STYLE = {
    "figure.dpi": 80,
    "savefig.dpi": 110,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "costbandits",
    "svg.fonttype": "none",
    "axes.prop_cycle": mpl.cycler(color=[BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW]),
}


def use():
    """Switch matplotlib to the house style."""
    plt.rcParams.update(STYLE)


def style(label):
    """Line properties of a policy by its label; grey for one that is not ours.

    Parameters
    ----------
    label : str
        As in the figures, such as "BTS".

    Returns
    -------
    dict
        "color" and "linestyle", for matplotlib.
    """
    colour, line = POLICIES.get(label, (GREY, "-"))
    return {"color": colour, "linestyle": line}


def name_lines(ax, ends, gap=0.045):
    """Write each line's name at its right end; names that would overlap are moved apart, as little as possible.

    Parameters
    ----------
    ends : dict label -> y of the line's last point
    gap : float
        Least distance between two names as a share of the axis' height.
    """
    to_axis = ax.transAxes.inverted().transform
    heights = {label: to_axis(ax.transData.transform((ax.get_xlim()[1], y)))[1] for label, y in ends.items()}
    labels = sorted(heights, key=heights.get)
    # Less a step for each name below it, no height may fall: the nearest such heights are an isotonic regression.
    steps = gap * np.arange(len(labels))
    placed = isotonic_regression([heights[label] for label in labels] - steps).x
    for label, y in zip(labels, np.clip(placed, 0.0, 1.0 - steps[-1]) + steps, strict=True):
        ax.annotate(
            label,
            (1.01, y),
            xycoords="axes fraction",
            va="center",
            fontsize=7.5,
            color=style(label)["color"],
            annotation_clip=False,
        )


def curves(ax, x, runs, band=None, center="mean"):
    """Draw one curve per policy over x.

    Parameters
    ----------
    ax : matplotlib Axes
    x : array of shape (C,)
    runs : dict label -> array of shape (replication, C)
    band : {None, "interval", "spread", "deviation"}
        95 % bootstrap interval of the mean, the 10-90 % quantiles of the runs, or a standard deviation either way.
    center : {"mean", "median"}

    Returns
    -------
    dict label -> float
        Where each curve ends, for `name_lines`.
    """
    bands = {"interval": _resampled, "spread": lambda values: np.quantile(values, [0.1, 0.9], axis=0),
             "deviation": lambda values: values.mean(axis=0) + np.outer([-1, 1], values.std(axis=0))}
    require(band is None or band in bands, "band", band, f"must be None or one of {list(bands)}")
    require(center in ("mean", "median"), "center", center, "must be 'mean' or 'median'")
    ends = {}
    for label, values in runs.items():
        middle = values.mean(axis=0) if center == "mean" else np.median(values, axis=0)
        ax.plot(x, middle, **style(label))
        ends[label] = middle[-1]
        if band is not None:
            low, high = bands[band](values)
            ax.fill_between(x, low, high, color=style(label)["color"], alpha=0.15, linewidth=0)
    return ends


def _grid(number, columns, size, **shared):
    """A figure with `number` axes in rows, and these axes in order; `size` is that of one of them, in inches."""
    rows = -(-number // columns)
    fig, axes = plt.subplots(
        rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False, sharex=True, **shared
    )
    for ax, above in zip(axes[-1], axes[max(rows - 2, 0)], strict=True):
        if ax in axes.flat[number:]:
            ax.remove()
            above.tick_params(labelbottom=True, which="both")      # now nothing below it tells its ticks
    return fig, axes.flat[:number]


def _require_parts(name, parts, kind, allowed):
    """Refuse anything but a dict of parts of this kind, none of them empty; the message tells types, not arrays."""
    ok = isinstance(parts, dict) and len(parts) > 0 and all(isinstance(p, kind) and len(p) > 0 for p in parts.values())
    told = {title: type(part).__name__ for title, part in parts.items()} if isinstance(parts, dict) else type(parts)
    require(ok, name, told, f"must be a dict title -> {allowed}; neither it nor any of these may be empty")


def panels(
    x,
    groups,
    columns=3,
    band=None,
    center="mean",
    height=2.9,
    xlabel="share of the budget spent",
    ylabel="regret (reward units)",
):
    """One panel of `curves` per setting on logarithmic axes, policies named at the right end; returns the figure.

    Parameters
    ----------
    x : array of shape (C,)
    groups : dict title -> dict label -> array of shape (replication, C)
    columns : int
        Panels in a row.
    """
    _require_parts("groups", groups, dict, "dict label -> array")
    fig, axes = _grid(len(groups), count("columns", columns), (4.3, height))
    for ax, (title, runs) in zip(axes, groups.items(), strict=True):
        ends = curves(ax, x, runs, band, center)
        ax.set(xscale="log", yscale="log", title=title, xlim=(x[0], x[-1]), xlabel=xlabel, ylabel=ylabel)
        name_lines(ax, ends)
    return fig


def forest(tables, xlabel, columns=3, height=2.5):
    """Intervals of ratios, one panel per setting and one line per rival, with a mark at 1; returns the figure.

    Parameters
    ----------
    tables : dict title -> DataFrame
        Columns a (the rival), ratio_estimate, ratio_low, ratio_high, as made by `statistics.table`.
    columns : int
        Panels in a row.
    """
    import pandas as pd

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


def matrix(ax, shares, labels, title):
    """Head-to-head matrix: how often the row's policy beats the column's, in per cent.

    Parameters
    ----------
    ax : matplotlib Axes
    shares : array of shape (policy, policy)
        In [0, 1], as made by `statistics.wins`; the diagonal is left blank.
    labels : sequence of str
    title : str
    """
    others = np.where(np.eye(len(labels), dtype=bool), np.nan, shares)
    ax.imshow(others, cmap="Blues", vmin=0, vmax=1)      # one hue, so that a copy in grey tells winning from losing
    ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(labels)), labels)
    for i, j in np.argwhere(~np.eye(len(labels), dtype=bool)):
        colour = "w" if shares[i, j] > 0.6 else "k"
        ax.text(j, i, f"{100 * shares[i, j]:.0f}", ha="center", va="center", fontsize=6.5, color=colour)
    ax.set(title=title)
    ax.grid(False)


def landscape(ax, ratios, unbeaten, title):
    """Which policy for which problem: numbers in cells that darken from 1 to 100, a frame around the unbeaten.

    Parameters
    ----------
    ratios : DataFrame of shape (family, policy)
        Loss over that of the best policy of its row, 1 or more; NaN for a policy that does not play.
    unbeaten : DataFrame of bool, of the same shape
        Where to draw a frame.
    """
    shade = mpl.colors.LogNorm(1, 100)
    ax.imshow(ratios, cmap="YlGnBu", norm=shade, aspect="auto")
    ax.set_xticks(range(ratios.shape[1]), ratios.columns, rotation=50, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(ratios.shape[0]), ratios.index)
    for (i, j), ratio in np.ndenumerate(ratios.to_numpy(float)):
        if np.isnan(ratio):
            continue
        marked = bool(unbeaten.to_numpy()[i, j])
        ax.text(j, i, _brief(ratio), ha="center", va="center", fontsize=7, weight="bold" if marked else "normal",
                color="w" if shade(ratio) > 0.6 else "k")
        if marked:
            ax.add_patch(plt.Rectangle((j - 0.46, i - 0.44), 0.92, 0.88, fill=False, edgecolor=RED, linewidth=1.6))
    ax.set(title=title)
    ax.grid(False)


def _brief(ratio):
    """A ratio in at most four characters: 1, 1.04, 3.2, 140, 9e3."""
    if ratio >= 999.5:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    text = f"{ratio:.2f}" if ratio < 1.995 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"
    return "1" if ratio == 1 else text


def _resampled(values, resamples=500):
    n = len(values)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), resamples) / n
    return np.quantile(weights @ values, [0.025, 0.975], axis=0)
