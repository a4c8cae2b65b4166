"""Publication: whole files only, killed or out of space at whichever step; manifests that tell the truth."""

import errno
import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from compendium import project, publication

FIGURES = Path(__file__).resolve().parents[2] / "figures"
OLD = {"a.svg": "old a", "b.csv": "old b", "gone.csv": "old gone", "same.csv": "same"}
NEW = {"a.svg": "new a", "b.csv": "new b", "same.csv": "same", "fresh.png": "new fresh"}
STEPS = {"open", "os.rename", "os.remove"}


def stage(folder, files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != publication.MANIFEST}


@pytest.fixture
def house(tmp_path):
    """A folder with the publication OLD, and NEW staged."""
    publication.publish(stage(tmp_path / "old", OLD), tmp_path / "figures", {"profile": "old"})
    stage(tmp_path / "new", NEW)
    return tmp_path


def publish_new(house):
    return publication.publish(house / "new", house / "figures", {"profile": "new"})


def assert_each_file_is_old_or_new(folder):
    for name, text in content(folder).items():
        if not name.endswith(publication.PART):
            assert text in (OLD.get(name), NEW.get(name))
    assert set(OLD) & set(NEW) <= set(content(folder))
    if {"profile": "new"} in publication.manifest(folder)["runs"].values():     # the manifest comes last
        assert NEW.items() <= content(folder).items()


def assert_published(folder, files):
    assert content(folder) == files
    assert publication.audit(folder) == []


def test_publication_replaces_adds_and_removes(house):
    assert publish_new(house) == ["a.svg", "b.csv", "fresh.png"]
    assert_published(house / "figures", NEW)
    assert list(publication.manifest(house / "figures")["runs"].values()) == [{"profile": "new"}]


def test_publishing_the_same_again_changes_no_byte_and_no_time(house):
    publish_new(house)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (house / "figures").iterdir()}
    assert publish_new(house) == []
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (house / "figures").iterdir()}
    assert {name: entry[0] for name, entry in after.items()} == {name: entry[0] for name, entry in before.items()}
    assert all(after[name] == before[name] for name in NEW)


