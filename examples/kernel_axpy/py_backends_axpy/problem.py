"""axpy: z = alpha x + y for vectors of n elements, each within g (|alpha x| + |y|), g = 2u / (1 - 2u), fused or not
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, lemma 3.1), and two subnormals of underflow."""

import numpy as np

from py_backends.contract import Problem, Reference


class Axpy(Problem):
    name, signature, inputs = "axpy", "(1),(n),(n)->(n)", ("alpha", "x", "y")
    rule, rate, in_place, default_sizes = "componentwise", "gbytes_per_second", True, (2_000_003,)

    @np.errstate(all="ignore")
    def reference(self, inputs):
        alpha, x, y = (array.astype(np.float64) for array in inputs)
        numbers, magnitude = np.finfo(inputs[0].dtype), np.abs(alpha * x) + np.abs(y)
        g = float(numbers.eps) / (1 - float(numbers.eps))  # eps is 2u
        bound = g * magnitude * (2 if inputs[0].dtype == np.float64 else 1)  # a reference in float64 errs as much
        overflow = np.isfinite(alpha) & np.isfinite(x) & np.isfinite(y) & ~((1 + g) * magnitude <= numbers.max)
        return Reference(alpha * x + y, bound + 2 * float(numbers.smallest_subnormal), overflow)

    def flops(self, sizes):
        return 2 * sizes[0]


PROBLEM = Axpy()
