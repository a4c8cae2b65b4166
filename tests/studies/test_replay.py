"""Replays use each row once, say when rows ran out, and their intervals tell what another log might have said."""

import numpy as np
import pandas as pd
import pins
import pytest
from reference import proving
from scipy import stats

import costbandits as cb

LAW = [cb.Pairs([0, 0, 1], [0, 0.25, 1], [0.5, 0.5 - p, p]) for p in (0.15, 0.25, 0.3)]
TRUTH, STOP, POLICY = cb.Bandit(outcomes=LAW), cb.Budget(30), {"omega": cb.OmegaUCB(0.25)}


def log_of(rows, rng):
    """A log whose arms were drawn at random, from the law of TRUTH."""
    arm = rng.integers(0, 3, rows)
    place = [rng.choice(3, p=[0.5, 0.5 - p, p]) for p in np.array([0.15, 0.25, 0.3])[arm]]
    return cb.Bandit.from_log(pd.DataFrame({"arm": arm, "reward": np.array([0, 0, 1])[place],
                                            "cost": np.array([0, 0.25, 1.0])[place]}))


def test_each_row_is_used_at_most_once_and_a_whole_arm_is_all_of_it():
    rows = np.arange(1.0, 201.0) / 256      # sums are exact
    log = cb.Bandit(outcomes=[cb.Pairs(rows, rows), cb.Pairs(rows, np.ones(200))])
    runs = cb.replay({"m": cb.MUCB()}, log, cb.Budget(70), replications=5, checkpoints=100)
    assert (runs.ended == 1).all() and runs.reward.dtype == runs.pulls.dtype == float
    one = cb.Bandit(outcomes=[cb.Pairs(rows, rows)])
    for total, ended in ((rows.sum(), 1.0), (rows.sum() + 1, 0.0)):
        whole = cb.replay({"m": cb.MUCB()}, one, cb.Budget(total), replications=3, checkpoints=[0.5, 1.0])
        assert whole.ended.tolist() == [ended] and np.isfinite(whole.reward[:, :, 0]).all()
        last = np.array([whole.pulls[0, :, 1, 0], whole.reward[0, :, 1], whole.spent[0, :, 1]])
        assert (last.T == [200, rows.sum(), rows.sum()]).all() if ended else np.isnan(last).all()
    assert len(set(whole.reward[0, :, 0].tolist())) == 3        # each replication has an order of its own


@pytest.mark.parametrize("fast", [True, False])
def test_a_hard_budget_may_end_with_the_last_row(fast):
    log = cb.Bandit(outcomes=[cb.Pairs(np.arange(10) % 2, np.ones(10))])
    for total, ended in ((10.5, 1.0), (11.0, 0.0)):
        runs = cb.replay({"k": cb.KUBE()}, log, cb.HardBudget(total), 3, checkpoints=[0.5, 1], fast=fast)
        assert runs.ended.tolist() == [ended]
        assert (runs.spent[0, :, 1] == 10).all() if ended else np.isnan(runs.spent[0, :, 1]).all()
        assert (runs.reward[0, :, 1] == 5).all() or not ended


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("study", ["bernoulli", "subsidy, unknown costs", "anytime"])
def test_policies_play_a_log_as_they_play_anything(study, fast):
    """A log of all rows of a stack: what a replay pulls is there, and no policy reads on."""
    policies = {label: policy for label, policy in pins.STUDIES[study][0].items() if not policy.all_knowing}
    rows = np.random.default_rng(2).random((4, 700, 2)).round(3)
    rows[:, :, 0] *= np.array([[1], [0.9], [0.5], [0.2]])
    log = cb.Bandit(outcomes=[cb.Pairs(*part.T) for part in rows])
    stop = {"anytime": cb.AnytimeBudget(0.4, 600), "bernoulli": cb.Budget(300)}.get(study, cb.Horizon(600))
    runs = cb.replay(policies, log, stop, replications=2, checkpoints=3, fast=fast)
    assert (runs.ended == 1).all() and (runs.pulls.sum(axis=-1) <= 700).all()
    sums = runs.pulls[:, :, -1]
    assert (runs.reward[:, :, -1] <= sums.sum(axis=-1)).all() and (runs.spent[:, :, -1] <= sums.sum(axis=-1)).all()
    if study == "bernoulli":
        again = cb.replay({"omega 1/4": policies["omega 1/4"]}, log, stop, replications=2, checkpoints=3, fast=not fast)
        assert np.array_equal(again.pulls[0], runs.pulls[runs.index("omega 1/4")])


