# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: plain Python in one thread. The interpreter adds one element after the other.
# Memory: lists of boxed floats, read through pointers.
# Edges: none; the loop ends with the last element.


def scan(a, c, n):
    sum = 0.0
    for i in range(n):
        sum += a[i]
        c[i] = sum
