"""The net under large changes of the harness and the reports: what users see of it, before and after.

    python -m tests.net FOLDER     writes all that is shown of recorded results, and the names of all tests and cases
    python -m tests.net.planted    plants faults in the harness one by one, and says which the tests caught

Two folders are compared by `diff -r`. What differs is meant, or a fault.
"""
