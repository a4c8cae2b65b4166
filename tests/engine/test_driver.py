"""The driver plays what its three steps say, counts rounds and skips, and stops where a run must stop."""

from math import inf
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import in_plain_python

import costbandits as cb
from costbandits.engine.driver import (
    DONE,
    END,
    LAST_ROUND,
    NEAR_CEILING,
    NO_SUCH_ARM,
    NOT_A_NUMBER,
    NOT_NUMBER,
    NULL_ARM,
    PAUSE,
    RUNNING,
    SKIP,
    UNAFFORDABLE,
    Money,
    if_counted,
    in_leaf,
    loop,
    one,
    pull_many,
    pull_once,
    step,
    unless_typed,
)
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Game
from costbandits.policies.base import NamedRule, Problem, rule

ROUNDS, TOLD = 3000, 4000       # rounds that a script may have, and lines that it notes


class Script(NamedTuple):
    """What to say in each round, how many pulls to ask for, and notes of what the steps were told."""

    words: np.ndarray       # (ROUNDS,)
    pulls: np.ndarray       # (ROUNDS,)
    asked: np.ndarray       # (TOLD, 3)     rounds that are over, what is spent and what is due
    learnt: np.ndarray      # (TOLD, 4)     arm, rounds that it took, rounds that are over, pulls of the arm
    lines: np.ndarray       # (2,)          of both

    @classmethod
    def of(cls, words, pulls):
        """The last word holds for all rounds to come."""
        words, pulls = (np.pad(np.array(each, np.int64), (0, ROUNDS - len(each)), "edge") for each in (words, pulls))
        return cls(words, pulls, np.zeros((TOLD, 3)), np.zeros((TOLD, 4), np.int64), np.zeros(2, np.int64))


@step
def choose(t, money, own, arms, limits, rng):
    i = own.lines[0]
    own.asked[i, 0], own.asked[i, 1], own.asked[i, 2] = t, money.spent, money.due
    own.lines[0] = i + 1
    return own.words[t], own.pulls[t]


@step
def many(arm, m, t, money, own, arms, outcomes, rng):
    i = arms.n[arm]
    money = pull_many(arm, m, money, arms, outcomes)
    return money, arms.n[arm] - i


@step
def from_it_on(arm, m, t, money, own, arms, outcomes, rng):
    """Pull this arm and all later ones, once each."""
    spent, collected = money.spent, money.collected
    for k in range(arm, arms.n.size):
        reward, cost = pull_once(k, arms, outcomes)
        spent, collected = spent + cost, collected + reward
    return Money(spent, collected, money.due), arms.n.size - arm


@step
def learn(arm, m, t, own, arms, outcomes, rng):
    i = own.lines[1]
    own.learnt[i, 0], own.learnt[i, 1], own.learnt[i, 2], own.learnt[i, 3] = arm, m, t, arms.n[arm]
    own.lines[1] = i + 1


def test_a_step_that_is_not_compiled_is_named():
    with pytest.raises(TypeError, match=r"plain must be compiled: the steps of a kernel by @step"):
        def plain(t, money, own, arms, limits, rng):
            return 0, 1
        loop(plain)


LOOPS = {"one": loop(choose, one, learn), "many": loop(choose, many, learn), "sweep": loop(choose, from_it_on, learn)}
KNOWN = cb.Bandit([cb.Constant(1.0), cb.Constant(3.0)], [cb.Constant(0.5), cb.Constant(2.0)])


def played(words, pulls=(1,), advance="one", due=(2.0,), bandit=KNOWN, pause=inf, rounds=ROUNDS, **limits):
    """A run by a script; its status, the run and the script."""
    run, own = Run(Stacks(bandit, 0, 0, range(bandit.K), 64), due, rounds, **limits), Script.of(words, pulls)
    return run.play(LOOPS[advance], own, None, pause=pause), run, own


