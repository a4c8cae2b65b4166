"""The rules and kernels are plain Python too: not compiled they play the identical trajectories."""


import pytest
from reference import POLICIES, bits, in_plain_python, small_study

import costbandits as cb


@cb.index
def my_index(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + params[0] * (t / n) ** 0.5


@cb.choose
def my_choice(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    memory[0] += rng.normal()
    return -1 if memory[0] > 2.0 * t**0.5 else int(rng.integers(0, len(n)))


def everything():
    mine = {"my index": cb.IndexPolicy(my_index, (0.1,)), "my choice": cb.ChoosePolicy(my_choice, memory=lambda K: 1),
            "my lazy index": cb.IndexPolicy(my_index, (0.1,), monotone=True)}
    return bits(small_study({**POLICIES, **mine}), "pulls", "rounds", "skips", "spent", "reward")


@pytest.mark.slow
def test_compiled_and_plain_python_agree_bit_by_bit():
    assert in_plain_python("test_jit", "m.everything()") == everything()
