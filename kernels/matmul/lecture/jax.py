# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: an expression of whole arrays. XLA compiles it for their sizes, by a library's product on all cores.
# Memory: the library copies blocks of a and b into the cache, and reads them many times from there.
# Edges: none; the arrays know their shapes. `highest` keeps a GPU from rounding float32 to fewer digits before it
#   multiplies. Without a dtype, sums would be as narrow as the inputs.

import jax.numpy as jnp


def matmul(a, b, c, m, n, k):
    return jnp.matmul(a, b, precision="highest", preferred_element_type=c.dtype)
