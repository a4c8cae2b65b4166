"""Each verdict of a ledger is worked out again from its numbers and its claim."""

import dataclasses

import numpy as np
import pytest

from compendium import ledger
from compendium.report import faults
from costbandits.analysis.statistics import Extreme, Interval


@pytest.fixture
def claims():
    return {"X1": ledger.Claim("X1", "a is lower than b", "section 1", "ratio", (0.0, 1.0), "means", {"median": "too"}),
            "X2": ledger.Claim("X2", "they are comparable", "section 2", "ratio", (0.8, 1.25), "means", {})}


@pytest.fixture
def book(claims):
    """The rows of a ledger that is as it should be."""
    book = ledger.Ledger(claims, "paper")
    book.judge("X1", "K = 10", Interval(1.2, 1.1, 1.3), 100)
    book.judge("X1", "K = 10", Interval(0.7, 0.6, 0.8), 100, "median")
    book.untestable("X2", "K = 50", "the data")
    return book.frame()


def test_a_ledger_that_is_written_and_read_has_no_fault(claims, book, tmp_path):
    assert list(faults(book, claims)) == []
    book.to_csv(tmp_path / "ledger.csv", index=False, float_format="%.6g")
    read = ledger.read(tmp_path / "ledger.csv")
    assert list(faults(read, claims)) == [] and read.equals(book)
    book.drop(columns="cell").to_csv(tmp_path / "ledger.csv", index=False)
    assert set(ledger.read(tmp_path / "ledger.csv").cell) == {""}


FIRST, UNTESTED = 0, 2
FAULTS = [(FIRST, {"verdict": "reproduced"}, "contradicted"), (FIRST, {"verdict": "undecided"}, "contradicted"),
          (FIRST, {"low": 0.9}, "undecided"), (FIRST, {"estimate": 1.4}, "within"),
          (FIRST, {"region_high": 2.0}, "region"), (FIRST, {"low": np.nan}, "without numbers"),
          (FIRST, {"verdict": "cannot be tested"}, "has numbers"),
          (FIRST, {"id": "X3"}, "no such claim"), (FIRST, {"reading": "mode"}, "no such reading"),
          (FIRST, {"reading": "median"}, "two rows"), (FIRST, {"reading": "median", "case": "a"}, "X1: no row"),
          (UNTESTED, {"verdict": "reproduced"}, "without numbers"), (UNTESTED, {"note": ""}, "missing"),
          (UNTESTED, {"estimate": 1.0}, "has numbers")]


@pytest.mark.parametrize(("row", "change", "said"), FAULTS)
def test_each_fault_of_a_ledger_is_found(claims, book, row, change, said):
    for column, value in change.items():
        book.loc[row, column] = value
    found = list(faults(book, claims))
    assert any(said in fault for fault in found)


def test_a_missing_row_is_found(claims, book):
    assert list(faults(book.drop(UNTESTED), claims)) == ["X2: no row under the primary reading"]


@pytest.mark.parametrize("value", [
    Interval(1.2, 0.9999999, 1.5), Interval(0.9999999, 0.9999999, 0.9999999), Interval(0.5, 0.4, 1.0000001),
    Interval(0.5, -1e-320, 0.6), Interval(1.0000001, 1.0000002, 1.5),
    Extreme(0.7, 0.6, 1.0000004, "a", "a", 9, {"a": (Interval(0.7, 0.6, 1.0000004), 9)}),
    Extreme(0.7, 0.6, 0.9999999, "a", "a", 9, {"a": (Interval(0.7, 0.6, 0.9999999), 9)})])
@pytest.mark.parametrize("region", [(0.0, 1.0), (1.0, np.inf)])
def test_a_verdict_is_that_of_the_numbers_in_the_file(claims, tmp_path, value, region):
    claims = {"X1": dataclasses.replace(claims["X1"], region=region)}
    book = ledger.Ledger(claims, "paper")
    book.judge("X1", "a", value, 9)
    book.frame().to_csv(tmp_path / "ledger.csv", index=False, float_format="%.6g")
    assert list(faults(ledger.read(tmp_path / "ledger.csv"), claims)) == []
