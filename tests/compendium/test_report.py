"""The ledger of all papers: what it is made of, what is shown of it, and that the committed one is right."""

import ast
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import claims_seen
import jsonschema
import nbformat
import pandas as pd
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from reference import proving

from compendium import cells, ledger, project, publication
from compendium import report as made_book
from compendium.cells import digest
from compendium.site import ledger as site_ledger
from costbandits.analysis.statistics import Interval
from costbandits.studies import keys

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / made_book.SCHEMA).read_text())

# A small project: two papers, one of which has told a story.

CLAIMS = {id: {"claim": f"{id} *holds* | mostly", "place": "section <1>", "statistic": "ratio", "region": [0.0, 1.0],
               "primary": "means", "others": {"median": "medians"}} for id in ("O1", "O2", "K1")}
PAPERS = {"omega_ucb": ("O1", "O2"), "kube": ("K1",)}
JUDGING = 'book.judge("O1", "a", ratio, 10)'
PNG = b"not looked at"


def write_claims(**changes):
    """A file for each paper; a claim named here gets these entries, too."""
    for name, ids in PAPERS.items():
        claims = {id: CLAIMS[id] | changes.get(id, {}) for id in ids}
        Path(f"claims/{name}.yaml").write_text(yaml.safe_dump(claims))


def book(scale, name, **values):
    """A ledger in which a claim's first case has this value, or interval, and one without cannot be tested."""
    claims = project.claims(".", name)
    book = ledger.Ledger(claims, scale)
    for id in claims:
        if id in values:
            value = values[id] if isinstance(values[id], Interval) else Interval(values[id], values[id], values[id])
            book.judge(id, "a", value, 10 if scale == "paper" else 20)
        else:
            book.untestable(id, "a", "data")
    return book.frame()


