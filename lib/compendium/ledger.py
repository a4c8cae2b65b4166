"""The ledger: what a paper claims, what we measured, and the verdict that follows.

A claim states, before the run it judges, its statistic, the region of values in which it holds, and its primary
reading. A verdict compares the statistic's interval with that region: inside, the claim is reproduced; outside, it is
contradicted; across the border, it is undecided.
"""

import numbers
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from costbandits.analysis.statistics import Interval
from costbandits.checks import count, require

from . import cells
from .yaml12 import read_yaml

REPRODUCED, CONTRADICTED, UNDECIDED = "reproduced", "contradicted", "undecided"
UNTESTABLE = "cannot be tested"
VERDICTS = (REPRODUCED, CONTRADICTED, UNDECIDED, UNTESTABLE)
ONLY = "reproduced only under a reading"     # what becomes of a claim, besides the verdicts
KEYS = {"claim", "place", "statistic", "region", "primary"}
OPTIONAL = {"others", "repairs", "ours", "history", "second_check"}
CHECKS = ("counterexample", "implementation", "none")
ROW = ["case", "reading", "estimate", "low", "high", "replications", "verdict", "deep", "note"]     # of a record
ID = re.compile(r"[A-Za-z0-9_.-]+")     # it stands in links as it is
DECISIVE = re.compile(r"about [\d,]+ replications would decide")    # how a note ends where nothing is decided


@dataclass(frozen=True)
class Claim:
    """One claim of a paper: what is claimed, in our words, at which place, and the statistic that is measured.

    The claim holds for values of the statistic in `region`, [low, high]. The reading `primary` decides; `others` says
    by name what is different about other readings. Those of them that change what the paper says, and so are no
    readings of it, are `repairs`. A claim is `ours` if no paper claims an answer. `history` tells what was added or
    changed after a first look at results, and why; the oldest first.

    `second_check` is (kind, where): what supports the verdict besides the judged numbers, and the test that has it. A
    "counterexample" is an instance worked out exactly, without playing; an "implementation" a second one, which shares
    no code with what gave the number. With "none" stands what would have to be written.

    ValueError says if the region is none, or if other readings and repairs are not named as above.

    >>> claim = Claim("X1", "a beats b", "Figure 1", "ratio of regrets", (0.0, 1.0), "means", others={})
    >>> claim.verdict(Interval(0.8, 0.7, 1.1))
    'undecided'
    """
    id: str
    claim: str
    place: str
    statistic: str
    region: tuple[float, float]
    primary: str
    others: dict[str, str]
    repairs: tuple[str, ...] = ()
    ours: bool = False
    history: tuple[str, ...] = ()
    second_check: tuple[str, str] | None = None

    def __post_init__(self):
        ends, others, repairs = self.region, self.others, self.repairs
        real = isinstance(ends, list | tuple) and all(
            isinstance(end, numbers.Real) and not isinstance(end, bool) and (abs(end) == np.inf or abs(end) < 1e300)
            for end in ends)
        require(real and len(ends) == 2 and ends[0] <= ends[1], f"region of claim {self.id}", ends,
                "must be [low, high], two numbers")
        object.__setattr__(self, "region", (float(ends[0]), float(ends[1])))
        require(isinstance(others, dict) and "primary" not in others, f"others of claim {self.id}", others,
                "must be other readings by their names, none of them 'primary'")
        known = isinstance(repairs, list | tuple) and all(repair in list(others) for repair in repairs)
        require(known, f"repairs of claim {self.id}", repairs, f"must be some of {list(others)}")
        object.__setattr__(self, "repairs", tuple(repairs))

    def verdict(self, interval: Interval) -> str:
        """Where the interval lies with respect to the region: REPRODUCED, CONTRADICTED or UNDECIDED."""
        low, high = self.region
        if low <= interval.low and interval.high <= high:
            return REPRODUCED
        return CONTRADICTED if interval.high < low or interval.low > high else UNDECIDED

    def needed(self, interval: Interval, n: int) -> float:
        """About how many replications would decide, where n did not: each border must leave the interval."""
        crossed = [end for end in self.region if np.isfinite(end) and interval.low <= end <= interval.high]
        return max((interval.needed(n, end) for end in crossed), default=0.0)


