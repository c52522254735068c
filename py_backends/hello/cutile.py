# cuTile: a kernel is the code of one block, which computes a tile.
import cuda.tile as ct
import cupy as cp
import numpy as np

# 1. A tile has a fixed number of elements, a power of two.
TILE = 4


# 2. A block finds its tile by its number. Operations are on all 4 elements of a tile.
#    What lies past the end of an array is not stored.
@ct.kernel
def vecadd(a, b, c, block):
    i = ct.bid(0)
    ct.store(c, (i,), ct.load(a, (i,), (TILE,)) + ct.load(b, (i,), (TILE,)))
    ct.store(block, (i,), ct.full((TILE,), i, ct.int32))


# 3. The host copies the inputs to the GPU's memory, and asks for room there.
n = 10
on_host = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
a, b = (cp.asarray(each) for each in on_host)
c, block = cp.empty(n, np.float32), cp.empty(n, np.int32)
# 4. A grid of 3 blocks of 4 elements covers 10: 2 elements too many.
grid = (n + TILE - 1) // TILE
print("grid", grid, "tile", TILE, "elements", grid * TILE)
ct.launch(cp.cuda.get_current_stream(), (grid, 1, 1), vecadd, (a, b, c, block))
# 5. The host copies back, which waits until the kernel has ended.
print("block", *block.get())
print("c    ", *c.get())
print("as NumPy adds:", np.array_equal(c.get(), sum(on_host)))
