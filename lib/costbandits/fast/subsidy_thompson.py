"""Thompson sampling with cost subsidy: the law of its definition, exactly, with few draws.

A round draws a score of every arm from its posterior, and pulls the cheapest arm whose score is at least 1 - alpha
times the largest. The few scores that matter are drawn by "tangent bells" (to our knowledge not published before),
which rest on two facts.

*Tails.* The density f of a score is log-concave. Beyond a level l it lies below the exponential that touches it at l,
f(l) exp(-g (x - l)) with g = -(log f)'(l), whose integral is q = f(l)/g. So with probability q a bell rings, x is l
plus an exponential number of rate g, and it is kept with probability f(x) / (f(l) exp(-g (x - l))): what is kept has
exactly the law of the score beyond l. Else, silent or a false alarm, the score lies on the usual side of l.

*The line.* Each arm has a stretch of a line, of length -log(1 - q) or a little more, and its bell rings if a Poisson
process of rate 1 hits that stretch. The next point is one exponential number away, however many arms it passes over,
and a tree of sums says whose stretch it hits. While nothing changes one passage along the line, which is a round,
follows the other: so the number of rounds without a bell is known at once.

A run is of one of four kinds, chosen anew from time to time with all its levels. The choice decides the speed alone.

* Settled: an arm, the leader, is pulled unless a bell rings. With levels h and l there are bells for: the leader's
  score below (1 - alpha) h; anybody else's above h; a guarantor's below l; that of an arm cheaper than the leader above
  (1 - alpha) l. In silence the leader is good enough and no cheaper arm is. If a bell is true, all other scores are
  drawn given their usual sides. `RACE.bound` bounds the chance of the leader's bell until that arm has lost more than
  `RACE.allowed` rewards, and what rings too often is thinned out. So until round `RACE.bell` only the losses of its
  pulls matter, and whole blocks of them are pulled at once.
* With a crowd: its members are drawn in every round, and the others have bells above 1 - alpha times a level that the
  best member nearly always exceeds; or above that level, if a cheaper member is nearly always good enough.
* Contended: all arms have bells above each of some levels. The largest score is the best above the first level that
  any exceeds. It sets the bar. A second line, of bells above 1 - alpha times that level with the arms in the order of
  their prices, finds the first arm above the bar.
* Each arm is drawn, as the definition says, where that takes less time.
"""

from math import exp, inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np

from ..checks import ROUNDING
from ..engine.driver import FAR, Money, if_counted, inlined, jit, last_outcome, loop, pull_once, step
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.trees import KIND, LEAF, block, skip, total
from ..policies.base import Problem
from ..policies.cost_subsidy import CSTS, cheapest, lowest_price
from . import kernel
from .tails import BAR, LEVELS, LOW, TOP, Scores, arrange, draw, hang, knock, locate, measure, thin, update, vouch

CONTENDED, CROWD, EACH = -1, -2, -3
# State of a run: the leader, or a kind; the rounds that are over when the next bell rings, and its place on the line;
# work since all was chosen. If settled: the bound of the leader's bell, and how much reward may be lost for that to
# hold; the level of cheaper arms; the price that the leader's may not reach, unless it is still `agreed`. With a crowd:
# what the best member must reach, how many there are, and the last leaf of an arm that is pulled without asking others.
RACE = np.dtype([("leader", "i8"), ("bell", "f8"), ("place", "f8"), ("work", "f8"),
                 ("bound", "f8"), ("allowed", "f8"), ("poor", "f8"), ("dearer", "f8"), ("agreed", "f8"),
                 ("least", "f8"), ("members", "i8"), ("sure", "i8")])


