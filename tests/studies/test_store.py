"""The store of finished replications: what it saves, and what can't hurt it."""

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial

import numpy as np
import pytest

import costbandits as cb
from costbandits import fast
from costbandits.studies.simulate import Study
from costbandits.studies.store import Store

POLICIES = {"omega": cb.OmegaUCB(), "BTS": cb.BTS()}
STUDY = {"bandits": cb.instances.beta(4), "stop": cb.Budget(20), "replications": 5, "checkpoints": 4, "seed": 3}


@pytest.fixture
def played(monkeypatch):
    """Log of what is played: pairs (replication, labels)."""
    log, play = [], Study.play

    def logged(self, replication, labels):
        log.append((replication, list(labels)))
        return play(self, replication, labels)

    monkeypatch.setattr(Study, "play", logged)
    return log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "store.sqlite"


def same(a, b):
    fields = ("pulls", "rounds", "skips", "spent", "reward")
    return a.policies == b.policies and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in fields)


def test_nothing_is_played_twice(path, played):
    first = cb.simulate(POLICIES, **STUDY, store=path)
    assert played == [(r, ["omega", "BTS"]) for r in range(5)]
    again = cb.simulate(POLICIES, **STUDY, store=path)
    assert len(played) == 5 and same(first, again) and same(first, cb.simulate(POLICIES, **STUDY))
    assert again.pulls.dtype == np.int64 and again.rounds.dtype == np.int64


def test_only_what_is_new_is_played(path, played):
    cb.simulate(POLICIES, **STUDY, store=path)
    played.clear()
    more = {"m": cb.MUCB(), **POLICIES}
    assert same(cb.simulate(more, **STUDY, store=path), cb.simulate(more, **STUDY))
    assert played[:5] == [(r, ["m"]) for r in range(5)]
    played.clear()
    renamed = cb.simulate({"other label": cb.OmegaUCB(0.25)}, **{**STUDY, "replications": [7, 2]}, store=path)
    assert played == [(7, ["other label"])]
    assert same(renamed, cb.simulate({"other label": cb.OmegaUCB()}, **{**STUDY, "replications": [7, 2]}))


@pytest.mark.parametrize("change", [
    {"seed": 4}, {"stop": cb.Budget(21)}, {"checkpoints": 5}, {"checkpoints": [0.5, 1]},
    {"bandits": cb.instances.beta(4, high=4)}, {"reduce": lambda runs: {"x": runs.spent}}])
def test_another_study_is_another_result(path, played, change):
    cb.simulate(POLICIES, **STUDY, store=path)
    cb.simulate(POLICIES, **{**STUDY, **change}, store=path)
    assert len(played) == 10


def test_another_seed_is_another_result_on_the_same_bandit(path, played):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0)] * 2)
    for seed in (3, 4):
        cb.simulate(POLICIES, **{**STUDY, "bandits": bandit, "seed": seed}, store=path)
    assert len(played) == 10


def test_what_a_definition_plays_is_filed_apart_where_only_its_law_is_the_same(path, played):
    """The very pulls of a kernel are found again; those of its law alone are not."""
    assert [fast.kernel_of(policy).same for policy in POLICIES.values()] == ["pulls", "law"]
    quick = cb.simulate(POLICIES, **STUDY, store=path)
    played.clear()
    slow = cb.simulate(POLICIES, **STUDY, store=path, fast=False)
    assert played == [(r, ["BTS"]) for r in range(5)]
    assert same(slow, cb.simulate(POLICIES, **STUDY, fast=False)) and not same(slow, quick)
    played.clear()
    assert same(quick, cb.simulate(POLICIES, **STUDY, store=path)) and played == []


def test_a_run_that_is_not_allowed_its_rounds_is_not_looked_up(path, played):
    cb.simulate(POLICIES, **STUDY, store=path)
    with pytest.raises(RuntimeError, match="did not end within max_rounds = 10"):
        cb.simulate(POLICIES, **STUDY, max_rounds=10, store=path)


class Renamed(cb.Bandit):
    """What it adds is known to a reader's regret alone."""

    worth = 1.0


def test_what_a_regret_may_know_of_a_bandit_is_part_of_the_key(path, played):
    study = {**STUDY, "reduce": lambda runs: {"x": runs.spent * getattr(runs.bandits[0], "worth", 0.0)}}
    laws = [cb.Bernoulli(0.5)] * 4
    for kind, expected in ((cb.Bandit, False), (Renamed, True)):
        found = cb.simulate(POLICIES, **{**study, "bandits": kind(laws, laws)}, store=path)
        assert found["x"].any() == expected


# Functions that make instances are known by their code and by one example of what they make.

