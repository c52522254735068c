"""Runs kernels on backends, judges their results and times them. Knows no backend by name."""
