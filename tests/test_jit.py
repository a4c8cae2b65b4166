"""The rules and kernels are plain Python too: not compiled they play the identical trajectories."""

import json
import os
import subprocess
import sys
from pathlib import Path

from reference import POLICIES, bits, small_study

import costbandits as cb

HERE = Path(__file__).parent


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


def test_compiled_and_plain_python_agree_bit_by_bit():
    code = "import json, test_jit as t; print(json.dumps([hasattr(t.my_index, 'py_func'), t.everything()]))"
    plain = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], cwd=HERE, check=True, text=True,
                           capture_output=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
    assert hasattr(my_index, "py_func")
    assert json.loads(plain.stdout) == [False, everything()]