class Tuning(NamedTuple):
    """What only speed depends on; the law is exact for all values."""
    loud: float = 0.7       # above this probability a bell is not worth having
    margin: float = 2.0     # a leader is this many standard deviations off every bell
    calm: float = 0.3       # a settled run has no more bells per round
    dispute: float = 5.0    # nor more than this divided by the number of arms
    points: float = 1.0     # a contended run has this times log(2 K) bells above its lowest level
    apart: float = 2.3      # and this many times fewer above the next
    depth: float = 3.0      # a crowd is prepared for scores so many standard deviations off
    faint: float = 0.3      # those outside ring so often at most
    beta: float = 36.0      # what takes how many nanoseconds: a draw from a Beta law,
    normal: float = 6.5     # from a normal law,
    crowd: float = 110.0    # a round with a crowd, beyond its draws,
    contended: float = 700.0    # a contended round
    lazy: float = 300.0     # after so many draws per arm all is chosen anew


USUAL = Tuning()


class Bells(NamedTuple):
    """What the kernel works on."""
    alpha: float
    width: float            # over n it is a squared confidence radius of a cost
    unknown: bool           # costs are not known
    gaussian: bool          # the posteriors are normal laws
    tuning: Tuning
    scores: Scores
    leaf: np.ndarray        # (K,)    of each arm, in the order of the prices
    at_leaf: np.ndarray     # (K,)    the arm of each leaf
    trees: np.ndarray       # (nodes, 2 LEVELS)    the arms' stretches of each line, and their sums
    race: np.record
    member: np.ndarray      # (K,)    the crowd, and behind it those whose bells ring
    draws: np.ndarray       # (K,)    the scores of a round in which each arm is drawn
    whole: bool             # outcomes are counted, and learned without a Bernoulli trial: blocks may be pulled whole

    @classmethod
    def of(cls, alpha: float, width: float, unknown: bool, gaussian: bool, tuning: Tuning, price: np.ndarray,
           whole: bool) -> "Bells":
        """What it works on before the first pull."""
        K, order, race = price.size, np.argsort(price, kind="stable"), new_record(RACE)
        race.leader = EACH
        scores = Scores(*np.zeros((4, K)), price.copy(), np.zeros(K), *np.zeros((3, K, BAR + LEVELS)))
        trees = np.zeros((2 << (K - 1).bit_length(), 2 * LEVELS))
        return cls(alpha, width, unknown, gaussian, tuning, scores, np.argsort(order), order, trees, race,
                   np.zeros(K, np.int64), np.zeros(K), whole)


@step
def before(k, arm, price):
    """Whether k is pulled rather than `arm` if both are good enough."""
    return price[k] < price[arm] or (price[k] == price[arm] and k < arm)


@inlined
def fill_in(low, top, own, rng):
    """The arm of a round, in which the scores not yet drawn lie between the levels of these tails."""
    scores, drawn = own.scores, own.scores.drawn
    for k in range(drawn.size):
        x = drawn[k]
        while x != x:
            y = draw(scores.won[k], scores.pulls[k], own.gaussian, rng)
            x = y if scores.level[k, low] <= y <= scores.level[k, top] else nan
        drawn[k] = x
    own.race.work += drawn.size
    return cheapest(own.alpha, drawn, drawn, scores.price)


@step
def each(own, rng):
    """The arm of a round in which each is drawn."""
    won, pulls, draws, gaussian = own.scores.won, own.scores.pulls, own.draws, own.gaussian
    for k in range(draws.size):
        draws[k] = draw(won[k], pulls[k], gaussian, rng)
    own.race.work += draws.size
    return cheapest(own.alpha, draws, draws, own.scores.price)


@inlined
def unusual(k, own, rng):
    """The score of an arm whose stretch of the first line is hit; nan for a false alarm."""
    scores, race, gaussian = own.scores, own.race, own.gaussian
    tail, low, top = TOP, scores.chance[k, LOW], scores.chance[k, TOP]
    if k == race.leader:
        measure(k, LOW, scores.level[k, LOW], own)
        if not thin(race.bound, rng.random()) or rng.random() * race.bound >= scores.chance[k, LOW]:
            return nan
        tail = LOW
    elif not thin(low + top, rng.random()):
        return nan
    elif low > 0.0 and rng.random() * (low + top) < low:        # pragma: no cover - rare, in long compiled runs
        tail = LOW
    return knock(scores.level[k, tail], scores.chance[k, tail], -inf, scores.won[k], scores.pulls[k], gaussian, rng)


