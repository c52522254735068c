# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: an expression of whole arrays. XLA compiles it for their sizes, and divides it among threads. c, which is an
#   array as it was before, tells the dtype of the result, and the result takes its memory.
# Memory: reads a and b once and writes the result once, in order.
# Edges: none; the arrays know their lengths.


def vecadd(a, b, c, n):
    return a + b
