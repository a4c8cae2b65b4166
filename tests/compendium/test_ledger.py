"""Verdicts follow from intervals and from regions written down beforehand."""

import dataclasses
import json
import re
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compendium import cells, ledger, project
from costbandits.analysis.statistics import Extreme, Interval

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = [path for name in project.chapters(ROOT) if (path := ROOT / "figures" / name / "ledger.csv").exists()]

TEXT = """
X1:
  claim: a is lower than b
  place: section 1
  statistic: ratio
  region: [0.0, 1.0]
  primary: means
  others:
    median: medians
X2:
  claim: they are comparable
  place: section 2
  statistic: ratio
  region: [0.8, 1.25]
  primary: means
"""


@pytest.fixture
def claims(tmp_path):
    (tmp_path / "claims.yaml").write_text(TEXT)
    return ledger.load(tmp_path / "claims.yaml")


UNIT = ledger.Claim("X", "a is lower than b", "section 1", "ratio", (0.0, 1.0), "means", {})


@pytest.mark.parametrize(("low", "high", "expected"), [
    (0.5, 0.9, "reproduced"), (0.5, 1.0, "reproduced"), (0.9, 1.1, "undecided"), (1.0, 1.1, "undecided"),
    (1.01, 1.1, "contradicted")])
def test_verdict(low, high, expected):
    assert UNIT.verdict(Interval((low + high) / 2, low, high)) == expected


@pytest.mark.parametrize(("change", "message"), [
    ({"region": (1, 0)}, r"region of claim A = \(1, 0\): must be \[low, high\]"),
    ({"region": [0]}, "region of claim A"), ({"others": None}, "others of claim A = None"),
    ({"others": {"primary": "x"}}, "none of them 'primary'"), ({"repairs": ["x"]}, "repairs of claim A")])
def test_a_claim_made_in_code_is_checked_like_one_of_a_file(change, message):
    with pytest.raises(ValueError, match=message):
        ledger.Claim(**{"id": "A", "claim": "c", "place": "p", "statistic": "s", "region": (0, 1), "primary": "m",
                           "others": {}} | change)


def test_a_ledger_wants_claims_by_their_ids(claims):
    with pytest.raises(ValueError, match=r"claims = .*: must be a dict from ids to claims"):
        ledger.Ledger(list(claims.values()), "quick")


def test_what_is_no_number_is_no_verdict(claims):
    with pytest.raises(ValueError, match=r"claim X1, b = .*must be numbers, .*; what cannot be measured is"):
        ledger.Ledger(claims, "paper").judge("X1", "b", Interval(np.nan, np.nan, np.nan), 5)


def test_needed_replications():
    # A half-width of 0.2 has to shrink to the distance 0.1 of the border: four times the replications.
    assert UNIT.needed(Interval(0.9, 0.7, 1.1), 100) == pytest.approx(400)
    assert UNIT.needed(Interval(1.0, 0.7, 1.1), 100) == np.inf
    # Only a border that the interval crosses has to be left behind: 0 is nearer to 0.4 than 1 is.
    assert UNIT.needed(Interval(0.4, 0.3, 1.1), 100) == pytest.approx(100 * (0.7 / 0.6) ** 2)
    # Nor is one left behind that the interval touches: it may be the truth.
    assert UNIT.needed(Interval(1.2, 1.0, 1.5), 100) == pytest.approx(225)
    # Of two borders both have to be left: 0 needs (0.8 / 0.6)^2 times the replications, 1 needs (0.8 / 0.4)^2.
    assert UNIT.needed(Interval(0.6, -0.2, 1.4), 100) == pytest.approx(400)


@pytest.mark.parametrize(("verdicts", "expected"), [
    ("reproduced contradicted undecided", "contradicted"), ("undecided contradicted", "contradicted"),
    ("cannot be tested, contradicted", "contradicted"), ("reproduced undecided", "undecided"),
    ("cannot be tested, undecided", "undecided"), ("reproduced, cannot be tested", "cannot be tested"),
    ("reproduced reproduced", "reproduced")])
