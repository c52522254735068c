# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: an expression of whole arrays. `at` names elements to add to. Several of them may be the same one, and all are
#   added. How they wait for one another is the compiler's matter.
# Memory: reads a once, in order. An array of the bins may be stored.
# Edges: what lies outside of [0, 1), NaN too, gets the index 256, past the counters, which `drop` leaves out.

import jax.numpy as jnp


def histogram(a, c, n):
    if a.dtype == jnp.int8:
        bins = a.astype(c.dtype) + 128
    else:
        bins = jnp.where((a >= 0) & (a < 1), 256 * a, 256).astype(c.dtype)
    return jnp.zeros(256, c.dtype).at[bins].add(1, mode="drop")
