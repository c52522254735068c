# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: plain Python in one thread. The interpreter adds one element after the other.
# Memory: lists of boxed floats, read through pointers.
# Edges: none; the loop ends with the last element.


def vecadd(a, b, c, n):
    for i in range(n):
        c[i] = a[i] + b[i]
