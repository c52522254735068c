# JAX: a function of arrays becomes a program, which XLA compiles for their sizes.
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

# 1. An array lies on a device, here on the first CPU.
device = jax.devices("cpu")[0]
b = jax.device_put(np.full(10, 0.5, np.float32), device)
print(b.dtype, b.shape, "on", device)
# 2. Arrays never change. What looks like a change makes another array.
a = jnp.arange(10, dtype=jnp.float32)
print("a[0] was", a[0], "and is", a.at[0].set(100)[0], "in the other array")


# 3. A function of whole arrays. Nothing runs yet.
@partial(jax.jit, donate_argnums=2, keep_unused=True)
def vecadd(a, b, c):
    print("vecadd is written down for", c.shape)
    return a + b


# 4. It is run once with stand-ins of arrays. That writes down the program that XLA gets.
print(vecadd.trace(a, b, a).jaxpr)
# 5. The first call compiles it. A call may return before its result is there.
c = jnp.zeros_like(a)
result = vecadd(a, b, c).block_until_ready()
print("c     ", *np.asarray(result))
print("as NumPy adds:", np.array_equal(result, np.asarray(a) + np.asarray(b)))
# 6. c was given away (`donate`), so that the result could have its memory.
print("c is there:", not c.is_deleted())
# 7. For other sizes it is written down and compiled again, for the same ones it is not.
vecadd(a[:4], b[:4], a[4:8])
vecadd(a[4:8], b[4:8], b[:4])