def test_one_contradiction_refutes_a_claim_and_one_open_case_leaves_it_open(verdicts, expected):
    verdicts = verdicts.split(", ") if "," in verdicts else verdicts.split()
    assert ledger.overall(verdicts) == ledger.overall(verdicts[::-1]) == expected


def test_needed_replications_of_a_largest_ratio():
    # Settled on 1,000 runs with one rival, open on 100 with the other: its own interval says how many more.
    pairs = {"settled": (Interval(0.8, 0.7, 0.9), 1000), "open": (Interval(0.6, 0.4, 1.4), 100)}
    largest = Extreme(0.8, 0.7, 1.4, "settled", "open", 100, pairs)
    assert UNIT.needed(largest, 100) == pytest.approx(100 * (0.8 / 0.4) ** 2)
    # Of two that are open both have to get below: (0.6 / 0.4)^2 and (0.4 / 0.2)^2 times their replications.
    pairs = {"one": (Interval(0.6, 0.4, 1.2), 100), "other": (Interval(0.8, 0.6, 1.2), 100)}
    assert UNIT.needed(Extreme(0.8, 0.6, 1.2, "other", "one", 100, pairs), 100) == pytest.approx(400)
    # If one rival's ratio is really above 1 it decides, whatever the others do.
    pairs = {"above": (Interval(1.2, 0.9, 1.5), 1000), "open": (Interval(0.99, 0.5, 1.5), 100)}
    largest = Extreme(1.2, 0.9, 1.5, "above", "above", 1000, pairs)
    assert UNIT.needed(largest, 1000) == pytest.approx(1000 * (0.3 / 0.2) ** 2)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 2), st.floats(0, 2), st.integers(10, 1000)), min_size=1,
                max_size=5))
def test_undecided_needs_more_replications_than_there_are(drawn):
    pairs = {i: (Interval(e, e - below, e + above), n) for i, (e, below, above, n) in enumerate(drawn)}
    decide = {end: max(pairs.values(), key=lambda pair: getattr(pair[0], end)) for end in ("estimate", "low", "high")}
    ends = [getattr(interval, end) for end, (interval, _) in decide.items()]
    largest = Extreme(*ends, 0, 0, min(n for _, n in decide.values()), pairs)
    more = UNIT.needed(largest, largest.replications)
    if UNIT.verdict(largest) == "undecided":
        assert more >= largest.replications
    # Two pairs that are alike in everything are as one.
    for interval, n in pairs.values():
        twice = Extreme(interval.estimate, interval.low, interval.high, 0, 0, n, {0: (interval, n), 1: (interval, n)})
        assert UNIT.needed(twice, n) == UNIT.needed(interval, n)


def test_rows_and_summary(claims):
    book = ledger.Ledger(claims, "paper")
    book.judge("X1", "K = 10", Interval(1.2, 1.1, 1.3), 100)
    book.judge("X1", "K = 10", Interval(0.7, 0.6, 0.8), 100, "median")
    book.judge("X2", "K = 10", Interval(1.2, 1.1, 1.3), 100)
    book.untestable("X2", "K = 50", "the data")
    rows = book.frame()
    assert list(rows.verdict) == ["contradicted", "reproduced", "undecided", "cannot be tested"]
    assert "about 400 replications would decide" in rows.note[2]
    other = ledger.Ledger(dict(reversed(claims.items())), "paper")        # rows stand in the order of the claims
    for id in ("X1", "X2"):
        other.judge(id, "K = 10", Interval(1.2, 1.1, 1.3), 100)
    assert other.frame().id.tolist() == ["X2", "X1"]
    summary = ledger.summary(rows, claims).set_index("id").verdict
    assert summary["X1"] == "reproduced only under reading median (contradicted otherwise)"
    assert summary["X2"] == "undecided"
    assert list(ledger.summary(rows, claims).standing) == [ledger.ONLY, "undecided"]


def test_a_reading_judges_only_its_own_cases(claims):
    book = ledger.Ledger(claims, "paper")
    for case, value in (("a", 1.2), ("b", 1.3)):
        book.judge("X1", case, Interval(value, value, value), 10)
        book.judge("X2", case, Interval(1.0, 0.9, 1.1), 10)
    book.judge("X1", "a", Interval(0.5, 0.4, 0.6), 10, "median")     # case b stays contradicted
    assert ledger.summary(book.frame(), claims).set_index("id").verdict["X1"] == "contradicted"


