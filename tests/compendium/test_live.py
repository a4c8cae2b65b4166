"""Pictures that move: the library's rules run in the page, and what it shows and says is what the library has."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import costbandits as cb
from compendium import live, wasm
from compendium.gallery import Gallery, number

ROOT = Path(__file__).resolve().parents[2]
NEVER = re.compile(r"\d\.\d{6,}|NaN|undefined|Infinity|\de[-+]?\d")      # in no sentence


@pytest.fixture(scope="module")
def browser():
    """A Chromium of the system, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no browser is installed")
    with playwright.sync_playwright() as driver, \
            driver.chromium.launch(executable_path=path, args=["--no-sandbox"]) as found:
        yield found


AT = "wanted => document.querySelector('.live').at(wanted)"
SWEEP = """name => { const root = document.querySelector(".live"), input = root.querySelector(`input[name=${name}]`);
    return Array.from({ length: +input.max + 1 }, (_, k) => { input.value = k; input.dispatchEvent(new Event("input"));
                                                              return root.at({}); }); }"""
CUT = """() => { const svg = document.querySelector(".live svg"), wide = svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll("text")].filter(text => { const box = text.getBBox();
        return box.x < -1 || box.x + box.width > wide + 1; }).map(text => text.textContent); }"""


def mulberry(seed):
    """The page's random numbers."""
    whole = 2**32 - 1
    while True:
        seed = (seed + 0x6D2B79F5) & whole
        t = (seed ^ seed >> 15) * (1 | seed) & whole
        t = (t + ((t ^ t >> 7) * (61 | t) & whole) & whole) ^ t
        yield (t ^ t >> 14) / 2**32


@pytest.fixture
def moving(browser, tmp_path):
    """A function that shows a picture on a page of its own; whatever the browser says is a failure."""
    complaints, contexts = [], []

    def shown(picture, data, width=900):
        file, still = tmp_path / f"{picture}.html", '<img alt="still" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'
        file.write_text(f"<!DOCTYPE html><title>{picture}</title>{live.alone(live.told(picture, data), still)}")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_selector(".live.on svg[viewBox]")
        assert not page.locator("img").is_visible()
        return page

    yield shown
    for context in contexts:
        context.close()
    assert complaints == []


LOST = {"ω-UCB 1/4": np.array([90.0, 110, 100, 120, 80, 95, 105, 100, 100, 90, 130]),
        "m-UCB": np.array([100.0, 50, 60, 70, 80, 90, 40, 30, 30_000, 75, 65])}
CLIFF = pd.DataFrame({"CS-TS": [10.0, 20, 2500, 100], "CS-ETC": [700.0, 50, 180, 190]}, [0.3, 0.44, 0.45, 0.6])
VALLEY = json.loads((ROOT / "figures/suak/valley.live.json").read_text(encoding="utf-8"))["data"]
DATA = {"luck": live.luck(LOST, "m-UCB"), "trap": {**live.trap(), "rounds": 3000}, "fillings": live.fillings(),
        "reserve": VALLEY, "rays": live.rays(), "cliff": {**live.cliff(CLIFF.iloc[[0] * 15]), **{
            "means": [*CLIFF.index], "mean": 0.44, "losses": CLIFF.to_dict("list")}}, "own": live.own(runs=3)}


def test_every_picture_is_tested_and_each_loads_what_it_needs():
    there = {path.stem for path in live.PLACE.glob("*.js")} - {"live", "rules"}
    assert there == set(DATA)
    assert live.scripts("trap") == ["live", "rules", "trap"] and live.scripts("cliff") == ["live", "cliff"]
    with pytest.raises(ValueError, match=r"^live = 'clif': must be one of cliff, fillings, "):
        live.scripts("clif")


def test_the_still_image_is_all_that_paper_has():
    text = live.wrapped(live.told("trap", {"a": np.arange(2), "b": "</script>"}), "<img>")
    assert re.sub(r"<(script|div).*|</div>", "", text).split() == ["<img>"] and text.count("</script>") == 1
    with pytest.raises(ValueError, match="Out of range float"):
        live.told("trap", {"a": float("nan")})


