# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: plain Python in one thread: two loops, as in the definition. The interpreter adds one term after the other.
# Memory: lists of boxed floats, read through pointers.
# Edges: none; the loops end with the last body and point, and an empty sum is 0.


def nbody(at, position, mass, c, m, n):
    for i in range(m):
        sum_x = sum_y = sum_z = 0.0
        for j in range(n):
            x, y, z = (position[3 * j + axis] - at[3 * i + axis] for axis in range(3))
            square = x * x + y * y + z * z + 2**-10
            weight = mass[j] / (square * square**0.5)
            sum_x += weight * x
            sum_y += weight * y
            sum_z += weight * z
        c[3 * i : 3 * i + 3] = sum_x, sum_y, sum_z