@pytest.mark.parametrize("maker", [{"bandits": lambda rng: cb.instances.beta(4)(rng)},
                                   {"stop": lambda bandit: cb.Budget(20)}])
def test_another_maker_of_the_same_is_another_result(path, played, maker):
    first = cb.simulate(POLICIES, **STUDY, store=path)
    for times in (10, 10):                                  # the second time it is known
        assert same(first, cb.simulate(POLICIES, **{**STUDY, **maker}, store=path))
        assert len(played) == times


SHIFT = 0.0


def test_an_edited_closure_or_global_is_another_result(path, played, monkeypatch):
    """Even one that leaves the example as it is: other instances may differ."""
    def maker(limit):
        return lambda rng: cb.instances.beta(4, high=5 + SHIFT * (rng.random() > limit))(rng)

    def plays(limit):
        played.clear()
        cb.simulate(POLICIES, **{**STUDY, "bandits": maker(limit)}, store=path)
        return len(played)

    assert [plays(limit) for limit in (0.5, 0.6, 0.5, 0.6)] == [5, 5, 0, 0]
    monkeypatch.setitem(globals(), "SHIFT", -0.0)           # which changes no instance at all
    assert [plays(limit) for limit in (0.5, 0.5)] == [5, 0]
    monkeypatch.undo()


def test_what_a_maker_reads_shows_in_the_example(path, played, tmp_path):
    file = tmp_path / "high"

    def read(rng):
        return cb.instances.beta(4, high=float(file.read_text()))(rng)

    def plays(high):
        played.clear()
        file.write_text(high)
        cb.simulate(POLICIES, **{**STUDY, "bandits": read}, store=path)
        return len(played)

    assert [plays(high) for high in ("5", "4", "5", "4.0")] == [5, 5, 0, 0]


def test_instances_are_not_made_to_look_up_their_results(path, monkeypatch):
    made, make = [], Study.instance

    def logged(self, replication):
        made.append(replication)
        return make(self, replication)

    study = {**STUDY, "replications": [6, 2, 4]}
    for reduce in (None, lambda runs: {"x": runs.spent}):
        cb.simulate(POLICIES, **study, store=path, reduce=reduce)
        monkeypatch.setattr(Study, "instance", logged)
        cb.simulate(POLICIES, **study, store=path, reduce=reduce)
        monkeypatch.undo()
        # Two to check the arguments and that they are alike, one as the example; and those that are returned.
        assert made == [6, 6, 0] + ([6, 2, 4] if reduce is None else [])
        made.clear()


def test_reduced_results_are_stored(path, played):
    def last(runs):
        return {"spent": runs.spent[:, :, -1], "pulls": runs.pulls[:, :, -1]}

    first = cb.simulate(POLICIES, **STUDY, store=path, reduce=last)
    again = cb.simulate(POLICIES, **STUDY, store=path, reduce=last)
    assert len(played) == 5 and again["spent"].shape == (2, 5) and again["pulls"].shape == (2, 5, 4)
    assert all(np.array_equal(first[name], again[name]) for name in ("spent", "pulls"))
    assert np.array_equal(first["spent"], cb.simulate(POLICIES, **STUDY).spent[:, :, -1])


def test_arrays_of_any_shape_and_type(path):
    arrays = {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.array(1.5), "c": np.zeros((0, 4)),
              "d": np.array([True, False]), "e": np.arange(6.0).reshape(2, 3).T}
    with Store(path) as store:
        store.put([(b"key", arrays)])
    with Store(path) as store:
        found = store.get(b"key")
        assert store.get(b"other") is None and len(store) == 1
    for name, value in arrays.items():
        assert np.array_equal(found[name], value) and found[name].dtype == value.dtype


def damaged(path, damage):
    """Fill a store, damage its file; the bytes it then has."""
    cb.simulate(POLICIES, **STUDY, store=path)
    data = bytearray(path.read_bytes())
    path.write_bytes(damage(data))
    return path.read_bytes()


def flip_payload(data):
    at = data.rindex(b'[["pulls", ') + 200
    data[at] ^= 0xFF
    return data