def seen(status, run, own):
    """Status, rounds, skips and pulls of each arm; how often each checkpoint was noted; at which rounds was asked."""
    now = run.state.now
    return [int(status), int(now.rounds), int(now.skips), run.state.arms.n.tolist(), int(now.checkpoint),
            own.asked[:own.lines[0], 0].astype(int).tolist()]


# --- what may be said

HARD = {"max_cost": [0.5, 2.0], "ceiling": 4.5, "due": [9.0]}
ANYTIME = {"max_cost": [0.5, 2.0], "ceiling": 0.0, "rate": 0.75, "due": [9.0]}
# What is said, more for `played`, and what must come of it, as `seen` tells it.
CASES = {
    "an arm": ([0], {}, [DONE, 4, 0, [4, 0], 1, [0, 1, 2, 3]]),
    "the last arm": ([0, 1, 0], {"due": [9.0]}, [DONE, 15, 0, [14, 1], 1, [*range(15)]]),
    "a skip": ([0, SKIP, 0, SKIP, SKIP, 0], {}, [DONE, 7, 3, [4, 0], 1, [*range(7)]]),
    "the null arm": ([0, NULL_ARM, 0, NULL_ARM, SKIP, 0], {}, [DONE, 7, 1, [4, 0], 1, [*range(7)]]),
    "an arm in the last round": ([0], {"rounds": 3}, [LAST_ROUND, 3, 0, [3, 0], 0, [0, 1, 2]]),
    "a skip in the last round": ([0, SKIP], {"rounds": 3}, [LAST_ROUND, 3, 2, [1, 0], 0, [0, 1, 2]]),
    "the null arm in the last round": ([0, NULL_ARM], {"rounds": 3}, [LAST_ROUND, 3, 0, [1, 0], 0, [0, 1, 2]]),
    "the end": ([1, SKIP, END], {"due": [1.0, 2.5, 9.0]}, [DONE, 2, 1, [0, 1], 3, [0, 1, 2]]),
    "the end at once": ([END], {}, [DONE, 0, 0, [0, 0], 1, [0]]),
    "a pause": ([0, 0, SKIP, PAUSE], {"pause": 1.0}, [NEAR_CEILING, 3, 1, [2, 0], 0, [0, 1, 2, 3]]),
    "no pause": ([0], {"pause": 1.0}, [DONE, 4, 0, [4, 0], 1, [0, 1, 2, 3]]),
    "not a number": ([0, SKIP, NOT_NUMBER], {}, [NOT_A_NUMBER, 2, 1, [1, 0], 0, [0, 1, 2]]),
    "an arm too many": ([0, SKIP, 2], {}, [NO_SUCH_ARM, 2, 1, [1, 0], 0, [0, 1, 2]]),
    "an arm far out of range": ([0, 2**62], {}, [NO_SUCH_ARM, 1, 0, [1, 0], 0, [0, 1]]),
    "no word": ([0, NULL_ARM, NOT_NUMBER - 1], {}, [NO_SUCH_ARM, 2, 0, [1, 0], 0, [0, 1, 2]]),
    "no word by far": ([-2**62], {}, [NO_SUCH_ARM, 0, 0, [0, 0], 0, [0]]),
    "affordable to the last": ([1, 1, 0, END], HARD, [DONE, 3, 0, [1, 2], 1, [0, 1, 2, 3]]),
    "not affordable": ([1, 0, SKIP, 0, 1], HARD, [UNAFFORDABLE, 4, 1, [2, 1], 0, [0, 1, 2, 3, 4]]),
    "affordable by this round": ([0, SKIP, SKIP, 1, SKIP], {**ANYTIME, "rounds": 5},
                                 [LAST_ROUND, 5, 3, [1, 1], 0, [*range(5)]]),
    "not affordable by this round": ([0, SKIP, 1], ANYTIME, [UNAFFORDABLE, 2, 1, [1, 0], 0, [0, 1, 2]]),
    "rounds decide": ([0, SKIP], {"due": [inf] * 3, "ends": np.array([1, 4, 6])}, [DONE, 6, 5, [1, 0], 3, [*range(6)]]),
    "many pulls": ([0, 9, 9, SKIP, 0], {"pulls": [3, 9, 9, 9, 7], "advance": "many", "due": [9.0], "rounds": 9},
                   [LAST_ROUND, 9, 1, [8, 0], 0, [0, 3, 4]]),
    "many pulls until it is due": ([0], {"pulls": [99], "advance": "many", "due": [1.0, 2.5]},
                                   [DONE, 5, 0, [5, 0], 2, [0, 2]]),
    "many pulls until the pause": ([0], {"pulls": [99], "advance": "many", "pause": 1.25},
                                   [DONE, 4, 0, [4, 0], 1, [0, 3]]),
    "others are pulled, too": ([0, 9, SKIP, 1, 0], {"advance": "sweep", "due": [6.0]},
                               [DONE, 6, 1, [2, 3], 1, [0, 2, 3, 4]]),
}