VALUES = {"reproduced": Interval(0.5, 0.4, 0.6), "undecided": Interval(1.0, 0.5, 1.5),
          "contradicted": Interval(1.5, 1.4, 1.6)}


@pytest.mark.parametrize("primary", VALUES)
@pytest.mark.parametrize("other", VALUES)
def test_a_reading_with_another_verdict_is_told_whatever_the_primary_one_is(claims, primary, other):
    book = ledger.Ledger({"X1": claims["X1"]}, "paper")
    book.judge("X1", "a", VALUES[primary], 10)
    book.judge("X1", "a", VALUES[other], 10, "median")
    (line,) = ledger.summary(book.frame(), book.claims).itertuples()
    words = {True: primary, other == "reproduced": f"reproduced only under reading median ({primary} otherwise)"}
    told = primary if primary == other else words.get(other == "reproduced") if other == "reproduced" else (
        f"{primary} ({other} under reading median)")
    assert line.verdict == told


def test_what_holds_only_when_repaired_is_contradicted(claims):
    mended = dataclasses.replace(claims["X1"], repairs=("median",), ours=True)
    book = ledger.Ledger({"X1": mended}, "paper")
    book.judge("X1", "a", Interval(1.5, 1.4, 1.6), 10)
    book.judge("X1", "a", Interval(0.5, 0.4, 0.6), 10, "median")
    (line,) = ledger.summary(book.frame(), book.claims).itertuples()
    assert (line.standing, line.verdict) == ("contradicted", "contradicted (reproduced when repaired: median)")
    assert line.claim == f"Ours: {mended.claim}"
    (line,) = ledger.summary(book.frame(), {"X1": dataclasses.replace(mended, repairs=())}).itertuples()
    assert line.standing == ledger.ONLY
    assert len(ledger.summary(book.frame(), {})) == 0


def test_a_repair_that_fails_is_not_told(claims):
    book = ledger.Ledger({"X1": dataclasses.replace(claims["X1"], repairs=("median",))}, "paper")
    book.judge("X1", "a", Interval(0.5, 0.4, 0.6), 10)
    book.judge("X1", "a", Interval(1.5, 1.4, 1.6), 10, "median")
    (line,) = ledger.summary(book.frame(), book.claims).itertuples()
    assert (line.standing, line.verdict) == ("reproduced", "reproduced")


def test_every_claim_needs_a_verdict(claims):
    book = ledger.Ledger(claims, "paper")
    book.judge("X1", "K = 10", Interval(0.5, 0.4, 0.6), 100, "median")
    with pytest.raises(ValueError, match=r"\['X1', 'X2'\].*without a verdict"):
        book.frame()
    with pytest.raises(ValueError, match="ledger = 'empty': must have a row"):
        ledger.Ledger({}, "paper").frame()


@pytest.mark.parametrize(("id", "reading", "message"), [
    ("X3", "primary", "claim = 'X3'"), ("X2", "median", "reading of claim X2")])
def test_unknown_claims_and_readings(claims, id, reading, message):
    with pytest.raises(ValueError, match=message):
        ledger.Ledger(claims, "paper").judge(id, "", Interval(1, 1, 1), 1, reading)


def test_ids_are_those_of_the_schema(tmp_path):
    (tmp_path / "c.yaml").write_text(TEXT.replace("X2:", "2_a.B-c:"))
    assert list(ledger.load(tmp_path / "c.yaml")) == ["X1", "2_a.B-c"]
    schema = json.loads((ROOT / "figures/claims.schema.json").read_text())
    assert schema["$defs"]["claim"]["properties"]["id"]["pattern"] == f"^{ledger.ID.pattern}$"


def test_a_text_of_several_lines_is_read_as_one(tmp_path):
    (tmp_path / "c.yaml").write_text(TEXT.replace("claim: they are", "claim: |\n    they\n    ```\n    are"))
    assert ledger.load(tmp_path / "c.yaml")["X2"].claim == "they ``` are comparable"


