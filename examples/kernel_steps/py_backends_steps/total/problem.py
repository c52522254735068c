"""total: the sum of a vector's elements, in any order: within n u / (1 - n u) times that of their magnitudes (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2)."""

import numpy as np

from py_backends.contract import Problem, Reference


class Total(Problem):
    name, signature, inputs = "total", "(n)->()", ("u",)
    rule, rate, in_place, default_sizes = "componentwise", "gbytes_per_second", False, (2_000_003,)

    @np.errstate(all="ignore")
    def reference(self, inputs):
        u, numbers = inputs[0].astype(np.float64), np.finfo(inputs[0].dtype)
        g, magnitude = u.size * float(numbers.eps), np.abs(u).sum()  # twice n u, for the reference errs too
        overflow = np.isfinite(magnitude) & ((1 + g) * magnitude > float(numbers.max))
        return Reference(np.array(u.sum()), np.array(g * magnitude), np.array(overflow))

    def flops(self, sizes):
        return sizes[0]


PROBLEM = Total()
