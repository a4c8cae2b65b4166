"""Figures are filed with their origin, byte for byte the same each time, and only where there is a folder for them."""

import json
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from compendium import project
from compendium.gallery import Gallery, house_style, number, png
from costbandits.analysis import figures


@pytest.fixture(autouse=True)
def style():
    with plt.rc_context(figures.STYLE):
        yield
        plt.close("all")


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    return {label: rng.exponential(size=(20, 8)).cumsum(axis=1) + 1 for label in ("ω-UCB 1/4", "m-UCB", "mine")}


def test_the_house_style_leaves_nothing_of_the_user_s():
    plt.rcParams.update({"savefig.transparent": True, "font.size": 30})
    house_style()
    assert plt.rcParams["savefig.transparent"] is matplotlib.rcParamsDefault["savefig.transparent"]
    assert plt.rcParams["font.size"] == figures.STYLE["font.size"]


@pytest.mark.slow
def test_files_are_byte_identical_and_carry_their_origin(tmp_path, runs):
    for folder in ("one", "two"):
        gallery = Gallery("omega_ucb", str(tmp_path / folder), "paper", 3)
        gallery.add("regret", figures.panels(np.geomspace(0.01, 1, 8), {"S": runs}), pd.DataFrame({"x": [1.23456789]}))
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["regret.csv", "regret.png", "regret.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    origin = json.loads(Image.open(tmp_path / "one" / "regret.png").text["Description"])
    assert origin == {"notebook": "omega_ucb", "profile": "paper", "seed": 3}
    picture = (tmp_path / "one" / "regret.svg").read_text()
    assert "paper" in picture and matplotlib.__version__ not in picture and "<dc:date>" not in picture
    assert (tmp_path / "one" / "regret.csv").read_text() == "x\n1.23457\n"


def test_pale_text_is_darkened_and_white_text_stays():
    fig, ax = plt.subplots()
    pale, white, dark = (ax.annotate("a", (0.5, 0.5), color=colour) for colour in ("C4", "w", "k"))
    Gallery("omega_ucb").add("regret", fig)
    assert pale.get_color() == figures.ink(figures.ORANGE) != figures.ORANGE
    assert (white.get_color(), matplotlib.colors.to_hex(dark.get_color())) == ("w", "#000000")


def test_no_letter_is_cut_at_the_edge_of_the_png(tmp_path):
    fig, ax = plt.subplots(figsize=(4, 3))
    ax.plot([0, 1], [0, 1])
    figures.name_lines(ax, {"Budget-CB, printed radius": 1.0, "ε-first, shrinking": 0.5})
    Gallery("omega_ucb", str(tmp_path)).add("regret", fig)
    pixels = np.array(Image.open(tmp_path / "regret.png").convert("L"))
    assert pixels[:, :-2].min() < 128 and (pixels[:, -2:] == 255).all()


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, runs):
    monkeypatch.chdir(tmp_path)
    fig = figures.panels(np.geomspace(0.01, 1, 8), {"S": runs})
    Gallery("omega_ucb").add("regret", fig, pd.DataFrame({"x": [1]}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "committed", "linked"), [("audit/toy", True, True), ("audit/toy", False, False),
                                                           ("toy", True, False)])
def test_a_committed_audit_links_to_its_pictures(tmp_path, monkeypatch, name, committed, linked):
    shown, place = [], project.up(name)
    home = tmp_path / "notebooks/audit"
    home.mkdir(parents=True)
    monkeypatch.chdir(home if place == "../../" else home.parent)
    monkeypatch.setattr("compendium.gallery.display", lambda thing: shown.append(thing.data))
    monkeypatch.delenv(project.COMMITTED, raising=False)
    if committed:
        monkeypatch.setenv(project.COMMITTED, "")
    (tmp_path / "figures" / name).mkdir(parents=True)
    (tmp_path / "figures" / name / "old.png").write_bytes(png(plt.figure()))
    for figure in ("old", "new"):       # none is published of the new one
        Gallery(name).add(figure, plt.figure())
    assert shown == ['<img src="../../figures/audit/toy/old.png" alt="figures/audit/toy/old.png">'] * linked
    assert len(plt.get_fignums()) == 3 - linked


def test_numbers_are_short():
    assert [number(value) for value in (0.12345, -12.345, 999.4, 999.9, 1234.5, -9999999, 1e7)] == [
        "0.123", "-12.3", "999", "1,000", "1,234", "-9,999,999", "1e+07"]


def test_what_a_figure_says_is_told_to_the_report(tmp_path, runs):
    gallery, fig = Gallery("kube", str(tmp_path)), figures.panels(np.geomspace(0.01, 1, 8), {"S": runs})
    with pytest.raises(ValueError, match=r"says = 'All is well\.': must come with a figure"):
        gallery.add("regret", table=pd.DataFrame({"x": [1]}), says="All is well.")
    assert list(tmp_path.iterdir()) == []
    gallery.add("regret", fig, says="All is well.")
    assert json.loads((tmp_path / "story.json").read_text())["figures"] == {"regret": "All is well."}


def test_published_reads_what_was_filed_or_committed(tmp_path, monkeypatch):
    gallery = Gallery("omega_ucb", str(tmp_path / "stage"))
    gallery.add("table", table=pd.DataFrame({"x": [1, 2]}))
    assert list(gallery.published("table").x) == [1, 2]
    committed = tmp_path / "figures" / "omega_ucb"
    committed.mkdir(parents=True)
    (committed / "table.csv").write_text("x\n7\n")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert list(Gallery("omega_ucb").published("table").x) == [7]
    assert Gallery("omega_ucb").published("absent").empty


@pytest.mark.parametrize(("name", "value"), [("replications", -3), ("replications", 2.5), ("budget", float("nan")),
                                             ("arms", []), ("arms", [10, 0]), ("arms", "10"), ("profile", 1)])