def case(name):
    said, more, _ = CASES[name]
    return seen(*played(said, **more))


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_is_played(name):
    assert case(name) == CASES[name][2]


def everything():
    """Of every case also the notes of its steps, and the money."""
    found = []
    for said, more, _ in CASES.values():
        status, run, own = played(said, **more)
        now, lines = run.state.now, own.lines.tolist()
        found.append([*seen(status, run, own), float(now.spent), float(now.reward), run.record.pulls.tolist(),
                      run.record.noted.tolist(), own.asked[:lines[0]].tolist(), own.learnt[:lines[1]].tolist()])
    return [repr(each) for each in found]


@pytest.mark.slow
def test_in_plain_python_it_is_the_same():
    assert in_plain_python("test_driver", "m.everything()") == everything()


def test_at_the_end_every_checkpoint_that_is_left_is_noted():
    _, run, _ = played([1, SKIP, END], due=[1.0, 2.5, 9.0])
    assert run.record.noted.tolist() == [(1, 0, 0, 2.0, 3.0), (2, 1, 1, 2.0, 3.0), (2, 1, 2, 2.0, 3.0)]
    assert run.record.pulls.tolist() == [[0, 1]] * 3


@pytest.mark.parametrize(("advance", "learnt"), [
    ("one", [[0, 1, 1, 1], [1, 1, 2, 1], [0, 1, 4, 2], [1, 1, 5, 2], [1, 1, 6, 3]]),
    ("many", [[0, 4, 4, 4], [1, 1, 5, 1], [1, 2, 7, 3]]), ("sweep", [[0, 2, 2, 1], [0, 2, 5, 2], [1, 1, 6, 3]])])
def test_what_is_learnt_is_told_of_after_the_rounds_that_it_took(advance, learnt):
    """Arm, rounds that it took, rounds that are over, pulls of the arm."""
    _, _, own = played([0, 1, SKIP, 0, 1], [4, 1, 1, 1, 1, 2], advance, [7.0])
    assert own.learnt[:own.lines[1]].tolist() == learnt


# --- the rounds of a run

ANY = cb.Bandit([cb.Discrete([0, 0.5, 1], [0.25, 0.25, 0.5]), cb.Bernoulli(0.3)],
                [cb.Bernoulli(0.75), cb.Discrete([0.25, 1, 3], [0.25, 0.5, 0.25])])


def literally(words, pulls, due, pause, rounds):
    """What `played` must come to, round by round: status, checkpoints, what `choose` and `learn` are told."""
    pairs = [Stacks(ANY, 0, 0, [0, 1]).pairs(k, ROUNDS).tolist() for k in range(2)]
    t, skips, spent, collected, n, noted, asked, learnt = 0, 0, 0.0, 0.0, [0, 0], [], [], []
    while len(noted) < len(due) and t < rounds:
        border = due[len(noted)] if spent >= pause else min(due[len(noted)], pause)
        arm, m = words[min(t, len(words) - 1)], min(pulls[min(t, len(pulls) - 1)], rounds - t)
        asked.append([t, spent, border])
        if arm < 0:
            t, skips = t + 1, skips + (arm == SKIP)
            continue
        done = 0
        while done < m and spent < border:
            reward, cost = pairs[arm][n[arm]]
            spent, collected, done, n[arm] = spent + cost, collected + reward, done + 1, n[arm] + 1
        t += done
        learnt.append([arm, done, t, n[arm]])
        while len(noted) < len(due) and spent >= due[len(noted)]:
            noted.append(((t, skips, len(noted), spent, collected), list(n)))
    return DONE if len(noted) == len(due) else LAST_ROUND, noted, asked, learnt


