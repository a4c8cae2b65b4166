"""Pictures that move, on the site and in JupyterLab, from one script each; book/_static/live has the scripts.

Functions with the name of a picture make the data behind it. `python -m compendium.live` plays those of the front page.
"""

import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import costbandits as cb
from costbandits.analysis import figures
from costbandits.checks import require

PLACE = Path(__file__).parents[2] / "book/_static/live"


def scripts(picture):
    """The names of the scripts that draw a picture, in the order in which they are loaded."""
    there = sorted(path.stem for path in PLACE.glob("*.js") if path.stem not in ("live", "rules"))
    require(picture in there, "live", picture, f"must be one of {', '.join(there)}")
    uses_rules = "live.rule(" in (PLACE / f"{picture}.js").read_text(encoding="utf-8")
    return ["live", *["rules"] * uses_rules, picture]


def told(picture, data):
    """What a picture is and the data behind it, as one line of JSON."""
    scripts(picture)
    return json.dumps({"picture": picture, "data": data}, ensure_ascii=False, separators=(",", ":"), allow_nan=False,
                      default=lambda values: values.tolist()) + "\n"


def wrapped(text, still):
    """A still image, in HTML or Markdown, that what is `told` moves where there is a screen and JavaScript."""
    picture, data = json.loads(text).values()
    data = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c")
    return f'<div class="live" data-live="{picture}">\n{still}\n<script type="application/json">{data}</script>\n</div>'


def alone(text, still):
    """The same with styles and scripts, for a page that has none: a cell of JupyterLab."""
    files = ["live.css", *(f"{name}.js" for name in scripts(json.loads(text)["picture"]))]
    css, *parts = [(PLACE / file).read_text(encoding="utf-8") for file in files]
    script = "\n".join([*parts, "requestAnimationFrame(live.begin);"])
    return f"<style>{css}</style>{wrapped(text, still)}<script>{{\n{script}\n}}</script>"


def looks(labels):
    """Label -> colour, dashes and colour of text of a policy, as in all figures."""
    found = {}
    for label in labels:
        colour, line = figures.style(label).values()
        dashes = "" if isinstance(line, str) else " ".join(f"{1.5 * part:g}" for part in line[1])
        found[label] = [mpl.colors.to_hex(colour), dashes, figures.ink(colour)]
    return found


def _inks(*colours, dashes=("", "", "")):
    return [[colour, dash, figures.ink(colour)] for colour, dash in zip(colours, dashes, strict=True)]


def luck(lost, follow):
    """Final regrets, label -> shape (replication,), of which means and medians are shown as runs come in."""
    short = {label: [float(f"{loss:.5g}") for loss in losses] for label, losses in lost.items()}
    return {"runs": short, "looks": looks(lost), "follow": follow, "start": 8}


def trap():
    """Gold and silver of the lesson on omega-UCB, played with gold's first costs all 1, and a rival held at 59."""
    return {"rewards": [1.0, 0.96], "costs": [0.005, 0.016], "arms": ["gold", "silver"], "level": 59,
            "rhos": [0.25, 0.5, 1.0, 2.0, 4.0], "rho": 1.0, "most": 4, "unlucky": 1, "rounds": 300_000, "last": 1e16,
            "seed": 7, "looks": _inks(figures.BLUE, figures.RED, figures.ORANGE)}


def fillings():
    """Three kinds of ice of the lesson on KUBE, and budgets up to 60."""
    return {"values": [0.9, 0.62, 0.3], "costs": [5, 4, 3], "arms": ["W", "M", "L"],
            "looks": _inks(figures.BLACK, figures.ORANGE, figures.SKY, dashes=("", "6 3", "2 2")),
            "methods": ["walnut only", "greedy", "best"], "budget": 13, "least": 3, "most": 60,
            "colours": [figures.BLUE, figures.RED, figures.GREEN]}


def rays():
    """Three machines of the lesson on Budget-UCB; in run 26 the best one fails and charges at its first try."""
    return {"rewards": [1.0, 0.5, 0.2], "costs": [1.0, 0.1, 0.5], "arms": ["large", "small", "old"], "least": 0.1,
            "explorations": [0.125, 0.25, 0.5, 1.0], "exploration": 0.125, "run": 26, "rounds": 5000,
            "looks": _inks(figures.BLUE, figures.RED, figures.GREEN)}


def cliff(losses, best=0.5, alpha=0.1, rounds=5000):
    """Regrets of policies by the quality of A, a DataFrame with this index, where B has the quality `best`."""
    means = [*map(float, losses.index)]
    return {"best": best, "alpha": alpha, "rounds": rounds, "means": means, "mean": means[len(means) // 2 - 1],
            "losses": losses.to_dict("list"), "looks": looks(losses)}


def own(runs=20):
    """Three arms to begin with, and four policies."""
    indices = {"m-UCB": cb.MUCB(), "ω*-UCB 1/4": cb.OmegaStarUCB(0.25), "KL-UCB-SC 1/4": cb.KLUCBSC(exploration=0.25)}
    policies = {"moment IMED 1/4": ["MomentIMED", [0.25, 1.0]],
                **{label: [type(each).__name__, each.parameters.tolist()] for label, each in indices.items()}}
    return {"rewards": [0.5, 0.4, 0.3], "costs": [0.4, 0.4, 0.4], "spread": 0.5, "budget": 200, "runs": runs,
            "most": 2500, "policies": policies, "looks": looks(policies)}


def still(lost):
    """The picture `luck` on paper: mean and median of the first runs, 2, 3, and so on."""
    ends, (fig, ax) = {}, plt.subplots(figsize=(6.4, 3.4))
    for label, losses in lost.items():
        n = np.arange(2, losses.size + 1)
        means = losses.cumsum()[1:] / n
        ends[label] = means[-1]
        ax.plot(n, means, **figures.style(label), lw=2)
        ax.plot(n, [np.median(losses[:k]) for k in n], **figures.style(label), lw=0.8)
    ax.set(xscale="log", yscale="log", xlabel="runs seen", title="Mean (bold) and median (thin) of the final regret")
    figures.name_lines(ax, ends)
    return fig


def main(folder=PLACE.parents[1] / "live", replications=1000):
    """Play what the front page moves, policies of the omega-UCB chapter on its Bernoulli arms, into this folder."""
    policies = {"ω-UCB 1/4": cb.OmegaUCB(0.25), "ω-UCB 1": cb.OmegaUCB(1.0), "m-UCB": cb.MUCB()}
    runs = cb.simulate(policies, cb.instances.bernoulli(10),
                       lambda bandit: cb.Budget(150_000 * bandit.cost_means.min()), replications, n_jobs=-1)
    lost = dict(zip(policies, cb.regret.budgeted(runs)[:, :, -1], strict=True))
    with plt.rc_context(figures.STYLE):
        still(lost).savefig(folder / "luck.svg", metadata={"Date": None, "Creator": None})
    (folder / "luck.live.json").write_text(told("luck", luck(lost, "m-UCB")), encoding="utf-8")


if __name__ == "__main__":
    main()
