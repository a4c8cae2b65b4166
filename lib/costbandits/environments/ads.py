"""The social-media advertising data of the omega-UCB paper: from a file of ads to bandit settings.

The data is not ours to ship: `data/README.md` says how to get it, and `find` where it is looked for.

From ads to settings, in this order (`steps` counts what each step leaves):

1. `rows="first761"`: the first 761 rows of the file, before anything else; `rows="all"`: all of them.
2. Keep ads that cost anything: Spent > 0.
3. Keep ads with at least as many clicks as conversions (otherwise the reward of a click would exceed 1).
   `conversions="total"` counts all of them, Total_Conversion; `"approved"` purchases alone, Approved_Conversion.
4. Group by campaign x age x gender; a group of at least two ads is a setting. Settings are sorted by that key, the
   campaign as a number; arms keep the order of the file.
5. An ad's expected cost is Spent / Clicks, its expected reward conversions / Clicks; a reward of 0 becomes 0.01.
6. Both are divided by their maxima within the group and multiplied by 0.99.

Steps 2 and 3 look at single rows and commute. They must precede step 6, or ads that are thrown away (with rewards
above 1) would set the maxima; and 0.01 stands for 0 *before* the division, in conversions per click.

The first 761 rows and all conversions give the paper's 19 settings of 2 to 93 ads. That rows are missing, and which
conversions count, is inferred: `data/README.md` says from what. Source: Heyden et al., section 5.1, and their public
code; counts were made in the file.
"""

import csv
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..checks import FINITE, count, flag, frozen, numbers, require

if TYPE_CHECKING:
    import pandas as pd

FILE = "KAG_conversion_data.csv"
VARIABLE = "COSTBANDITS_ADS"
CHECKSUM = "e284022797522b37ef3cc707c2723616"
COLUMNS = ("ad_id", "xyz_campaign_id", "fb_campaign_id", "age", "gender", "interest", "Impressions", "Clicks", "Spent",
           "Total_Conversion", "Approved_Conversion")
HOW_TO_GET = (f"Download {FILE} from https://www.kaggle.com/datasets/loveall/clicks-conversion-tracking and put it "
              f"into the checkout's data/ folder, or set {VARIABLE} to its path; settings(standin=True) needs no file.")

_KEY = ["xyz_campaign_id", "age", "gender"]
_NUMBERS = ("xyz_campaign_id", "Clicks", "Spent", "Total_Conversion", "Approved_Conversion")
CONVERSIONS = {"total": "Total_Conversion", "approved": "Approved_Conversion"}

# Numbers of arms, the shape that the stand-in shares with the data: campaigns 916 and 936 are the same in both cases.
_WHOLE = {"916_30-34_F": 7, "916_30-34_M": 9, "916_35-39_F": 3, "916_35-39_M": 6, "916_40-44_M": 3, "916_45-49_F": 2,
          "916_45-49_M": 3, "936_30-34_F": 54, "936_30-34_M": 38, "936_35-39_F": 33, "936_35-39_M": 23,
          "936_40-44_F": 34, "936_40-44_M": 21, "936_45-49_F": 54, "936_45-49_M": 24}
SIZES = {
    "first761": {**_WHOLE, "1178_30-34_M": 93, "1178_35-39_M": 77, "1178_40-44_M": 57, "1178_45-49_M": 4},
    "all": {**_WHOLE, "1178_30-34_F": 85, "1178_30-34_M": 102, "1178_35-39_F": 57, "1178_35-39_M": 88,
            "1178_40-44_F": 60, "1178_40-44_M": 68, "1178_45-49_F": 70, "1178_45-49_M": 78},
}