def test_a_figure_is_filed_with_what_moves_it_and_shown_by_the_same_script(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("compendium.gallery.display", lambda page: shown.append(page.data))
    import matplotlib.pyplot as plt
    gallery, fig = Gallery("kube", str(tmp_path)), plt.figure(figsize=(1, 1))
    with pytest.raises(ValueError, match=r"^live = .*: must come with a figure"):
        gallery.add("problem", live=("fillings", {}))
    gallery.add("problem", fig, live=("fillings", live.fillings()))
    gallery.add("other", fig)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "other.png", "other.svg", "problem.live.json", "problem.png", "problem.svg"]
    told = json.loads((tmp_path / "problem.live.json").read_text())
    assert told == {"picture": "fillings", "data": live.fillings()}
    gallery.live("problem")
    assert '<div class="live" data-live="fillings">' in shown[0] and "live.pictures.fillings" in shown[0]
    plt.close(fig)


def test_a_name_in_a_picture_can_be_read():
    colour, dashes, ink = live.looks(["UCB1"])["UCB1"]
    assert (colour, dashes, ink) == ("#c9b800", "", cb.figures.ink(colour)) and ink != colour


def test_moment_imed_is_told_its_scale_and_the_largest_reward():
    tuning = cb.MomentIMED(0.25).p
    assert live.own()["policies"]["moment IMED 1/4"] == ["MomentIMED", [tuning.scale, tuning.max_reward]]


def test_a_rule_s_sources_are_all_that_it_calls():
    texts = "".join(wasm._texts(wasm.moment_imed))
    assert all(f"def {name}(" in texts for name in ("moment_imed", "index", "least_divergence", "of_moments"))


def test_the_rules_were_compiled_from_what_the_library_has():
    assert f"from sources {wasm.sources()}." in wasm.FILE.read_text(encoding="utf-8"), "python -m compendium.wasm"
    assert [wasm._number(n).hex() for n in (0, 127, 128, 300)] == ["00", "7f", "8001", "ac02"]      # LEB128


def grid(rng, count=400):
    """Rounds, and sums of outcomes between 0 and 1, of arms that have been pulled 2 to 1,000 times."""
    for _ in range(count):
        n = int(rng.integers(2, 1000))
        r, c = rng.beta(1, 2, n), rng.binomial(1, 0.4, n)
        yield [n + int(rng.integers(1, 100_000)), n, *map(float, (r.sum(), c.sum(), r @ r, c @ c))]


@pytest.mark.pages
def test_rules_in_the_page_are_the_library_s(browser):
    page, rng = browser.new_page(), np.random.default_rng(0)
    for file in (live.PLACE / "live.js", wasm.FILE):
        page.add_script_tag(path=file)
    fresh = dict(re.findall(r'"(\w+)": "(\S+)"', wasm.script()))
    run = """([name, code, parameters, rows]) => { live.rules.tried = code || live.rules[name];
        const rule = live.rule("tried", parameters); return rows.map(row => rule(...row)); }"""
    tuned = {"OmegaUCB": [0.25], "OmegaStarUCB": [0.25], "MUCB": [0.0625], "BudgetUCB": [0.5], "KLUCBSC": [0.0, 0.25]}
    assert set(fresh) == {*tuned, "MomentIMED"}
    for name, parameters in tuned.items():
        rows = [[*row, 0.1] for row in grid(rng)]
        values = [getattr(cb, name).rule(*row, np.array(parameters)) for row in rows]
        for code in (None, fresh[name]):
            assert np.allclose(page.evaluate(run, [name, code, parameters, rows]), values, 1e-12, 0), name
    rows = [[*row[1:], row[2] / row[3] * rng.uniform(0.8, 3)] for row in grid(rng)]
    tuning = wasm.imed.Tuning(0.25, 1.0, wasm.imed.INDEPENDENT)
    values = [wasm.imed.index(0, rho, wasm.Arms(np.array([n]), *np.array(sums)[:, None]), False, tuning, np.zeros(1))
              for n, *sums, rho in rows]
    for code in (None, fresh["MomentIMED"]):
        assert np.allclose(page.evaluate(run, ["MomentIMED", code, [0.25, 1.0], rows]), values, 1e-11, 0)
    page.close()