def load(path: str | os.PathLike) -> dict[str, Claim]:
    """Claims by their ids, from a YAML file such as claims/kube.yaml; ValueError says what is wrong with it."""
    raw = read_yaml(path)
    require(isinstance(raw, dict), str(path), raw, "must be claims by their ids")
    return {id: _claim(id, entry) for id, entry in raw.items()}


def _claim(id, entry):
    require(ID.fullmatch(id), "id of a claim", id, "must be letters, digits, _, . and - only")
    require(isinstance(entry, dict) and KEYS <= set(entry) <= KEYS | OPTIONAL, f"claim {id}", entry,
            f"must have {sorted(KEYS)}, may have {sorted(OPTIONAL)}")
    given = {key: value for key, value in entry.items() if value is not None}
    ours, history, check = entry.get("ours", False), given.get("history", []), entry.get("second_check")
    others = given.get("others", {})
    texts = [*((key, entry[key]) for key in sorted(KEYS - {"region"})),
             *(others.items() if isinstance(others, dict) else ())]
    for key, text in texts:             # 3.10 would be shown as 3.1
        require(isinstance(text, str), f"{key} of claim {id}", text, "must be a text: write it in quotes")
    require(isinstance(ours, bool), f"ours of claim {id}", ours, "must be true or false")
    require(isinstance(history, list) and all(isinstance(told, str) for told in history), f"history of claim {id}",
            history, "must be a list of sentences")
    if "second_check" in entry:
        require(isinstance(check, dict) and set(check) == {"kind", "where"} and check["kind"] in CHECKS
                and isinstance(check["where"], str) and check["where"], f"second_check of claim {id}", check,
                f"must have a kind, one of {CHECKS}, and say where")
        check = check["kind"], check["where"]
    # On one line: a line of its own could end the HTML that it stands in.
    line = {key: " ".join(text.split()) for key, text in entry.items() if isinstance(text, str)}
    return Claim(id, **{**entry, **line, "others": others, "repairs": given.get("repairs", ()),
                        "history": tuple(history), "second_check": check})


