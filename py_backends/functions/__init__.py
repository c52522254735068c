"""The Python functions: a kernel called in this process, on the arrays that the caller has."""