@dataclass(frozen=True, eq=False)
class Setting:
    """The arms of one bandit: a group of ads shown to the same people in the same campaign.

    `name` is campaign, age and gender, as in "936_35-39_F"; it ends in "_standin" for a synthetic setting, and
    `standin` is True. The means are strictly between 0 and 1, one per arm, kept as read-only arrays of shape (K,).

    >>> Setting("936_35-39_F", reward_means=[0.2, 0.4], cost_means=[0.5, 0.5]).ratios
    array([0.4, 0.8])
    """
    name: str
    reward_means: np.ndarray
    cost_means: np.ndarray
    standin: bool = False

    def __post_init__(self):
        require(isinstance(self.name, str) and self.name != "", "name", self.name, "must be a non-empty text")
        shape = ("K",)
        for what in ("reward_means", "cost_means"):
            means = numbers(what, getattr(self, what), 0, np.nextafter(1, 0), "must be numbers in (0, 1)", above=0,
                            shape=shape).copy()
            object.__setattr__(self, what, frozen(means))
            shape = means.shape

    @property
    def K(self) -> int:
        """Number of arms."""
        return len(self.reward_means)

    @property
    def ratios(self) -> np.ndarray:
        """Expected reward per expected cost of each arm, shape (K,)."""
        return self.reward_means / self.cost_means

    def __repr__(self):
        # Short, and without numbers: those of single ads are not ours to print into a notebook that is published.
        return f"Setting({self.name!r}, K={self.K}, standin={self.standin})"


def find(path: str | os.PathLike | None = None) -> Path:
    """Where the data file is: `path`, else what COSTBANDITS_ADS says, else the checkout's `data/` folder.

    The first of these that is given counts, even if there is no file: what was asked for is never replaced silently.
    Raises FileNotFoundError if the file is not there; the message says how to get it.

    >>> find("no.csv")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    require(path is None or (isinstance(path, str | os.PathLike) and os.fspath(path) != ""), "path", path,
            f"must be the path of {FILE}, or None to look for it")
    places = {"given as path": path, f"named by {VARIABLE}": os.environ.get(VARIABLE),
              "the default place": _data_folder() / FILE}
    origin, place = next((origin, Path(place).expanduser()) for origin, place in places.items() if place)
    require(not place.is_dir(), "ads file", str(place), f"is a folder ({origin}); must be the file {FILE}")
    if not place.is_file():
        raise FileNotFoundError(f"ads file {str(place)!r} ({origin}) does not exist. {HOW_TO_GET}")
    return place


def _data_folder():
    # An editable install runs this very file in the checkout, three folders below its root. Elsewhere there is no
    # checkout to look into, and the path comes out relative: data/ where the user works.
    root = Path(__file__).resolve().parents[3]
    return root / "data" if (root / "pyproject.toml").is_file() else Path("data")


def load(path: str | os.PathLike | None = None, checksum: str = CHECKSUM) -> "pd.DataFrame":
    """Read the file of ads, after making sure that it is the one the results rest on.

    The table has the columns `COLUMNS`, one row per ad, in the order of the file. `path` is as in `find`; `checksum` is
    the MD5 sum that the file must have: name another one to use another file of these columns. Raises FileNotFoundError
    if the file is not there, and ValueError if it is a folder, empty, altered, or lacks columns or numbers.

    >>> load("no.csv")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    require(isinstance(checksum, str) and len(checksum) == 32 and set(checksum.lower()) <= set("0123456789abcdef"),
            "checksum", checksum, "must be an MD5 sum, 32 hexadecimal digits")
    place = find(path)
    data = place.read_bytes()
    # The file begins with a byte order mark; "utf-8-sig" removes it, and does without.
    text = data.decode("utf-8-sig", "replace")
    require(text.strip() != "", "ads file", str(place), f"is empty. {HOW_TO_GET}")
    columns = tuple(text.splitlines()[0].split(","))
    require(columns == COLUMNS, "ads file", str(place), f"has the wrong columns, {', '.join(columns)[:200]}; "
            f"must be {', '.join(COLUMNS)}. {HOW_TO_GET}")
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    require(found == checksum.lower(), "ads file", str(place), f"was altered or is another one: its MD5 sum is "
            f"{found}, must be {checksum}. {HOW_TO_GET} To use this very file, say checksum={found!r}.")
    return _parsed(text, f"ads file {str(place)!r}")