DAMAGE = {"a flipped bit in a result": flip_payload, "cut in half": lambda data: data[:len(data) // 2],
          "cut to a page": lambda data: data[:4096], "garbage": lambda data: np.random.default_rng(1).bytes(len(data)),
          "garbage behind the header": lambda data: data[:100] + bytes(range(256)) * (len(data) // 256)}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_reported_and_left_as_it_is(path, damage):
    before = damaged(path, DAMAGE[damage])
    with pytest.raises(cb.StoreError, match=r"store .*store.sqlite: damaged.*Move it away"):
        cb.simulate(POLICIES, **STUDY, store=path)
    assert path.read_bytes() == before


# The second leaves an empty database, which has a page all the same.
@pytest.mark.parametrize("statement", ["CREATE TABLE results (name TEXT)", "PRAGMA journal_mode=WAL"])
def test_a_file_of_another_program_is_left_alone(path, statement):
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute(statement)
    other.close()
    before = path.read_bytes()
    assert len(before) > 0
    with pytest.raises(cb.StoreError, match="belongs to something else"):
        cb.simulate(POLICIES, **STUDY, store=path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_a_store_of_another_format_is_left_alone(path):
    with Store(path) as store:
        store._db.execute("PRAGMA user_version=2")
    before = path.read_bytes()
    with pytest.raises(cb.StoreError, match="format 2; wanted"):
        Store(path)
    assert path.read_bytes() == before


def test_a_path_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("words")
    for below in ("file/store", "file/folder/store"):
        with pytest.raises(cb.StoreError, match=r"store .*: cannot be written \((Not a directory|File exists)\)"):
            cb.simulate(POLICIES, **STUDY, store=tmp_path / below)
    with pytest.raises(cb.StoreError, match="cannot be used"):
        cb.simulate(POLICIES, **STUDY, store=tmp_path)
    assert (tmp_path / "file").read_text() == "words" and os.listdir(tmp_path) == ["file"]


def test_a_result_that_no_store_can_keep_is_named_and_the_store_is_not_blamed(path, monkeypatch):
    cb.simulate(POLICIES, **{**STUDY, "replications": 2}, store=path)
    monkeypatch.setattr("costbandits.studies.store.LARGEST", 100)
    with pytest.raises(RuntimeError, match=r"too large, at most 1 GB can be kept .* fewer checkpoints, or reduce="):
        cb.simulate(POLICIES, **STUDY, store=path)
    with Store(path) as store:
        assert len(store) > 0


def test_a_full_disk_loses_nothing_that_was_stored(path, played, monkeypatch):
    opened = Store._open

    def on_a_small_disk(self):
        opened(self)
        self._db.execute("PRAGMA max_page_count = 5")

    study = {**STUDY, "replications": 40}
    monkeypatch.setattr(Store, "_open", on_a_small_disk)
    with pytest.raises(OSError, match=r"no space left.*those stored before are safe") as caught:
        cb.simulate(POLICIES, **study, store=path)
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(path)
    monkeypatch.undo()
    with Store(path) as store:
        rows = len(store)
    assert 0 < rows < 2 * 40 and rows % 2 == 0             # whole replications
    restored = cb.simulate(POLICIES, **study, store=path)
    assert same(restored, cb.simulate(POLICIES, **study))
    with Store(path) as store:
        assert len(store) == 2 * 40


def test_of_results_that_are_filed_together_all_are_kept_or_none(path):
    with Store(path) as store:
        store._db.execute("CREATE TRIGGER refuse BEFORE INSERT ON results WHEN NEW.key = x'62' "
                          "BEGIN SELECT RAISE(FAIL, 'refused'); END")
        with pytest.raises(cb.StoreError, match="refused"):
            store.put([(b"a", {"x": np.arange(3)}), (b"b", {"x": np.arange(3)})])
        assert len(store) == 0
        store.put([(b"a", {"x": np.arange(3)})])
        assert len(store) == 1


MAKER = """
import os, sys, time
import costbandits as cb

def slow(rng):
    time.sleep(float(os.environ.get("SLOWLY", 0)))          # an instance that takes its time
    return cb.instances.beta(4)(rng)
"""
SLOW = MAKER + textwrap.dedent("""
    policies = {"omega": cb.OmegaUCB(), "BTS": cb.BTS()}
    store, n_jobs, replications = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cb.simulate(policies, slow, cb.Budget(20), replications, seed=3, checkpoints=4, n_jobs=n_jobs, store=store)
    """)


def child(*arguments):
    """Another process that runs SLOW."""
    return subprocess.Popen([sys.executable, "-c", SLOW, *map(str, arguments)], env={**os.environ, "SLOWLY": "0.01"})


def slow_here():
    """What SLOW plays on: the same code makes the same instances, here and there."""
    names = {}
    exec(MAKER, names)
    return {**STUDY, "bandits": names["slow"]}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_where_it_was(path, played, n_jobs):
    study, other = {**slow_here(), "replications": 60}, child(path, n_jobs, 60)
    stored, limit = 0, time.monotonic() + 60
    while stored < 10 and time.monotonic() < limit:         # reading while another process writes
        time.sleep(0.02)
        if path.exists() and path.stat().st_size:
            with Store(path) as store:
                stored = len(store)
    other.send_signal(signal.SIGKILL)
    assert other.wait() == -signal.SIGKILL
    with Store(path) as store:
        stored = len(store)
    assert 10 <= stored < 120 and stored % 2 == 0
    resumed = cb.simulate(POLICIES, **study, store=path)
    assert len(played) == 60 - stored // 2
    played.clear()
    assert same(resumed, cb.simulate(POLICIES, **study)) and len(played) == 60


@pytest.mark.slow
def test_two_studies_write_to_one_store(path, played):
    assert [other.wait() for other in [child(path, 1, 20), child(path, 1, 20)]] == [0, 0]
    cb.simulate(POLICIES, **{**slow_here(), "replications": 20}, store=path)
    assert played == []


def test_two_processes_may_make_the_file_at_the_same_moment(path, monkeypatch):
    """The other one has begun, and ends while this one waits for its turn."""
    path.parent.mkdir()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    class Waiting(sqlite3.Connection):
        def execute(self, order, *values):
            if order == "BEGIN IMMEDIATE" and other.in_transaction:
                threading.Timer(0.1, other.execute, ["COMMIT"]).start()
            return super().execute(order, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Waiting))
    with Store(path) as store:
        store.put([(b"key", {"x": np.arange(3)})])
        assert len(store) == 1 and not other.in_transaction
    other.close()


def test_an_empty_file_becomes_a_store(path):
    path.parent.mkdir()
    path.touch()
    with Store(path) as store:
        store.put([(b"key", {"x": np.arange(3)})])
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with Store(path) as store:
        assert len(store) == 1


@pytest.mark.parametrize(("free", "error", "said"), [(0, OSError, "no space left"), (2**30, cb.StoreError, "be used")])
def test_an_io_error_on_a_nearly_full_disk_is_a_full_disk(path, monkeypatch, free, error, said):
    monkeypatch.setattr("shutil.disk_usage", lambda place: shutil._ntuple_diskusage(2**40, 2**40 - free, free))
    with Store(path) as store, pytest.raises(error, match=said), store._clear_errors():
        raise sqlite3.OperationalError("disk I/O error")


def test_a_result_under_another_key_is_damage(path):
    with Store(path) as store:
        store.put([(b"a", {"x": np.arange(3)}), (b"b", {"x": np.arange(4)})])
        payload, checksum = store._db.execute("SELECT payload, checksum FROM results WHERE key = ?", (b"a",)).fetchone()
        store._db.execute("UPDATE results SET payload = ?, checksum = ? WHERE key = ?", (payload, checksum, b"b"))
        assert store.get(b"a")["x"].tolist() == [0, 1, 2]
        with pytest.raises(cb.StoreError, match="does not match its checksum"):
            store.get(b"b")


def folder_of(path):
    return {each.name: each.read_bytes() for each in path.parent.iterdir()}


def test_a_complete_store_on_read_only_media_plays(path, played, monkeypatch):
    """Nothing is written, not even SQLite's log; what the store lacks is refused in one sentence."""
    first = cb.simulate(POLICIES, **STUDY, store=path)
    before, may = folder_of(path), os.access
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK and may(place, mode))
    played.clear()
    again = cb.simulate(POLICIES, **STUDY, store=path)
    assert same(first, again) and played == [] and folder_of(path) == before
    with pytest.raises(cb.StoreError, match=r"cannot be used \(attempt to write a readonly database\)"):
        cb.simulate(POLICIES, **{**STUDY, "seed": 8}, store=path)
    assert folder_of(path) == before


def test_however_a_store_is_damaged_one_sentence_says_so(path):
    """Or nothing, where the damage is not met: never another error, nor another result."""
    wanted = {bytes([i]) * 16: {"a": np.arange(9.0) + i, "b": np.full((2, 3), i)} for i in range(60)}
    with Store(path) as store:
        store.put(wanted.items())
    whole, rng = path.read_bytes(), np.random.default_rng(5)
    told = 0
    for trial in range(120):
        damaged, at = bytearray(whole), int(rng.integers(len(whole)))
        if trial % 3 == 0:
            damaged[at:at + 40] = rng.bytes(len(damaged[at:at + 40]))
        elif trial % 3 == 1:
            damaged[at] ^= 1 << int(rng.integers(8))
        else:
            del damaged[at:]
        for each in path.parent.iterdir():
            each.unlink()
        path.write_bytes(damaged)
        try:
            with Store(path) as store:
                found = {key: store.get(key) for key in wanted}
                assert len(store) >= 0
            assert all(each is None or (each["a"] == wanted[key]["a"]).all() for key, each in found.items())
        except cb.StoreError as error:
            told += 1
            assert str(error).startswith(f"store {path}: ") and "\n" not in str(error)
    assert told > 50
