"""Figures are deterministic, carry their origin, and are filed only where there is a folder for them."""

import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from reference import proving

from costbandits.analysis import figures, statistics


@pytest.fixture(autouse=True)
def style():
    with plt.rc_context(figures.STYLE):
        yield
        plt.close("all")


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    return {label: rng.exponential(size=(20, 8)).cumsum(axis=1) + 1 for label in ("ω-UCB 1/4", "m-UCB", "mine")}


def test_policies_have_styles_of_their_own():
    for cast in figures.CASTS:
        named = {label: tuple(map(str, look)) for label, look in cast.items() if label != "ω-UCB"}
        assert len(set(named.values())) == len(named)
    assert len(figures.POLICIES) == sum(map(len, figures.CASTS))
    assert figures.style("mine") == {"color": figures.GREY, "linestyle": "-"}


def contrast(colour):
    """Of text in this colour on white, as WCAG 2.1 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055)**2.4 for c in matplotlib.colors.to_rgb(colour)]
    return 1.05 / (np.dot([0.2126, 0.7152, 0.0722], linear) + 0.05)


@pytest.mark.parametrize("label", [*figures.POLICIES, "mine"])
def test_a_name_is_written_dark_enough_to_read_and_in_the_hue_of_its_line(label):
    ax = plt.gca()
    figures.name_lines(ax, {label: 0.5})
    drawn, written = (np.array(matplotlib.colors.to_rgb(colour)) for colour in (
        figures.style(label)["color"], ax.texts[0].get_color()))
    assert contrast(written) >= 4.5
    if contrast(drawn) >= 4.5:
        assert (written == drawn).all()
    else:      # no darker than need be, and all three parts by one share
        assert contrast(written) < 4.7 and written == pytest.approx(drawn * written.max() / drawn.max(), abs=0.005)


def test_three_columns_are_no_wider_than_a_page(runs):
    fig = figures.panels(np.geomspace(0.01, 1, 8), dict.fromkeys("abc", runs), 3)
    assert fig.get_figwidth() == figures.PAGE
    assert figures.panels(np.geomspace(0.01, 1, 8), {"a": runs}, 1).get_figwidth() == 4.3


def test_bands_are_drawn_around_the_mean_or_the_median():
    values = np.array([[0.0], [1.0], [2.0], [7.0]]) + np.array([0.0, 10.0])

    def edges(band, **options):
        ax = plt.figure().add_subplot()
        ends = figures.curves(ax, [1, 2], {"mine": values}, band, **options)
        first = [y for x, y in ax.collections[0].get_paths()[0].vertices if x == 1]
        return ends["mine"], min(first), max(first)

    assert edges("spread", center="median") == pytest.approx((11.5, 0.3, 5.5))      # 10 % and 90 % of 0, 1, 2, 7
    assert edges("deviation") == pytest.approx((12.5, 2.5 - 7.25**0.5, 2.5 + 7.25**0.5))
    (ax,) = figures.panels([1, 2], {"S": {"mine": values}}, 1, center="median").axes
    assert ax.lines[0].get_ydata().tolist() == [1.5, 11.5]
    end, low, high = edges("interval")
    assert end == 12.5 and 0 <= low < 1.25 < 3.75 < high <= 7
    # Half of the spread of the resampled means is 1.96 of their standard error, about. Of the means of all samples of
    # four of these values 2.0 % are 1/4 or less and 5.9 % are 1/2 or less; 96.5 % are 21/4 or less, 98.0 % 22/4.
    assert (high - low) / 2 == pytest.approx(1.96 * (7.25 / 4)**0.5, rel=0.15)
    assert (low, high) == (0.5, 5.5)
    # And in another unit.
    values = 1000 * values
    assert edges("interval")[1:] == (500, 5500)
    assert edges("deviation")[1:] == pytest.approx((2500 - 1000 * 7.25**0.5, 2500 + 1000 * 7.25**0.5))


def test_names_at_line_ends_do_not_overlap(runs):
    ax = plt.gca()
    ends = {"a": 1.0, "b": 1.0, "c": 1.001, "d": 5.0}
    for y in ends.values():
        ax.plot([0, 1], [0, y])
    figures.name_lines(ax, ends, gap=0.05)
    heights = sorted(text.xyann[1] for text in ax.texts)
    assert np.diff(heights).min() > 0.049


def test_forest_and_matrix_show_what_they_are_given(runs):
    final = {label: values[:, -1] for label, values in runs.items()}
    table = statistics.table(final, [("m-UCB", "mine"), ("ω-UCB 1/4", "mine")])
    fig = figures.forest({"S": table}, "ratio")
    assert [t.get_text() for t in fig.axes[0].get_yticklabels()] == ["m-UCB", "ω-UCB 1/4"]
    drawn = [list(line.get_xdata()) for line in fig.axes[0].lines]
    assert all([row.ratio_low, row.ratio_high] in drawn for row in table.itertuples())
    fig, ax = plt.subplots()
    figures.matrix(ax, np.array([[0.5, 0.9], [0.1, 0.5]]), ["a", "b"], "title")
    assert [t.get_text() for t in ax.texts] == ["90", "10"]


def ticks(ax):
    """Whether the axis writes numbers below itself."""
    return any(label.get_visible() and label.get_text() for label in ax.get_xticklabels(which="both"))


# Panels and columns -> the panels with nothing below them.
GRIDS = {(1, 1): [0], (1, 3): [0], (3, 3): [0, 1, 2], (4, 3): [1, 2, 3], (5, 3): [2, 3, 4], (6, 3): [3, 4, 5],
         (4, 2): [2, 3], (3, 1): [2]}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "columns"), proving(GRIDS, (1, 1), (3, 3), (4, 3), (6, 3)))
def test_a_grid_has_an_axis_for_each_group_and_numbers_below_each_column(runs, number, columns):
    table = statistics.table({label: values[:, -1] for label, values in runs.items()}, [("m-UCB", "mine")])
    for fig in (figures.panels(np.geomspace(0.01, 1, 8), dict.fromkeys(range(number), runs), columns),
                figures.forest(dict.fromkeys(range(number), table), "ratio", columns)):
        assert fig.get_constrained_layout()
        fig.canvas.draw()
        assert [ax.get_title() for ax in fig.axes] == [str(title) for title in range(number)]
        assert [place for place, ax in enumerate(fig.axes) if ticks(ax)] == GRIDS[number, columns]


@pytest.mark.parametrize(("groups", "columns", "message"), [
    ({}, 3, "groups = {}"), ({"S": {}}, 3, "may be empty"), ([{}], 3, "must be a dict title"),
    ({"S": np.ones((2, 8))}, 3, "groups = {'S': 'ndarray'}"), ({"S": {"m-UCB": np.ones((2, 8))}}, 0, "columns = 0")])
def test_bad_groups(groups, columns, message):
    with pytest.raises(ValueError, match=message):
        figures.panels(np.arange(1, 9), groups, columns)
    with pytest.raises(ValueError, match=message.replace("groups", "tables")):
        tables = groups if columns else {"S": pd.DataFrame({"a": ["m-UCB"]})}
        figures.forest(tables, "ratio", columns)


def test_a_landscape_writes_ratios_frames_the_unbeaten_and_leaves_gaps():
    ratios = pd.DataFrame([[1.0, 1.04, np.nan], [1234.0, 1.0, 31.4]], ["first", "second"], ["a", "b", "c"])
    _, ax = plt.subplots()
    figures.landscape(ax, ratios, ratios < 1.1, "title")
    assert [t.get_text() for t in ax.texts] == ["1", "1.04", "1e3", "1", "31"]
    assert [(round(p.get_x()), round(p.get_y())) for p in ax.patches] == [(0, 0), (1, 0), (1, 1)]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]
    assert [t.get_weight() for t in ax.texts] == ["bold", "bold", "normal", "bold", "normal"]


@pytest.mark.parametrize(("ratio", "text"), [
    (1, "1"), (1.004, "1.00"), (1.99, "1.99"), (1.996, "2.0"), (9.94, "9.9"), (9.96, "10"), (999.4, "999"),
    (999.6, "1e3"), (123456.0, "1e5"), (np.inf, "inf")])
def test_ratios_are_short(ratio, text):
    assert figures._brief(ratio) == text


@pytest.mark.parametrize(("options", "message"), [
    ({"band": "sd"}, "band = 'sd'"), ({"center": "mode"}, "center = 'mode'"),
    ({"x": np.arange(7)}, r"runs\['ω-UCB 1/4'\].shape = \(20, 8\): must be \(any, 7\)")])
def test_bad_input(runs, options, message):
    with pytest.raises(ValueError, match=message):
        figures.curves(plt.gca(), **{"x": np.arange(8), "runs": runs, **options})


@pytest.mark.parametrize(("call", "message"), [
    (lambda ax: figures.matrix(ax, np.ones((2, 3)), ["a", "b"], ""), r"shares.shape = \(2, 3\): must be \(2, 2\)"),
    (lambda ax: figures.landscape(ax, pd.DataFrame([[1.0]]), pd.DataFrame([[True, False]]), ""), "unbeaten.shape"),
    (lambda ax: figures.name_lines(ax, {}), "ends = {}")])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(plt.gca())


def test_only_names_that_overlap_move_and_none_leaves_the_axis():
    _, ax = plt.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    figures.name_lines(ax, {"alone": 0.5, "a": 0.97, "b": 0.99, "c": 0.98, "d": 0.21, "e": 0.2, "f": 0.0}, gap=0.05)
    heights = {text.get_text(): text.xyann[1] for text in ax.texts}
    assert heights == pytest.approx(
        {"alone": 0.5, "a": 0.9, "c": 0.95, "b": 1.0, "e": 0.18, "d": 0.23, "f": 0.0})


def test_a_name_is_led_to_from_the_end_of_its_line():
    """The leader is looked for in the picture: by its first and last point, in the axis' coordinates."""
    fig, ax = plt.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 2))
    figures.name_lines(ax, {"BTS": 1.0, "m-UCB": 1.0, "above": 3.0}, gap=0.1)
    fig.canvas.draw()
    for text, (end, name) in zip(ax.texts, ((0.5, 0.45), (0.5, 0.55), (1.0, 1.0)), strict=True):
        leader = text.arrow_patch
        first, last = ax.transAxes.inverted().transform(
            leader.get_transform().transform(leader.get_path().vertices)[[0, -1]])
        right, left = (first, last) if first[0] > last[0] else (last, first)
        assert left == pytest.approx((1.0, end), abs=0.005)                             # the end of the line
        letters = matplotlib.text.Text.get_window_extent(text)         # without the leader
        assert 1.0 < right[0] <= ax.transAxes.inverted().transform(letters)[0, 0]
        assert abs(right[1] - name) < 0.03
        assert leader.get_edgecolor()[:3] == matplotlib.colors.to_rgb(figures.style(text.get_text())["color"])


@pytest.mark.parametrize("band", [None, "interval", "spread", "deviation"])
def test_panels_of_one_checkpoint_show_a_point(runs, band):
    """Without a warning, and with names beside it."""
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", "'.*' (argument is )?deprecated")      # old Matplotlib, new pyparsing
        figure = figures.panels([1.0], {"one": {label: each[:, -1:] for label, each in runs.items()}}, 1, band)
        figure.canvas.draw()
    (ax,) = figure.axes
    assert all(line.get_marker() == "o" for line in ax.lines[:len(runs)])
    assert {text.get_text() for text in ax.texts} >= set(runs)
