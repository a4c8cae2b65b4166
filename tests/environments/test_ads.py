"""The ad data: the file, the processing, the settings, the stand-in. All ads written down here are invented."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from costbandits.environments import ads

PAPER = [7, 9, 3, 6, 3, 2, 3, 54, 38, 33, 23, 34, 21, 54, 24, 93, 77, 57, 4]
KEY = ["xyz_campaign_id", "age", "gender"]
HEADER = ",".join(ads.COLUMNS)


def ad(campaign, age, gender, clicks, spent, conversions):
    return f"1,{campaign},1,{age},{gender},10,1000,{clicks},{spent},{conversions},0"


# Two settings, of which campaign 1178 comes second (as a text it would come first), and ads that must go.
ADS = [ad(1178, "30-34", "M", 10, 5.0, 1), ad(916, "30-34", "F", 2, 1.0, 1), ad(1178, "30-34", "M", 5, 2.0, 5),
       ad(916, "30-34", "F", 4, 1.0, 0),
       ad(916, "30-34", "F", 0, 0.0, 1),     # nothing spent
       ad(916, "30-34", "F", 1, 9.0, 2),     # more conversions than clicks; its cost would be the largest
       ad(936, "45-49", "M", 3, 1.5, 1)]     # alone in its group


def write(folder, rows=ADS, header=HEADER, start="\ufeff", end="\r\n"):
    """Write a file of ads; its path and checksum, as arguments of `ads.settings`."""
    path = folder / "ads.csv"
    path.write_bytes((start + end.join([header, *rows]) + end).encode())
    return {"path": path, "checksum": hashlib.md5(path.read_bytes()).hexdigest()}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    """A user who has neither set the variable nor filled the data folder."""
    monkeypatch.delenv(ads.VARIABLE, raising=False)
    monkeypatch.setattr(ads, "_data_folder", lambda: tmp_path / "data")


class TestProcessing:
    def test_known_answer(self, tmp_path):
        first, second = ads.settings(**write(tmp_path))
        assert (first.name, second.name) == ("916_30-34_F", "1178_30-34_M")
        assert not first.standin and first.K == 2
        # costs 1/2 and 1/4 a click; rewards 1/2 and 0, which counts as 1/100 before the division by 1/2
        np.testing.assert_allclose(first.cost_means, [0.99, 0.495])
        np.testing.assert_allclose(first.reward_means, [0.99, 0.0198])
        np.testing.assert_allclose(first.ratios, [1, 0.04])
        # costs 1/2 and 2/5; rewards 1/10 and 1, as many conversions as clicks
        np.testing.assert_allclose(second.cost_means, [0.99, 0.792])
        np.testing.assert_allclose(second.reward_means, [0.099, 0.99])

    def test_purchases_alone(self, tmp_path):
        # Five ads, for the one with more conversions than clicks has fewer purchases than clicks. Its cost of 9 a click
        # is the largest; 2 of 4 clicks and 1 of 10 buy, the rest nothing, which counts as 1/100.
        rows = [f"{row.rpartition(',')[0]},{n}" for row, n in zip(ADS, [1, 0, 0, 2, 0, 0, 0], strict=True)]
        first, second = ads.settings("all", **write(tmp_path, rows), conversions="approved")
        np.testing.assert_allclose(first.cost_means, [0.99 / 18, 0.99 / 36, 0.99])
        np.testing.assert_allclose(first.reward_means, [0.0198, 0.99, 0.0198])
        np.testing.assert_allclose(second.cost_means, [0.99, 0.792])
        np.testing.assert_allclose(second.reward_means, [0.99, 0.099])
        assert ads.steps("all", **write(tmp_path, rows), conversions="approved")["ads"].tolist() == [7, 6, 6, 5]

    def test_steps(self, tmp_path):
        steps = ads.steps("all", **write(tmp_path))
        assert steps["ads"].tolist() == [7, 6, 5, 4]
        assert steps["settings"].tolist() == [2, 2, 2, 2]
        assert steps["smallest"].tolist() == [2, 2, 2, 2]
        assert steps["largest"].tolist() == [4, 3, 2, 2]

    def test_facts(self, tmp_path):
        # Four ads are left: costs 0.99, 0.495, 0.99, 0.792; rewards 0.99, 0.0198, 0.099, 0.99; the best of 1178 has 5
        # clicks and the largest reward, the best of 916 has 2 clicks and the largest reward.
        facts = ads.facts("all", **write(tmp_path))
        assert facts["ads"] == 4 and facts["clicks of an ad, median"] == 4.5 and facts["settings"] == 2
        assert facts["ads clicked once"] == facts["settings whose best ad was clicked once"] == 0
        assert facts["ads without an approved conversion"] == 4
        assert facts["ads without any conversion, in the whole file"] == 1
        assert facts["share of costs above 0.5"] == 0.75
        assert facts["share of rewards at most 0.1"] == facts["share of rewards at least 0.9"] == 0.5
        assert facts["settings whose best ad has the largest reward"] == 2

    def test_first_761_rows(self, tmp_path):
        file = write(tmp_path, [ad(916, "30-34", "F", 2, 1.0, 1)] * 763)
        assert [[s.K for s in ads.settings(rows, **file)] for rows in ads.SIZES] == [[761], [763]]

    @pytest.mark.parametrize("start", ["", "\ufeff"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_byte_order_mark_and_line_ends(self, tmp_path, start, end):
        table = ads.load(**write(tmp_path, start=start, end=end))
        assert tuple(table.columns) == ads.COLUMNS and len(table) == len(ADS)
        assert table["gender"].tolist() == list("MFMFFFM")

    def test_nothing_left(self, tmp_path):
        file = write(tmp_path, ADS[4:])
        for use in (ads.settings, ads.steps):
            with pytest.raises(ValueError, match="no two ads"):
                use(**file)

    @pytest.mark.parametrize("rows", ["paper", 761, None])
    def test_unknown_rows(self, rows):
        for use in (ads.settings, ads.steps):
            with pytest.raises(ValueError, match=r"rows = .*first761.*all"):
                use(rows)
            with pytest.raises(ValueError, match=r"conversions = .*total.*approved"):
                use(conversions=rows)


class TestFile:
    def test_missing_says_how_to_get_it(self, tmp_path):
        for path in (None, tmp_path / "no.csv", str(tmp_path / "no.csv"), tmp_path / "no" / "no.csv"):
            with pytest.raises(FileNotFoundError, match=r"does not exist.*kaggle.*COSTBANDITS_ADS.*standin=True"):
                ads.settings(path=path)

    def test_below_a_regular_file(self, tmp_path):
        file = write(tmp_path)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            ads.load(file["path"] / "ads.csv")

    def test_places_in_order(self, tmp_path, monkeypatch):
        (tmp_path / "data").mkdir()
        default = tmp_path / "data" / ads.FILE
        named, given = tmp_path / "named.csv", tmp_path / "given.csv"
        for path in (default, named, given):
            path.write_text("x")
        assert ads.find() == default
        monkeypatch.setenv(ads.VARIABLE, str(named))
        assert ads.find() == named
        assert ads.find(given) == ads.find(str(given)) == given
        named.unlink()
        with pytest.raises(FileNotFoundError, match="named by COSTBANDITS_ADS"):
            ads.find()      # and does not fall back to the default place
        monkeypatch.setenv(ads.VARIABLE, "")
        assert ads.find() == default

    def test_home(self, tmp_path, monkeypatch):
        write(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv(ads.VARIABLE, "~/ads.csv")
        assert ads.find() == tmp_path / "ads.csv"

    def test_checkout(self, monkeypatch):
        monkeypatch.undo()
        root = Path(ads.__file__).resolve().parents[3]
        assert ads._data_folder() == root / "data" and (root / "pyproject.toml").is_file()
        monkeypatch.setattr(ads, "__file__", "/elsewhere/lib/python/costbandits/environments/ads.py")
        assert ads._data_folder() == Path("data")

    def test_folder(self, tmp_path):
        with pytest.raises(ValueError, match="is a folder"):
            ads.load(tmp_path)

    @pytest.mark.parametrize("path", ["", 5, b""])
    def test_no_path(self, path):
        with pytest.raises(ValueError, match="path = "):
            ads.load(path)

    @pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
    def test_empty(self, tmp_path, text):
        (tmp_path / "ads.csv").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="empty"):
            ads.load(tmp_path / "ads.csv")

    @pytest.mark.parametrize("header", [HEADER.lower(), HEADER.removesuffix(",Approved_Conversion"), HEADER + ",Date",
                                        HEADER.replace(",", ";"), "x"])
    def test_wrong_columns(self, tmp_path, header):
        with pytest.raises(ValueError, match=r"wrong columns.*must be ad_id"):
            ads.load(**write(tmp_path, header=header))

    def test_another_file(self, tmp_path):
        file = write(tmp_path)
        with pytest.raises(ValueError, match=f"altered.*{file['checksum']}.*{ads.CHECKSUM}"):
            ads.load(file["path"])
        assert len(ads.load(**file)) == len(ads.load(file["path"], file["checksum"].upper())) == len(ADS)

    @pytest.mark.parametrize("checksum", [None, "", "e2840", ads.CHECKSUM[:-1] + "x", 5])
    def test_no_checksum(self, tmp_path, checksum):
        with pytest.raises(ValueError, match=r"checksum = .*MD5"):
            ads.load(write(tmp_path)["path"], checksum)

    @pytest.mark.parametrize(("row", "trouble"), [
        (ad(916, "30-34", "F", 0, 1.0, 0), "Clicks in row 7.*above 0"),
        (ad(916, "30-34", "F", 1, -1.0, 0), "Spent in row 7"),
        (ad(916, "30-34", "F", 1, "inf", 0), "Spent in row 7"),
        (ad(916, "30-34", "F", 1, "", 0), "Spent in row 7"),
        (ad(916, "30-34", "F", 1, 1.0, "one"), "Total_Conversion in row 7"),
        (ad("", "30-34", "F", 1, 1.0, 1), "campaign_id in row 7"),
        (ad(916, "", "F", 1, 1.0, 1), "age in row 7"),
        (ad(916, "30-34", "", 1, 1.0, 1), "gender in row 7"),
        (ADS[0] + ",7", "11 cells"), ("1,2,3", "11 cells")])
    def test_bad_rows(self, tmp_path, row, trouble):
        with pytest.raises(ValueError, match=trouble):
            ads.load(**write(tmp_path, [*ADS, row]))

    def test_no_rows(self, tmp_path):
        with pytest.raises(ValueError, match="one row per ad"):
            ads.load(**write(tmp_path, []))

    def test_not_utf8(self, tmp_path):
        path = tmp_path / "ads.csv"
        path.write_bytes(f"{HEADER}\n{ADS[0]}\n".encode().replace(b"30-34", b"30\xff34"))
        with pytest.raises(ValueError, match="UTF-8"):
            ads.load(path, hashlib.md5(path.read_bytes()).hexdigest())


class TestRealFile:
    """Counts of the file that the notebook states, among them the paper's own."""

    def test_the_papers_19_settings(self, ads_file):
        settings = ads.settings(path=ads_file)
        assert [s.K for s in settings] == PAPER and sum(PAPER) == 545
        assert {s.name: s.K for s in settings} == ads.SIZES["first761"] and settings[9].name == "936_35-39_F"

    def test_all_rows(self, ads_file):
        settings = ads.settings("all", path=ads_file)
        sizes = [s.K for s in settings]
        assert (len(sizes), sum(sizes), min(sizes), max(sizes)) == (23, 922, 2, 102)
        assert {s.name: s.K for s in settings} == ads.SIZES["all"]

    @pytest.mark.parametrize("rows", ads.SIZES)
    def test_ranges(self, ads_file, rows):
        for s in ads.settings(rows, path=ads_file):
            assert not s.standin and not s.name.endswith("_standin")
            for means in (s.reward_means, s.cost_means):
                assert 0 < means.min() and means.max() == 0.99

    def test_steps(self, ads_file):
        steps = ads.steps(path=ads_file)
        assert steps["ads"].tolist() == [1143, 761, 558, 545, 545]
        assert steps["settings"].tolist() == [23, 19, 19, 19, 19]
        # Table 1's "[2, 97]" is the range before the last filter, the text's "between 2 and 93" the one after it.
        assert steps.loc["spent > 0", ["smallest", "largest"]].tolist() == [2, 97]
        assert steps.loc["at least two in a group", ["smallest", "largest"]].tolist() == [2, 93]
        assert ads.steps("all", ads_file)["largest"].tolist() == [112, 107, 102, 102]
        # Purchases alone give the range of Table 1, after all filters.
        steps = ads.steps(path=ads_file, conversions="approved")
        assert steps.iloc[-1].tolist() == [556, 19, 2, 97]

    def test_totals(self, ads_file):
        table = ads.load(ads_file)
        assert len(table) == 1143 and table["ad_id"].is_unique and table["ad_id"].is_monotonic_increasing
        totals = table[["Clicks", "Impressions", "Total_Conversion", "Approved_Conversion"]].sum()
        assert totals.tolist() == [38165, 213434828, 3264, 1079] and round(table["Spent"].sum(), 2) == 58705.23
        assert table["xyz_campaign_id"].value_counts().to_dict() == {916: 54, 936: 464, 1178: 625}
        assert ((table["Spent"] > 0) == (table["Clicks"] > 0)).all()
        assert (table["Total_Conversion"] == 0).sum() == 8

    def test_rewards_rest_on_few_clicks(self, ads_file):
        *_, (_, kept) = ads._steps("first761", ads_file, ads.CHECKSUM)
        once = kept[kept["Clicks"] == 1]
        assert len(kept) == 545 and len(once) == 103 and (once["Total_Conversion"] == 1).all()
        assert kept["Clicks"].median() == 6 and (kept["Approved_Conversion"] == 0).sum() == 269
        assert kept.groupby(["age", "gender"]).ngroups == 8
        settings = ads.settings(path=ads_file)
        groups = [group["Clicks"] for _, group in kept.groupby(KEY)]
        best = [clicks.iloc[s.ratios.argmax()] for s, clicks in zip(settings, groups, strict=True)]
        assert sum(clicks == 1 for clicks in best) == 14
        assert all(s.reward_means[s.ratios.argmax()] == 0.99 for s in settings)

    def test_shape_of_the_arms(self, ads_file):
        settings = ads.settings(path=ads_file)
        rewards = np.concatenate([s.reward_means for s in settings])
        costs = np.concatenate([s.cost_means for s in settings])
        shares = [np.mean(costs > 0.5), np.mean(rewards <= 0.1), np.mean(rewards >= 0.9)]
        assert np.round(shares, 2).tolist() == [0.97, 0.27, 0.21]
        s = settings[9]
        shares = [np.mean(s.cost_means > 0.5), np.mean(s.reward_means <= 0.1), np.mean(s.reward_means >= 0.9)]
        assert np.round(shares, 2).tolist() == [0.88, 0.15, 0.39]
        assert all(np.mean(s.reward_means >= 0.9) < 0.06 for s in settings[15:18])
        assert all(np.mean(s.reward_means >= 0.9) > 0.46 > 0.03 > np.mean(s.reward_means <= 0.1) for s in settings[7:9])
        middles, values = ads.density(s)
        assert values.mean() == pytest.approx(0.67, abs=0.005)
        assert middles[values.max(axis=0).argmax()] == pytest.approx(0.16, abs=0.01)

    def test_shifted_cells_drop_the_same_rows(self, ads_file):
        # What is reported of the authors' copy, done to ours: from row 761 on, cells stand two columns too far left.
        table = ads.load(ads_file)
        cells = table.drop(columns="ad_id").astype(object)
        cells.iloc[761:] = cells.iloc[761:].shift(-2, axis=1)
        cells = cells[pd.to_numeric(cells["Spent"], errors="coerce") > 0]
        numbers = cells[["Clicks", "Total_Conversion"]].astype(float)
        survivors = cells.index[numbers["Clicks"] >= numbers["Total_Conversion"]]
        *_, (_, kept) = ads._steps("first761", ads_file, ads.CHECKSUM)
        assert survivors.tolist() == kept.index.tolist()
        lost = table.iloc[761:]
        assert len(lost) == 382 and (lost["xyz_campaign_id"] == 1178).all()
        assert (table.iloc[:761].query("xyz_campaign_id == 1178")["gender"] == "M").all()

    def test_one_digit_altered(self, ads_file, tmp_path):
        data = bytearray(ads_file.read_bytes())
        place = max(i for i in range(len(data)) if data[i:i + 1] == b"1")
        data[place:place + 1] = b"2"
        (tmp_path / "ads.csv").write_bytes(data)
        with pytest.raises(ValueError, match="altered"):
            ads.load(tmp_path / "ads.csv")
        assert len(ads.load(tmp_path / "ads.csv", hashlib.md5(data).hexdigest())) == 1143

    def test_environment(self, ads_file, monkeypatch):
        monkeypatch.setenv(ads.VARIABLE, str(ads_file))
        assert [s.K for s in ads.settings()] == PAPER

    def test_standin_is_not_the_data(self, ads_file):
        for real, made in zip(ads.settings(path=ads_file), ads.settings(standin=True), strict=True):
            assert made.name == f"{real.name}_standin" and made.K == real.K
            for what in ("reward_means", "cost_means"):
                # Both lists hold 0.99, the maximum of each setting by construction, and maybe 0.0099, the floor.
                a, b = (np.setdiff1d(np.round(getattr(s, what), 9), [0.99, 0.0099]) for s in (real, made))
                assert np.intersect1d(a, b).size == 0


