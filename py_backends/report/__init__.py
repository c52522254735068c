"""Shows results and kernels on a terminal, in a pipe and in files. It computes none."""