def _parsed(text, name):
    import pandas as pd
    require("\ufffd" not in text, name, "another encoding", "must be UTF-8 text")
    widths = {len(row) for row in csv.reader(io.StringIO(text)) if row}
    require(widths == {len(COLUMNS)}, name, sorted(widths), f"must have {len(COLUMNS)} cells in every row")
    table = pd.read_csv(io.StringIO(text))
    require(len(table) > 0, name, "no row", "must have one row per ad below its header")
    given = table[list(_NUMBERS)].apply(pd.to_numeric, errors="coerce")
    wanted = [(what, given[what].between(0, FINITE), "must hold finite numbers, 0 or more") for what in _NUMBERS]
    wanted += [(what, table[what].notna(), "must not be empty") for what in ("age", "gender")]
    wanted += [("Clicks", (given["Clicks"] > 0) | (given["Spent"] == 0), "must be above 0 where Spent is")]
    for what, good, allowed in wanted:
        for row in np.flatnonzero(~good)[:1]:
            require(False, f"{name}, {what} in row {row} (from 0)", table[what].iloc[row], allowed)
    return table


def _steps(rows, path, checksum, conversions="total"):
    """What each step of the processing leaves: pairs (its name, table)."""
    _check_choices(rows, conversions)
    table = load(path, checksum)
    yield "the file", table
    if rows == "first761":
        table = table.head(761)
        yield "first 761 rows", table
    table = table[table["Spent"] > 0]
    yield "spent > 0", table
    table = table[table["Clicks"] >= table[CONVERSIONS[conversions]]]
    yield "clicks >= conversions", table
    table = table[table.groupby(_KEY)["ad_id"].transform("size") >= 2]
    require(len(table) > 0, "rows", rows, "no two ads of the file are left in any group")
    yield "at least two in a group", table


def steps(rows: str = "first761", path: str | os.PathLike | None = None, checksum: str = CHECKSUM,
          conversions: str = "total") -> "pd.DataFrame":
    """How the ads of the file become settings: what each step of the processing leaves, one row per step.

    The columns are `ads` left, `settings` (groups of at least two of them), `smallest` and `largest` of these.
    Arguments and errors are those of `settings`, which makes the settings.

    >>> steps().ads  # doctest: +SKIP
    """
    import pandas as pd
    counted = {}
    for name, table in list(_steps(rows, path, checksum, conversions)):
        sizes = table.groupby(_KEY).size()
        sizes = sizes[sizes >= 2]
        counted[name] = {"ads": len(table), "settings": len(sizes), "smallest": sizes.min(), "largest": sizes.max()}
    return pd.DataFrame.from_dict(counted, orient="index")


def facts(rows: str = "first761", path: str | os.PathLike | None = None, checksum: str = CHECKSUM) -> "pd.Series":
    """What the arms rest on: counts and shares over all ads that are left, none of them about a single ad.

    From what is counted to its value; costs and rewards are expected ones. Arguments and errors as in `settings`.

    >>> facts()["ads clicked once"]  # doctest: +SKIP
    """
    import pandas as pd
    (_, whole), *_, (_, table) = _steps(rows, path, checksum)
    arms = settings(rows, path, checksum=checksum)
    costs, rewards = (np.concatenate([getattr(s, f"{what}_means") for s in arms]) for what in ("cost", "reward"))
    best = [group.index[s.ratios.argmax()] for s, (_, group) in zip(arms, table.groupby(_KEY), strict=True)]
    return pd.Series({
        "ads": len(table),
        "clicks of an ad, median": table["Clicks"].median(),
        "ads clicked once": (table["Clicks"] == 1).sum(),
        "ads without an approved conversion": (table["Approved_Conversion"] == 0).sum(),
        "ads without any conversion, in the whole file": (whole["Total_Conversion"] == 0).sum(),
        "share of costs above 0.5": np.mean(costs > 0.5),
        "share of rewards at most 0.1": np.mean(rewards <= 0.1),
        "share of rewards at least 0.9": np.mean(rewards >= 0.9),
        "settings": len(arms),
        "settings whose best ad was clicked once": (table.loc[best, "Clicks"] == 1).sum(),
        "settings whose best ad has the largest reward": sum(s.reward_means[s.ratios.argmax()] == s.reward_means.max()
                                                             for s in arms)}, name="value").rename_axis("fact")