@pytest.mark.parametrize("policy", [cb.KnownMeans(), cb.ControlBudget()])
def test_a_policy_that_is_told_the_means_is_refused(policy):
    """It would be told those of the log: the larger of twenty equal arms by luck, whose rows it then plays."""
    log = cb.Bandit(outcomes=[cb.Pairs([0, 1], [1, 1])] * 2)
    with pytest.raises(ValueError, match=r"policies\['o'\] = .*: is told the arms' means"):
        cb.replay({"o": policy}, log, cb.AnytimeBudget(1.0, 2))


def test_pulls_stand_in_the_order_of_the_log_s_arms():
    log = cb.Bandit(outcomes=[cb.Pairs([p] * 90, [1] * 90) for p in (0.1, 0.9, 0.1)])
    runs = cb.replay({"m": cb.MUCB()}, log, cb.Budget(60), checkpoints=[1 / 60, 1])
    assert (runs.pulls[0, :, 1].argmax(axis=1) == 1).all() and len(set(map(tuple, runs.pulls[0, :, 0].tolist()))) == 3
    first = cb.replay({"m": cb.MUCB()}, log, cb.Budget(60), checkpoints=[1 / 60, 1], shuffle=False).pulls[0, :, 0]
    assert (first == [1, 0, 0]).all()


@cb.index
def mean_reward(t, arm, p):
    return arm.reward / arm.n


def test_rewards_below_0_are_played_pull_by_pull():
    """A bound that rests on rewards of 0 or more would be wrong: one loss, and the arm that led is left."""
    lossy = np.where(np.arange(2000) % 50 == 49, -30.0, 1.0)
    log = cb.Bandit(outcomes=[cb.Pairs(rewards, np.ones(2000)) for rewards in (lossy, np.full(2000, 0.25))])
    fast, slow = (cb.replay({"it": cb.IndexPolicy(mean_reward, monotone=True, regular=True)}, log, cb.Budget(900), 20,
                            checkpoints=9, fast=which) for which in (True, False))
    assert np.array_equal(fast.pulls, slow.pulls)


def test_numbers_end_where_some_run_ran_out():
    """Those that end earn more than the truth: they are the runs that needed few rows of the best arm."""
    rng = np.random.default_rng(5)
    runs = cb.replay(POLICY, log_of(160, rng), STOP, replications=40, bootstrap=3, checkpoints=30)
    assert 0 < runs.ended[0] < 1
    for values in (runs.reward, runs.spent, runs.rounds, runs.skips, runs.pulls[..., 0]):
        first = np.isnan(values[0]).argmax(axis=1)
        assert (first == first[0]).all() and first[0] > 0 and np.isnan(values[0, :, first[0]:]).all()
    gone = np.isnan(runs.resampled["spent"][0])
    assert (gone == gone[0, 0]).all() and 0 < gone.mean() < 1


def test_a_resampled_log_may_have_any_row_and_each_has_luck_of_its_own():
    log = cb.Bandit(outcomes=[cb.Pairs(np.arange(4) / 4, np.ones(4))])
    boots = cb.replay({"m": cb.MUCB()}, log, cb.Budget(4), bootstrap=40, checkpoints=[0.25, 1]).resampled["reward"][0]
    assert set(boots[:, 0, 0]) == {0, 0.25, 0.5, 0.75} and (boots[:, :, 1] == boots[:, :1, 1]).all()
    sure = cb.Bandit(outcomes=[cb.Pairs([r] * 9, [1] * 9) for r in (0, 1)])     # and the policy draws lots
    boots = cb.replay({"e": cb.EpsilonGreedy(9, 1)}, sure, cb.Budget(9), 1, bootstrap=9).resampled["reward"]
    assert len(set(boots[0, :, 0, -1])) > 1