class TestStandin:
    def test_paper(self):
        settings = ads.settings(standin=True)
        assert [s.K for s in settings] == PAPER
        assert sum(s.K for s in ads.settings("all", standin=True)) == 922

    @pytest.mark.parametrize("rows", ads.SIZES)
    def test_labels_and_ranges(self, rows):
        settings = ads.settings(rows, standin=True)
        assert [s.name for s in settings] == [f"{name}_standin" for name in ads.SIZES[rows]]
        for s in settings:
            assert s.standin
            for means in (s.reward_means, s.cost_means):
                assert 0 < means.min() and means.max() == 0.99 and len(set(means.tolist())) > 1

    def test_shape(self):
        # "costs biased towards 1, rewards biased towards the boundaries"; uniform numbers would give 1/2, 1/10, 1/10
        settings = ads.settings(standin=True)
        rewards = np.concatenate([s.reward_means for s in settings])
        costs = np.concatenate([s.cost_means for s in settings])
        assert np.mean(costs > 0.5) > 0.75 and np.mean(rewards <= 0.1) > 0.15 and np.mean(rewards >= 0.89) > 0.15

    def test_deterministic(self):
        first, second = ads.settings(standin=True), ads.settings(standin=True)
        for a, b in zip(first, second, strict=True):
            assert a.name == b.name and np.array_equal([a.reward_means, a.cost_means], [b.reward_means, b.cost_means])

    def test_needs_no_file_and_takes_none(self, tmp_path):
        with pytest.raises(ValueError, match=r"path = .*stand-in"):
            ads.settings(path=tmp_path / "x.csv", standin=True)
        with pytest.raises(ValueError, match="standin = 'yes'"):
            ads.settings(standin="yes")
        with pytest.raises(ValueError, match=r"conversions = 'approved'.*stand-in"):
            ads.settings(standin=True, conversions="approved")


