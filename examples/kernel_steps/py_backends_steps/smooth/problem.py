"""smooth: u[i]/2 + (u[i-1] + u[i+1])/4, `steps` times; the ends stay. Four roundings a step, g = 4u / (1 - 4u), and
three subnormals of underflow. An error spreads as u itself does (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd edition, section 4.2)."""

import numpy as np

from py_backends.contract import Problem, Reference


def step(u):
    return np.concatenate([u[:1], u[1:-1] / 2 + (u[:-2] + u[2:]) / 4, u[max(1, u.size - 1) :]])


class Smooth(Problem):
    name, signature, inputs, numbers = "smooth", "(n)->(n)", ("u",), {"steps": 1}
    rule, rate, in_place, default_sizes = "componentwise", "gflops", False, (1_000_003, 8)

    @np.errstate(all="ignore")
    def reference(self, inputs, steps):
        u, numbers = inputs[0].astype(np.float64), np.finfo(inputs[0].dtype)
        g = 2 * float(numbers.eps) / (1 - 2 * float(numbers.eps))  # eps is 2u
        error, infinite = np.zeros(u.shape), np.zeros(u.shape)
        for _ in range(steps):
            most = np.where(np.isfinite(u), 4 * abs(u), 0)  # an infinity that is given excuses nothing
            infinite = step(infinite) + (step(most) > float(numbers.max))
            error = (1 + g) * step(error) + g * step(abs(u)) + 3 * float(numbers.smallest_subnormal)
            u = step(u)
        return Reference(u, 2 * error, infinite > 0)  # a reference in float64 errs as much

    def flops(self, sizes):
        n, steps = sizes
        return 4 * max(0, n - 2) * steps


PROBLEM = Smooth()
