# total: the sum of a vector's elements, in one call.
import numpy as np


def total(u, c, n):
    np.sum(u, out=c)