def test_the_ends_of_a_region_are_numbers_of_yaml_1_2(tmp_path):
    (tmp_path / "c.yaml").write_text(TEXT.replace("[0.8, 1.25]", "[-.inf, 2e1]").replace("[0.0, 1.0]", "[010, 0o20]"))
    assert [claim.region for claim in ledger.load(tmp_path / "c.yaml").values()] == [(10, 16), (-np.inf, 20)]


def test_history_and_second_check_are_read(tmp_path):
    (tmp_path / "c.yaml").write_text(TEXT + "  history: [a, b]\n  second_check: {kind: none, where: a sum by hand}\n")
    first, second = ledger.load(tmp_path / "c.yaml").values()
    assert (first.history, first.second_check) == ((), None)
    assert (second.history, second.second_check) == (("a", "b"), ("none", "a sum by hand"))


@pytest.mark.parametrize("damage", ["region: [1.0, 0.0]", "margin: 3"])
def test_bad_claims(tmp_path, damage):
    (tmp_path / "c.yaml").write_text(TEXT.replace("region: [0.8, 1.25]", damage))
    with pytest.raises(ValueError, match="X2"):
        ledger.load(tmp_path / "c.yaml")


@pytest.mark.parametrize(("text", "message"), [
    (TEXT + TEXT, r"line \d+, key = 'X1': is there twice"), ("", r"c\.yaml = None: must be claims"),
    ("- X1", "must be claims by their ids"), ("1: {}", "line 1, key = 1: must be a text"),
    (TEXT.replace("place: section 2", "place: section 2\n  place: section 3"), "key = 'place': is there twice"),
    (TEXT + "  repairs: [median]\n", r"repairs of claim X2 = \['median'\]: must be some of \[\]"),
    *((TEXT + f"  repairs: {told}\n", "repairs of claim X2 = .*: must be some of")
      for told in ("median", "[[a]]", "[{a: b}]", "0", "false")),
    (TEXT + "  others: false\n", "others of claim X2 = False: must be other readings"),
    (TEXT.replace("section 2", "3.10") + "  others: {place: x}\n", "place of claim X2 = 3.1: must be a text"),
    (TEXT + "  history: changed\n", "history of claim X2 = 'changed': must be a list of sentences"),
    (TEXT + "  history: [1]\n", r"history of claim X2 = \[1\]: must be a list of sentences"),
    *((TEXT + f"  second_check: {check}\n", "second_check of claim X2 = .*must have a kind, one of .*, and say where")
      for check in ("none", "{kind: none}", "{kind: proof, where: here}", "{kind: none, where: 3}",
                    "{kind: none, where: ''}")),
    *((TEXT.replace("[0.8, 1.25]", ends), r"region of claim X2 = .*must be \[low, high\]")
      for ends in ("[0, 1, 2]", "[0]", "3", "null", "[a, b]", "[null, 1]", "[.nan, 1]", "[no, yes]", "[false, true]",
                   "[0:30, 1:30]", "[0, 1_000]", "[0, '1']", f"[0, {10**400}]")),
    (TEXT.replace("section 2", "3.10"), "place of claim X2 = 3.1: must be a text: write it in quotes"),
    (TEXT.replace("claim: they are comparable", "claim: true"), "claim of claim X2 = True: must be a text"),
    *((TEXT.replace("X2:", f"{id}:"), r"id of a claim = .*: must be letters, digits, _, \. and - only")
      for id in ("X 2", '"X2>"', "X/2", "é", '""', '"X2\\n"')),
    (TEXT.replace("medians", "050"), "median of claim X1 = 50: must be a text"),
    (TEXT.replace("median:", "1e1:"), "line 9, key = 10.0: must be a text: write it in quotes"),
    (TEXT + "  ours: yes\n", "ours of claim X2 = 'yes': must be true or false")])
def test_claims_that_are_no_claims(tmp_path, text, message):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        ledger.load(tmp_path / "c.yaml")