@settings(max_examples=150)
@given(words=st.lists(st.sampled_from([0, 0, 1, 1, SKIP, NULL_ARM]), max_size=300).map(lambda words: [*words, 0]),
       pulls=st.lists(st.one_of(st.integers(1, 5), st.integers(1, 300)), min_size=1, max_size=300),
       due=st.lists(st.integers(1, 2000), min_size=1, max_size=4, unique=True).map(sorted),
       pause=st.one_of(st.just(inf), st.integers(1, 1000)), rounds=st.integers(1, ROUNDS),
       advance=st.sampled_from(["one", "many"]))
def test_any_script_is_played_round_by_round(words, pulls, due, pause, rounds, advance):
    """Checkpoints are noted at the pull that reaches them, each step is told of the right round and money."""
    status, run, own = played(words, pulls, advance, due, ANY, pause, rounds)
    wanted, noted, asked, learnt = literally(words, pulls if advance == "many" else [1], due, pause, rounds)
    C = run.state.now.checkpoint
    assert status == wanted and C == len(noted)
    assert list(zip(run.record.noted[:C].tolist(), run.record.pulls[:C].tolist(), strict=True)) == noted
    assert own.asked[:own.lines[0]].tolist() == asked and own.learnt[:own.lines[1]].tolist() == learnt


class Typed(cb.Bernoulli):
    """A subclass may sample as it likes: its outcomes are drawn in Python."""


@pytest.mark.parametrize("advance", ["one", "many"])
def test_a_choice_is_not_asked_for_again_where_outcomes_must_be_drawn(advance):
    """Else a random choice would have another law. An arm is left as soon as no outcome of it is at hand."""
    bandit = cb.Bandit([Typed(0.5), cb.Bernoulli(0.5)], [cb.Constant(1.0)] * 2)
    rng = np.random.default_rng(0)
    words, pulls = rng.choice([0, 0, 0, 1, SKIP], ROUNDS), rng.choice([1, 7, 33, 501], ROUNDS)
    status, run, own = played(words, pulls, advance, [1900.0], bandit)
    asked, learnt = own.asked[:own.lines[0], 0], own.learnt[:own.lines[1]]
    assert status == DONE and run.state.arms.n.sum() == 1900 and run.state.arms.n[0] > 3 * 256
    assert (np.diff(asked) > 0).all() and learnt[:, 1].min() > 0
    if advance == "one":
        assert asked.tolist() == list(range(run.state.now.rounds))


class Sums(NamedTuple):
    """What was spent when each round was asked for, and whether the arm's outcomes had just run out."""

    told: np.ndarray        # (ROUNDS,)     as the driver has it
    costs: np.ndarray       # (ROUNDS, 2)   over each arm
    out: np.ndarray         # (ROUNDS + 1,)


@step
def by_turns(t, money, own, arms, limits, rng):
    own.told[t], own.costs[t] = money.spent, arms.cost
    return t % 2, 1


@step
def look_for_more(arm, m, t, own, arms, outcomes, rng):
    own.out[t] = arms.n[arm] == outcomes.filled[arm]


class TypedBeta(cb.Beta):
    """Drawn in Python."""


