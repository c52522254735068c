# spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.
import jax
import jax.numpy as jnp


def spmv(values, columns, begins, x, y, m, nonzeros, n):
    rows = jnp.searchsorted(begins, jnp.arange(nonzeros, dtype=begins.dtype), side="right") - 1
    return jax.ops.segment_sum(values * x[columns], rows, m)