@inlined
def disturbed(own, rng):
    """The arm of a round of a settled run in which a bell rings."""
    drawn, race, length = own.scores.drawn, own.race, own.trees[1, 0]
    place, quiet = race.place, True
    while place < length:
        k, end = locate(0, place, own)
        x = unusual(k, own, rng)
        if x == x:
            if quiet:
                drawn[:] = nan
            quiet, drawn[k] = False, x
        race.work += 1.0
        place = end + rng.standard_exponential()
    return race.leader if quiet else fill_in(LOW, TOP, own, rng)


@inlined
def between(k, tail, least, most, own, rng):
    """The score, given that it is at most `most`, of an arm whose stretch is hit; nan if it is not above `least`."""
    scores, gaussian = own.scores, own.gaussian
    level, chance, won, n = scores.level[k, tail], scores.chance[k, tail], scores.won[k], scores.pulls[k]
    x = knock(level, chance, least, won, n, gaussian, rng)
    if x == x and thin(chance, rng.random()):
        while x > most:
            x = knock(level, chance, least, won, n, gaussian, rng) if rng.random() < chance else nan
        return x
    return nan


@inlined
def contended(own, rng):
    """The arm of a round of a contended run."""
    price, unknown, best, most, ceiling, j = own.scores.price, own.unknown, -1, inf, inf, -1
    while best < 0 and j < LEVELS - 1:          # which arm has the largest score, above which level first
        j, ceiling = j + 1, most
        most, place = own.scores.level[0, TOP + j], rng.standard_exponential()
        while place < own.trees[1, j]:
            k, end = locate(j, place, own)
            x = between(k, TOP + j, most, ceiling, own, rng)
            if x == x:
                best, most = k, x
            own.race.work += 1.0
            place = end + rng.standard_exponential()
    if best < 0:
        own.scores.drawn[:] = nan
        return fill_in(LOW, TOP + j, own, rng)
    bar = (1.0 - own.alpha) * most
    bar -= ROUNDING * bar
    # From here on only (best, most) is known: the other scores lie below `most`.
    arm, ahead, leaf, half = best, rng.standard_exponential(), 0, own.trees.shape[0] // 2
    last = price.size if unknown else own.leaf[best]
    while leaf < last:
        ahead -= own.trees[half + leaf, LEVELS + j]
        if ahead < 0.0:
            k = own.at_leaf[leaf]
            if before(k, arm, price):
                x = between(k, BAR + j, bar, most, own, rng)
                if x == x:
                    arm = k
                    last = last if unknown else 0
            own.race.work += 1.0
            ahead = rng.standard_exponential()
        leaf += 1
    return arm


@inlined
def crowd(t, own, rng):
    """The arm of a round of a run with a crowd."""
    scores, drawn, race, member = own.scores, own.scores.drawn, own.race, own.member
    heard, rang = race.members, t >= race.bell
    for i in range(heard):
        k = member[i]
        drawn[k] = draw(scores.won[k], scores.pulls[k], own.gaussian, rng)
    if rang:
        forget(scores)
        place = race.place
        while place < own.trees[1, 0] and heard < drawn.size:
            k, end = locate(0, place, own)
            drawn[k] = unusual(k, own, rng)
            if drawn[k] == drawn[k]:
                member[heard] = k
                heard += 1
            place = end + rng.standard_exponential()
    race.work += heard
    most, arm = -inf, -1
    for i in range(heard):
        most = max(most, drawn[member[i]])
    bar = (1.0 - own.alpha) * most
    bar -= ROUNDING * abs(bar)
    for i in range(heard):
        k = member[i]
        if drawn[k] >= bar and (arm < 0 or before(k, arm, scores.price)):
            arm = k
    if most >= race.least and arm >= 0 and own.leaf[arm] <= race.sure:
        return arm
    if not rang:
        forget(scores)
    return fill_in(LOW, TOP, own, rng)