class Ledger:
    """Rows of one notebook: each claim, case by case and reading by reading; `scale` is the profile that was played.

    >>> claim = Claim("X1", "a beats b", "Figure 1", "ratio of regrets", (0.0, 1.0), "means", others={})
    >>> ledger = Ledger({"X1": claim}, "quick")
    >>> ledger.judge("X1", "ten arms", Interval(0.8, 0.7, 0.9), 1000)
    'reproduced'
    >>> ledger.frame()[["id", "case", "verdict"]].values.tolist()
    [['X1', 'ten arms', 'reproduced']]
    """

    def __init__(self, claims: dict[str, Claim], scale: str):
        require(isinstance(claims, dict) and all(isinstance(claim, Claim) for claim in claims.values()), "claims",
                claims, "must be a dict from ids to claims")
        self.claims, self.scale, self._rows, self._judged = claims, scale, {}, {}

    def judge(self, id: str, case: str, interval: Interval | float, replications: int, reading: str = "primary",
              note: str = "") -> str:
        """File a verdict computed from an interval (or from an exact number); returns it.

        ValueError if an end is not a number, if low <= estimate <= high does not hold, if `replications` is not a whole
        number above 0, or if the question is judged already.
        """
        claim, name = self._claim(id, reading), f"claim {id}, {case}"
        interval = interval if isinstance(interval, Interval) else Interval(interval, interval, interval)
        ends = (interval.estimate, interval.low, interval.high)
        real = all(np.ndim(end) == 0 and np.asarray(end).dtype.kind in "biuf" and not np.isnan(end) for end in ends)
        require(real, name, interval, "must be numbers, one or a cb.statistics.Interval such as comparison.ratio; what "
                "cannot be measured is `untestable`")
        interval = _as_written(interval)
        require(interval.low <= interval.estimate <= interval.high, name, interval, "must have low <= estimate <= high")
        replications = count(f"{name}, replications", replications)
        result = claim.verdict(interval)
        if result == UNDECIDED and np.isfinite(more := claim.needed(interval, replications)):
            digits = 10 ** max(int(np.log10(more)) - 1, 0)
            more = int(np.ceil(more / digits) * digits)
            note = f"{note}; " * bool(note) + f"about {more:,} replications would decide"
        self._add(claim, case, reading, interval, replications, result, note)
        return result

    def untestable(self, id: str, case: str, missing: str, reading: str = "primary") -> str:
        """File that a claim cannot be tested, and what is missing."""
        nothing = Interval(np.nan, np.nan, np.nan)
        self._add(self._claim(id, reading), case, reading, nothing, 0, UNTESTABLE, f"missing: {missing}")
        return UNTESTABLE

    def _claim(self, id, reading):
        require(id in self.claims, "claim", id, f"must be one of {list(self.claims)}")
        allowed = ["primary", *self.claims[id].others]
        require(reading in allowed, f"reading of claim {id}", reading, f"must be one of {allowed}")
        return self.claims[id]

    def _add(self, claim, case, reading, interval, replications, result, note):
        question, (cell, turn) = (claim.id, case, reading), cells.executing()
        before, at = self._judged.get(question, ("", None))
        # Whoever runs a cell of a notebook again wants its rows again, in their place.
        require(question not in self._judged or (before == cell != "" and at != turn), "question", question,
                "is judged already; a new Ledger begins anew")
        self._judged[question] = cell, turn
        self._rows[question] = {
            "id": claim.id, "case": case, "reading": reading, "claim": claim.claim, "place": claim.place,
            "statistic": claim.statistic, "estimate": interval.estimate, "low": interval.low, "high": interval.high,
            "region_low": claim.region[0], "region_high": claim.region[1], "replications": replications,
            "scale": self.scale, "verdict": result, "note": note, "cell": cell}

    def frame(self) -> pd.DataFrame:
        """All rows, in the order of the claims; ValueError if a claim has none under its primary reading."""
        rows = pd.DataFrame([*self._rows.values()])
        judged = set(rows.id[rows.reading == "primary"]) if len(rows) else set()
        require(set(self.claims) <= judged, "ledger", sorted(set(self.claims) - judged), "claims without a verdict")
        require(len(rows) > 0, "ledger", "empty", "must have a row, to be a table")
        order = {id: i for i, id in enumerate(self.claims)}
        return rows.sort_values("id", key=lambda ids: ids.map(order), kind="stable").reset_index(drop=True)


def read(path: str | os.PathLike) -> pd.DataFrame:
    """The rows of a ledger's file, texts as texts; column `cell` is "" where an older file has none.

    >>> import io
    >>> read(io.StringIO("id,case,estimate,note\\n1,010,0.8,")).values.tolist()
    [['1', '010', 0.8, '', '']]
    """
    kinds = dict.fromkeys(("id", "case", "reading", "claim", "place", "statistic", "verdict", "note", "cell"), str)
    rows = pd.read_csv(path, dtype=kinds, keep_default_na=False,
                       na_values=dict.fromkeys(("estimate", "low", "high"), ""))
    return rows if "cell" in rows else rows.assign(cell="")


def summary(rows: pd.DataFrame, claims: dict[str, Claim]) -> pd.DataFrame:
    """One line per claim: what becomes of it (a verdict or ONLY), and in words, with readings that would change it.

    Columns are id, claim, standing, verdict (the words) and cases. A case that another reading leaves aside keeps its
    primary verdict under that reading. A repair changes no verdict; the words say if the claim holds when repaired.
    The claims say which readings are repairs, and which questions are ours. Rows of others are left out.

    >>> claim = Claim("X1", "a beats b", "Figure 1", "ratio", (0.0, 1.0), "means", {"medians": "of runs"})
    >>> ledger = Ledger({"X1": claim}, "quick")
    >>> verdicts = [ledger.judge("X1", "ten arms", *each) for each in ((1.2, 1000), (0.8, 1000, "medians"))]
    >>> summary(ledger.frame(), {"X1": claim}).verdict.item()
    'reproduced only under reading medians (contradicted otherwise)'
    """
    lines = []
    for id, group in rows[rows.id.isin(claims)].groupby("id", sort=False):
        primary = group[group.reading == "primary"]
        verdicts = dict(zip(primary.case, primary.verdict, strict=True))
        result = overall(verdicts.values())
        others = {reading: overall((verdicts | dict(zip(part.case, part.verdict, strict=True))).values())
                  for reading, part in group[group.reading != "primary"].groupby("reading", sort=False)}
        lines.append({"id": id, "claim": "Ours: " * claims[id].ours + group.claim.iloc[0],
                      **_words(result, others, claims[id].repairs),
                      "cases": ", ".join(f"{case}: {verdict}" for case, verdict in verdicts.items())})
    return pd.DataFrame(lines)