def test_a_parameter_that_cannot_be_played_is_refused_before_anything_is(tmp_path, monkeypatch, name, value):
    (tmp_path / "params/paper").mkdir(parents=True)
    (tmp_path / "params/paper/kube.yaml").write_text(
        "profile: paper\nseed: 1\nreplications: 9\nbudget: 2.5\narms: [3, 4]\n")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    typed = {"profile": "quick", "replications": 1, "budget": 7, "arms": [10], "seed": 0, "other": None}
    monkeypatch.setattr("compendium.gallery.get_ipython", lambda: SimpleNamespace(user_ns=typed))
    Gallery("kube")
    Gallery("suak")     # without a profile everything is allowed
    typed[name] = value
    Gallery("suak")
    with pytest.raises(ValueError, match=f"^{name} = .*: must be a (whole number, above 0|finite|list|text)"):
        Gallery("kube")


@pytest.fixture
def committed(tmp_path, monkeypatch):
    """A project with published results, its notebooks as the current folder; the folder of the figures."""
    folder = tmp_path / "figures" / "kube"
    folder.mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    return folder


@pytest.fixture
def said(monkeypatch):
    """What the gallery shows, in a list; an update replaces what it updates."""
    shown = []

    class Handle:
        def __init__(self, place):
            self.place = place

        def update(self, text):
            shown[self.place] = getattr(text, "data", text)

    def display(text, display_id=False):
        shown.append(getattr(text, "data", text))
        return Handle(len(shown) - 1) if display_id else None

    monkeypatch.setattr("compendium.gallery.display", display)
    return shown


def test_what_is_added_comes_back_as_published(committed, tmp_path):
    own = pd.DataFrame({"regret": [1.0, 2.0]}, index=pd.Index(["UCB1", "KUBE"], name="policy"))
    quick = Gallery("kube")
    assert quick.add("regret", table=own) is own and quick.add("regret") is None
    (committed / "regret.csv").write_text("policy,regret\nUCB1,7\n")
    assert quick.add("regret", table=own).regret.to_dict() == {"UCB1": 7}
    (committed / "regret_standin.csv").write_text("policy,regret\nUCB1,9\n")       # of invented data, beside it
    assert quick.add("regret_standin", table=own).regret.to_dict() == {"UCB1": 9}
    full = Gallery("kube", str(tmp_path / "stage"))
    assert full.add("regret", table=own).regret.to_dict() == {"UCB1": 1, "KUBE": 2}
    with pytest.raises(ValueError, match=r"index of table regret = .*: must be named"):
        full.add("regret", table=own.rename_axis(None))


def test_a_picture_of_this_run_says_so_unless_it_is_the_published_one(committed, tmp_path):
    def drawn(height=1.0):
        fig, ax = plt.subplots(figsize=(3, 2))
        ax.plot([0, height])
        return fig

    def marks(table=None, height=1.0, name="regret"):
        fig = drawn(height)
        Gallery("kube", "", "quick").add(name, fig, table)
        png(fig)                                     # it can still be laid out
        return fig.get_supxlabel()

    few, many = pd.DataFrame({"regret": [1.0]}), pd.DataFrame({"regret": [2.0]})
    assert marks(few) == marks() == ""               # nothing is published
    Gallery("kube", str(committed), "paper").add("regret", drawn(), many)
    said = "A picture of this run. The text speaks of figures/kube/regret.png."
    assert (marks(few), marks(many)) == (said, "") and marks(few, name="regret_standin") == said
    assert (marks(height=2.0), marks(height=1.0)) == (said, "")
    fig = drawn()
    fig.supxlabel("rounds")
    Gallery("kube").add("regret", fig, few)
    assert fig.get_supxlabel() == f"rounds\n{said}"


def test_the_head_of_a_chapter_shows_the_published_findings(committed, said):
    Gallery("kube").brief()
    (committed / "story.json").write_text(json.dumps({"figures": {}, "findings": ["**All** is well."]}))
    gallery = Gallery("kube")
    gallery.brief()
    gallery.finding("Another run's.")
    assert said == ["*No results yet: `make all` fills this in.*", "- **All** is well.", "Another run's."]


def test_a_table_stands_ahead_of_the_section_that_makes_it(committed, said, tmp_path):
    own = pd.DataFrame({"question": ["take"], "random costs": ["that"]})
    gallery = Gallery("kube")
    gallery.ahead("choice")
    assert said == ["*A later section makes this table.*"]
    (committed / "choice.csv").write_text("question,random costs\ntake,this\n")
    gallery.ahead("choice")
    gallery.add("choice", table=own)
    assert said[1].loc["take", "random costs"] == "this"
    for suffix in ("", "_standin"):
        full = Gallery("kube", str(tmp_path / f"stage{suffix}"))
        full.ahead("choice")
        assert said[-1] == "*A later section makes this table.*"
        full.add("others", table=own)
        full.add(f"choice{suffix}", table=own)
        assert said[-1].loc["take", "random costs"] == "that" and len(said[-1]) == 1


def test_a_full_run_shows_its_own_findings_at_the_head(committed, said, tmp_path):
    (committed / "story.json").write_text(json.dumps({"figures": {}, "findings": ["Old."]}))
    gallery = Gallery("kube", str(tmp_path / "stage"))
    gallery.brief()
    gallery.tell("""
        In 3 of 4
        runs.""")
    gallery.finding("**One.**", shown="4.2")
    gallery.finding("Not so.", holds=False)
    assert said == ["- **One.** (section 4.2)", "In 3 of 4\nruns.", "**One.** (section 4.2)"]
    assert json.loads((tmp_path / "stage/story.json").read_text())["findings"] == ["**One.** (section 4.2)"]
