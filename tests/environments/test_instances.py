"""Random instances: ranges, laws, validation, and that they travel to other processes."""

import pickle

import numpy as np
import pytest
from scipy import stats

import costbandits as cb
from costbandits import Bernoulli, Beta, Discrete
from costbandits.environments import ads, instances

STANDIN = ads.settings(standin=True)
MAKERS = {"bernoulli": instances.bernoulli(7), "generalized": instances.generalized_bernoulli(7),
          "beta": instances.beta(7), "ads, bernoulli": instances.ads(STANDIN[0]),
          "ads, beta": instances.ads(STANDIN[0], kind="beta")}
# Each test of a law rejects a right one with this probability; the seeds are fixed.
ERROR = 1e-6


def rng(seed=0):
    return np.random.default_rng(seed)


def uniform(values, low, high):
    return stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > ERROR


@pytest.mark.parametrize("name", MAKERS)
class TestEveryFamily:
    def test_a_function_of_the_generator(self, name):
        make = MAKERS[name]
        for seed in range(20):
            bandit = make(rng(seed))
            assert isinstance(bandit, cb.Bandit) and bandit.K == 7
            assert repr(bandit) == repr(make(rng(seed)))
            assert (bandit.reward_means > 0).all() and (bandit.cost_means > 0).all()
        assert (repr(make(rng(0))) == repr(make(rng(1)))) == (name == "ads, bernoulli")

    def test_pickle(self, name):
        make = pickle.loads(pickle.dumps(MAKERS[name]))
        assert repr(make(rng(3))) == repr(MAKERS[name](rng(3)))


class TestBernoulli:
    def test_laws(self):
        bandit = instances.bernoulli(4000)(rng(1))
        assert all(type(law) is Bernoulli for law in bandit.rewards + bandit.costs)
        assert uniform(bandit.reward_means, 0, 1) and uniform(bandit.cost_means, 0.01, 1)
        assert bandit.cost_means.min() >= 0.01

    def test_cost_low(self):
        # 20,000 costs are all above 0.01 with probability 0.99 ** 20000 < 1e-87 unless they are kept there
        assert instances.bernoulli(20_000)(rng(2)).cost_means.min() >= 0.01
        assert instances.bernoulli(20_000, cost_low=0)(rng(2)).cost_means.min() < 0.01
        assert uniform(instances.bernoulli(4000, cost_low=0.5)(rng(3)).cost_means, 0.5, 1)
        assert instances.bernoulli(3, cost_low=1)(rng(4)).cost_means.tolist() == [1, 1, 1]

    @pytest.mark.parametrize("cost_low", [-0.1, 1.1, float("nan"), "0", None])
    def test_bad_cost_low(self, cost_low):
        with pytest.raises(ValueError, match=r"cost_low = .*\[0, 1\]"):
            instances.bernoulli(3, cost_low=cost_low)


class TestGeneralizedBernoulli:
    def test_laws(self):
        bandit = instances.generalized_bernoulli(1500)(rng(5))
        for laws in (bandit.rewards, bandit.costs):
            assert all(type(law) is Discrete and law.values == (0, 0.25, 0.5, 0.75, 1) for law in laws)
            weights = np.array([law.probabilities for law in laws])
            assert (weights >= 0).all() and np.allclose(weights.sum(axis=1), 1)
            # The ratio of two of the uniform weights survives normalisation; it is below x <= 1 with probability x / 2.
            ratios = weights[:, 0] / weights[:, 4]
            assert stats.kstest(ratios, lambda x: np.where(x <= 1, x / 2, 1 - 0.5 / np.maximum(x, 1))).pvalue > ERROR
        means = np.concatenate([bandit.reward_means, bandit.cost_means])
        # Hoeffding: the average of 3,000 means is off by this much with probability below ERROR
        assert abs(means.mean() - 0.5) < np.sqrt(np.log(2 / ERROR) / (2 * len(means)))
        assert means[0] == pytest.approx(np.dot(bandit.rewards[0].probabilities, [0, 0.25, 0.5, 0.75, 1]))

    def test_values(self):
        bandit = instances.generalized_bernoulli(3, values=(1, 2))(rng())
        assert all(law.values == (1, 2) for law in bandit.rewards + bandit.costs)
        with pytest.raises(ValueError, match="values = "):
            instances.generalized_bernoulli(3, values=(1,))


class TestBeta:
    def test_laws(self):
        bandit = instances.beta(2000)(rng(6))
        for laws in (bandit.rewards, bandit.costs):
            assert all(type(law) is Beta for law in laws)
            assert uniform([law.a for law in laws], 0, 5) and uniform([law.b for law in laws], 0, 5)

    def test_range(self):
        bandit = instances.beta(2000, low=1, high=2)(rng(7))
        assert uniform([law.b for law in bandit.costs], 1, 2)

    @pytest.mark.parametrize("bad", [{"low": -1}, {"high": 0}, {"low": 5}, {"low": 2, "high": 1}, {"high": np.inf}])
    def test_bad_range(self, bad):
        with pytest.raises(ValueError, match="must be"):
            instances.beta(3, **bad)


@pytest.mark.parametrize("make", [instances.bernoulli, instances.generalized_bernoulli, instances.beta])
@pytest.mark.parametrize("K", [0, -1, 2.0, "2", None, True])
def test_bad_K(make, K):
    with pytest.raises(ValueError, match=r"K = .*whole number"):
        make(K)


