# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: plain Python in one thread. The interpreter counts one element after the other.
# Memory: lists of boxed numbers, read through pointers. A counter is replaced by the next number.
# Edges: what lies outside of [0, 1) is counted nowhere. NaN is not, either: no comparison with it is true.


def histogram(a, c, n):
    c[:256] = [0] * 256
    for x in a[:n]:
        at = x + 128 if isinstance(x, int) else 256 * x
        if 0 <= at < 256:
            c[int(at)] += 1
