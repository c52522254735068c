# vecadd: c[i] = a[i] + b[i] for n elements.
# Model: none; the interpreter takes one element after the other.
# Memory: lists of boxed floats, read through pointers.
# Edges: none; the loop ends with the last element.


def vecadd(a, b, c, n):
    for i in range(n):
        c[i] = a[i] + b[i]
