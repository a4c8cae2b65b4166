"""What the README says of results is what the committed ledger says, and what it shows is there."""

import re
from pathlib import Path

import pandas as pd
import pytest

from costbandits import ledger

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", sorted(ROOT.glob("figures/*/ledger.csv")), ids=lambda path: path.parent.name)
def test_ledger_in_brief_is_the_committed_one(path):
    rows = pd.read_csv(path, keep_default_na=False, na_values={"estimate": "", "low": "", "high": ""})
    assert ledger.markdown(rows) in README, "put ledger.markdown(rows) of the committed ledger.csv into the README"


def test_links_and_pictures_exist():
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_commands_are_those_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"`(?:make )?(all|quick|test|deep|lab|refresh|bench|lock|clean|distclean|help)`", README))
    assert named and all(re.search(rf"^{name}:", makefile, re.M) for name in named)