@inlined
def forget(scores):
    """Forget the scores of those outside the crowd."""
    for k in range(scores.drawn.size):
        if scores.level[k, TOP] < inf:
            scores.drawn[k] = nan


@jit
def settled(own):
    """Choose a leader and levels; False if no arm is far enough ahead."""
    mean, spread, price, race = own.scores.mean, own.scores.spread, own.scores.price, own.race
    K, part, tuning = mean.size, 1.0 - own.alpha, own.tuning
    leader = cheapest(own.alpha, mean, mean, price)
    guarantor, margin = leader, inf
    for k in range(K):
        if k != leader:
            margin = min(margin, (mean[leader] - part * mean[k]) / (spread[leader] + part * spread[k]))
            if not before(k, leader, price) and (mean[k] - 3.0 * spread[k]
                                                 > mean[guarantor] - 3.0 * spread[guarantor]):
                guarantor = k
    if not margin > tuning.margin:
        return False
    high, least = -inf, inf
    for k in range(K):
        if k != leader:
            high = max(high, mean[k] + margin * spread[k])
            if before(k, leader, price):
                least = min(least, (part * mean[guarantor] - mean[k]) / (spread[k] + part * spread[guarantor]))
    low = mean[guarantor] - least * spread[guarantor]
    enough = part * high
    if not least > tuning.margin or (K > 1 and not enough > 0.0) or (least < inf and not low > 0.0):
        return False
    race.leader, race.agreed, race.dearer = leader, price[leader], inf
    race.poor = part * low * (1.0 - 2.0 * ROUNDING)
    for k in range(K):
        top, below = high, low if k == guarantor and least < inf else -inf
        if k == leader:
            top, below = inf, max(enough, below) if K > 1 else -inf
        elif before(k, leader, price):
            top = min(high, race.poor)
        else:
            race.dearer = min(race.dearer, price[k])
        arrange(k, below, top, own)
    vouch(own)
    return own.trees[1, 0] <= min(tuning.calm, tuning.dispute / K)


@jit
def common_level(points, gaussian, scores):
    """A level that so many scores exceed on average, as far as they are normal, had each a Poisson number of them."""
    mean, spread = scores.mean, scores.spread
    low, high, enough = inf, -inf, exp(points)
    for k in range(mean.size):
        low = min(low, mean[k] - 3.0 * spread[k])
        high = max(high, mean[k] + 6.0 * spread[k])
    high = high if gaussian else min(high, 1.0)
    for _ in range(12):
        level, product = 0.5 * (low + high), 1.0
        for k in range(mean.size):
            z = max((level - mean[k]) / spread[k], -6.0)
            if z < 6.0:
                product *= 1.0 + exp(-z * (1.5976 + 0.07056 * z * z))           # about 1/P(score < level)
            if product > enough:
                break
        low, high = (level, high) if product > enough else (low, level)
    return high


@jit
def summon(own):
    """Choose who is drawn in every round, and the levels of all others."""
    mean, spread, race, depth = own.scores.mean, own.scores.spread, own.race, own.tuning.depth
    K, part, high = mean.size, 1.0 - own.alpha, -inf
    race.least, race.members, race.sure = -inf, 0, K
    for k in range(K):
        race.least = max(race.least, mean[k] - depth * spread[k])
        high = max(high, mean[k] + depth * spread[k])
    # The first arm, by price, that is nearly always good enough; prices that are not known change places.
    for leaf in range(K - 1, -1, -1):
        k = own.at_leaf[leaf]
        if mean[k] - depth * spread[k] >= part * high and not own.unknown:
            race.sure = leaf
    for k in range(K):
        level = race.least if own.leaf[k] > race.sure else part * race.least * (1.0 - 2.0 * ROUNDING)
        arrange(k, -inf, level if race.least > 0.0 else inf, own)
        if not race.least > 0.0 or own.scores.chance[k, TOP] > own.tuning.faint:
            arrange(k, -inf, inf, own)
            own.member[race.members] = k
            race.members += 1