class TestSetting:
    def test_arrays_are_read_only_and_own(self):
        means = np.array([0.2, 0.4])
        setting = ads.Setting("x", means, [0.5, 0.8])
        means[0] = 0.9
        assert setting.reward_means.tolist() == [0.2, 0.4] and setting.K == 2
        with pytest.raises(ValueError, match="read-only"):
            setting.cost_means[0] = 0.1
        with pytest.raises(AttributeError):
            setting.name = "y"

    def test_prints_no_number_of_an_ad(self):
        assert repr(ads.Setting("x", [0.25], [0.5])) == "Setting('x', K=1, standin=False)"

    def test_pickle(self):
        setting = ads.settings(standin=True)[9]
        again = pickle.loads(pickle.dumps(setting))
        assert again.name == setting.name and again.standin
        assert np.array_equal([again.reward_means, again.cost_means], [setting.reward_means, setting.cost_means])

    @pytest.mark.parametrize(("rewards", "costs", "wrong"), [
        ([], [], "reward_means"), ([0.5], [0.5, 0.5], r"cost_means = .* of shape \(1,\)"),
        ([0.0], [0.5], "reward_means"), ([1.0], [0.5], "reward_means"),
        ([0.5], [float("nan")], "cost_means"), ([[0.5]], [[0.5]], "reward_means"), ([0.5], [-0.5], "cost_means")])
    def test_bad_means(self, rewards, costs, wrong):
        with pytest.raises(ValueError, match=wrong):
            ads.Setting("x", rewards, costs)

    def test_bad_name(self):
        with pytest.raises(ValueError, match="name = ''"):
            ads.Setting("", [0.5], [0.5])


