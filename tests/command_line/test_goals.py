"""What the benchmarks ask of the tuned kernels: the sizes and conditions of goals, whose numbers are their kernels'."""

from __future__ import annotations

from benchmarks import contenders, goals, lines
from py_backends import registry


def test_each_goal_is_a_ratio_in_a_format_of_its_kernel() -> None:
    for each in goals.goals():
        kernel, dtype = each.conditions[:2]
        assert dtype in registry.problem(kernel).dtypes
        assert each.asked is None or each.asked > 0
        assert not each.at_most or each.what.startswith("times "), "what is to be small is told in times of another"


def test_goals_are_at_the_sizes_of_the_issue() -> None:
    means = next(each for each in goals.goals(kernels=["matmul"]) if each.what == "of the best library")
    assert [each.subject.size for each in means.comparisons] == list(lines.SIZES)


def test_goals_of_narrow_formats_are_at_the_sizes_of_their_issue() -> None:
    found = goals.goals()
    (best, large) = (
        next(g for g in found if g.conditions.dtype == "float16" and g.what == what)
        for what in ("of its float32", "of the best library")
    )
    assert [each.subject.size for each in best.comparisons] == [512, 1000, 1024, 2048, 4096]
    assert [each.subject.size for each in large.comparisons] == [1024, 2048, 4096]
    assert {each.contender for each in large.comparisons[0].against} == {contenders.MKL, contenders.ONEDNN}


def test_conditions_are_shared_by_both_sides_of_a_ratio() -> None:
    """Who is held to one thread or to AVX2 is compared with others that are."""
    one_thread = [
        each for each in goals.goals() if each.what == "of the FMA peak" and each.conditions.kernel == "matmul"
    ]
    assert {each.conditions.threads for each in one_thread} == {1}
    assert [each.backend for each in one_thread[:4]] == ["avx", "avx", "avx", "cpp"]
    held = [each for each in goals.goals() if each.what == "of NumPy held to AVX2"]
    assert {each.conditions.environment for each in held} == {(("OPENBLAS_CORETYPE", "Haswell"),)}
    older = [each for each in goals.goals() if each.what == "of oneDNN 3.2"]
    assert {dict(each.conditions.environment)["PY_BACKENDS_ONEDNN"] for each in older} == {
        "build/onednn-3.2/lib/libdnnl.so.3"
    }


def test_neighbours_are_one_off_round_sizes() -> None:
    asked = goals.goals(["float32"], [127, 256, 1000, 4096], kernels=["matmul"])
    found = [each for each in asked if each.summary == "worst"]
    pairs = {(c.subject.size, c.against[0].size) for g in found if not g.at_most for c in g.comparisons}
    assert pairs == {(255, 256), (257, 256), (999, 1000), (1001, 1000)}