def test_runs_that_differ_in_anything_have_names_of_their_own(tmp_path):
    """Names are short, and do not say in which order a record was written."""
    stage(tmp_path / "1", {"a.svg": "a"})
    records = [{"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}, {"a": 2, "b": {"c": 2, "d": 3}},
               {"a": 1, "b": {"c": 2, "d": 4}}, {"a": 1, "b": {"c": 2}}, {"b": {"c": 2, "d": 3}}]
    found = []
    for record in records:
        publication.publish(tmp_path / "1", tmp_path / "figures", record)
        (label,) = publication.manifest(tmp_path / "figures")["runs"]
        found.append(label)
    assert found[0] == found[1] and len(set(found)) == len(records) - 1 and {len(label) for label in found} == {12}


def test_a_file_of_someone_else_is_left_alone_and_found_by_the_audit(house):
    (house / "figures" / "mine.txt").write_text("mine")
    (house / "figures" / "a.svg").write_text("edited")
    assert publication.audit(house / "figures") == ["a.svg", "mine.txt"]
    publish_new(house)
    assert content(house / "figures") == {**NEW, "mine.txt": "mine"}


def test_an_edited_and_a_missing_file_are_found_by_the_audit(tmp_path):
    publication.publish(stage(tmp_path / "1", {"a.svg": "a", "b.svg": "b", "c.svg": "c"}), tmp_path / "figures", {})
    assert publication.audit(tmp_path / "figures") == []
    (tmp_path / "figures" / "a.svg").write_text("edited")
    (tmp_path / "figures" / "b.svg").unlink()
    assert publication.audit(tmp_path / "figures") == ["a.svg", "b.svg"]


def test_standins_neither_replace_nor_remove_real_files(tmp_path):
    folder = tmp_path / "figures"
    real = {"ads.svg": "real", "only_real.csv": "3", "x.csv": "1"}
    standin = {"ads_standin.svg": "synthetic", "ads_standin.live.json": "synthetic", "x.csv": "2"}
    publication.publish(stage(tmp_path / "1", real), folder, {"ads": "the file"})
    publication.publish(stage(tmp_path / "2", standin), folder, {"ads": ""})
    assert_published(folder, {**real, **standin})
    found = publication.manifest(folder)
    made_by = {name: found["runs"][entry["run"]]["ads"] for name, entry in found["files"].items()}
    assert made_by == {"ads.svg": "the file", "only_real.csv": "the file", "x.csv": ""}    # no stand-in
    publication.publish(tmp_path / "2", folder, {"ads": ""})
    assert_published(folder, {**real, **standin})
    other = {"x.csv": "2", "y_standin.csv": "synthetic"}
    publication.publish(stage(tmp_path / "3", other), folder, {"ads": ""})
    assert_published(folder, {**real, **other})     # a stand-in of an older run goes
    publication.publish(tmp_path / "1", folder, {"ads": "the file"})
    assert_published(folder, real)


def test_a_real_file_that_was_edited_is_kept_without_being_vouched_for(tmp_path):
    publication.publish(stage(tmp_path / "1", {"ads.svg": "real"}), tmp_path / "figures", {})
    (tmp_path / "figures" / "ads.svg").write_text("edited")
    new = {"ads_standin.svg": "synthetic", "x.csv": "1"}
    publication.publish(stage(tmp_path / "2", new), tmp_path / "figures", {})
    assert list(publication.manifest(tmp_path / "figures")["files"]) == ["x.csv"]
    assert content(tmp_path / "figures") == {"ads.svg": "edited", **new}


def die_at(step, work):
    """Do the work in a child process that dies just before its step-th step; whether it did all of it instead."""
    child = os.fork()
    if child == 0:
        count = itertools.count()

        def one_step(event, arguments):
            if event in STEPS and next(count) == step:
                os._exit(9)

        fsync = os.fsync
        os.fsync = lambda handle: (one_step("open", ()), fsync(handle))
        sys.addaudithook(one_step)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("following", ["the same", "a run without data"])
def test_killed_before_every_step_each_file_is_old_or_new_and_the_next_publication_completes(tmp_path, following):
    new = stage(tmp_path / "new", NEW)
    poor = stage(tmp_path / "poor", {"a_standin.svg": "synthetic"})
    done, states = False, set()
    for step in itertools.count():
        folder = tmp_path / f"figures{step}"
        publication.publish(tmp_path / "old" if step else stage(tmp_path / "old", OLD), folder, {"profile": "old"})
        done = die_at(step, lambda folder=folder: publication.publish(new, folder, {"profile": "new"}))
        assert_each_file_is_old_or_new(folder)
        states.add(content(folder)["a.svg"])
        if following == "the same":
            publication.publish(new, folder, {"profile": "new"})
            assert_published(folder, NEW)
        else:
            a = content(folder)["a.svg"]
            publication.publish(poor, folder, {"profile": "poor"})
            assert publication.audit(folder) == []
            assert content(folder)["a_standin.svg"] == "synthetic"
            assert content(folder)["a.svg"] == a or a == "old a"      # the interrupted one is completed first
        if done:
            break
    assert step > 20 and states == {"old a", "new a"}


@pytest.mark.slow
def test_killed_while_completing_it_completes_the_next_time(house):
    folder = house / "figures"
    for step in itertools.count():
        if die_at(step, lambda: publish_new(house)) or (folder / publication.JOURNAL).exists():
            break
    assert (folder / publication.JOURNAL).exists()
    for further in range(20):
        if die_at(4 + further, lambda: publication.complete(folder)):
            break
        assert_each_file_is_old_or_new(folder)
    assert_published(folder, NEW)


@pytest.mark.parametrize("at", range(4))
def test_another_run_may_complete_it_first(house, monkeypatch, at):
    """Before any of the renames, and before the journal goes."""
    folder, replace, count = house / "figures", os.replace, itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(publication, "complete", lambda folder: None)
        publish_new(house)
    waiting = sorted(path.name for path in folder.glob("*.part"))

    def after_another(*names):
        if next(count) == at:
            patch.setattr(os, "replace", replace)
            publication.complete(folder)
        replace(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", after_another)
        assert publication.complete(folder) and len(waiting) > 1
    assert_published(folder, NEW)


@pytest.mark.parametrize("function", ["os.fsync", "os.replace", "publication.open"])
def test_no_space_at_any_call_overwrites_nothing_or_is_completed_later(house, monkeypatch, function):
    folder, outcomes = house / "figures", set()
    module, name = (os if function.startswith("os.") else publication), function.partition(".")[2]
    original = getattr(module, name, open)
    for call in itertools.count():
        count = itertools.count()

        def full(*arguments, count=count, call=call, **options):
            if next(count) == call:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
            return original(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(module, name, full, raising=False)
            try:
                publish_new(house)
                break
            except publication.Unfinished as error:
                assert "No space left" in str(error) and "next run completes" in str(error)
                outcomes.add("later")
            except OSError as error:
                assert error.errno == errno.ENOSPC
                assert_published(folder, OLD)
                outcomes.add("nothing")
        assert_each_file_is_old_or_new(folder)
        publish_new(house)
        assert_published(folder, NEW)
        publication.publish(house / "old", folder, {"profile": "old"})
    assert "nothing" in outcomes and ("later" in outcomes) == (function != "publication.open")


@pytest.mark.parametrize(("files", "said"), [({}, "nothing to publish"), ({"manifest.json": ""}, "plain files only")])
def test_what_cannot_be_published_is_refused(house, files, said):
    with pytest.raises(ValueError, match=said):
        publication.publish(stage(house / "odd", files), house / "figures", {})
    (house / "nested" / "folder").mkdir(parents=True)
    with pytest.raises(ValueError, match="plain files only"):
        publication.publish(house / "nested", house / "figures", {})
    assert_published(house / "figures", OLD)


@pytest.mark.parametrize("text", ["{", "[]", '{"files": {"a": {}}, "runs": {}}', '{"files": {}, "runs": {"x": {}}}'])
def test_a_damaged_manifest_is_refused_and_nothing_overwritten(house, text):
    (house / "figures" / publication.MANIFEST).write_text(text)
    with pytest.raises(ValueError, match=r"manifest\.json: damaged"):
        publish_new(house)
    assert content(house / "figures") == OLD


def test_a_folder_below_a_file_is_refused(house):
    (house / "file").write_text("x")
    with pytest.raises(OSError):
        publication.publish(house / "new", house / "file" / "figures", {})
    assert (house / "file").read_text() == "x"


@pytest.mark.parametrize("name", project.chapters(FIGURES.parent))
def test_the_committed_manifest_tells_the_truth(name):
    folder = FIGURES / name
    assert publication.audit(folder) == []
    runs = publication.manifest(folder)["runs"].values()
    assert {run["profile"] for run in runs} == {"paper"}
    assert str(FIGURES.parent) not in json.dumps(list(runs))


def test_only_the_files_that_are_meant_are_published(house):
    publication.publish(house / "new", house / "tables", {"profile": "new"}, only=["*.csv", "b*"])
    assert_published(house / "tables", {"b.csv": "new b", "same.csv": "same"})
    with pytest.raises(ValueError, match="nothing to publish"):
        publication.publish(house / "new", house / "tables", {"profile": "new"}, only=["nothing*"])


def test_one_file_is_replaced_as_a_whole(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    publication.replace(page, "old")
    publication.replace(page, "ω")
    assert page.read_text(encoding="utf-8") == "ω"

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left")
    monkeypatch.setattr(publication.os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        publication.replace(page, "new")
    assert page.read_text(encoding="utf-8") == "ω"