@jit
def contend(own):
    """Choose levels for a contended run; False if there are none."""
    scores, tuning, gaussian = own.scores, own.tuning, own.gaussian
    K, part = scores.won.size, (1.0 - own.alpha) * (1.0 - 2.0 * ROUNDING)
    for j in range(LEVELS):
        level = common_level(tuning.points * log(2.0 * K) * tuning.apart**(j + 1 - LEVELS), gaussian, scores)
        if not 0.0 < level < (inf if gaussian else 1.0):
            return False
        for k in range(K):
            measure(k, TOP + j, level, own)
            measure(k, BAR + j, part * level, own)
    for k in range(K):
        measure(k, LOW, -inf, own)
        hang(k, own)
    return True


@jit
def refresh(own):
    """Choose what kind the run is of, and all levels, from the posteriors."""
    tuning, race, scores, K = own.tuning, own.race, own.scores, own.scores.won.size
    for k in range(K):
        won, n = scores.won[k], scores.pulls[k]
        mean = won / n if own.gaussian else (won + 1.0) / (n + 2.0)
        scores.mean[k] = mean
        scores.spread[k] = 1.0 / sqrt(n) if own.gaussian else sqrt(mean * (1.0 - mean) / (n + 3.0))
    if not settled(own):
        summon(own)
        one = tuning.normal if own.gaussian else tuning.beta
        cost = min(one * K, one * race.members + tuning.crowd)
        race.leader, race.bell = EACH if cost == one * K else CROWD, 0.0
        # Where prices change places, the line cannot be left at the first arm.
        if cost > tuning.contended * (2.0 if own.unknown else 1.0):
            if contend(own):
                race.leader = CONTENDED
            else:
                summon(own)         # some of whose levels may have been replaced
    race.work = 0.0


@inlined
def wind(t, length, race, rng):
    """When the next bell rings of a run that is settled or has a crowd, and where on the line."""
    far = rng.standard_exponential()
    rounds = np.floor(far / length) if length > 0.0 else inf
    race.bell, race.place = t + rounds, far - rounds * length if rounds < inf else 0.0


@step
def holds(arm, own):
    """Whether what was assumed of the leader still holds after its pull."""
    scores, race, price = own.scores, own.race, own.scores.price[arm]
    return race.leader < 0 or (scores.pulls[arm] - scores.won[arm] <= race.allowed
                               and (not own.unknown or price < race.dearer or price == race.agreed))


@inlined
def spared(arm, own):
    """Whether a rival that has become cheaper, if costs are unknown, may keep its level."""
    scores, race = own.scores, own.race
    if race.leader < 0 or scores.level[arm, TOP] <= race.poor:
        return True
    race.dearer = min(race.dearer, scores.price[arm])
    return not before(arm, race.leader, scores.price)


@step
def silent(t, arm, own):
    """Whether round t + 1, in which the arm was pulled, left all levels and bells as they were."""
    race, K = own.race, own.scores.won.size
    if race.leader >= 0:
        return t < race.bell and holds(arm, own)
    calm = race.work < own.tuning.lazy * K
    if race.leader == EACH:
        return calm and t >= K
    return calm and race.leader == CROWD and K < t < race.bell and own.scores.level[arm, TOP] == inf


@step
def choose(t, money, own, arms, limits, rng):
    """The leader, for all rounds until a bell rings; else the arm of this round, as the run's kind has it."""
    race, m = own.race, 1
    if race.leader >= 0 and t < race.bell:
        arm = race.leader
        m = min(np.int64(min(race.bell, 2.0 * FAR)), limits.last_round) - t
    elif t < arms.n.size:
        arm = t
    elif race.leader == EACH:
        arm = each(own, rng)
    elif race.leader == CONTENDED:
        arm = contended(own, rng)
    elif race.leader == CROWD:
        arm = crowd(t, own, rng)
    else:
        arm = disturbed(own, rng)
    return arm, m


