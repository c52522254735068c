"""Shows results and kernels: on a terminal, in a pipe, in files. Computes none."""
