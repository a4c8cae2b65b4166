"""How it is played: stacks of outcomes, pull loops, stop rules, and what Numba needs."""