class TestDensity:
    def test_one_kernel_by_hand(self):
        # Four arms at the corners of a square: covariance s I with s = 4 a^2 / 3, Scott's factor 4^(-1/6).
        a, points = 0.02, 200
        x, y = np.array([[0.5 - a, 0.5 - a], [0.5 - a, 0.5 + a], [0.5 + a, 0.5 - a], [0.5 + a, 0.5 + a]]).T
        middles, values = ads.density(ads.Setting("x", y, x), points)
        variance = 4 * a**2 / 3 * 4 ** (-1 / 3)
        i, j = 97, 103
        squares = (x - middles[i]) ** 2 + (y - middles[j]) ** 2
        assert values[i, j] == pytest.approx(np.mean(np.exp(-squares / (2 * variance))) / (2 * np.pi * variance))
        assert values.mean() == pytest.approx(1, abs=1e-9)      # all mass lies inside

    def test_axes(self):
        rng = np.random.default_rng(0)
        setting = ads.Setting("x", rng.uniform(0.1, 0.2, 30), rng.uniform(0.7, 0.9, 30))
        middles, values = ads.density(setting, 50)
        cost, reward = np.unravel_index(values.argmax(), values.shape)
        assert middles[cost] > 0.6 and middles[reward] < 0.3

    @pytest.mark.parametrize(("rewards", "costs"), [([0.1, 0.2], [0.3, 0.5]), ([0.1, 0.2, 0.3], [0.2, 0.4, 0.6]),
                                                    ([0.5] * 4, [0.1, 0.2, 0.3, 0.4])])
    def test_flat(self, rewards, costs):
        with pytest.raises(ValueError, match="one line"):
            ads.density(ads.Setting("x", rewards, costs))

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="setting = 9"):
            ads.density(9)
        with pytest.raises(ValueError, match="points = 1"):
            ads.density(ads.settings(standin=True)[9], 1)