@step
def advance(arm, m, t, money, own, arms, outcomes, rng):
    """Pull the leader's next block, of up to m silent rounds, if what was assumed of it holds throughout; else once."""
    scores, race, i, done, price, reward, cost = own.scores, own.race, arms.n[arm], 0, -inf, 0.0, 0.0
    size = m if own.whole and i == outcomes.filled[arm] else 0
    while size >= LEAF and done == 0:
        size = block(arm, i, size, outcomes)
        reward, cost = total(arm, 0, outcomes), total(arm, 1, outcomes)
        lost = scores.pulls[arm] - scores.won[arm] + (size - reward)        # losses only grow
        if own.unknown:         # the price is highest if all costs come first
            price = (arms.cost[arm] + cost) / i * (1.0 + ROUNDING) - sqrt(own.width / (i + size))
        if lost <= race.allowed * (1.0 - ROUNDING) and price < race.dearer:
            skip(arm, arms, outcomes)
            scores.won[arm] += reward
            done = size
        size >>= 1
    if done == 0:
        reward, cost = pull_once(arm, arms, outcomes)
    return Money(money.spent + cost, money.collected + reward, money.due), max(done, 1)


@step
def learn(arm, m, t, own, arms, outcomes, rng):
    """The posterior learns the reward, and unless the round was silent the levels and the next bell follow."""
    scores, race, K, x, n = own.scores, own.race, arms.n.size, 0.0, arms.n[arm]
    if m == 1:
        x = last_outcome(arm, arms, outcomes).reward
        if not (own.gaussian or own.whole or x == 0.0 or x == 1.0):
            x = 1.0 * (rng.random() < x)            # a fractional reward becomes a trial
        scores.won[arm] += x
    # At the end of a leaf the sum is that of counts, however it was cut into blocks.
    if own.gaussian and n == outcomes.filled[arm]:
        scores.won[arm] = arms.reward[arm]
    scores.pulls[arm] += m
    if own.unknown:
        scores.price[arm] = lowest_price(arm, arms, own.width)
    if silent(t - m, arm, own):
        return
    if t > K and arm != race.leader and race.leader != EACH and scores.level[arm, TOP] < inf:
        update(arm, x, own)
        if race.leader != CONTENDED and (scores.chance[arm, TOP] + scores.chance[arm, LOW] > own.tuning.loud
                                         or not spared(arm, own)):
            race.work = inf
    elif t > K and not holds(arm, own):
        if scores.pulls[arm] - scores.won[arm] > race.allowed:
            vouch(own)
        race.work = inf if race.bound >= 1.0 or not holds(arm, own) else race.work
    if t == K or race.work >= own.tuning.lazy * K:
        refresh(own)
    if race.leader == CROWD or race.leader >= 0:
        wind(t, own.trees[1, 0], race, rng)


bells = loop(choose, advance, learn, if_counted)


@kernel(CSTS, same="law", when=lambda policy: not policy.naive)
def play(policy: CSTS, run: Run, problem: Problem, rng: np.random.Generator, tuning: Tuning = USUAL) -> int:
    """While one arm is far enough ahead its pulls are made many at a time, and hardly any score is drawn."""
    gaussian, unknown = policy.posterior == "gaussian", policy.costs == "unknown"
    price = np.zeros(problem.K) if unknown else problem.cost_means
    trees, laws = run.outcomes.trees, run.outcomes.laws
    trials = any(x not in (0.0, 1.0) for k, often in enumerate(trees[:, KIND]) for x in laws[k, 0, :max(often, 0)])
    whole = bool((trees[:, KIND:KIND + 2] > 0).all() and (gaussian or not trials))
    own = Bells.of(float(policy.alpha), 2.0 * log(problem.horizon), unknown, gaussian, tuning, price, whole)
    return run.play(bells, own, rng)
