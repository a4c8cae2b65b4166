import numba as nb
from .keyed import uniform
@nb.njit(error_model="numpy")
def beta(state, a, b, out):
    for i in range(out.size): out[i] = uniform(state)
@nb.njit(error_model="numpy")
def truncated_normal(state, mean, sd, low, high, start, end, side, out):
    for i in range(out.size): out[i] = low + (high-low)*uniform(state)
