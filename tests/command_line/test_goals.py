"""What the benchmarks ask of the tuned kernels: every goal's number, its sizes and its conditions."""

from __future__ import annotations

from benchmarks import contenders, goals, lines

ALL_ON_CPU = "avx", "openmp", "cpp", "opencl", "pocl", "sycl", "numba_cpu"
WIDE, HALVES = lines.WIDE, ("bfloat16", "float16")
ASKED: tuple[tuple[str, tuple[str, ...], str, dict[str, float | None]], ...] = (
    ("matmul", WIDE, "of the best library", {"avx": 1.00}),
    ("matmul", WIDE, "of NumPy", {"avx": 1.15, "openmp": 0.90, "numba_cpu": 0.50}),
    ("matmul", WIDE, "of the FMA peak", {"avx 1 thread": 0.80}),
    ("matmul", WIDE, "of the FMA peak", {f"{who} 1 thread": None for who in ("numpy", "mkl", "cpp")}),
    ("matmul", WIDE, "of NumPy held to AVX2", {"avx avx2": 1.00}),
    ("matmul", ("float32",), "of NumPy, kernel", {"opencl": 0.95, "sycl": 0.95, "pocl": 0.40}),
    ("matmul", ("float64",), "of NumPy, kernel", {"opencl": 0.90, "sycl": 0.90, "pocl": 0.40}),
    ("matmul", ("float32",), "of NumPy, end to end", {"opencl e2e": 0.85, "sycl e2e": 0.85}),
    ("matmul", ("float64",), "of NumPy, end to end", {"opencl e2e": 0.80, "sycl e2e": 0.80}),
    ("matmul", WIDE, "times its kernel", {"opencl e2e": 1.15, "sycl e2e": 1.15}),
    ("matmul", WIDE, "of the rate at n, at n ± 1", dict.fromkeys(ALL_ON_CPU, 0.90)),
    ("matmul", ("float32",), "of cuBLAS without TF32", {"cuda": 0.90}),
    ("matmul", ("float64",), "of cuBLAS", {"cuda": 0.80}),
    ("matmul", HALVES, "of cuBLAS", {"cuda": 0.90}),
    ("matmul", ("int8",), "of cuBLAS", {"cuda": 1.0}),
    ("matmul", WIDE, "of cuda", {"numba_cuda": 0.50}),
    ("matmul", ("bfloat16",), "of the best library", {"avx amx": 1.10}),
    ("matmul", ("float16",), "of the best library", {"avx amx": 1.50}),
    ("matmul", ("int8",), "of the best library", {"avx amx": 1.00}),
    ("matmul", ("bfloat16",), "of oneDNN 3.2", {"avx amx": 1.10}),
    ("matmul", ("float16",), "of oneDNN 3.2", {"avx amx": 1.50}),
    ("matmul", ("int8",), "of oneDNN 3.2", {"avx amx": 1.00}),
    ("matmul", ("bfloat16",), "of the peak of the format", {"avx amx": 0.45}),
    ("matmul", ("bfloat16",), "of the rate at n, at n ± 1", {"avx amx": 0.85}),
    ("matmul", ("bfloat16",), "of avx amx", {"sycl amx": 0.50, "numba_cpu amx": 0.60}),
    ("matmul", HALVES, "of its float32", dict.fromkeys(("avx avx512", *ALL_ON_CPU[1:]), 0.95)),
    ("vecadd", ("float32",), "of the non-temporal ceiling", {"avx": 0.95, "openmp": 0.70}),
    ("vecadd", ("float32",), "of the non-temporal ceiling", dict.fromkeys(ALL_ON_CPU[3:], 0.90)),
    ("vecadd", ("float32",), "of NumPy", {"avx": 2.3}),
    ("vecadd", ("float32",), "times numpy.add a call", {"avx": 4.0}),
    ("vecadd", ("float32",), "of a copy within its memory", {"cuda": 0.95}),
    ("vecadd", HALVES, "times its float32", {"avx": 1.9} | dict.fromkeys(ALL_ON_CPU[1:], 1.7)),
    (
        "dot",
        WIDE,
        "of the read ceiling",
        dict.fromkeys(("avx", "openmp", "opencl", "sycl"), 0.90) | {"numba_cpu": 0.85},
    ),
    ("dot", WIDE, "of the best library", {"avx": 1.00}),
    ("dot", WIDE, "of the best library, worst", {"avx": 0.90}),
    ("dot", WIDE, "times numpy.dot a call", {"avx": 1.1}),
    ("dot", WIDE, "of a copy within its memory", {"cuda": 0.90}),
    ("transpose", WIDE, "of the copy ceiling at 5000x3001", {"avx": 0.75}),
    ("transpose", WIDE, "of the copy ceiling", {"avx": 0.65}),
    ("transpose", WIDE, "of the copy ceiling", dict.fromkeys(("openmp", "opencl", "sycl", "numba_cpu"), 0.50)),
    ("transpose", WIDE, "of the best library", {"avx": 1.00}),
    ("transpose", WIDE, "of a copy within its memory", {"cuda": 0.90}),
    (
        "heat",
        WIDE,
        "of a copy a step",
        {"openmp lecture": 0.53, "avx": 1.8, "openmp": 1.4, "opencl": 1.2, "sycl": 1.2, "numba_cpu": None},
    ),
    ("heat", WIDE, "of a copy a step", {"cuda": 0.80}),
    ("heat", WIDE, "of its rate in caches", {"opencl": 0.70, "sycl": 0.70}),
    ("nbody", ("float32",), "of the FMA peak", {"avx": 0.62}),
    ("nbody", ("float64",), "of the FMA peak", {"avx": 0.50}),
    ("nbody", WIDE, "of avx", {"openmp": 0.30, "opencl": 0.60, "sycl": 0.60, "numba_cpu": None}),
    ("nbody", ("float32",), "of the device's peak", {"cuda": 0.50}),
    *((kernel, WIDE, "of openmp's lecture", {"stdpar": 0.75}) for kernel in goals.KERNELS if kernel != "vecadd"),
    ("vecadd", ("float32",), "of openmp's lecture", {"stdpar": 0.75}),
    ("attention", WIDE, "of the FMA peak", {"avx": 0.60}),
    ("attention", ("bfloat16",), "times its float32", {"avx amx": 2.0}),
    ("attention", WIDE, "of the best library in three calls", {"avx": 1.1}),
    ("attention", WIDE, "of avx", {"opencl": 0.70, "sycl": 0.70, "openmp": 0.50, "numba_cpu": 0.50}),
)
"""All goals: the kernel, the number formats, the ratio, and what is asked of whom; None where it is only stated."""


def test_the_goals_ask_for_these_ratios() -> None:
    found = {(*each.conditions[:2], each.subject, each.what): each.asked for each in goals.goals()}
    assert found == {
        (kernel, dtype, subject, what): asked
        for kernel, dtypes, what, of_whom in ASKED
        for dtype in dtypes
        for subject, asked in of_whom.items()
    }
    assert {each.what for each in goals.goals() if each.at_most} == {
        "times its kernel",
        "times numpy.add a call",
        "times numpy.dot a call",
    }


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
