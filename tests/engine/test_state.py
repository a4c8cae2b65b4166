"""The named state of loops reads and writes the same with and without compilation."""

import numba as nb
import numpy as np
import pytest

from costbandits.engine.search import ARM, NODE, SEARCH
from costbandits.engine.state import NOW, new_record
from costbandits.policies import cost_subsidy, suak, subsidy_repairs, thompson

RECORDS = {"NOW": NOW, "SEARCH": SEARCH, "NODE": NODE, "ARM": ARM, "SUAK": suak.MEMORY, "SPELL": cost_subsidy.SPELL,
           "LOOK": subsidy_repairs.LOOK, "RACE": thompson.RACE, "USS": suak.LAST}


@pytest.mark.parametrize("name", RECORDS)
def test_no_field_hides_behind_an_attribute_of_numpy(name):
    assert not [field for field in RECORDS[name].names if hasattr(np.record, field)]


def test_a_record_is_changed_in_place():
    def spend(now):
        now.rounds += 2
        now.spent += 0.5

    for function in (spend, nb.njit(spend)):
        now = new_record(NOW)
        function(now)
        function(now)
        assert (now.rounds, now.spent) == (4, 1.0)