def records(rows: pd.DataFrame, claims: dict[str, Claim]) -> list[dict]:
    """Each claim with all that is known of it, as plain lists and dicts for a file of JSON, which has no infinity.

    The rows have columns `notebook` and `deep` (the verdict of more runs, or "") besides those of `Ledger.frame`.

    >>> claim = Claim("X1", "a beats b", "Figure 1", "ratio", (0.0, float("inf")), "means", others={})
    >>> ledger = Ledger({"X1": claim}, "quick")
    >>> _ = ledger.judge("X1", "ten arms", 0.8, 1000)
    >>> made = records(ledger.frame().assign(notebook="x", deep=""), {"X1": claim})
    >>> made[0]["region"], made[0]["standing"], made[0]["rows"][0]["verdict"]
    ([0.0, 'inf'], 'reproduced', 'reproduced')
    """
    told, made = summary(rows, claims).set_index("id"), []
    for id, group in rows[rows.id.isin(claims)].groupby("id", sort=False):
        claim = claims[id]
        check = dict(zip(("kind", "where"), claim.second_check, strict=True)) if claim.second_check else None
        shown = [{key: _finite(value) if isinstance(value, float) else value for key, value in row.items()}
                 for row in group[ROW].to_dict("records")]
        made.append({
            "id": id, "notebook": group.notebook.iloc[0], "ours": claim.ours, "claim": claim.claim,
            "place": claim.place, "statistic": claim.statistic, "region": [_finite(end) for end in claim.region],
            "readings": {"primary": claim.primary, **claim.others}, "repairs": list(claim.repairs),
            "history": list(claim.history), "standing": told.standing[id], "words": told.verdict[id],
            "second_check": check, "rows": shown})
    return made


def _finite(number):
    """The number, with the digits that a ledger's file keeps; None for NaN, and a text for an infinity."""
    return None if np.isnan(number) else float(f"{number:.6g}") if np.isfinite(number) else str(float(number))


def _words(result, others, repairs):
    """What becomes of a claim in brief, and in words that name each reading with another verdict and what mends it."""
    mended = " / ".join(reading for reading in repairs if others.get(reading) == REPRODUCED)
    others = {reading: other for reading, other in others.items() if reading not in repairs}
    holds = " / ".join(reading for reading, other in others.items() if other == REPRODUCED)
    told = [f"{other} under reading {name}" for name, other in others.items() if other not in (result, REPRODUCED)]
    standing = verdict = result
    if result != REPRODUCED and holds:
        standing, verdict = ONLY, f"reproduced only under reading {holds}"
        told.insert(0, f"{result} otherwise")
    elif result != REPRODUCED and mended:
        told.append(f"reproduced when repaired: {mended}")
    return {"standing": standing, "verdict": f"{verdict} ({', '.join(told)})" if told else verdict}


def overall(verdicts: Iterable[str]) -> str:
    """The verdict of a claim made for several cases: one contradiction refutes it, one open case leaves it open.

    >>> overall(["reproduced", "undecided", "reproduced"])
    'undecided'
    """
    found = set(verdicts)
    return next(v for v in (CONTRADICTED, UNDECIDED, UNTESTABLE, REPRODUCED) if v in found)


def _as_written(interval):
    """The interval with the digits that a ledger's file keeps, so that whoever reads it comes to the same verdict."""
    ends = {name: float(f"{getattr(interval, name):.6g}") for name in ("estimate", "low", "high")}
    if hasattr(interval, "pairs"):
        ends["pairs"] = {label: (_as_written(each), n) for label, (each, n) in interval.pairs.items()}
    return replace(interval, **ends)
