"""Who sees what is wrong in programs: in backends, in sources on ranks, and in models that are replaced."""

from __future__ import annotations

V, M = "vecadd", "matmul"
BY_SUITE: dict[str, dict[str, set[str]]] = {
    "skips_its_tail": {V: {"shapes", "layouts"}, M: {"shapes", "layouts"}},
    "refuses_nothing": {V: {"nothing", "nothing-called"}, M: {"nothing", "nothing-called"}},
    "writes_one_before": {V: {"shapes", "nothing", "out"}, M: {"shapes", "nothing", "out"}},
    "writes_one_past": {V: {"shapes", "nothing", "out"}, M: {"shapes", "nothing", "out"}},
    "reads_one_past": {V: {"walls"}, M: {"walls"}},
    "indexes_one_past": {V: {"bare"}, M: {"bare"}},
    "changes_an_input": {V: {"layouts", "calls-repeated"}, M: {"layouts", "calls-repeated"}},
    "changes_its_copy_of_an_input": {V: {"shapes", "indices"}, M: {"shapes", "indices"}},
    "confuses_one_array_twice": {V: {"one-array-twice"}, M: {"one-array-twice"}},
    "crashes_at_one_size": {V: {"shapes"}, M: {"shapes"}},
    "is_stale_at_the_hundredth_call": {V: {"repeats", "calls-repeated"}, M: {"repeats", "calls-repeated"}},
    "keeps_results_by_first_elements": {V: {"kept"}, M: {"kept"}},
    "has_other_bits_each_time": {V: {"same-bits"}, M: {"same-bits"}},
    "shares_scratch_memory": {V: {"threads-at-once"}, M: {"threads-at-once"}},
    "is_wrong_with_other_numbers_of_threads": {V: {"numbers-of-threads"}, M: {"numbers-of-threads"}},
    "leaves_a_library_with_its_number_of_threads": {V: {"numbers-of-threads"}},
    "needs_alignment": {V: {"alignment"}, M: {"alignment"}},
    "clears_its_output_first": {V: {"in-place"}},
    "forgets_earlier_passes": {V: {"beyond-the-caches"}, M: {"several-passes"}},
    "ignores_overlaps": {V: {"overlapping"}, M: {"overlapping", "in-place"}},
    "ignores_strides": {M: {"layouts"}},
    "leaves_no_array": {V: {"to-device"}, M: {"to-device"}},
    "takes_any_inputs": {V: {"unfit-inputs"}, M: {"unfit-inputs"}},
    "takes_any_output": {V: {"unfit-out"}, M: {"unfit-out"}},
}
"""Wrong backends, and the kinds of the suite that must fail for a kernel."""

MISMATCHES = {
    "drops_the_last_element": "1 of {n} elements are wrong, the first at [{last}]: nan",
    "skips_its_tail": "{tail} of {n} elements are wrong, the first at [{begin}]: nan",
    "lacks_a_barrier": "elements are wrong",
    "waits_not": "{n} of {n} elements are wrong",
    "is_stale_after_the_first_call": "{n} of {n} elements are wrong",
    "is_wrong_when_repeated": "1 of {n} elements are wrong",
    "writes_one_past": "it wrote past the end of its output",
    "changes_its_copy_of_an_input": "it changed an input",
    "finds_old_results_in_its_memory": "{n} of {n} elements are wrong",
}
"""What `compare` says of wrong results of n elements, of which a busy machine may leave fewer."""
FAILURES = {
    "raises_when_prepared": ("error", "RuntimeError: the compiler says no"),
    "raises": ("error", "ArithmeticError: as expected"),
    "writes_to_its_input": ("crashed", "SIGSEGV"),
    "waits_not_on_its_queue": ("impossible", "its wait does not wait: 20 launches seemed to take"),
    "gone_when_opened": ("unavailable", "it went away"),
    "dies_when_probed": ("unavailable", "SIGSEGV"),
    "lacks_memory": ("skipped", "the device has 0 bytes"),
}
"""Rows of `compare` of other statuses, with their words."""
OF_COMPARE = {
    "swaps_its_operands": "test_swapped_operands_and_sums_in_a_narrow_format_are_mismatches",
    "sums_in_the_inputs_format": "test_swapped_operands_and_sums_in_a_narrow_format_are_mismatches",
    "breaks_its_device": "test_a_broken_device_breaks_no_other_row",
    "computes_only_once": "test_a_figure_above_the_roofline_is_impossible",
}
"""Backends that have a test of `compare` of their own."""