@pytest.mark.pages
@pytest.mark.parametrize("width", [390, 900])
@pytest.mark.parametrize("picture", DATA)
def test_a_picture_fits_and_speaks_plainly_wherever_its_sliders_are(moving, picture, width):
    page = moving(picture, DATA[picture], width)
    for slider in page.locator("input[type=range]").all():
        for key in ("Home", "ArrowRight", "End"):
            slider.press(key)
            drawn = page.evaluate(AT, {})
            assert page.evaluate(CUT) == [] and drawn["says"].endswith(".") and not NEVER.search(drawn["says"]), drawn
            assert page.locator("svg").get_attribute("aria-label") == page.locator("output").text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(media="print")
    assert page.locator("img").is_visible() and not page.locator("svg").is_visible()


# JupyterLab puts an output into the page as text, and makes its scripts anew so that they run.
OUTPUT = """html => { const out = document.body.appendChild(document.createElement("div"));
    out.innerHTML = html;
    for (const old of out.querySelectorAll("script")) { const copy = document.createElement("script");
        for (const { name, value } of old.attributes) copy.setAttribute(name, value);
        copy.textContent = old.textContent;
        old.replaceWith(copy); } }"""


@pytest.mark.pages
def test_outputs_of_jupyterlab_move_and_leave_the_others_alone(browser):
    page, complaints = browser.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content("<!DOCTYPE html><title>lab</title>")
    for picture in ("cliff", "trap", "cliff"):
        page.evaluate(OUTPUT, live.alone(live.told(picture, DATA[picture]), "<img alt='still'>"))
    page.wait_for_function("document.querySelectorAll('.live.on svg[viewBox]').length === 3")
    assert page.locator(".stage").count() == 3 and complaints == []
    page.close()


@pytest.mark.pages
def test_numbers_are_tidied_as_in_tables(browser):
    page, values = browser.new_page(), [0.12345, 12.345, 999.4, 999.6, 1234.6, 12345.6, -0.5, 0.0, 107.0]
    page.add_script_tag(path=live.PLACE / "live.js")
    assert page.evaluate("values => values.map(live.tidy)", values) == [number(value) for value in values]
    assert page.evaluate("[1.9e-15, 2e-5, 1e8].map(live.tidy)") == ["0", "less than 0.001", "100,000,000"]
    page.close()


@pytest.mark.pages
def test_luck(moving):
    page = moving("luck", DATA["luck"])
    for n, drawn in enumerate(page.evaluate(SWEEP, "n"), 2):
        for label, lost in LOST.items():
            assert np.allclose(drawn["told"][label], [lost[:n].mean(), np.median(lost[:n])])
    assert n == 11 and drawn["says"] == ("After 11 runs: ω-UCB 1/4 mean 102, median 100; m-UCB mean 2,787, median 70.")
    assert page.evaluate(AT, {"n": 8})["says"].startswith("After 8 runs: ω-UCB 1/4 mean 100, median 100; m-UCB mean 65")
    page.get_by_role("button", name="to the next jump").click()
    assert page.evaluate(AT, {})["says"] == ("Run 9 of m-UCB loses 30,000, more than ten times the median of all 11: "
                                             "the mean goes from 65 to 3,391, the median from 65 to 70.")
    for says in ("After 11 runs", "Run 9 of m-UCB"):      # no other one until the end; then the first again
        page.get_by_role("button", name="to the next jump").click()
        assert page.evaluate(AT, {})["says"].startswith(says)
    page.get_by_role("button", name="another order").click()
    assert page.evaluate(AT, {"n": 11})["told"]["m-UCB"] == pytest.approx([LOST["m-UCB"].mean(), 70])


