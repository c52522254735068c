"""The conformance suite: every rule of agreement, tried on any backend and any kernel.

    pytest --pyargs py_backends.conformance --backend NAME [--target T] [--quick]

`plugin` is the pytest plug-in, with the options and the summary. A case is a trial, whose result a worker leaves in
guarded memory, or a call of a Python function: `trials` says what a kind of cases is, `any_kernel`, `of_vecadd` and
`of_matmul` are the kinds of trials, `of_narrow_matmul` those in formats of few bits, `calls` those of calls; `formats`
says what inputs may be. `running` runs both and counts what holds, `caller` is the worker. `test_*` runs them all.
docs/conformance.md says what each is for.
"""
