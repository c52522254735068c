"""layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon), for m x n."""

import numpy as np

from py_backends.contract import Problem


class LayerNorm(Problem):
    name, signature, nonzero_sizes = "layer_norm", "(m,n)->(m,n),(m)", ("n",)
    numbers = {"epsilon": 1e-5}
    default_sizes = (2003, 1009, 1e-5)

    @staticmethod
    def function(x, epsilon):
        apart = x - x.mean(axis=1, keepdims=True)
        r = 1 / np.sqrt((apart**2).mean(axis=1, keepdims=True) + epsilon)
        return apart * r, r[:, 0]


PROBLEM = LayerNorm()
