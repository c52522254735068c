"""The net under large changes of the harness and the reports: what users see of it, before and after.

    python -m tests.net FOLDER    writes all that is shown of recorded results, and the names of all tests and cases

Two folders are compared by `diff -r`. What differs is meant, or a fault.
"""
