"""The tournament: it finds the runs of other chapters in the store, and what it says is what its tables say."""

import ast
import json
import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import special

import costbandits as cb
from compendium import preparation

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "figures" / "tournament"
PROBLEMS = ["random costs", "money", "known costs", "anytime budget", "cost subsidy"]


def notebook(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def definitions(name):
    """Sources of the functions of a notebook and of what is assigned to single names: name -> normalised texts."""
    found = {}
    for cell in notebook(name).cells:
        if cell.cell_type != "code":
            continue
        for statement in ast.parse(cell.source).body:
            if isinstance(statement, ast.FunctionDef):
                found.setdefault(statement.name, []).append(ast.unparse(statement))
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    parts = [(target, statement.value)]
                    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                        # A starred part has no value of its own: such a line defines nothing that is compared here.
                        parts = zip(target.elts, statement.value.elts, strict=False)
                    for each, value in parts:
                        if isinstance(each, ast.Name):
                            found.setdefault(each.id, []).append(ast.unparse(value))
    return found


def at_paper_scale(name):
    profile = yaml.safe_load((ROOT / "params" / "paper" / f"{name}.yaml").read_text())
    return preparation.parameters(notebook(name)) | profile


@pytest.fixture(scope="module")
def tables():
    return {path.stem: pd.read_csv(path) for path in FIGURES.glob("*.csv")}


@pytest.mark.parametrize(("other", "names"), [
    ("audit/omega_ucb", ["kept", "full_budget", "shares"]), ("omega_ucb", ["kept", "full_budget", "shares"]),
    ("audit/cost_subsidy", ["two_arms"])])
def test_what_decides_the_keys_of_stored_runs_is_the_same(other, names):
    ours, theirs = definitions("tournament"), definitions(other)
    assert all(len(ours[name]) == 1 and ours[name][0] in theirs[name] for name in names)


def test_seeds_and_budgets_are_the_same():
    ours, omega, subsidy = (at_paper_scale(name) for name in ("tournament", "audit/omega_ucb", "cost_subsidy"))
    assert ours["seed"] == omega["seed"] == subsidy["seed"]
    arms = {node.value for node in ast.walk(ast.parse(definitions("tournament")["laws"][0]))
            if isinstance(node, ast.Constant) and isinstance(node.value, int)}
    assert ours["budget"] == omega["budget"] and arms == set(omega["arms"])


def test_one_number_of_replications_for_all_families_but_those_of_money(tables):
    ours, pairs = at_paper_scale("tournament"), tables["pairs"]
    # A share of wins, with ties counted half, is a multiple of half a replication.
    halves = 2 * pairs.wins * np.where(pairs.problem == "money", 2 * ours["replications"] // 5, ours["replications"])
    assert np.allclose(halves, halves.round(), atol=1e-2) and set(pairs.problem) == set(PROBLEMS)
    assert ours["replications"] >= 250


def test_money_is_played_at_small_and_large_budgets(tables):
    pulls = at_paper_scale("tournament")["money_pulls"]
    families = tables["standings"].query("problem == 'money'").family
    names = {name.rsplit(", ", 1)[0] for name in families}
    assert pulls[:2] == [1000, 10000] and max(pulls) >= 50000
    assert set(families) == {f"{name}, {n:,} pulls" for name in names for n in pulls} and len(names) == 7


def test_laws_of_money():
    """Amounts are spread as the text says, nine of ten are 0 where it says so, and pairs go together or do not."""
    of = {"np": np, "cb": cb, "special": special}
    for name in ("sometimes", "amounts", "paired_amounts"):
        exec(definitions("tournament")[name][0], of)
    plain, rare, wide = (of["amounts"](np.random.default_rng(0), **told) for told in ({}, {"zeros": 9}, {"told": 10}))
    assert plain.K == 12 and np.allclose(rare.reward_means * 10, plain.reward_means, rtol=0.02)
    assert np.allclose(wide.reward_means * 10, plain.reward_means) and np.array_equal(wide.cost_means, plain.cost_means)
    assert all(law.support == (0, 1) for law in plain.rewards) and (plain.cost_means > 0.05 / 3.2).all()
    for sign in (0.8, -0.8):
        pairs = of["paired_amounts"](np.random.default_rng(0), sign)
        logs = [np.corrcoef(*np.log(np.transpose(each.rows)))[0, 1] for each in pairs.outcomes]
        assert np.mean(logs) == pytest.approx(sign, abs=0.05)


def test_the_price_of_a_range_is_that_of_its_table(tables):
    """README and the column for money say what ten times too large a largest reward costs."""
    times, choice = tables["ranges"].set_index("policy").estimate, tables["choice"].set_index("question")["money"]
    assert f"{choice['use']} loses {times[choice['use']]:.2g} times as much" in choice["outcomes"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert (f"(`cb.OmegaStarUCB(0.25)`) loses {times['ω*-UCB 1/4']:.2f} times as much on amounts of money, "
            f"MomentIMED 1/4 {times['MomentIMED 1/4']:.1f}, and m-UCB {times['m-UCB']:.1f} (tournament, section 3)"
            ) in readme


def test_the_two_instances_of_an_anytime_budget_are_those_of_their_paper():
    ours, theirs = (ast.literal_eval(definitions(name)["means"][0]) for name in ("tournament", "audit/suak"))
    assert [np.shape(sides) for sides in ours.values()] == [(2, 3), (2, 8)]
    assert list(ours.values()) == list(theirs.values())


# What the page says, worked out once more from the means and medians of its runs.


def prices(standings, what="mean"):
    """Problem -> regret over the best of the family, (policy, family); the oracle is nobody's yardstick."""
    found = {}
    for problem, part in standings.groupby("problem"):
        values = part.pivot(index="policy", columns="family", values=what)
        found[problem] = values / values[values.index != "oracle"].min()
    return found


def test_prices_follow_from_the_standings(tables):
    rows = tables["prices"].set_index(["problem", "policy"])
    for column, what in {"typical price": "mean", "of the median": "median", "of the 95th percentile": "p95",
                         "of the worst run": "worst"}.items():
        for problem, ratios in prices(tables["standings"], what).items():
            typical = np.exp(np.log(ratios).mean(axis=1))
            assert rows.loc[problem, column].to_dict() == pytest.approx(typical.to_dict(), rel=1e-4), (problem, column)


def test_the_policy_to_take_is_the_cheapest_and_its_rival_the_next(tables):
    for row in tables["margins"].itertuples():
        part = tables["prices"].query("problem == @row.problem and policy != 'oracle'").set_index("policy")
        assert part["typical price"].nsmallest(2).index.tolist() == [row.take, row.next]
        ratio = part["typical price"][row.next] / part["typical price"][row.take]
        assert row.estimate == pytest.approx(ratio, rel=1e-4)
        assert row.low <= row.estimate <= row.high


def test_the_table_of_choices_says_what_its_tables_say(tables):
    choice, means = tables["choice"].set_index("question"), prices(tables["standings"])
    assert choice.columns.tolist() == PROBLEMS
    assert choice.index.tolist() == ["outcomes", "budget", "use", "how sure", "when it hurts", "with a theorem",
                                     "safest", "in code"]
    for problem, of in tables["margins"].set_index("problem").iterrows():
        ratios, said = means[problem].drop(index="oracle", errors="ignore"), choice[problem]
        worst, where = ratios.max(axis=1), ratios.loc[of["take"]].idxmax()
        assert said["use"] == of["take"]
        decided = "" if of.low > 1 else ": not decided"
        assert said["how sure"] == (f"{of['next']} loses {of.estimate:.2f} times as much "
                                    f"[{of.low:.2f}, {of.high:.2f}]{decided}")
        hurts = f"{where}: {worst[of['take']]:.3g} times the regret of {ratios[where].idxmin()}"
        assert said["when it hurts"] == (hurts if worst[of["take"]] > 1 else "nowhere here")
        safe = worst.idxmin()
        at_most = f"{safe}: at most {worst[safe]:.3g} times the regret of the best"
        assert said["safest"] == (safe if safe == of["take"] else at_most)
        proved, typical = said["with a theorem"].partition(":")[0], np.exp(np.log(ratios).mean(axis=1))
        assert said["with a theorem"] == (proved if proved == of["take"] else
                                          f"{proved}: typically loses {typical[proved] / typical[of['take']]:.2f} "
                                          "times as much")


def test_the_budget_of_an_answer_names_who_is_better_at_another(tables):
    choice, means = tables["choice"].set_index("question"), prices(tables["standings"])
    early = tables["by_budget"].set_index("policy")
    at = {"random costs": {"1,500 pulls": early["1 % of the budget"], "15,000 pulls": early["10 %"]}}
    for problem in ("money", "anytime budget", "cost subsidy"):
        logs = np.log(means[problem].drop(index="oracle", errors="ignore"))
        at[problem] = dict(iter(logs.T.groupby(lambda name: name.rsplit(", ", 1)[1]).mean().T.items()))
    for problem, sizes in at.items():
        better = {f"with {size} {part.idxmin()}" for size, part in sizes.items()
                  if part.idxmin() != choice[problem]["use"]}
        assert set(choice[problem]["budget"].split("; ")[1:]) == better, problem
    assert "with" not in choice["known costs"]["budget"]


def test_what_reviewers_are_told_is_what_the_tables_say(tables):
    checks, standings = tables["checks"].set_index("question"), tables["standings"]
    for problem, of in tables["margins"].set_index("problem").iterrows():
        medians = prices(standings, "median")[problem].drop(index="oracle", errors="ignore")
        typical, said = np.exp(np.log(medians).mean(axis=1)), checks[problem]
        assert said["typical run"] == f"{typical.idxmin()} has the smallest medians"
        assert said["the safest is the same"] == f"in {100 * of['safest in']:.0f} % of bootstrap samples"
        free = standings.query("problem == @problem and policy == @of['take']").better_mean == 0
        assert said["no significantly better rival"] == f"in {free.sum()} of {len(free)} families"


def test_how_often_a_sample_of_the_runs_names_the_same_policy_the_safest():
    """Two runs: one policy loses 1 in each, its rival 0.5 and 2.5, which is less only if the first is drawn twice.

    That happens in a quarter of the samples, also where another family of the same runs is drawn along.
    """
    of = {"np": np, "seed": 0}
    exec(definitions("tournament")["resampled_safest"][0], of)
    family = [[1.0, 1.0], [0.5, 2.5]]
    assert of["resampled_safest"](np.array([family])) == pytest.approx(0.75, abs=0.04)
    assert of["resampled_safest"](np.array([family, family])) == pytest.approx(0.75, abs=0.04)
    assert of["resampled_safest"](np.array([[[1.0, 1.0], [2.0, 2.0]]])) == 1


def test_statements_of_the_literature_are_counted_from_the_pairs(tables):
    pairs = tables["pairs"]
    for row in tables["arrows"].itertuples():
        there = pairs[(pairs.problem == row.problem) & pairs.a.isin([row.winner, row.loser])
                      & pairs.b.isin([row.winner, row.loser])]
        sure = there[there.p_mean_holm < 0.05]
        holds = ((sure.difference < 0) == (sure.a == row.winner)).sum()
        assert (len(there), holds, len(sure) - holds) == (row.families, row._6, row._7), row


def test_findings_on_the_page_are_those_that_were_filed():
    shown = [output.data["text/markdown"].strip() for cell in notebook("tournament").cells if cell.cell_type == "code"
             for output in cell.outputs if "text/markdown" in output.get("data", {})]
    findings = json.loads((FIGURES / "story.json").read_text())["findings"]
    assert findings and set(findings) <= set(shown)


# Numbers in prose are those of the design, of constants in names, and of sections; all others are printed by cells.
SETTINGS = {"19", "22", "16", "0.05", "0.30", "0.40", "0.44"}  # of ads; how often, in %, in test_statistics; free arms
SETTINGS |= {"0.80", "4.00", "0.20", "1.00", "3.20", "0.7", "0.8", "12", "50", "400", "8"}      # of money
CONSTANTS = {"0", "1", "2", "3", "4", "5", "6", "9", "10", "20", "40", "100", "1,000", "0.1", "0.45", "0.5", "90", "95"}


def numbers(text):
    """Numbers of a markdown cell but for those in formulas, code, links, headings, names of policies and sections."""
    text = re.sub(r"\$[^$]*\$|\]\([^)]*\)|`[^`]*`|^#.*$", " ", text, flags=re.MULTILINE)
    text = re.sub(r"[Ss]ections? [\d.]+(?: (?:and|to) \d[\d.]*)*", " ", text)
    text = re.sub(r"\S*(UCB|SC\+?|BV|Simplex)\S*", " ", text)
    return re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?", text)


def test_prose_holds_no_measured_number():
    ours = at_paper_scale("tournament")
    design = {f"{value:,.0f}" for value in pd.Series(list(ours.values())).explode() if isinstance(value, int | float)}
    cells = [cell.source for cell in notebook("tournament").cells if cell.cell_type == "markdown"]
    found = [number for source in cells for number in numbers(source)]
    assert len(found) > 20 and set(found) - design - CONSTANTS - SETTINGS == set()


def test_numbers_are_found():
    text = "## 4. Title\n**12** of $x=5$ [3](#4), KUBE 1,200 or 0.25; UCB-BV1 in sections 5 to 8"
    assert numbers(text) == ["12", "3", "1,200", "0.25"]