@pytest.mark.slow
def test_the_front_page_moves_what_the_library_plays(tmp_path):
    live.main(tmp_path, 3)
    few, all_ = (json.loads((folder / "luck.live.json").read_text(encoding="utf-8"))["data"]["runs"]
                 for folder in (tmp_path, ROOT / "book/live"))
    assert few == {label: lost[:3] for label, lost in all_.items()} and {*map(len, all_.values())} == {1000}
    assert "m-UCB" in (tmp_path / "luck.svg").read_text(encoding="utf-8")
    mean, median = live.still({"m-UCB": np.array([1.0, 2.0, 6.0])}).axes[0].lines[:2]
    assert [line.get_xydata().tolist() for line in (mean, median)] == [[[2, 1.5], [3, 3]], [[2, 1.5], [3, 2]]]


@pytest.mark.pages
def test_trap(moving):
    data = DATA["trap"]
    page = moving("trap", data)
    for rho in data["rhos"]:
        for unlucky in range(data["most"] + 1):
            page.evaluate(AT, {"rho": rho, "unlucky": unlucky})
            drawn, (n, r, c), draw = page.evaluate(SWEEP, "t"), np.zeros((3, 2)), mulberry(data["seed"])
            seen = {}
            for t in range(1, data["rounds"] + 1):
                values = [cb.OmegaUCB.rule(t, n[k], r[k], c[k], r[k], c[k], 0.0, np.array([rho])) if n[k] else np.inf
                          for k in (0, 1)]
                k = t - 1 if t < 3 else int(np.argmax(values))
                reward, cost = next(draw) < data["rewards"][k], next(draw) < data["costs"][k]
                c[k] += 1 if k == 0 and n[0] < unlucky else cost
                r[k], n[k] = r[k] + reward, n[k] + 1
                seen[t] = [*values, n[0]]
            rounds = [int(re.search(r"Round ([\d,]+)", each["says"])[1].replace(",", "")) for each in drawn]
            assert rounds[0] == 3 and rounds[-1] == data["rounds"]
            for t, each in zip(rounds, drawn, strict=True):
                assert np.allclose([*each["told"]["indices"], each["told"]["pulls"]], seen[t], 1e-9), (rho, unlucky, t)
            for rule, back in zip((cb.OmegaUCB, cb.OmegaKLUCB), drawn[0]["told"]["back"], strict=unlucky > 0):
                around = [rule.rule(at, unlucky, *[float(unlucky)] * 4, 0.0, np.array([rho])) for at in
                          (back * (1 - 1e-9) - 1, back * (1 + 1e-9))]
                assert around[0] < data["level"] <= around[1], (rho, unlucky, rule)
    said = [page.evaluate(AT, {"rho": rho, "unlucky": k, "t": 3000})["says"] for rho, k in ((1, 1), (1, 0), (4, 2))]
    assert said[0] == ("Round 3,000, ρ = 1: gold has been pulled once, its index is 17, and that of silver 104. An arm "
                       "of which the only pull cost a coin reaches a rival held at 59 in round 4·10¹²; by the rule of "
                       "section 7 in round 59.")
    assert said[1].startswith("Round 3,000, ρ = 1: gold has been pulled 2,753 times, ") and "An arm" not in said[1]
    assert said[2].endswith("all 2 pulls cost a coin reaches a rival held at 59 in round 2·10⁶; by the rule of section "
                            "7 in round 8.")


