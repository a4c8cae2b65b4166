"""The tournament finds the runs of the other notebooks in the store: what decides their keys is the same."""

import ast
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml

from compendium import preparation

ROOT = Path(__file__).resolve().parents[2]


def notebook(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def definitions(name):
    """Source of the functions of a notebook, and of what is assigned to a single name, as normalised text."""
    found = {}
    for cell in notebook(name).cells:
        if cell.cell_type != "code":
            continue
        for statement in ast.parse(cell.source).body:
            if isinstance(statement, ast.FunctionDef):
                found[statement.name] = ast.unparse(statement)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                found.setdefault(statement.targets[0].id, ast.unparse(statement.value))
    return found


def at_paper_scale(name):
    profile = yaml.safe_load((ROOT / "params" / "paper" / f"{name}.yaml").read_text())
    return preparation.parameters(notebook(name)) | profile


@pytest.mark.parametrize(("other", "names"), [
    ("omega_ucb", ["kept", "full_budget", "shares"]), ("cost_subsidy", ["two_arms"])])
def test_what_decides_the_keys_of_stored_runs_is_the_same(other, names):
    ours, theirs = definitions("tournament"), definitions(other)
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}


def test_seeds_and_budgets_are_the_same():
    ours, omega, subsidy = (at_paper_scale(name) for name in ("tournament", "omega_ucb", "cost_subsidy"))
    assert ours["seed"] == omega["seed"] == subsidy["seed"]
    assert (ours["budget"], ast.literal_eval(definitions("tournament")["arms"])) == (omega["budget"], omega["arms"])


def test_a_thousand_replications_everywhere():
    ours = at_paper_scale("tournament")
    assert ours["replications"] >= 1000 and 19 * ours["ads_replications"] >= 1000


def test_the_two_instances_of_an_anytime_budget_are_those_of_their_paper():
    ours, theirs = (ast.literal_eval(definitions(name)["means"]) for name in ("tournament", "suak"))
    assert [np.shape(sides) for sides in ours.values()] == [(2, 3), (2, 8)]
    assert list(ours.values()) == list(theirs.values())