LAWS = {"counted": cb.Discrete([0.1, 0.7], [0.5, 0.5]), "uncounted": cb.Beta(2, 3), "typed": TypedBeta(2, 3)}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("goes_on, on", [(in_leaf, ""), (if_counted, "counted"), (unless_typed, "counted uncounted")],
                         ids=["in_leaf", "if_counted", "unless_typed"])
def test_the_money_is_added_up_where_the_driver_looks_up(goes_on, on, law):
    """At the ends of leaves, unless the loop goes on: sums over arms and sums of all costs are rounded otherwise."""
    own = Sums(np.zeros(ROUNDS), np.zeros((ROUNDS, 2)), np.zeros(ROUNDS + 1, bool))
    run = Run(Stacks(cb.Bandit([cb.Bernoulli(0.5)] * 2, [LAWS[law]] * 2), 0, 0, range(2), 64), [inf], ROUNDS)
    assert run.play(loop(by_turns, one, look_for_more, goes_on), own, None) == LAST_ROUND
    out, added_up = own.out[:-1], own.told == own.costs.sum(axis=1)
    assert out.sum() > 5 and not added_up[~out].all()
    assert added_up[out].all() == (law not in on.split())


def test_a_run_goes_on_after_a_pause():
    """As if there had been none, from what was spent and noted before."""
    words, due = [0, 1, SKIP, 0], [1.0, 2.75, 5.0]
    _, whole, _ = played(words, due=due)
    status, run, _ = played([*words[:3], PAUSE], due=due, pause=2.5)
    assert (status, run.state.now.rounds, run.state.now.spent) == (NEAR_CEILING, 3, 2.5)
    assert run.play(LOOPS["one"], Script.of(words, [1]), None) == DONE
    assert run.state.now.tolist() == whole.state.now.tolist() == (8, 1, 3, 5.0, 9.0)
    assert all(np.array_equal(*pair) for pair in zip(run.record, whole.record, strict=True))


# --- rules

class Words(NamedTuple):
    """What a rule says, over and over."""

    words: np.ndarray


class Notes(NamedTuple):
    """What it was told after each pull, and how often it was."""

    told: np.ndarray        # (TOLD, 5)     rounds that are over, arm, reward, cost, pulls of the arm
    lines: np.ndarray       # (1,)


@rule
def in_turn(t, spent, arms, told, p, memory, rng):
    return p.words[(t - 1) % p.words.size]


@rule
def noting(t, arm, outcome, arms, told, p, memory, rng):
    i = memory.lines[0]
    memory.told[i, 0], memory.told[i, 1], memory.told[i, 4] = t, arm, arms.n[arm]
    memory.told[i, 2], memory.told[i, 3] = outcome.reward, outcome.cost
    memory.lines[0] = i + 1


class Noting(NamedRule):
    """Says its words, and notes what it is told."""

    rule, learn = staticmethod(in_turn), staticmethod(noting)

    def __init__(self, *words):
        self.p, self.notes = Words(np.array(words)), Notes(np.zeros((TOLD, 5)), np.zeros(1, np.int64))

    def remember(self, problem):
        return self.notes


def by(policy, bandit, stop):
    """A run of a policy by its definition, its arms in the bandit's order; its status and the run."""
    last, (top, *limits) = np.ones(1), stop.limits(bandit)
    run = Run(Stacks(bandit, 0, 0, range(bandit.K), 64), stop.due(last), ROUNDS, top, *limits, stop.ends(last))
    return policy.play(run, Problem.of(bandit, stop, np.arange(bandit.K)), np.random.default_rng(0)), run


MIXED = cb.Bandit([cb.Bernoulli(0.5), Typed(0.5), cb.Beta(1, 2), cb.Constant(0.7)],
                  [cb.Discrete([0.1, 0.7], [0.5, 0.5]), cb.Beta(2, 1), cb.Bernoulli(0.5), Typed(0.3)])


