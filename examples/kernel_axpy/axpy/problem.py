"""axpy: z = alpha x + y for vectors of n elements, each within g (|alpha x| + |y|), g = 2u / (1 - 2u), fused or not
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, lemma 3.1), and two subnormals of underflow."""

import numpy as np

from py_backends.contract import Problem, Reference


class Axpy(Problem):
    name, signature, in_place = "axpy", "(n),(n)->(n)", True
    numbers = {"alpha": 2.5}

    @np.errstate(all="ignore")
    def reference(self, x, y, alpha):
        limits = np.finfo(x.dtype)
        g = float(limits.eps) / (1 - float(limits.eps)) * (2 if x.dtype == np.float64 else 1)  # eps is 2u
        x, y = (array.astype(np.float64) for array in (x, y))
        product, added = np.abs(alpha * x), np.where(np.isfinite(y), np.abs(y), 0)
        overflow = np.isfinite(x) & ~((1 + g) * (product + added) <= limits.max)
        bound = g * (product + np.abs(y)) + 2 * float(limits.smallest_subnormal)
        return Reference(alpha * x + y, bound, overflow)


PROBLEM = Axpy()