@pytest.mark.slow
@pytest.mark.parametrize(("logs", "fewest", "number"), proving([(8, 3, 4_000), (120, 91, 20_000)], (120, 91, 20_000)))
def test_a_replay_is_unbiased_and_its_interval_holds_the_truth(logs, fewest, number):
    """The mean is the truth's (error 1e-6), and of nine intervals in ten, which should hold it, enough do.

    If each holds it with 0.88 alone, fewer than `fewest` of the logs do with a chance below 1e-4.
    """
    truth = cb.simulate(POLICY, TRUTH, STOP, number, seed=11, checkpoints=1).reward[0, :, -1]
    rng = np.random.default_rng(5)
    found, held = [], 0
    for seed in range(logs):
        runs = cb.replay(POLICY, log_of(1200, rng), STOP, 10, seed=seed, bootstrap=25, checkpoints=1)
        assert runs.ended[0] == 1
        low, high = runs.interval()[0, -1]
        found.append(runs.reward.mean())
        held += low < truth.mean() < high
    off = np.mean(found) - truth.mean()
    assert abs(off) < stats.norm.isf(5e-7) * (np.var(found) / logs + truth.var() / number)**0.5
    assert held >= fewest


def test_equality_sees_resampled_logs_and_nothing_is_told_where_rows_ran_out():
    log = cb.Bandit(outcomes=[cb.Pairs([0, 1] * 5, np.ones(10))])
    one, other, again = (cb.replay({"m": cb.MUCB()}, log, cb.Budget(20), 2, bootstrap=n, checkpoints=[0.25, 1])
                         for n in (2, 3, 2))
    assert one == again and one != other
    assert (one.unpulled[:, :, 0] == 0).all() and np.isnan(one.unpulled[:, :, 1]).all()


def test_intervals_by_hand():
    log = log_of(600, np.random.default_rng(1))
    runs = cb.replay({**POLICY, "m": cb.MUCB()}, log, STOP, 6, bootstrap=5, checkpoints=2)
    x, boots = runs.reward[0, :, 1], runs.resampled["reward"][0, :, :, 1]
    assert boots.shape == (5, 4)
    variance = max(boots.mean(axis=1).var(ddof=1) - boots.var(axis=1, ddof=1).mean() / 4, 0) + x.var(ddof=1) / 6
    assert runs.interval(level=0.9)[0, 1] == pytest.approx(x.mean() + np.array([-1, 1]) * 1.6448536 * variance**0.5)
    assert (runs.interval(against="m")[1] == 0).all() and runs.interval("spent").shape == (2, 2, 2)
    difference = runs.interval(against="m")[0].mean(axis=-1)
    assert difference == pytest.approx((runs.reward[0] - runs.reward[1]).mean(axis=0))


def test_a_frame_is_read_as_by_from_log_and_what_is_no_log_is_refused():
    frame = pd.DataFrame({"ad": ["x", "y"] * 100, "r": [0.0, 1] * 100, "c": [1.0, 0.5] * 100})
    columns = {"arm": "ad", "reward": "r", "cost": "c"}
    log = cb.Bandit.from_log(frame, **columns)
    assert cb.replay(POLICY, frame, STOP, 2, **columns) == cb.replay(POLICY, log, STOP, 2)
    for wrong, said in (({"log": TRUTH}, "must be a log, or cb.Bandit.from_log"), ({"log": 5}, "must be a DataFrame"),
                        ({"log": pins.THREE}, "must be a log"), ({"arm": "ad"}, r"leave out \['arm'\]"),
                        ({"replications": 0}, "must be a whole number, 1 or more"), ({"bootstrap": -1}, "0 or more"),
                        ({"policies": {}}, "must be a non-empty dict"), ({"stop": 5}, "must be a stop rule")):
        with pytest.raises(ValueError, match=said):
            cb.replay(**{"policies": POLICY, "log": log, "stop": STOP, **wrong})
    runs = cb.replay(POLICY, log, STOP, 2, bootstrap=2)
    with pytest.raises(ValueError, match=r"bootstrap = 0: must be 2 or more in cb\.replay"):
        cb.replay(POLICY, log, STOP, 2).interval()
    for arguments, said in (({"value": "regret"}, "must be one of"),
                            ({"level": 1}, "must be a number in"), ({"against": "n"}, "must be one of")):
        with pytest.raises(ValueError, match=said):
            runs.interval(**arguments)