def test_a_rule_learns_of_each_pull_in_its_round():
    """What the pull paid and cost, on both sides of a leaf's border, and where outcomes are drawn in Python."""
    words = [0, 1, SKIP, 2, 3, 3, NULL_ARM, 1]
    policy = Noting(*words)
    status, run = by(policy, MIXED, cb.Horizon(ROUNDS))
    said = np.resize(words, ROUNDS)
    rounds, arms, rewards, costs, n = policy.notes.told[:policy.notes.lines[0]].T
    assert status == DONE and run.state.now.skips == (said == SKIP).sum()
    assert np.array_equal(rounds, np.flatnonzero(said >= 0) + 1) and np.array_equal(arms, said[said >= 0])
    for k in range(MIXED.K):
        many = int(run.state.arms.n[k])
        pairs = run.stacks.pairs(k, many)
        assert many > 300 and np.array_equal(n[arms == k], np.arange(many) + 1)
        assert np.array_equal(np.column_stack([rewards, costs])[arms == k], pairs)


@cb.choose
def says(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return int(params[t - 1])


MAKERS = {"library": Noting, "reader": lambda *words: cb.ChoosePolicy(says, words)}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("word", [END, PAUSE, NOT_NUMBER, NOT_NUMBER - 1, 2, 2**40])
def test_a_rule_may_only_name_an_arm_skip_or_play_the_null_arm(maker, word):
    """The driver's other words are not for it: they would end a run as if nothing were wrong. The library's may end."""
    status, run = by(MAKERS[maker](1, SKIP, NULL_ARM, word), KNOWN, cb.Horizon(9))
    if word == END and maker == "library":
        assert (status, run.state.now.rounds, run.record.noted["skips"].tolist()) == (DONE, 3, [1])
        return
    assert (status, run.state.now.rounds, run.state.now.skips) == (NO_SUCH_ARM, 3, 1)
    assert run.state.arms.n.tolist() == [0, 1]


@pytest.mark.parametrize("maker", MAKERS)
def test_a_rule_is_not_asked_when_no_arm_is_affordable(maker):
    status, run = by(MAKERS[maker](1, 0, SKIP, 0, 0, 9), KNOWN, cb.HardBudget(3.75))
    assert (status, run.state.now.rounds, run.state.now.skips) == (DONE, 5, 1)
    assert run.record.noted["spent"].tolist() == [3.5]
    assert by(MAKERS[maker](1, 0, 1), KNOWN, cb.HardBudget(3.75))[0] == UNAFFORDABLE


class Restless(NamedTuple):
    """What was spent before each choice, bit for bit, and the beat of the driver itself."""

    beat: np.ndarray
    spent: np.ndarray


@step
def ask_and_call(t, money, own, arms, limits, rng):
    """Two arms in turn, and a round skipped now and then; each call changes the beat, if it is the driver's."""
    own.beat[0] += 1
    own.spent[t] = money.spent
    return SKIP if t % 11 == 5 else t % 2, 1


restless = loop(ask_and_call, goes_on=if_counted)


@pytest.mark.parametrize("due", [[90.0], [0.3, 41.7, 41.8, 77.7], [2e9]])
def test_a_driver_that_is_called_back_at_every_step_goes_on_where_it_was(due):
    """So when Python looked decides nothing, not even when a running sum is corrected."""
    def played(calls_back):
        bandit = cb.Bandit([cb.Bernoulli(0.4), cb.Bernoulli(0.7)], [cb.Constant(0.1), cb.Constant(0.037)])
        run = Run(Stacks(bandit, 5, 0, [0, 1]), due, 2000)
        own, calls = Restless(np.zeros(1, np.int64), np.zeros(3000)), 0
        limits = run.limits._replace(beat=own.beat) if calls_back else run.limits
        status = RUNNING
        while status == RUNNING:
            calls += 1
            with np.errstate(over="ignore"):
                status = restless(own, 0, Game(run.outcomes, run.state, run.record, limits))
        return status, own.spent.tobytes(), run.state.now.tolist(), run.record.noted.tobytes(), calls

    *still, once = played(False)
    *called, often = played(True)
    assert still == called and once == 1 and often > 500
