"""Measures what the tuned kernels are held to, against the libraries that people would use instead.

`python -m benchmarks` measures every ratio of docs/performance.md in one run and prints a line for each.
"""
