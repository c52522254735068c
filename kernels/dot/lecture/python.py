# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: plain Python in one thread. The interpreter adds one product after the other.
# Memory: lists of boxed floats, read through pointers.
# Edges: none; the loop ends with the last element, and an empty sum is 0.


def dot(a, b, c, n):
    sum = 0.0
    for i in range(n):
        sum += a[i] * b[i]
    c[0] = sum