def settings(rows: str = "first761", path: str | os.PathLike | None = None, standin: bool = False,
             checksum: str = CHECKSUM, conversions: str = "total") -> list[Setting]:
    """The bandit settings of the ad data (Heyden et al., section 5.1), in the order and by the rules stated above.

    >>> settings(standin=True)[0]
    Setting('916_30-34_F_standin', K=7, standin=True)

    `rows` "first761" gives the paper's 19 settings, "all" the 23 of the undamaged file. What counts as a reward is
    every conversion, "total", or purchases alone, "approved". `path` and `checksum` are those of `find` and `load`,
    which also say what they raise; ValueError too if nothing is left after processing.

    A stand-in reads no file and knows all conversions alone: synthetic settings with the same numbers of arms, drawn
    from a fixed seed, costs biased to 1 and rewards to both ends of [0, 1], as the paper describes them.
    """
    if flag("standin", standin):
        _check_choices(rows, conversions)
        require(path is None, "path", path, "must be None for a stand-in, which reads no file")
        require(conversions == "total", "conversions", conversions, "must be 'total' for a stand-in")
        return _standins(SIZES[rows])
    *_, (_, table) = _steps(rows, path, checksum, conversions)
    ratios = table[[CONVERSIONS[conversions], "Spent"]].div(table["Clicks"], axis=0)
    return [_setting("_".join(map(str, key)), *ratios.loc[group.index].to_numpy().T)
            for key, group in table.groupby(_KEY)]


def _check_choices(rows, conversions):
    for name, value, known in (("rows", rows, SIZES), ("conversions", conversions, CONVERSIONS)):
        require(isinstance(value, str) and value in known, name, value, f"must be one of {list(known)}")


def _setting(name, rewards, costs, standin=False):
    rewards = np.where(rewards == 0, 0.01, rewards)
    return Setting(name, *(values / values.max() * 0.99 for values in (rewards, costs)), standin)


def _standins(sizes):
    # Inverse distribution functions: the arcsine law is heavy at both ends, the cube root of a uniform number near 1.
    rng = np.random.default_rng(761)
    uniform = {name: rng.random((2, K)) for name, K in sizes.items()}
    return [_setting(f"{name}_standin", np.maximum(np.sin(np.pi / 2 * u) ** 2, 0.01), np.cbrt(v), standin=True)
            for name, (u, v) in uniform.items()]


def density(setting: Setting, points: int = 101) -> tuple[np.ndarray, np.ndarray]:
    """Kernel density estimate of the arms' (expected cost, expected reward), as in Figure 3f of Heyden et al.

    Gaussian kernels, Scott's bandwidth; mass beyond the edges of the square is not folded back. The setting has three
    arms or more, not on one line. Returned are the middles of `points` cells, the same for both axes, and the values:
    `values[i, j]` is the density at cost `middles[i]` and reward `middles[j]`. Their mean is the mass in the square.

    >>> middles, values = density(settings(standin=True)[0], points=50)
    >>> round(float(values.mean()), 1)
    0.7
    """
    from scipy.stats import gaussian_kde
    require(isinstance(setting, Setting), "setting", setting, "must be a Setting")
    points = count("points", points, low=2)
    middles = (np.arange(points) + 0.5) / points
    arms = np.stack([setting.cost_means, setting.reward_means])
    require(np.linalg.matrix_rank(np.cov(arms) if setting.K > 2 else 0, tol=1e-12) == 2, "setting", setting.name,
            "must have at least three arms that do not lie on one line")
    grid = np.stack(np.meshgrid(middles, middles, indexing="ij")).reshape(2, -1)
    return middles, gaussian_kde(arms)(grid).reshape(points, points)