class TestAds:
    @pytest.mark.parametrize("kind", ["bernoulli", "beta"])
    def test_means_are_the_settings(self, kind):
        for setting in STANDIN:
            bandit = instances.ads(setting, kind=kind)(rng(8))
            np.testing.assert_allclose(bandit.reward_means, setting.reward_means, rtol=1e-13)
            np.testing.assert_allclose(bandit.cost_means, setting.cost_means, rtol=1e-13)
            family = {"bernoulli": Bernoulli, "beta": Beta}[kind]
            assert all(type(law) is family for law in bandit.rewards + bandit.costs)

    def test_known_answer(self):
        # mean 1/4 keeps beta and takes alpha = beta / 3; mean 3/4 keeps alpha and takes beta = alpha / 3
        setting = ads.Setting("x", [0.25, 0.75, 0.5], [0.75, 0.25, 0.5])
        (reward_a, reward_b), (cost_a, cost_b) = 5 * (1 - rng(9).random((2, 2, 3)))
        bandit = instances.ads(setting, kind="beta")(rng(9))
        pairs = [(law.a, law.b) for law in bandit.rewards + bandit.costs]
        expected = [(reward_b[0] / 3, reward_b[0]), (reward_a[1], reward_a[1] / 3), (reward_b[2], reward_b[2]),
                    (cost_a[0], cost_a[0] / 3), (cost_b[1] / 3, cost_b[1]), (cost_b[2], cost_b[2])]
        np.testing.assert_allclose(pairs, expected)

    def test_free_parameter_is_uniform(self):
        make = instances.ads(STANDIN[15], kind="beta")
        laws = [law for seed in range(20) for law in make(rng(100 + seed)).rewards]
        assert uniform([max(law.a, law.b) for law in laws], 0, 5)

    def test_draws_run(self):
        bandit = instances.ads(STANDIN[6], kind="beta")(rng(10))
        for law in bandit.rewards + bandit.costs:
            values = law.sample(rng(11), 1000)
            assert ((values >= 0) & (values <= 1)).all()
            # Hoeffding, each of six laws
            assert abs(values.mean() - law.mean) < np.sqrt(np.log(2 / ERROR) / 2000)

    def test_position(self, ads_file, monkeypatch):
        monkeypatch.setenv(ads.VARIABLE, str(ads_file))
        for position in (0, np.int64(18)):
            bandit = instances.ads(position)(rng())
            assert np.array_equal(bandit.cost_means, ads.settings()[position].cost_means)

    def test_position_without_file(self, monkeypatch, tmp_path):
        monkeypatch.setenv(ads.VARIABLE, str(tmp_path / "none.csv"))
        with pytest.raises(FileNotFoundError, match="standin=True"):
            instances.ads(0)

    @pytest.mark.parametrize("setting", [-1, 19, 1.0, True, "936_35-39_F", None, STANDIN])
    def test_bad_setting(self, setting):
        with pytest.raises(ValueError, match=r"setting = .*ads.settings.*0 to 18"):
            instances.ads(setting)

    @pytest.mark.parametrize("kind", ["Beta", None, [], "FB-Bt"])
    def test_bad_kind(self, kind):
        with pytest.raises(ValueError, match=r"kind = .*bernoulli.*beta"):
            instances.ads(STANDIN[0], kind)


class TestKnapsack:
    """Known costs, truncated normal rewards (Tran-Thanh et al., section 5)."""

    def test_laws(self):
        bandit = cb.instances.knapsack(400, 5, 10)(np.random.default_rng(0))
        assert all(isinstance(law, cb.Constant) for law in bandit.costs)
        assert bandit.cost_means.min() >= 5 and bandit.cost_means.max() <= 10 and np.ptp(bandit.cost_means) > 4.8
        means = bandit.reward_means
        assert means.min() >= 10 and means.max() <= 20 and np.ptp(means) > 9.6
        for law, mean in zip(bandit.rewards, means, strict=True):
            assert law.support == pytest.approx((0, 2 * mean)) and law.variance == pytest.approx(mean / 2, rel=2e-4)

    @pytest.mark.parametrize("costs", [(0, 5), (5, 5), (6, 5), (1, float("inf")), (-1, 2)])
    def test_bad_range(self, costs):
        with pytest.raises(ValueError, match="cost_"):
            cb.instances.knapsack(3, *costs)


class TestLinear:
    """Linear arms with uniform parameters."""

    def test_means(self):
        vertices = [[0.2, 0.1], [0.5, 0.5], [0.1, 0.7]]
        for seed in range(50):
            bandit = cb.instances.linear(vertices, low=0.3)(np.random.default_rng(seed))
            # The largest coordinate sum is 1, so both vectors have coordinates in (0.3, 1).
            for means in (bandit.reward_means, bandit.cost_means):
                parameter = np.linalg.lstsq(np.array(vertices), means, rcond=None)[0]
                assert np.allclose(vertices @ parameter, means) and 0.3 < parameter.min() < parameter.max() < 1

    @pytest.mark.parametrize(("arguments", "what"), [
        (([1.0, 2.0],), "vertices"), (([[0.0, 0.0]],), "vertices"), (([[-1.0, 2.0]],), "vertices"),
        (([[np.nan, 2.0]],), "vertices"), (([[1.0]], 0), "low"), (([[1.0]], 1), "low"),
        (([[1.0]], 0.1, 0), "noise_sd")])
    def test_bad_input(self, arguments, what):
        with pytest.raises(ValueError, match=f"^{what}"):
            cb.instances.linear(*arguments)
