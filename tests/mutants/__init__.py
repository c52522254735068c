"""Mutants: kernel texts that are wrong in one place, to see whether the tests notice.

`python -m tests.mutants` changes one operator, bound, index, barrier, wait or tail of a kernel's text at a time, in a
copy of the clone, and runs the conformance suite on it. What the suite then says is the mutant's outcome.
docs/mutants.md holds the outcome of a whole run.

| module | what it does |
| --- | --- |
| `texts` | which files belong to which programming model, and which parts of them are run on this machine |
| `places`, `c_family`, `in_python` | where a text can be changed, and how, by its syntax tree |
| `mutant` | one change: its identifier, by which it is run alone |
| `equivalent` | the changes that change no result, with the reason, from files equivalent.toml |
| `scratch` | a copy of the clone for one backend, built for one instruction set |
| `judge` | runs the suite on a changed copy |
| `session` | runs many mutants, on all cores, and goes on where it was interrupted |
| `results`, `report` | what came out: a file, a table, a page |
"""
