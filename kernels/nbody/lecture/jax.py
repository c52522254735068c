# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: a function of one point, and `map`, which makes one of all points from it. XLA compiles that for the sizes.
# Memory: each operation of the formula has a value for all bodies and 64 points, which stay in a cache.
# Edges: none; the arrays know their lengths, and an empty sum is 0.

import jax.numpy as jnp
from jax import lax


def nbody(at, position, mass, c, m, n):
    def attraction(point):
        d = position - point
        square = jnp.sum(d * d, axis=1) + 2**-10
        weight = mass / (square * jnp.sqrt(square))
        return jnp.sum(weight[:, None] * d, axis=0)

    return lax.map(attraction, at, batch_size=64)
