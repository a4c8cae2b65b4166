"""Each paper's theorems as functions that return the numbers they promise; one module per paper."""

from . import kube, omega_ucb

__all__ = ["kube", "omega_ucb"]