def file_rows(rows, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    rows.to_csv(f"{folder}/ledger.csv", index=False, float_format="%.6g", lineterminator="\n")


@pytest.fixture
def toys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("claims", "notebooks"):
        Path(folder).mkdir()
    Path(project.CHAPTERS).write_text("omega_ucb\nkube\nextend\n")
    write_claims()
    cells = [new_markdown_cell("# Toys: a title\n\nmore"), new_code_cell(JUDGING, execution_count=7, id="here")]
    for name in ("omega_ucb", "kube", "extend"):
        nbformat.write(new_notebook(cells=cells), f"notebooks/{name}.ipynb")
    file_rows(book("paper", "omega_ucb", O1=0.5).assign(cell=digest(JUDGING)), "figures/omega_ucb")
    file_rows(book("paper", "kube", K1=2.0), "figures/kube")
    story = {"figures": {"curves": "They *cross* [once]."}, "findings": ["**All** is\nwell."]}
    Path("figures/kube/story.json").write_text(json.dumps(story))
    Path("figures/kube/curves.png").write_bytes(PNG)
    Path("README.md").write_text(f"typed\n{made_book.BEGIN}\n{made_book.END}\nmore\n")
    return tmp_path


def made(name):
    return Path(name).read_text()


def files():
    return {path: path.read_bytes() for path in sorted(Path(".").rglob("*")) if path.is_file()}


def test_rows_are_those_of_the_notebooks_in_order(toys):
    rows, left_out = made_book.collect(".")
    assert list(zip(rows.notebook, rows.id, rows.verdict, strict=True)) == [
        ("omega_ucb", "O1", "reproduced"), ("omega_ucb", "O2", "cannot be tested"), ("kube", "K1", "contradicted")]
    assert left_out == [] and rows.columns[0] == "notebook"


def more_runs(name, **values):
    """File a ledger of more runs, by the cell that has judged the paper's rows."""
    judged = pd.read_csv(f"figures/{name}/ledger.csv", keep_default_na=False).cell
    file_rows(book("deep", name, **values).assign(cell=list(judged)), f"figures/deep/{name}")


def test_the_verdict_of_more_runs_stands_beside_the_one_that_counts(toys):
    more_runs("omega_ucb", O1=3.0, O2=0.5)
    before, (rows, left_out) = made("figures/omega_ucb/ledger.csv"), made_book.collect(".")
    assert list(rows.deep) == ["contradicted", "reproduced", ""] and left_out == []
    assert list(rows.verdict) == ["reproduced", "cannot be tested", "contradicted"]
    assert made_book.main([]) == 0 and made("figures/omega_ucb/ledger.csv") == before
    assert ("confirm 0 of the 2 rows that they cover, and reverse 1. Before, 0 of the others were undecided, and 1 "
            "could not be tested. " in made("README.md"))
    more_runs("kube", K1=3.0)
    assert made_book.main([]) == 0 and "confirm 1 of the 3 rows that they cover, and reverse 1." in made("README.md")
    file_rows(book("paper", "omega_ucb", O1=Interval(0.9, 0.5, 1.5), O2=0.5).assign(cell=digest(JUDGING)),
              "figures/omega_ucb")
    assert made_book.main([]) == 0
    assert ("confirm 2 of the 3 rows that they cover, and reverse none. Before, 1 of the others were undecided, and 0 "
            "could not be tested. " in made("README.md"))


def test_how_many_runs_would_decide_is_told_by_the_most_that_were_played(toys):
    def noted(more):
        more_runs("omega_ucb", O1=more)
        return made_book.collect(".")[0].note[0]

    rows = book("paper", "omega_ucb", O1=Interval(0.9, 0.5, 1.45)).assign(cell=digest(JUDGING))
    rows.loc[0, "note"] = "best rival: m; " + rows.note[0]
    file_rows(rows, "figures/omega_ucb")
    assert made_book.collect(".")[0].note[0] == rows.note[0] == "best rival: m; about 310 replications would decide"
    assert noted(Interval(0.9, 0.7, 1.15)) == "best rival: m; about 130 replications would decide"
    assert noted(Interval(0.9, 0.8, 0.95)) == rows.note[0]      # more runs have decided


def test_the_report_says_which_chapters_have_changed_since_more_runs(toys):
    more_runs("omega_ucb", O1=0.5)
    own = cells.notebook("notebooks/omega_ucb.ipynb")
    for code, results, said in ((own, keys.RESULTS, False), ("another", keys.RESULTS, True), (own, 1, False)):
        run = {"code": {"notebook": code}, "results": results}
        record = {"files": {"ledger.csv": {"run": "a", "sha256": ""}}, "runs": {"a": run}}
        Path("figures/deep/omega_ucb/manifest.json").write_text(json.dumps(record))
        assert made_book.main([]) == 0
        told = "Since more runs were played, cells that judge none of their rows have changed (chapters: Toys)."
        assert (told in made("REPRODUCTION.md")) == said
        assert ("an older version of the library" in made("REPRODUCTION.md")) == (results != keys.RESULTS)


@pytest.mark.parametrize("change", [{"case": "b"}, {"reading": "median"}, {"region_high": 4.0}, {"statistic": "x"},
                                    {"cell": "0123456789abcdef"}])
def test_a_deep_row_on_another_question_is_left_out_and_said_to_be(toys, capsys, change):
    more_runs("omega_ucb", O1=3.0)
    file_rows(ledger.read("figures/deep/omega_ucb/ledger.csv").assign(**change), "figures/deep/omega_ucb")
    rows, left_out = made_book.collect(".")
    assert set(rows.deep) == {""} and len(left_out) == 1 and left_out[0].startswith("omega_ucb: O1, ")
    assert made_book.main([]) == 0 and left_out[0] in capsys.readouterr().err


@pytest.mark.parametrize("column", [*made_book.QUESTION, "cell"])
def test_each_part_of_a_question_tells_it_from_others(toys, column):
    more_runs("omega_ucb", O1=3.0)
    rows = ledger.read("figures/deep/omega_ucb/ledger.csv")
    assert made_book.collect(".")[0].deep[0] == "contradicted"
    rows[column] = rows[column] - 1.0 if rows[column].dtype.kind in "fi" else rows[column] + "x"
    file_rows(rows, "figures/deep/omega_ucb")
    found, left_out = made_book.collect(".")
    assert set(found.deep) == {""} and len(left_out) == 1


@pytest.mark.parametrize(("replications", "deep"), [(10, ""), (11, "contradicted")])
def test_as_many_runs_are_not_more(toys, replications, deep):
    more_runs("omega_ucb", O1=3.0)
    rows = ledger.read("figures/deep/omega_ucb/ledger.csv").assign(replications=replications)
    file_rows(rows, "figures/deep/omega_ucb")
    assert made_book.collect(".")[0].deep[0] == deep and made_book.collect(".")[1] == []


def test_a_deep_row_that_could_not_be_tested_says_nothing(toys):
    more_runs("omega_ucb")
    rows, left_out = made_book.collect(".")
    assert set(rows.deep) == {""} and left_out == []


def test_more_runs_may_show_that_too_few_decide_the_mean(toys):
    """A verdict that more runs take back is shown, and counted as one that they do not confirm."""
    more_runs("omega_ucb")
    rows = ledger.read("figures/deep/omega_ucb/ledger.csv").assign(note="missing: more runs that lock: 1 of 20")
    file_rows(rows, "figures/deep/omega_ucb")
    assert list(made_book.collect(".")[0].deep) == ["cannot be tested", "", ""]     # O2 could not be tested before
    assert made_book.main([]) == 0
    assert ("confirm 0 of the 1 row that they cover, and reverse none. They take back "
            "1 verdict, 1 of them since a few runs decide the mean. ") in made("README.md")


def test_without_the_data_a_deep_run_tells_of_the_rest(toys):
    more_runs("omega_ucb", O1=3.0)
    os.replace("figures/deep/omega_ucb/ledger.csv", "figures/deep/omega_ucb/ledger_standin.csv")
    assert list(made_book.collect(".")[0].deep) == ["contradicted", "", ""]


def test_without_the_data_a_paper_of_its_own_stays(toys):
    for file in ("ledger.csv", "story.json"):
        os.replace(f"figures/kube/{file}", "figures/kube/" + file.replace(".", "_standin."))
    assert list(made_book.collect(".")[0].notebook) == ["omega_ucb", "omega_ucb", "kube"]
    assert made_book.main([]) == 0 and "**All** is well." in made("README.md")


def test_the_data_s_own_ledger_goes_before_the_one_without(toys):
    file_rows(book("paper", "omega_ucb", O1=3.0), "figures/other")
    os.replace("figures/other/ledger.csv", "figures/omega_ucb/ledger_standin.csv")
    assert made_book.collect(".")[0].verdict[0] == "reproduced"


def test_a_paper_without_a_ledger_is_told(toys, capsys):
    os.remove("figures/kube/ledger.csv")
    assert made_book.main([]) == 0
    assert "left out, for it has no ledger (make all): kube\n" in capsys.readouterr().err
    os.remove("figures/omega_ucb/ledger.csv")
    assert made_book.main([]) == 2 and "ledgers = []: there must be one" in capsys.readouterr().err


def test_two_papers_with_a_claim_of_the_same_id_are_refused(toys):
    Path("claims/extend.yaml").write_text(yaml.safe_dump({"K1": CLAIMS["K1"]}))
    with pytest.raises(ValueError, match=r"claims/extend.yaml, claim = 'K1': must be of one paper; claims/kube.yaml"):
        project.claims(".")


def test_a_ledger_with_a_fault_is_refused_and_nothing_written(toys, capsys):
    file_rows(book("paper", "omega_ucb", O1=3.0).assign(verdict="reproduced"), "figures/omega_ucb")
    before = files()
    assert made_book.main([]) == 2
    assert "ledger of omega_ucb" in capsys.readouterr().err and files() == before


def test_the_report_has_each_claim_what_holds_first(toys):
    file_rows(book("paper", "omega_ucb", O1=3.0, O2=0.5), "figures/omega_ucb")
    assert made_book.main([]) == 0
    report = made("REPRODUCTION.md")
    first, second = re.findall(r'^\| <a id="O\d">.*$', report, re.M)
    assert r"O2 \*holds\* \| mostly | section &lt;1&gt; | reproduced | a: reproduced |" in first
    assert 'id="O1"' in second and "| contradicted | ratio should be in " in second and "a: contradicted 3 |" in second
    links = re.findall(r"\]\(#([\w-]+)\)", report)
    assert set(links) == {"omega_ucb", "kube"}
    assert set(re.findall('<a id="(.*?)">', report)) == {"omega_ucb", "kube", "O1", "O2", "K1"}


def test_the_readme_keeps_what_is_typed_and_tells_what_was_found(toys):
    assert made_book.main([]) == 0
    before, results, after = re.split(f"{made_book.BEGIN}|{made_book.END}", made("README.md"))
    assert (before, after) == ("typed\n", "\nmore\n")
    assert "3 claims of the papers are judged" in results
    assert "| [Toys](REPRODUCTION.md#omega_ucb) | 2 | 1 | 0 | 0 | 0 | 1 |" in results
    assert "| all | 3 | 1 | 0 | 1 | 0 | 1 |" in results
    assert "1. **All** is well. [Toys](notebooks/kube.ipynb)" in results
    assert results.count("###") == 1     # nobody has said which policy to take


def test_the_readme_shows_the_first_chapter_s_figure_and_those_of_chapters_without_claims(toys):
    for name in ("omega_ucb", "extend"):
        Path(f"figures/{name}").mkdir(exist_ok=True)
        Path(f"figures/{name}/story.json").write_text(json.dumps(
            {"figures": {"early": "x", "figure_1": "They *cross* [once]."}, "findings": []}))
        for figure in ("early", "figure_1"):
            Path(f"figures/{name}/{figure}.png").write_bytes(PNG)
    Path("figures/tournament").mkdir()
    Path("figures/tournament/choice.csv").write_text("question,random costs\ntake,this\n")
    assert made_book.main([]) == 0
    readme = made("README.md")
    assert re.findall(r"!\[(.*)\]\((.*)\)", readme) == [
        (r"They \*cross\* \[once\].", f"figures/{name}/figure_1.png") for name in ("omega_ucb", "extend")]
    assert "| **take** | this |" in readme


def test_a_question_of_ours_is_judged_and_not_counted(toys):
    write_claims(O2={"ours": True})
    assert made_book.main([]) == 0
    readme, report = made("README.md"), made("REPRODUCTION.md")
    assert "2 claims of the papers and 1 question of our own are judged, case by case" in readme
    assert "| [Toys](REPRODUCTION.md#omega_ucb) | 1 | 1 | 0 | 0 | 0 | 0 |" in readme
    theirs, ours = report[report.index("## Toys"):].split("## Toys")[1].split("| a question of ours |")
    assert 'id="O1"' in theirs and 'id="O2"' not in theirs
    assert 'id="O2"' in ours and "| cannot be tested | a: cannot be tested |" in ours


def test_a_claim_made_for_several_cases_counts_once(toys):
    rows = book("paper", "omega_ucb", O1=0.5)
    file_rows(pd.concat([rows, rows[rows.id == "O1"].assign(case="b")]), "figures/omega_ucb")
    assert made_book.main([]) == 0
    assert "| [Toys](REPRODUCTION.md#omega_ucb) | 2 | 1 | 0 | 0 | 0 | 1 |" in made("README.md")


def test_the_report_has_the_numbers_of_what_does_not_hold(toys):
    file_rows(book("paper", "omega_ucb", O1=0.5), "figures/omega_ucb")
    file_rows(book("paper", "kube", K1=Interval(0.9, 0.5, 1.5)), "figures/kube")
    assert made_book.main([]) == 0
    told = made("REPRODUCTION.md")
    assert r"| undecided | ratio should be in \[0, 1\]; a: undecided 0.9 \[0.5, 1.5\] |" in told
    assert "| reproduced | a: reproduced |" in told and "| cannot be tested | a: cannot be tested |" in told


def test_a_question_of_ours_contradicts_nobody(toys):
    def shown():
        return site_ledger.contradicted(site_ledger.Book(".", made_book.collect(".")[0], project.claims(".")))

    assert "| [K1](claims/kube.md#K1) |" in shown() and "## Toys: 1 claim\n" in shown()
    write_claims(K1={"ours": True})
    assert "K1" not in shown() and shown().count("## Toys: no claims\n") == 2


def test_what_was_checked_twice_is_told(toys):
    write_claims(O1={"second_check": {"kind": "none", "where": "a sum, by hand"}},
                 K1={"second_check": {"kind": "counterexample", "where": "tests/it.py::test_k, tests/a.py::test_l"}})
    assert made_book.main([]) == 0
    report = made("REPRODUCTION.md")
    assert "| none: a sum, by hand |" in report
    assert r"| counterexample: [test\_k](tests/it.py), [test\_l](tests/a.py) |" in report
    assert list(ledger.read("figures/ledger.csv").second_check) == ["none", "", "counterexample"]


def test_claims_that_were_changed_after_a_look_are_counted_without_our_own_questions(toys):
    assert made_book.main([]) == 0 and "first look" not in made("README.md")
    write_claims(O1={"history": ["Region wider."]}, O2={"ours": True, "history": ["Added."]})
    assert made_book.main([]) == 0 and "For 1 of the claims something was changed or added" in made("README.md")


def test_each_claim_is_written_with_all_that_is_known_of_it(toys):
    write_claims(O2={"ours": True, "history": ["Added."], "region": [0.0, float("inf")]}, K1={"repairs": ["median"]})
    file_rows(book("paper", "omega_ucb", O1=0.5), "figures/omega_ucb")
    assert made_book.main([]) == 0
    known = json.loads(made("figures/claims.json"))
    jsonschema.validate(known, SCHEMA)
    first, second, third = known["claims"]
    assert (first["id"], first["standing"], first["rows"][0]["estimate"]) == ("O1", "reproduced", 0.5)
    assert (second["ours"], second["history"], second["region"]) == (True, ["Added."], [0.0, "inf"])
    assert second["rows"][0]["estimate"] is None and second["standing"] == "cannot be tested"
    assert third["repairs"] == ["median"] and third["readings"] == {"primary": "means", "median": "medians"}


def test_what_holds_only_when_repaired_is_counted_as_contradicted_and_shown_as_a_repair(toys):
    write_claims(K1={"repairs": ["median"]})
    kube = ledger.Ledger(project.claims(".", "kube"), "paper")
    kube.judge("K1", "a", 2.0, 10)
    kube.judge("K1", "a", 0.5, 10, "median")
    file_rows(kube.frame(), "figures/kube")
    assert made_book.main([]) == 0
    assert "| [Toys](REPRODUCTION.md#kube) | 1 | 0 | 0 | 1 | 0 | 0 |" in made("README.md")
    assert "contradicted (reproduced when repaired: median)" in made("REPRODUCTION.md")


def test_a_finding_leads_to_the_section_that_shows_it(toys):
    Path("figures/kube/story.json").write_text(json.dumps({"figures": {}, "findings": ["**It grows.** (section 4.2)"]}))
    assert made_book.main([]) == 0
    assert "1. **It grows.** [Toys, section 4.2](notebooks/kube.ipynb#section-4.2)" in made("README.md").splitlines()


def test_what_is_out_of_date_is_written_and_told(toys, capsys):
    def written():
        assert made_book.main([]) == 0
        return [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]

    assert written() == ["figures/ledger.csv", "figures/claims.json", "REPRODUCTION.md", "README.md"]
    assert written() == []
    right = made("README.md")
    Path("README.md").write_text(right.replace("3 claims", "4 claims"))
    assert written() == ["README.md"] and made("README.md") == right


def test_an_interrupted_publication_is_completed_first_and_other_folders_are_left_alone(toys):
    told, other = Path("figures/kube/story.json"), Path("figures/suak")
    other.mkdir(exist_ok=True)
    publication._part(told).write_text(json.dumps({"figures": {}, "findings": ["Newer."]}))
    (told.parent / publication.JOURNAL).write_text(json.dumps({"rename": [told.name], "remove": []}))
    publication._part(other / "story.json").write_text("another run is writing this")
    assert made_book.main([]) == 0 and "Newer." in made("README.md")
    assert publication._part(other / "story.json").exists() and not (told.parent / publication.JOURNAL).exists()


def test_a_second_time_writes_no_file(toys, capsys):
    made_book.main([])
    before = {path: path.stat().st_mtime_ns for path in files()}
    capsys.readouterr()
    assert made_book.main([]) == 0 and capsys.readouterr().out == ""
    assert {path: path.stat().st_mtime_ns for path in files()} == before


def test_a_full_disk_leaves_every_file_whole(toys, monkeypatch, capsys):
    before = files()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert made_book.main([]) == 2
    assert {path: text for path, text in files().items() if path.suffix != publication.PART} == before
    assert "No space left" in capsys.readouterr().err


@pytest.mark.parametrize(("damage", "said"), [
    (lambda: Path("README.md").write_text(f"{made_book.END} {made_book.BEGIN}"), "marks"),
    (lambda: Path("figures/kube/curves.png").unlink(), "curves")])
def test_what_is_missing_is_refused_by_name(toys, capsys, damage, said):
    damage()
    before = files()
    assert made_book.main([]) == 2
    assert said in capsys.readouterr().err and files() == before


# The committed ledger. Each of these says what is wrong with it.

# The last number of each paper's claims in its specification.
LAST = {"omega_ucb": 14, "budget_ucb": 14, "kube": 9, "suak": 12, "cost_subsidy": 13}
COMMITTED = ledger.read(ROOT / "figures" / "ledger.csv")
# A chapter that `make new` has laid out has no ledger before its first `make all`.
PUBLISHED = [name for name in project.chapters(ROOT)
             if project.claims(ROOT, name) and name not in made_book.unjudged(ROOT)]


def rows_of(name):
    """The rows that a notebook has judged."""
    rows = COMMITTED[COMMITTED.notebook == name]
    return rows.drop(columns=["notebook", "second_check", "deep"]).reset_index(drop=True)


def cells_of(name):
    return cells.cells(ROOT / "notebooks" / f"{name}.ipynb")


def claims_of(name):
    return project.claims(ROOT, name)


def missing_numbers(rows, name):
    """Numbers of claims in the paper's specification that no row judges under the primary reading."""
    judged = {int(re.search(r"\d+", id)[0]) for id in rows.id[rows.reading == "primary"]}
    return sorted(set(range(1, LAST[name] + 1)) - judged)


def called(tree):
    """The calls in a cell with the name of what is called."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(getattr(call.func, "attr", getattr(call.func, "id", "")), call) for call in calls]


def judged_ids(cells, claims):
    """Claims that cells name where they judge, by the ledger's methods or by functions of the notebook that do."""
    trees, verbs = [ast.parse(cell["source"]) for cell in cells], {"judge", "untestable"}
    verbs |= {node.name for tree in trees for node in ast.walk(tree)
              if isinstance(node, ast.FunctionDef) and verbs & {name for name, _ in called(node)}}
    judging = [tree for tree in trees if verbs & {name for name, _ in called(tree)}]
    found = {node.value for tree in judging for node in ast.walk(tree) if isinstance(node, ast.Constant)} & set(claims)
    for name, call in (pair for tree in judging for pair in called(tree)):
        if name in verbs and isinstance(call.args[0], ast.JoinedStr):     # an id put together
            parts = [part.value if isinstance(part, ast.Constant) else r"\w+" for part in call.args[0].values]
            found |= {id for id in claims if re.fullmatch("".join(parts), id)}
    return found


def differing_ids(rows, cells, claims):
    """Claims that only one of ledger and notebook judges."""
    return sorted(set(rows.id) ^ judged_ids(cells, claims))


def strange_cells(rows, cells):
    """Rows judged by a cell that the notebook does not have, or does not have any more."""
    there = {digest(cell["source"]) for cell in cells}
    return [f"{row.id}, {row.case}, {row.reading}" for row in rows.itertuples() if row.cell not in there]


def unknown_tests(claims):
    """Tests that a second check names, and that are not there."""
    for claim in claims.values():
        kind, where = claim.second_check or ("none", "")
        for test in [] if kind == "none" else where.split(", "):
            path, _, name = test.partition("::")
            tree = ast.parse((ROOT / path).read_text()) if (ROOT / path).is_file() else ast.Module([], [])
            there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            if not (name.startswith("test_") and name in there):
                yield f"{claim.id}: {test}"


def unchecked(rows, claims):
    """Claims of a paper that do not hold as it words them, and of which no one says what else speaks for that."""
    standing = ledger.summary(rows, claims).set_index("id").standing
    return [id for id in standing.index[standing.isin([ledger.CONTRADICTED, ledger.ONLY])]
            if not claims[id].ours and claims[id].second_check is None]


def checked_once(claims):
    """Theorems, lemmas and examples of which a second check says that there is none."""
    return [claim.id for claim in claims.values() if claim.second_check and claim.second_check[0] == "none"
            and re.search(r"\b(Theorem|Lemma|Example)s?\b", claim.place)]


def by_question(rows):
    # Numbers that are all whole in one file need not be so in another.
    rows = rows.astype(dict.fromkeys(rows.select_dtypes("number"), float)).astype(str)
    rest = rows.drop(columns=made_book.QUESTION)
    return dict(zip(map(tuple, rows[made_book.QUESTION].to_numpy()), map(tuple, rest.to_numpy()), strict=True))


def differing_rows(rows, own):
    """Questions that the notebook's ledger answers otherwise, or that only one side answers."""
    ours, theirs = by_question(rows), by_question(own)
    return [question for question in ours | theirs if ours.get(question) != theirs.get(question)]


PER_PAPER = pytest.mark.parametrize("name", PUBLISHED)


@PER_PAPER
def test_committed_verdicts_follow_from_their_numbers(name):
    assert list(made_book.faults(rows_of(name), claims_of(name))) == []


@pytest.mark.parametrize("name", LAST)
def test_no_claim_of_a_paper_is_missing(name):
    assert missing_numbers(COMMITTED[COMMITTED.notebook.map(project.paper_of) == name], name) == []


@PER_PAPER
def test_committed_rows_are_those_of_the_notebook_s_ledgers(name):
    rows, own = rows_of(name), ledger.read(ROOT / "figures" / name / "ledger.csv")
    open_still = (COMMITTED.deep[COMMITTED.notebook == name] == ledger.UNDECIDED).to_numpy()
    for each in (rows, own):     # more runs know better how many would decide
        each.loc[open_still, "note"] = each.note.str.replace(ledger.DECISIVE, "", regex=True)
    assert differing_rows(rows, own) == []


@pytest.mark.slow
@PER_PAPER
def test_committed_rows_and_the_notebook_judge_the_same_claims(name):
    assert differing_ids(rows_of(name), cells_of(name), claims_of(name)) == []


@PER_PAPER
def test_committed_rows_are_from_cells_of_the_committed_notebook(name):
    assert strange_cells(rows_of(name), cells_of(name)) == [], "`make all` brings the ledger in line with the notebook"


@pytest.mark.slow
@PER_PAPER
def test_what_does_not_hold_was_checked_twice(name):
    assert unchecked(rows_of(name), claims_of(name)) == [], "second_check is missing, see the head of the claims"
    assert list(unknown_tests(claims_of(name))) == [] == checked_once(claims_of(name))


@pytest.mark.parametrize(("tags", "same"), [([], False), (["hide-input"], False), (["solution"], True),
                                            (["skip-execution", "nbval-skip"], True)])
def test_only_code_that_makes_results_counts_in_a_digest(tmp_path, tags, same):
    def digest(source):
        cell = new_code_cell(source, metadata={"tags": tags})
        nbformat.write(new_notebook(cells=[new_code_cell("seed = 1"), cell]), tmp_path / "a.ipynb")
        return cells.notebook(tmp_path / "a.ipynb")
    assert (digest("x = 1") == digest("x = 2")) == same


@pytest.mark.parametrize("manifest", sorted((ROOT / "figures").glob("**/manifest.json")),
                         ids=lambda path: path.parent.relative_to(ROOT / "figures").as_posix())
def test_committed_files_are_from_the_code_of_the_committed_notebook(manifest):
    found = publication.manifest(manifest.parent)
    runs = found["runs"]
    code = {json.dumps(found["runs"][run]["code"]["notebook"]) for run in runs
            if isinstance(found["runs"][run]["code"], dict)}
    name = manifest.parent.relative_to(ROOT / "figures").as_posix()
    deep = name.startswith("deep/")
    own = cells.notebook(ROOT / f"notebooks/{name.removeprefix('deep/')}.ipynb")
    # More runs take hours: of theirs those rows count whose cell is the same; the README says which chapters changed.
    assert code == {json.dumps(own)} or deep, \
        "`make all` brings the figures in line with the notebook"
    # Nor is more played anew whenever some results change: then the README says so.
    assert {found["runs"][run]["results"] for run in runs} == {keys.RESULTS} or deep
    assert publication.audit(manifest.parent) == []


@pytest.mark.slow
def test_the_readme_and_the_report_are_up_to_date():
    assert publication.stale(ROOT, made_book.made(ROOT)[0]) == [], "`make all` mends it"
    assert (ROOT / "REPRODUCTION.md").stat().st_size < 1_000_000


def test_committed_claims_are_as_their_schema_says():
    known = json.loads((ROOT / made_book.RECORDS).read_text())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(known, SCHEMA)
    rows = sum(len(claim["rows"]) for claim in known["claims"])
    assert rows == len(COMMITTED) and len(known["claims"]) == COMMITTED.id.nunique()


def test_what_changed_after_results_were_seen_is_told_for_good():
    seen, now = json.loads(claims_seen.SEEN.read_text()), claims_seen.judged()
    assert list(claims_seen.untold(seen, now)) == []
    assert seen == now, "`python tests/claims_seen.py` takes in what is new"


def test_an_untold_change_of_a_claim_is_noticed():
    asked = {"region": ["0.0", "1.0"], "readings": [], "ours": False, "repairs": [], "history": ["a"]}

    def faults(**change):
        return list(claims_seen.untold({"X1": asked}, {"X1": asked | change}))

    assert faults() == faults(region=["0.0", "2.0"], history=["a", "b"]) == []
    assert faults(region=["0.0", "2.0"], ours=True) == [
        "X1: region, ours changed after results were seen, and its history does not say so"]
    assert "has changed or is gone" in faults(history=[])[0] and "has changed or is gone" in faults(history=["b"])[0]
    assert list(claims_seen.untold({"X1": asked}, {})) == ["X1: the claim is gone"]


# The same with deliberate faults: each is noticed.


@pytest.fixture
def rows():
    return rows_of("audit/kube")


@pytest.mark.slow
@pytest.mark.parametrize("every", proving([25, 5], 5))
def test_a_changed_verdict_is_noticed(rows, every):
    for number, row in rows.iloc[::every].iterrows():
        for verdict in set(ledger.VERDICTS) - {row.verdict}:
            changed = rows.loc[[number]].assign(verdict=verdict)
            faults = made_book.faults(changed, {row.id: claims_of("audit/kube")[row.id]})
            assert any(fault.startswith(f"{row.id}, ") for fault in faults), (number, verdict)


@pytest.mark.slow
def test_a_missing_claim_is_noticed(rows):
    without = rows[rows.id.str.rstrip("abcdef") != "K8"]
    assert missing_numbers(without, "kube") == [8]
    assert "K8: no row under the primary reading" in list(made_book.faults(without, claims_of("audit/kube")))
    assert "K8" in differing_ids(without, cells_of("audit/kube"), claims_of("audit/kube"))


def test_a_missing_and_a_disagreeing_row_are_noticed(rows):
    assert differing_rows(rows, rows) == []
    assert len(differing_rows(rows.drop(3), rows)) == 1 == len(differing_rows(rows, rows.drop(3)))
    changed = rows.copy()
    changed.loc[3, "estimate"] *= 1.001
    assert len(differing_rows(changed, rows)) == 1


def test_a_judgement_that_is_gone_from_the_notebook_or_was_edited_is_noticed(rows):
    cells = cells_of("audit/kube")
    judging = next(cell for cell in cells if "K5a" in judged_ids([cell], {"K5a"}))
    rows["cell"] = digest(judging["source"])
    assert strange_cells(rows, cells) == []
    without = [cell for cell in cells if cell is not judging]
    assert "K5a" in differing_ids(rows, without, claims_of("audit/kube"))
    assert len(strange_cells(rows, without)) == len(rows)
    judging["source"] += "  # more"
    assert len(strange_cells(rows, cells)) == len(rows)


def test_a_second_check_that_is_missing_or_is_none_is_noticed(rows):
    claims = claims_of("audit/kube")
    for check, found in ((None, ["K6d"]), (("none", "a proof"), [])):
        changed = claims | {"K6d": replace(claims["K6d"], second_check=check)}
        assert unchecked(rows, changed) == found and checked_once(changed) == (["K6d"] if check else [])
    assert unchecked(rows, claims | {"K6d": replace(claims["K6d"], second_check=None, ours=True)}) == []
    for where in ("tests/nowhere.py::test_a", "tests/compendium/test_report.py::test_a", "tests", "",
                  "tests/compendium/test_report.py::unchecked", "tests/theory/test_counterexamples.py"):
        changed = replace(claims["K6d"], second_check=("counterexample", where))
        assert list(unknown_tests({"K6d": changed})) == [f"K6d: {where}"]


# The deep profile.

COUNTS = {"replications", "index_replications", "sweep_replications", "linear_replications", "box_replications",
          "large_replications", "more", "few"}
# Of long runs: more than at paper scale, and fewer than 2,000.
DEEP = ROOT / "params/deep"
FAR = {"far_replications", "far_runs", "long_replications", "scale_replications", "seeing_runs"}
FEWER = {("suak", "replications"), ("suak", "more"), ("cost_subsidy", "replications")}     # see the comments there


@pytest.mark.parametrize("name", [name for name in project.chapters(ROOT) if (DEEP / f"{name}.yaml").exists()])
def test_the_deep_profile_is_the_paper_profile_with_more_replications(name):
    deep, paper = (yaml.safe_load((ROOT / "params" / profile / f"{name}.yaml").read_text())
                   for profile in ("deep", "paper"))
    changed = {key for key in deep | paper if deep.get(key) != paper.get(key)} - {"profile"}
    assert changed <= COUNTS | FAR and changed
    assert all(deep[key] >= 2000 for key in COUNTS & set(deep) if (project.paper_of(name), key) not in FEWER)
    assert all(deep[key] >= paper[key] for key in (COUNTS | FAR) & set(deep))
