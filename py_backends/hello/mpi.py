# MPI: ranks are processes that share no memory, and send messages.
# Ranks: 4
import os

from mpi4py import MPI

# 1. All ranks run this program. Its number tells a rank what to do.
#    Ranks run at the same time, so the order of their lines may change.
world = MPI.COMM_WORLD
me, ranks = world.rank, world.size
print(f"I am rank {me} of {ranks}, process {os.getpid()}")

# 2. A variable has a value of its own in every rank: no memory is shared.
mine = 10 * (me + 1)
print(f"rank {me}: mine = {mine}")

# 3. The first rank sends a message, and the last one receives it.
if me == 0:
    world.send("hello, last one", dest=ranks - 1)
if me == ranks - 1:
    print(f"rank {me} has received:", world.recv(source=0))

# 4. Together the ranks add what each has. Every rank gets the sum.
total = world.allreduce(mine)
print(f"rank {me}: the sum of all is {total}")