@pytest.mark.parametrize(("value", "replications", "message"), [
    (Interval(1.4, 0.5, 0.9), 5, "low <= estimate <= high"), (Interval(0.7, 0.9, 0.5), 5, "low <= estimate <= high"),
    (0.5, 0, "claim X1, a, replications = 0"), (0.5, 2.5, "replications = 2.5"), (None, 5, "must be numbers"),
    ((0.5, 0.4, 0.6), 5, "must be numbers"), ("0.5", 5, "must be numbers"), (Interval(0.5, None, 1), 5, "must be num")])
def test_what_would_be_a_fault_is_not_filed(claims, value, replications, message):
    with pytest.raises(ValueError, match=message):
        ledger.Ledger(claims, "paper").judge("X1", "a", value, replications)


def test_a_question_is_judged_once(claims):
    book = ledger.Ledger(claims, "paper")
    book.judge("X1", "a", np.float64(0.5), np.int64(5))
    book.judge("X1", "a", 1, 5, "median")
    for again in (lambda: book.judge("X1", "a", 0.5, 5), lambda: book.untestable("X1", "a", "data", "median")):
        with pytest.raises(ValueError, match=r"question = \('X1', 'a', .*is judged already"):
            again()


def test_a_cell_that_is_run_again_judges_again(claims, monkeypatch):
    book = ledger.Ledger({"X1": claims["X1"]}, "paper")

    def judge(cell, turn, value):
        monkeypatch.setattr(cells, "executing", lambda: (cell, turn))
        book.judge("X1", "a", value, 5)

    judge("here", 1, 0.5)
    judge("here", 2, 2.0)
    assert book.frame().verdict.tolist() == ["contradicted"]
    for cell, turn in (("here", 2), ("elsewhere", 3)):
        with pytest.raises(ValueError, match="is judged already"):
            judge(cell, turn, 0.5)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_notes_of_committed_rows(path):
    for row in ledger.read(path).itertuples():
        # "Undecided" says how many replications would decide, and these are more than there were. Between two theorems
        # none would.
        open_border = row.estimate in (row.region_low, row.region_high) or "Theorem" in row.note
        if row.verdict == "undecided" and not open_border:
            more = re.search(r"about ([\d,]+) replications would decide", row.note)
            assert more and int(more[1].replace(",", "")) >= row.replications, (row.id, row.case, row.note)
        # A case that counts random instances counts the ones it was judged on.
        if drawn := re.match(r"([\d,]+) random", row.case):
            assert int(drawn[1].replace(",", "")) == row.replications, row.case


@pytest.mark.parametrize(("content", "said"), [(b"X1: [", "not YAML"), (b"X1: \xe4", "not UTF-8"),
                                               (b"X1: " + b"9" * 5000, "Exceeds the limit")])
def test_a_broken_file_of_claims_is_named(tmp_path, content, said):
    (tmp_path / "claims.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=rf"claims\.yaml.*{said}"):
        ledger.load(tmp_path / "claims.yaml")


def test_a_verdict_is_that_of_the_digits_that_are_filed(claims):
    book = ledger.Ledger(claims, "paper")
    assert book.judge("X1", "a", Interval(0.9, 0.8, 1.0000001), 5) == "reproduced"
    assert book.judge("X1", "b", Interval(0.9, 0.8, 1.1), 123) == "undecided"
    assert "about 500 replications" in book._rows["X1", "b", "primary"]["note"]         # 4 times 123 is 492


def possible(statistic):
    """The values that a statistic can take, by the words that say what it is."""
    if re.search("slope|growth|minus|less|difference|exponent", statistic.partition(", ")[0]):
        return -inf, inf
    quotient = re.search("ratio| over ", statistic)
    return (0, 1) if re.search("share|probability", statistic) and not quotient else (0, inf)


@pytest.mark.parametrize("claim", [pytest.param(claim, id=id) for path in sorted((ROOT / "claims").glob("*.yaml"))
                                   for id, claim in ledger.load(path).items()])
def test_no_verdict_is_unable_to_fail(claim):
    """Some value that the statistic can take lies outside the region."""
    (low, high), (least, most) = claim.region, possible(claim.statistic)
    assert least < low or high < most
