# Triton: a kernel is the code of one program, which computes a tile.
# Import: torch
import torch
import triton
import triton.language as tl

# 1. A tile has a fixed number of elements, a power of two.
TILE = tl.constexpr(4)


# 2. A program finds its tile by its number. Operations are on all 4 elements of a tile.
#    The mask keeps elements past the end from being read and written.
@triton.jit
def vecadd(a, b, c, program, n):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    there = i < n
    tl.store(c + i, tl.load(a + i, there) + tl.load(b + i, there), there)
    tl.store(program + i, tl.program_id(0), there)


# 3. The arrays are tensors of PyTorch in the GPU's memory. The kernel gets addresses.
n = 10
a = torch.arange(n, dtype=torch.float32, device="cuda")
b = torch.full((n,), 0.5, dtype=torch.float32, device="cuda")
c, program = torch.empty_like(a), torch.empty_like(a)
# 4. A grid of 3 programs of 4 elements covers 10: 2 elements too many.
grid = (triton.cdiv(n, TILE.value),)
print("grid", *grid, "tile", TILE.value, "elements", grid[0] * TILE.value)
vecadd[grid](a, b, c, program, n)
# 5. The host copies back, which waits until the kernel has ended.
print("program", *(int(each) for each in program.tolist()))
print("c      ", *c.tolist())
print("as PyTorch adds:", bool((c == a + b).all()))
