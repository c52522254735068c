"""The conformance suite: every rule of agreement, tried on any backend and any kernel.

    pytest --pyargs py_backends.conformance --backend NAME [--target T] [--quick]

`plugin` is the pytest plug-in, with the options and the summary. A case is a trial or a call. A worker leaves the
result of a trial in guarded memory; a call is one of a Python function. `trials` says what a kind of cases is.
`any_kernel` has the kinds of trials of any kernel, and kernels/KERNEL/trials.py those of one. `calls` has the kinds of
calls. `formats` says what inputs may be. `running` runs all cases and counts what holds;
`caller` is the worker. `test_*` runs everything. docs/conformance.md says what each kind is for.
"""
