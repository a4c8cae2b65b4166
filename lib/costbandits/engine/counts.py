import numba as nb, numpy as np
from math import sqrt, log, cos, floor
from .keyed import uniform, below
@nb.njit(error_model="numpy")
def _norm(state, mean, var, lo, hi):
    u, v = uniform(state), uniform(state)
    z = sqrt(-2*log(1-u))*cos(6.283185307179586*v)
    return np.int64(min(max(floor(mean + sqrt(var)*z + 0.5), lo), hi))
@nb.njit(error_model="numpy")
def binomial(state, N, p):
    return _norm(state, N*p, N*p*(1-p), 0.0, float(N))
@nb.njit(error_model="numpy")
def hypergeometric(state, total, marked, drawn):
    if marked == 0 or drawn == 0: return np.int64(0)
    f = marked/total
    return _norm(state, drawn*f, drawn*f*(1-f)*(total-drawn)/max(total-1,1), float(max(0, drawn-(total-marked))), float(min(marked, drawn)))
@nb.njit(error_model="numpy")
def scatter(state, counts, values, out):
    i = 0
    for v in range(counts.size):
        for _ in range(counts[v]):
            out[i] = values[v]; i += 1
    for i in range(63):
        j = i + below(state, 64 - i)
        out[i], out[j] = out[j], out[i]
