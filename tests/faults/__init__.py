"""What is wrong on purpose, and who must see it: one table, and one runner.

    python -m tests.faults [NAME...]    plants faults one by one, and says which were caught

A fault is either a change of a file (`*.toml` beside this, for modules of the package and sources of kernels), a wrong
answer of a kernel (`answers`; its own in kernels/KERNEL/faults.py), a backend that is wrong (`backend`), or a source on
ranks that is (`ranks`). `table` has them all.
"""
