"""The report for a journal: its form, its references, and that each number in it is one of the committed results."""

import re
import time
from pathlib import Path

import pytest
import yaml
from pybtex.database import parse_file

from compendium import ledger, paper
from compendium.project import claims

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / paper.PAPER).read_text()
HEAD, BODY = paper.head(TEXT)
REFERENCES = ROOT / "paper" / HEAD["bibliography"]
ENTRIES = parse_file(REFERENCES).entries
SECTIONS = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement",
            "AI usage disclosure", "Acknowledgements", "References"]
# Numbers that describe a set-up, and are no results.
TOLD = {"10", "100"}


def section(name):
    return re.search(rf"^# {name}\n(.*?)(?=^# |\Z)", BODY, re.MULTILINE | re.DOTALL)[1].strip()


def filled(text):
    return paper.filled(text, ROOT, ledger.read(ROOT / paper.LEDGER), claims(ROOT))


def typed(body):
    """Numbers of a text that nothing fills in."""
    body = paper.TABLE.sub("", paper.NUMBER.sub("", body))
    for other in (paper.COMMENT, re.compile(r"`[^`]*`|\[@[^\]]*\]|\]\([^)]*\)")):
        body = other.sub("", body)
    return re.findall(r"(?<![\w*-])\d[\d.,·⁰¹²³⁴⁵⁶⁷⁸⁹]*(?<![.,])", body)


def test_the_head_is_as_the_journal_wants_it():
    assert set(HEAD) == {"title", "tags", "authors", "affiliations", "date", "bibliography"} and len(HEAD["tags"]) >= 5
    assert time.strptime(str(HEAD["date"]), "%d %B %Y") and "`" not in HEAD["title"]
    assert [each["name"] for each in HEAD["authors"]] == [
        each["name"] for each in yaml.safe_load((ROOT / "CITATION.cff").read_text())["authors"]]
    assert {each["affiliation"] for each in HEAD["authors"]} == {each["index"] for each in HEAD["affiliations"]}


def test_the_sections_are_those_of_the_journal():
    assert re.findall(r"^# (.*)$", BODY, re.MULTILINE) == SECTIONS and not re.search("^##", BODY, re.MULTILINE)
    assert all(section(name) for name in SECTIONS[:-1]) and section("References") == ""


def test_it_is_neither_too_short_nor_too_long():
    words = re.findall(r"\w[\w'’-]*", re.sub(r"\[@[^\]]*\]|\]\([^)]*\)", "", paper.COMMENT.sub("", BODY)))
    assert 750 <= len(words) <= 1750


def test_what_the_authors_have_to_say_is_left_to_them():
    gap = "**Gap: to be written by the authors before submission.**"
    assert [name for name in SECTIONS if section(name).startswith(gap)] == ["AI usage disclosure", "Acknowledgements"]
    assert [each["name"] for each in HEAD["affiliations"]] == ["To be completed by the authors"]


def test_every_reference_is_there_and_leads_somewhere():
    cited = set(paper.CITED.findall(BODY))
    assert len(cited) > 15 and cited <= set(ENTRIES)
    assert all({"doi", "url"} & set(ENTRIES[key].fields) for key in cited - {"xia2015thompson"})     # IJCAI gave none
    assert {key for key, entry in ENTRIES.items() if entry.fields.get("keywords") == "software"} <= cited
    reproduced = {key for key, entry in ENTRIES.items() if entry.fields.get("keywords") == "reproduced"}
    assert reproduced <= cited and len(reproduced) == 5


def test_pictures_are_there_and_links_need_no_folder():
    pictures = re.findall(r"!\[(.+?)\]\(([^)]+)\)", BODY)
    assert pictures and all((ROOT / "paper" / path).exists() for _, path in pictures)
    assert all(link.startswith("https://") for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", BODY))


@pytest.mark.slow
def test_every_number_is_that_of_the_committed_results():
    assert filled(TEXT) == TEXT, "`make paper` mends it"
    assert len(paper.NUMBER.findall(TEXT)) > 20 and set(typed(BODY)) == TOLD


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [
    (r"\d+(?=<!-- claims)", "999"), (r"\S+(?=<!-- rounds)", "1"), (r"(?<=\| ω-UCB \| )\d+", "999")])