AT_THE_FIRST_LAUNCH = {
    "dies_of_sigsegv": "the worker was ended by SIGSEGV during 'first_launch'",
    "dies_of_sigill": "the worker was ended by SIGILL during 'first_launch'",
    "dies_of_sigkill": "the worker was ended by SIGKILL (out of memory?) during 'first_launch'",
    "aborts": "the worker was ended by SIGABRT during 'first_launch'; it last wrote: free(): invalid pointer",
    "exits": "the worker exited with code 3 during 'first_launch'",
    "exits_as_scripts_do": "the worker exited with code 4 during 'first_launch'",
    "floods_and_dies": "the worker was ended by SIGABRT during 'first_launch'; it last wrote: yyy",
    "forks_and_dies": "the worker was ended by SIGSEGV during 'first_launch'",
    "dies_when_opened": "the worker was ended by SIGBUS during 'open'",
}
ENDINGS = {
    **{fault: ("crashed", reason) for fault, reason in AT_THE_FIRST_LAUNCH.items()},
    "dies_of_sigsegv_in_a_round": ("crashed", "the worker was ended by SIGSEGV during 'sample'"),
    "raises_in_a_round": ("error", "ArithmeticError: as expected"),
    "exits_in_a_round": ("crashed", "the worker exited with code 3 during 'sample'"),
    "hangs_in_a_round": ("timeout", "no answer to 'sample' within 5 s"),
    "killed_while_stopped_in_a_round": ("crashed", "the worker was ended by SIGKILL (out of memory?) before 'load'"),
    "raises": ("error", "ArithmeticError: as expected"),
    "hangs": ("timeout", "no answer to 'first_launch' within 5 s"),
    "runs_out_of_memory": ("skipped", "Unable to allocate 2.00 GiB"),
    "dies_when_imported": ("unavailable", "probing it failed: the worker was ended by SIGSEGV during 'targets'"),
}
"""The status and the first words of the rows of backends whose workers end."""
HARMLESS = ["talks", "floods", "leaves_children", "comes_back_twice"]
"""Backends that do what no result suffers from: their rows stand."""

WRONG_ON_RANKS = (
    "takes_another_rank_for_the_owner",
    "leaves_a_row_to_nobody",
    "swaps_the_axes_of_its_grid",
    "does_not_wait_for_a_message",
    "loses_a_rank_in_its_reduction",
    "answers_with_an_earlier_result",
    "computes_only_once",
)
"""Sources on ranks whose results are wrong."""


ENDINGS_ON_RANKS = {
    "first_rank_raises": ("error", "during 'launch': rank 0: ArithmeticError: as expected"),
    "last_rank_raises": ("error", "during 'launch': rank 1: ArithmeticError: as expected"),
    "last_rank_dies_of_sigkill": ("error", r"during 'launch': rank 1 was killed \(out of memory\?\), or exited"),
    "last_rank_dies_of_sigsegv": ("error", "rank 1 was killed .*, or exited: Fatal Python error: Segmentation fault"),
    "first_rank_exits": ("error", r"rank 0 was killed \(out of memory\?\), or exited"),
    "last_rank_exits_as_scripts_do": ("error", "rank 1: SystemExit: 4"),
    "first_rank_hangs": ("timeout", r"no answer to '.*' within 10 s; it last wrote: rank 0 has computed for"),
}
"""The status and words of the rows of sources on ranks that end."""
BY_TESTS: dict[str, tuple[str, dict[str, str]]] = {
    "conformance": ("a backend", {name: name for name in BY_SUITE}),
    "wrong_kernels": ("a backend", {name: name for name in (*MISMATCHES, *FAILURES)} | OF_COMPARE),
    "endings": ("a backend", {name: name for name in ENDINGS}),
    "interruption": ("a backend", {"hangs": "hangs", "hangs_when_probed": "hangs_when_probed"}),
    "ranks": ("a source on ranks", {f"on ranks: {name}": name for name in WRONG_ON_RANKS}),
    "ranks_endings": ("a source on ranks", {f"on ranks: {name}": name for name in ENDINGS_ON_RANKS}),
    "simulated": (
        "py_backends/ranks/traffic.py",
        {
            "too few messages": "too few messages",
            "sums that every rank sends whole": "sums that every rank sends whole",
            "a round of messages too many": "a round of messages too many",
            "half of the bytes": "half of the bytes",
            "a round for every rank before": "a round for every rank before",
            "rows in one direction": "test_a_wrong_count_of_steps_is_seen",
        },
    ),
}
"""By files of tests: where faults are, and what the names of the tests that show them have."""
