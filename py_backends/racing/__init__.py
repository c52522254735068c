"""A race: any functions against one another, on the same inputs, checked and judged as kernels are.

A race is a kernel in a folder of its own, for one run (`racing.folder`). Each function is a backend that the folder
brings (`racing.device`). What they compute is what the first one gives (`racing.answer`).
"""
