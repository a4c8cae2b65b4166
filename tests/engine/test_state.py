"""The named state of the driver reads and writes the same with and without compilation."""

import importlib
import pkgutil

import numba as nb
import numpy as np
import pytest

import costbandits as cb
from costbandits.engine.state import NOW, new_record


def records():
    """Every type of record in the library, by its module and name."""
    for room in ("engine", "policies", "fast"):
        package = importlib.import_module(f"{cb.__name__}.{room}")
        for part in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, kind in vars(importlib.import_module(part.name)).items():
                if isinstance(kind, np.dtype) and kind.names:
                    yield f"{part.name.partition('.')[2]}.{name}", kind


RECORDS = dict(records())


def test_the_records_are_found():
    assert {"engine.state.NOW", "engine.thinning.CLOCK", "fast.search.SEARCH", "fast.search.NODE", "fast.search.ARM",
            "fast.thompson.RACE", "fast.subsidy_thompson.RACE", "policies.suak.ACCOUNT", "policies.suak.LAST",
            "policies.cost_subsidy.SPELL", "policies.subsidy_repairs.LOOK"} <= set(RECORDS)


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
