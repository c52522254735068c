# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: an expression of whole arrays. XLA compiles one loop for all of it: no array of the products is stored.
# Memory: reads a and b once, in order.
# Edges: none; the arrays know their lengths, and an empty sum is 0. Narrow elements are widened before they are
#   multiplied.

import jax.numpy as jnp


def dot(a, b, c, n):
    return jnp.sum(a.astype(c.dtype) * b.astype(c.dtype), dtype=c.dtype)
