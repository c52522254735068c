"""layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon), for m x n.

Each step is judged by what rounding does to it, from the first to the last (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd edition, chapters 3 and 4, for sums in any order, fused or not). A root and a quotient may be off by 6u.
"""

import numpy as np

from py_backends.contract import Problem, Reference


class LayerNorm(Problem):
    name, signature, nonzero_sizes = "layer_norm", "(m,n)->(m,n),(m)", ("n",)
    numbers = {"epsilon": 1e-5}
    default_sizes = (2003, 1009, 1e-5)

    @np.errstate(all="ignore")
    def reference(self, x, epsilon):
        limits = np.finfo(x.dtype)
        doubled = 2 if x.dtype == np.float64 else 1
        u, tiny = (doubled * float(each) for each in (limits.eps / 2, limits.smallest_subnormal))
        k = (x.shape[1] + 6) * u
        g = k / (1 - k) if k < 1 else np.inf
        x = x.astype(np.float64)
        apart = x - x.mean(axis=1, keepdims=True)
        size, square = np.abs(apart), (apart**2).mean(axis=1, keepdims=True)
        r = 1 / np.sqrt(square + epsilon)
        # The distances from the mean, and the mean of their squares, which no rounding makes negative.
        of_apart = u * size + (1 + u) * (g * np.abs(x).mean(axis=1, keepdims=True) + tiny)
        of_square = (2 * size * of_apart + of_apart**2 + g * (size + of_apart) ** 2).mean(axis=1, keepdims=True) + tiny
        sums = (np.abs(x) + (size + of_apart) ** 2).sum(axis=1, keepdims=True)
        overflow = ~((1 + g) * sums <= limits.max)
        most = 1 / np.sqrt(np.maximum(square - of_square, 0) + epsilon)
        least = np.where(overflow, 0, 1 / np.sqrt(square + of_square + epsilon))  # a square that overflows gives 0
        of_r = np.maximum(most - r, r - least) + 14 * u * most
        of_r = np.where(np.isfinite(of_r), of_r, np.inf)
        of_y = of_apart * (r + of_r) + size * of_r + 3 * u * (size + of_apart) * (r + of_r) + tiny
        overflow = (overflow | ~np.isfinite(of_r)) & np.isfinite(x).all(axis=1, keepdims=True)
        of_y = np.where(np.isfinite(of_r), of_y, np.inf)
        return (
            Reference(apart * r, of_y, np.broadcast_to(overflow, x.shape)),
            Reference(r[:, 0], of_r[:, 0], overflow[:, 0]),
        )


PROBLEM = LayerNorm()