@pytest.mark.pages
def test_fillings(moving):
    data = DATA["fillings"]
    values, costs = np.array(data["values"]), np.array(data["costs"], float)
    drawn = moving("fillings", data).evaluate(SWEEP, "budget")
    for B, each in zip(range(3, 61), drawn, strict=True):
        one, greedy, best = (np.array(counts) for counts, _ in each["told"])
        assert list(one) == [B // 5, 0, 0] and (greedy == cb.optimum.greedy(values, costs, B).counts).all()
        assert best @ costs <= B and best @ values == pytest.approx(cb.optimum.knapsack(values, costs, B).value)
        for counts, below in each["told"]:
            assert below == pytest.approx((cb.optimum.fractional(values, costs, B) - counts @ values) / values[0])
    assert drawn[10]["says"] == ("Budget 13: walnut only 2 W, 0.6 pulls below; greedy 2 W + 1 L, 0.267 pulls below; "
                                 "best 1 W + 2 M, 0.222 pulls below.")
    assert drawn[2]["says"].startswith("Budget 5: walnut only 1 W, 0 pulls below")
    assert drawn[0]["says"].startswith("Budget 3: walnut only nothing, 0.6 pulls below; greedy 1 L")


@pytest.mark.pages
def test_reserve(moving):
    page = moving("reserve", VALLEY)
    for T in VALLEY["hours"]:
        page.evaluate(AT, {"T": T})
        losses = {u: 0.0576 * T * (9 / 49) ** (u - 1) + 0.7 * u - 0.25 for u in VALLEY["reserves"]}
        for u, drawn in zip(losses, page.evaluate(SWEEP, "u"), strict=True):
            held, path, draw, skips = 0.0, [], mulberry(1), 0
            for _ in range(600):
                held, drawn_ = held + 0.5, next(draw)
                skips += held < 1
                held -= held >= 1 and drawn_ < (0.8 if held >= u else 0.3)
                path.append(held)
            assert drawn["told"]["path"] == path and drawn["told"]["skips"] == skips
            assert drawn["told"]["lost"] == pytest.approx(losses[u])
            assert drawn["told"]["best"] == min(losses, key=losses.get)
    assert page.evaluate(AT, {"u": 8, "T": 1e6})["says"].startswith(
        "A reserve of 8 loses 5.76 reports in 1,000,000 hours: 0.406 by skipped hours, 5.35 by charge left over. "
        "The best reserve, 8, loses 5.76. Of the 600 hours drawn ")
    assert "A reserve of 2 loses 107 reports in 10,000 hours" in page.evaluate(AT, {"u": 2, "T": 1e4})["says"]
    assert "hours: less than 0.001 by skipped hours" in page.evaluate(AT, {"u": 14, "T": 1e6})["says"]


@pytest.mark.pages
def test_rays(moving):
    data = DATA["rays"]
    page = moving("rays", data)
    for a in data["explorations"]:
        page.evaluate(AT, {"a": a})
        for drawn in page.evaluate(SWEEP, "t"):
            t = sum(arm["n"] for arm in drawn["told"]) + 1
            index = [cb.BudgetUCB.rule(t, arm["n"], *(arm["n"] * arm[key] for key in "rcrc"), data["least"],
                                        np.array([a]))
                     for arm in drawn["told"]]
            assert np.allclose([arm["index"] for arm in drawn["told"]], index)
            assert [arm["next"] for arm in drawn["told"]].index(True) == int(np.argmax(index))
            for arm in drawn["told"]:      # the ray goes through the corner, where that is within the bounds
                if arm["r"] + arm["eps"] <= 1 and arm["c"] - arm["eps"] >= data["least"]:
                    assert arm["index"] == pytest.approx((arm["r"] + arm["eps"]) / (arm["c"] - arm["eps"]))
    said = [page.evaluate(AT, {"a": a, "t": t, "run": 26})["says"] for a, t in ((0.125, 316), (0.125, 5000), (1, 316))]
    assert said[0] == ("Round 316, a = 0.125. Pulls so far: large 309, small 1, old 5. Next is large, whose index is "
                       "1.05; that of small, the best with a true ratio of 5, is 0.736. More than nine tenths of the "
                       "pulls were of large, which is not the best.")
    assert said[1].endswith("large 3,416, small 1,577, old 6. Next is small, whose index is 6.03.")
    assert said[2].endswith("large 6, small 287, old 22. Next is small, whose index is 17.4.")
    played = [page.evaluate(AT, {"a": 0.125, "t": 316, "run": run}) for run in range(1, 41)]
    assert [run for run, drawn in enumerate(played, 1) if drawn["told"][1]["n"] == 1] == [26, 31, 33, 39]
    for drawn in played:
        assert ("nine tenths" in drawn["says"]) == (max(drawn["told"][k]["n"] for k in (0, 2)) > 0.9 * 316)


@pytest.mark.pages
def test_cliff(moving):
    drawn = moving("cliff", DATA["cliff"]).evaluate(SWEEP, "mean")
    for each, (mean, lost) in zip(drawn, CLIFF.iterrows(), strict=True):
        assert each["told"]["order"] == [*lost.sort_values().index] and each["told"]["enough"] == (mean >= 0.45)
        assert each["told"]["close"] == (abs(mean - 0.45) < 0.9 * 4500 ** (-1 / 3))
    assert [each["says"] for each in drawn[:3]] == [
        "At 0.3 A is short of the bar, 0.45. From the smallest regret: CS-TS 10, CS-ETC 700.",
        "At 0.44 A is short of the bar, 0.45, in the grey zone. From the smallest regret: CS-TS 20, CS-ETC 50.",
        "At 0.45 A is good enough, in the grey zone. From the smallest regret: CS-ETC 180, CS-TS 2,500."]


def own_losses(label, r, c, spread, budget, seed):
    """What a policy loses in the run that the page plays with this seed: the library's rules, the page's outcomes."""
    code, parameters = live.own()["policies"][label]
    K, sums = len(r), np.zeros((5, len(r)))
    draws = [[mulberry(2000 * k + 1000 * of + seed) for of in (0, 1)] for k in range(K)]
    t, spent = 1, 0.0
    while spent < budget:
        n = sums[0]
        if t <= K:
            k = t - 1
        elif code == "MomentIMED":
            rho = np.max(np.divide(sums[1], sums[2], out=np.zeros(K), where=sums[2] > 0))
            tuning = wasm.imed.Tuning(*parameters, wasm.imed.INDEPENDENT)
            arms = wasm.Arms(n.astype(int), *sums[1:])
            values = [wasm.imed.index(k, rho, arms, False, tuning, np.zeros(K)) if sums[2][k] else -np.inf
                      for k in range(K)]
            k = int(np.argmin(values))
        else:
            k = int(np.argmax([getattr(cb, code).rule(t, int(n[k]), *sums[1:, k], min(c), np.array(parameters))
                               for k in range(K)]))
        reward, cost = (mean + spread * ((next(draw) < mean) - mean) for mean, draw in zip((r[k], c[k]), draws[k],
                                                                                                strict=True))
        sums[:, k] += 1, reward, cost, reward**2, cost**2
        t, spent = t + 1, spent + cost
    ratios = np.divide(r, c)
    return sums[0] @ (np.array(c) * (ratios.max() - ratios))


@pytest.mark.pages
def test_own(moving):
    page = moving("own", DATA["own"])
    for spread in (0.0, 0.5, 1.0):
        told = page.evaluate(AT, {"spread": spread, "budget": 60})["told"]
        for label, losses in told.items():
            expected = [own_losses(label, [0.5, 0.4, 0.3], [0.4] * 3, spread, 60, seed) for seed in range(3)]
            assert np.allclose(losses, expected), (label, spread)
    page.get_by_label("arm 2: mean reward").fill("0.9")
    page.get_by_label("largest reward").fill("3")
    said = page.evaluate(AT, {})["says"]
    assert said.startswith("Arm 2 earns most per unit of cost; alone it would earn 135. Mean losses: ")
    for label, text in {"largest reward": "0.8", "arm 1: mean reward": ""}.items():
        page.get_by_label(label).fill(text)
        assert page.evaluate(AT, {})["says"] == "Each mean reward must lie between 0 and the largest reward."
    page.reload()
    page.wait_for_selector(".live.on")
    # What a redraw plays is bounded, and each game ends: also where most pulls are free and one costs more than all.
    for budget, cost, ends in ((999, 0.4, True), (1000, 0.4, False), (0.001, 0.0001, False), (0.2, 0.0005, True)):
        drawn = page.evaluate(AT, {"spread": 1, "budget": budget, **dict.fromkeys(("c0", "c1", "c2"), cost)})
        assert ("at most 2,500 pulls" in drawn["says"]) != ends and bool(drawn["told"]) == ends, (budget, cost)
    losses = drawn["told"]["m-UCB"]
    assert np.allclose(losses, [own_losses("m-UCB", [0.5, 0.4, 0.3], [cost] * 3, 1, budget, k) for k in range(3)])
    assert page.evaluate(AT, {"budget": 50, "c0": 0})["says"].startswith("Each mean cost must be above 0")
