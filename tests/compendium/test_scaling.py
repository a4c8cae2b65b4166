"""What a million replications would cost: the arithmetic, the page, and that each part can be measured."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scaling
from scaling import Client, Cost, Measured

import costbandits as cb
from costbandits.studies.study import Study

ROOT = Path(__file__).resolve().parents[2]
CLIENT = Client(task=0.01, replication=0.005)
LONG, SHORT = Cost(2.0, 1000, 4000, 0.005), Cost(0.1, 1000, 4000, 0.005)


def test_a_long_replication_is_a_task_of_its_own():
    assert scaling.burden(LONG, CLIENT) == {"tasks": 0.01, "results": 0.005, "store": 0.005}
    assert scaling.fed(LONG, CLIENT) == pytest.approx(100)        # 2 s of play for 0.02 s of the client
    assert scaling.wall(LONG, CLIENT, 1000, 8) == pytest.approx(250)
    assert scaling.wall(LONG, CLIENT, 1000, 80) == pytest.approx(25)
    assert scaling.wall(LONG, CLIENT, 1000, 800) == pytest.approx(20)      # 1,000 times 0.02 s


def test_short_ones_share_a_task():
    assert scaling.burden(SHORT, CLIENT)["tasks"] == pytest.approx(0.001)       # ten make a second
    assert scaling.wall(SHORT, CLIENT, 1000, 8) == pytest.approx(12.5)
    assert scaling.wall(SHORT, CLIENT, 1000, 80) == scaling.wall(SHORT, CLIENT, 1000, 800) == pytest.approx(11)


@pytest.mark.parametrize(("replications", "cores"), [(0, 8), (10, 0), (1.5, 8)])
def test_bad_numbers(replications, cores):
    with pytest.raises(ValueError, match=r"(replications|cores) = .*: must be a whole number, 1 or more"):
        scaling.wall(LONG, CLIENT, replications, cores)


@pytest.mark.parametrize(("seconds", "text"), [
    (0.3, "0.3 s"), (59, "59 s"), (60, "1.0 min"), (3599, "60 min"), (9 * 3600, "9.0 h"), (47 * 3600, "47 h"),
    (2 * 86_400, "2.0 d"), (1000 * 86_400, "1,000 d")])
def test_durations(seconds, text):
    assert scaling.duration(seconds) == text


def test_what_the_ledgers_leave_open():
    notes = ["best rival: BTS; about 8,200 replications would decide", "about 260 replications would decide", np.nan,
             "about 7 replications would decide"]
    rows = pd.DataFrame({"verdict": ["undecided"] * 3 + ["reproduced"], "note": notes})
    assert scaling.needed(rows).tolist() == [260, 8200, np.inf]


def test_half_width_of_the_rows_at_one_scale():
    rows = pd.DataFrame({"replications": [1000, 1000, 1000, 1000, 10], "estimate": [2.0, -1.0, 4.0, 0.0, 1.0],
                         "low": [1.0, -1.2, -np.inf, -1.0, 0.0], "high": [3.0, -0.8, 8.0, 1.0, 9.0]})
    assert scaling.half_width(rows) == pytest.approx((0.5 + 0.2) / 2)


def test_verdicts_are_those_of_the_ledger_of_all_papers():
    verdicts = scaling.ledger.read(ROOT / "figures" / "ledger.csv").verdict
    assert scaling.from_ledgers(ROOT / "figures")["undecided"] == (verdicts == "undecided").sum()


@pytest.fixture(scope="module")
def text():
    prices = {"long": (10, 30, LONG, 0.05), "short": (6, 200, SHORT, 0.01)}
    return scaling.page(Measured(prices, CLIENT, 150.0, 6000.0, 0.25), ROOT / "figures")


def test_the_page_says_what_was_computed(text):
    assert "| long | 10 | 30 | 2 ± 5 % | 1.0 kB | 4.0 kB | 5 ms |" in text
    # 2e6 core-seconds on 8, 80 and 100 (of 800) cores; 1e5 on 8 and 9 of 80; 4 kB a million times.
    assert "| long | 556 | 2.9 d | 6.9 h | 5.6 h* | 100 | tasks | 4.0 GB |" in text
    assert "| short | 28 | 3.5 h | 3.1 h* | 3.1 h* | 9 | results | 4.0 GB |" in text
    flat = " ".join(text.split())
    assert "more cores than one client feeds in 1 of these 2 studies, a hundred in 2" in flat
    assert "took 150.0 s, of which 100.0 s are play" in flat
    assert "a chunk of 20,000 takes 0.1 GB of the client's memory, a million at once 6 GB" in flat


def test_the_committed_page_is_of_the_committed_ledgers(text):
    def part(page):
        return page.split("## What they would buy")[1].split("## How to")[0]

    committed = (ROOT / "benchmarks" / "SCALING.md").read_text()
    assert part(committed) == part(text), "write it anew: python benchmarks/scaling.py"
    assert [line for line in committed.splitlines() if line.startswith("#")] \
        == [line for line in text.splitlines() if line.startswith("#")]
    assert all(f"| {name} |" in committed for name in scaling.STUDIES)


def test_what_a_replication_costs():
    two = Study({"m": cb.MUCB(), "c": cb.CUCB()}, cb.instances.beta(2), cb.Budget(20), 0, np.ones(1), 10**8)
    cost, error = scaling.price(two, 4)
    assert cost.seconds > 0 and error > 0 and cost.filing > 0
    # Two policies, one checkpoint: two pull counts, rounds, skips, spending and reward, of 8 bytes each.
    assert 2 * 48 < cost.sent < 2 * 48 + 3000 and cost.stored > 2 * 40


def test_a_study_may_be_played_in_chunks():
    """As the page advises."""
    study = {"m": cb.MUCB()}, cb.instances.beta(3), cb.Budget(20)
    parts = [cb.simulate(*study, range(a, a + 3), reduce=scaling.regrets)["regret"] for a in (0, 3)]
    whole = cb.simulate(*study, 6, reduce=scaling.regrets)["regret"]
    assert np.concatenate(parts, axis=1).tobytes() == whole.tobytes()


def test_only_a_new_file_or_the_committed_one_is_written(tmp_path, monkeypatch, capsys):
    def destination(*arguments):
        monkeypatch.setattr("sys.argv", ["scaling.py", *map(str, arguments)])
        return scaling.destination("SCALING.md", scaling.__doc__)

    assert destination() == ROOT / "benchmarks" / "SCALING.md"
    assert destination(tmp_path / "new.md") == tmp_path / "new.md"
    (tmp_path / "old.md").touch()
    for bad in (["--help"], ["--fast"], ["a", "b"], [tmp_path / "old.md"], [tmp_path], [tmp_path / "no" / "new.md"]):
        with pytest.raises(SystemExit):
            destination(*bad)
    assert "must be a new file in a folder that is there" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.proof
def test_the_client_is_measured():
    pytest.importorskip("distributed")
    client, hundred = scaling.measured_client(scaling.SHORT, tasks=50, replications=60, pause=0.2)
    assert abs(client.task) < 1 and abs(client.replication) < 1 and hundred > 0     # too few to be sure of more
    scaling.memory(1, 2)                            # what is loaded once is loaded now
    # The peaks differ by 1.4 MB; garbage not yet collected, some 0.1 MB, would drown 20 replications more.
    assert scaling.memory(50, 150) > 10 * 37 * 8    # the regrets alone
    assert scaling.comparison(2 * scaling.BLOCKS) > 0
