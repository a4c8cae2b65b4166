"""The rules and kernels are plain Python too: not compiled they play the identical trajectories."""


import pytest
from pins import my_choice, my_index
from reference import POLICIES, bits, in_plain_python, small_study

import costbandits as cb


def everything():
    mine = {"my index": cb.IndexPolicy(my_index, (0.1,)), "my choice": cb.ChoosePolicy(my_choice, memory=lambda K: 1),
            "my lazy index": cb.IndexPolicy(my_index, (0.1,), monotone=True)}
    return bits(small_study({**POLICIES, **mine}), "pulls", "rounds", "skips", "spent", "reward")


@pytest.mark.slow
def test_compiled_and_plain_python_agree_bit_by_bit():
    assert in_plain_python("test_jit", "m.everything()") == everything()
