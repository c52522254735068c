"""axpy: z = alpha x + y for vectors of n elements."""

from py_backends.contract import Problem


class Axpy(Problem):
    name, signature, in_place = "axpy", "(n),(n)->(n)", True
    numbers = {"alpha": 2.5}

    @staticmethod
    def function(x, y, alpha):
        return alpha * x + y


PROBLEM = Axpy()
