"""The conformance suite: every rule of agreement, tried on any backend and any kernel.

    pytest --pyargs py_backends.conformance --backend NAME [--target T] [--quick]

`plugin` is the pytest plug-in, with the options and the summary. `trials` says what a kind of case is; `any_kernel`,
`of_vecadd` and `of_matmul` are the kinds whose results a worker leaves in guarded memory, `calls` those of the Python
functions. `test_*` runs them. docs/conformance.md says what each is for.
"""
