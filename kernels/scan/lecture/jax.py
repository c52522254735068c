# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: one operation on a whole array. XLA compiles it for its size: it adds pairs of neighbours, then pairs of their
#   sums, and so on, and goes back the same way.
# Memory: each level of sums is an array, half as long as the one before.
# Edges: none; the array knows its length. Narrow elements are widened before they are added.

import jax.numpy as jnp


def scan(a, c, n):
    return jnp.cumsum(a, dtype=c.dtype)
