import gc
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numba as nb
import pytest
from hypothesis import settings

from costbandits.engine import compilation
from costbandits.policies import rules

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def ads_file():
    """The real file of ads, where there is one; tests that need it are skipped elsewhere."""
    places = [os.environ.get("COSTBANDITS_ADS"), ROOT / "data/KAG_conversion_data.csv",
              ROOT.parent / "shared/data/facebook_ads/KAG_conversion_data.csv"]
    for place in places:
        if place and Path(place).is_file():
            return Path(place).resolve()
    pytest.skip("the file of ads is not ours to ship, and is not here")


@pytest.fixture(autouse=True)
def _signals():
    """What a test does about signals ends with it: the programs that later tests start inherit what is ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


# Of loops around a reader's rules the library keeps the newest few. The tests have more: theirs stay beside those.
compilation.TYPED, compilation.ROOM = "tested", 1000


def njit(*signature, **options):
    """`nb.njit` for the rules of tests, which are kept on disk; the library compiles a reader's rules anew."""
    def kept(function):
        made = nb.njit(*signature, **options)(function)
        if Path(function.__code__.co_filename).exists() and function.__module__:    # else it cannot be found again
            compilation.keep(made)
        return made

    return kept


# All rules of the tests are compiled when these are collected, by each worker: half of the time that it takes to begin.
rules.nb = SimpleNamespace(**{**vars(nb), "njit": njit})

# Numba makes many objects that stay; to look for others among them takes a tenth of the time of these tests.
gc.set_threshold(100_000, 20, 20)

# The same examples in every run: a failure can be seen again.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("short", settings.get_profile("same"), max_examples=30)      # of `make test`
settings.load_profile("same")