def test_a_planted_number_is_noticed_and_mended(old, new):
    planted = re.sub(old, new, TEXT)
    assert planted != TEXT and filled(planted) == TEXT


def test_a_number_typed_by_hand_is_noticed():
    assert typed("In 12 of 3.5·10⁹ rounds, 7<!-- rows --> of UCB1 [@auer2002finite] and `x = 9`.") == ["12", "3.5·10⁹"]


def test_an_unknown_number_is_refused_by_name():
    with pytest.raises(ValueError, match=r"numbers = \['nothing'\]: must be of claims"):
        filled("12<!-- nothing -->")


def test_numbers_are_read_from_the_benchmarks():
    with pytest.raises(ValueError, match="omega-UCB 1/4 1e\\+12"):
        paper.measured("omega-UCB 1/4   1e+11  0.026 7.0e+11 4.8e+04\n")
    text = (ROOT / paper.BENCHMARKS).read_text()
    found = paper.measured(re.sub(r"(?m)^(BTS +1e\+12 +)\S+", r"\g<1>5.25", text))
    assert found["thompson"] == "5.25"
    # 3 ns a pull beyond sampling, and 14.5 ns to draw a pair
    lines = {"sampling a pair, Bernoulli": "14.5 ns", paper.LOOP.format(10): "135 ns a pull, 39.7 x ours (3 ns)"}
    for label, told in lines.items():
        text = re.sub(rf"(?m)^{re.escape(label)} +.*$", f"{label}    {told}", text)
    assert [paper.measured(text)[name] for name in ("ours10", "loop10", "drawing10")] == ["3", "135", "18"]


def test_citations_become_those_of_the_page():
    page = paper.page(TEXT.partition("# Summary")[0] + "# Summary\n\nAs @one says [@two; @three], 5<!-- rows -->.\n")
    assert page.startswith(f"# {HEAD['title']}\n")
    assert "## Summary\n\nAs {cite:t}`one` says {cite:p}`two,three`, 5.\n" in page


@pytest.mark.slow
def test_the_page_is_built_without_a_warning(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert paper.main(["--build", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'paper/paper.html'}: the report, as one page\n"
    page = (tmp_path / "paper/paper.html").read_text()
    assert page.count('<div class="citation"') == len(set(paper.CITED.findall(BODY))) and "{cite" not in page
    assert page.count("<table") == 2 and page.count("<img") == 1


def test_numbers_that_have_changed_are_written_and_faults_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert paper.main([]) == 2 and "No such file" in capsys.readouterr().err
    Path("paper.md").write_text("old")
    monkeypatch.setattr(paper, "made", lambda *_: {"paper.md": "new"})
    monkeypatch.setattr(paper.ledger, "read", lambda path: None)
    monkeypatch.setattr(paper, "claims_of", lambda root: None)
    monkeypatch.setattr(paper, "build", lambda root, folder: ["Sphinx has warnings"])
    assert paper.main([]) == 1 and Path("paper.md").read_text() == "new"
    assert capsys.readouterr() == ("paper.md: written\n", "costbandits: Sphinx has warnings\n")


@pytest.mark.slow
def test_a_dead_citation_is_a_fault(tmp_path, capfd):
    for path in (paper.PAPER, "book/references.bib", "figures/exact/decisions.png"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    (tmp_path / paper.PAPER).write_text(TEXT.replace("@auer2002finite", "@nobody"))
    assert paper.build(tmp_path, tmp_path / "out") == ["Sphinx has warnings"]
    assert 'could not find bibtex key "nobody"' in capfd.readouterr().err


def test_what_it_is_made_from_is_not_removed(tmp_path):
    (tmp_path / paper.PAPER).parent.mkdir()
    (tmp_path / paper.PAPER).touch()
    with pytest.raises(ValueError, match="the paper itself stands there"):
        paper.build(tmp_path, tmp_path / "paper")
    assert (tmp_path / paper.PAPER).exists()
