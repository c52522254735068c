"""The conformance suite: a backend that is wrong in one respect fails there, and in what that cannot affect it passes.

The wrong backends are plug-ins (`faults.backend`), tried by the suite as anybody's are. What only answers show is tried
without them, and for every kernel, in kernels/test_faults.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import plugin_packages
import pytest
from commands import CLONE, Finished, run_python
from conftest import after_a_change
from faults import answers, scratch
from faults.backend import MATMUL, VECADD
from faults.seen import BY_SUITE as FAILS
from packaging.requirements import Requirement

from py_backends import registry
from py_backends.conformance import calls
from py_backends.conformance.any_kernel import WITHOUT_OWN
from py_backends.conformance.formats import limits
from py_backends.conformance.selection import all_kinds_of, kind_names
from py_backends.conformance.tally import DRAWN
from py_backends.conformance.trials import answered, chosen
from py_backends.number_formats import DTYPES

pytestmark = pytest.mark.stamped

V, M = VECADD, MATMUL

ONLY_THERE = {"nothing_wrong", "shares_scratch_memory", "is_wrong_with_other_numbers_of_threads", "takes_any_output"}
ONLY_THERE |= {
    "reads_one_past",
    "clears_its_output_first",
    "confuses_one_array_twice",
    "leaves_no_array",
    "takes_any_inputs",
    "forgets_earlier_passes",
    "crashes_at_one_size",
}
"""Faults by which nothing else can fail."""
ALSO: dict[str, set[str]] = {
    "clears_its_output_first": {"one-array-twice"},
    "forgets_earlier_passes": {"threads-at-once"},
    "takes_any_output": {"out", "unfit-inputs"},
}
"""What else such a fault may fail."""


def kernels_of(fault: str) -> Mapping[str, set[str]]:
    return FAILS.get(fault, {V: set(), M: set()})


def backend_of(fault: str) -> str:
    """Each backend has texts for some kernels, and faults as targets."""
    return "wrong_passes" if fault == "forgets_earlier_passes" else f"wrong_{'_and_'.join(kernels_of(fault))}"


TRIED = ["nothing_wrong", *FAILS]
BACKENDS = sorted(set(map(backend_of, TRIED)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of plug-ins."""
    made = tmp_path_factory.mktemp("plugins")
    files = dict(scratch.plugin("hanging", ["hangs"], [V]))
    for name in BACKENDS:
        targets = [fault for fault in TRIED if backend_of(fault) == name]
        variant = "tuned" if name == "wrong_passes" else "lecture"
        files |= scratch.plugin(name, targets, kernels_of(targets[0]), variant)
    entries = {name: f"plugin_{name}" for name in (*BACKENDS, "hanging")}
    plugin_packages.install(made, plugin_packages.BACKENDS, entries, files, "faults")
    plugin_packages.install(made, "pytest11", {"py_backends": "py_backends.conformance.entry"}, {}, "as-if-installed")
    return made


def run_suite(folder: Path, *options: str) -> Finished:
    """Run the suite as from an installed wheel: in another folder, without the clone's settings of pytest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(CLONE), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("OPENBLAS_NUM_THREADS", "1")  # many backends that compute with NumPy are open at once
        command = ("-m", "pytest", "--pyargs", "py_backends.conformance", "-p", "no:cacheprovider", "--quick", *options)
        return run_python(*command, cwd=folder, longest=290)


ONE_EACH = [
    (fault, kernel, min(kinds)) for fault, of_kernels in FAILS.items() for kernel, kinds in [*of_kernels.items()][:1]
]
"""Faults, each with a kernel and a kind that must see it."""
Tallies = dict[tuple[str, str], dict[str, Any]]
"""By fault and kernel, the tally of each kind."""


@pytest.fixture(scope="module")
def tallies(folder: Path) -> Tallies:
    """What the suite says of all the faults, in one dtype: one run, whose cases they share."""
    return tallied(folder, "float32 and not drawn")


@pytest.fixture(scope="module")
def glances(folder: Path) -> Tallies:
    """What it says of each fault by one of the kinds that must see it."""
    return tallied(folder, " or ".join(f"({fault}-{kernel} and float32-{kind}])" for fault, kernel, kind in ONE_EACH))


def tallied(folder: Path, chosen: str) -> Tallies:
    file = folder / "tallies.json"
    run = run_suite(folder, "-q", "--backend", ",".join(BACKENDS), "-k", chosen, "--conformance-json", str(file))
    assert run.returncode == 1, run.stdout + run.stderr
    found: Tallies = {}
    for one in told(file):
        found.setdefault((one["target"], one["kernel"]), {})[one["kind"]] = one
    return found


def told(file: Path) -> list[dict[str, Any]]:
    """What the suite wrote into `--conformance-json FILE`."""
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def failed(tallies: Tallies, fault: str, kernel: str) -> set[str]:
    return {kind for kind, one in tallies[fault, kernel].items() if one["failures"]}


@after_a_change("py_backends/conformance", "py_backends/functions")
@pytest.mark.parametrize(("fault", "kernel", "kind"), ONE_EACH)
def test_a_fault_is_seen(glances: Tallies, fault: str, kernel: str, kind: str) -> None:
    assert kind in failed(glances, fault, kernel)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "kernel"), [(fault, kernel) for fault in FAILS for kernel in FAILS[fault]])
def test_a_fault_fails_its_kinds(tallies: Tallies, fault: str, kernel: str) -> None:
    assert FAILS[fault][kernel] <= failed(tallies, fault, kernel), tallies[fault, kernel]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("fault", "kernel"), [(fault, kernel) for fault in sorted(ONLY_THERE) for kernel in kernels_of(fault)]
)
def test_what_a_fault_cannot_affect_holds(tallies: Tallies, fault: str, kernel: str) -> None:
    expected = kernels_of(fault)[kernel] | ALSO.get(fault, set())
    assert failed(tallies, fault, kernel) <= expected
    assert set(tallies[fault, kernel]) - expected


@pytest.mark.slow
@pytest.mark.nightly
def test_a_sound_backend_passes(tallies: Tallies) -> None:
    for kernel in (V, M):
        told = tallies["nothing_wrong", kernel]
        missing = set(tallies["forgets_earlier_passes", kernel]) - set(told)
        assert missing == {"beyond-the-caches" if kernel == V else "several-passes"}, "which are for the variant tuned"
        assert all(one["cases"] > 0 and not one["failures"] for one in told.values())


REASONS = {
    ("writes_one_before", V, "shapes"): "it wrote before the beginning of its output",
    ("writes_one_past", M, "nothing"): "it wrote past the end of its output",
    ("writes_one_before", M, "out"): "it wrote beside the elements of out",
    ("reads_one_past", M, "walls"): "crashed: the worker was ended by SIGSEGV",
    ("indexes_one_past", V, "bare"): "IndexError",
    ("changes_an_input", V, "layouts"): "it changed an input",
    ("changes_its_copy_of_an_input", M, "shapes"): "it changed an input",
    ("crashes_at_one_size", M, "shapes"): "crashed: the worker was ended by SIGABRT",
    ("has_other_bits_each_time", M, "same-bits"): "it says that it is deterministic",
    ("confuses_one_array_twice", M, "one-array-twice"): "0 where",
    ("leaves_no_array", V, "to-device"): "it raised TypeError: the result must be a NumPy array",
    ("takes_any_inputs", V, "unfit-inputs"): "it accepted the call, which must end as TypeError",
    ("takes_any_output", M, "unfit-out"): "it accepted the call, which must end as ValueError",
    ("is_stale_at_the_hundredth_call", M, "repeats"): "nan where",
    ("keeps_results_by_first_elements", V, "kept"): "elements are wrong",
}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "kernel", "kind"), REASONS)
def test_the_reason_is_told(tallies: Tallies, fault: str, kernel: str, kind: str) -> None:
    assert REASONS[fault, kernel, kind] in tallies[fault, kernel][kind]["failures"][0][1]


@pytest.mark.slow
class TestWhatIsTold:
    def test_of_what_holds_and_what_does_not(self, folder: Path) -> None:
        crashing = ("--backend", backend_of("crashes_at_one_size"), "--target", "crashes_at_one_size")
        chosen = (*crashing, "--kernel", V, "-k", "float32", "--kind", "shapes,indices,out")
        run = run_suite(folder, *chosen)
        assert run.returncode == 1
        words = "  vecadd     lecture    float32  FAILS in shapes (1 of "
        assert words in run.stdout, run.stdout
        alone = next(line for line in run.stdout.splitlines() if line.startswith("  pytest --pyargs"))
        assert alone.endswith("--kernel=vecadd --variant=lecture --kind=shapes -k float32 --case=129")
        again = run_suite(folder, *shlex.split(alone)[3:])
        assert (again.returncode, "shapes (1 of 1)" in again.stdout) == (1, True), again.stdout

    def test_of_what_hangs_and_soon(self, folder: Path, tmp_path: Path) -> None:
        file = tmp_path / "tallies.json"
        chosen = ("--backend", "hanging", "-k", "float32", "--kind", "shapes,indices,nothing,repeats,out")
        run = run_suite(folder, *chosen, "--patience", "0.5", "--conformance-json", str(file))
        assert run.returncode == 1
        hung = [reason for one in told(file) for _, reason in one["failures"] if reason.startswith("timeout: ")]
        assert len(hung) == 2, run.stdout
        assert len(re.findall("not run.* hanging-hangs-vecadd-lecture ", run.stdout)) >= 3

    def test_although_the_file_cannot_be_written(self, folder: Path, tmp_path: Path) -> None:
        lost = tmp_path / "lost"
        lost.mkdir()
        losing = f"import pathlib\n\ndef pytest_collection_finish():\n    pathlib.Path({str(lost)!r}).rmdir()\n"
        (folder / "loses_a_folder.py").write_text(losing)
        chosen = ("--backend", "numpy", "--kernel", V, "-k", "float32", "--kind", "nothing")
        run = run_suite(folder, *chosen, "-p", "loses_a_folder", "--conformance-json", str(lost / "a.json"))
        assert "  vecadd     lecture    float32  " in run.stdout, run.stdout
        assert "1 passed" in run.stdout.splitlines()[-1]
        (line,) = run.stderr.splitlines()
        assert str(lost / "a.json") in line
        assert run.returncode == pytest.ExitCode.TESTS_FAILED

    @pytest.mark.nightly
    def test_drawn_cases_are_made_small(self, folder: Path) -> None:
        skipping = ("--backend", backend_of("skips_its_tail"), "--target", "skips_its_tail")
        run = run_suite(folder, *skipping, "--kernel", V, "--kind", "drawn")
        assert run.returncode == 1
        assert "1 of 1 elements" in run.stdout, run.stdout
        assert "sizes=(1,)" in run.stdout


EVEN = plugin_packages.PROBLEM.replace("(10007,)", "(10008,)").replace(
    "(n,) = sizes", "(n,) = sizes\n            if n % 2:\n                raise ValueError('only even sizes')"
)
FIRST = (
    plugin_packages.PROBLEM.replace("return (n,), (n,), (n,)", "return (n,), (n,), ()")
    .replace("in_place = True", "in_place = False")
    .replace("inputs[0] - inputs[1])", "np.array([*(inputs[0] - inputs[1]), 0][0], inputs[0].dtype))")
)
OF_FIRST = "def first(a, b, c, n):\n    c[...] = a[0] {operator} b[0] if n else 0\n"
Unusual = dict[tuple[str, str], list[dict[str, Any]]]
"""By kernel and variant, the tallies of all kinds."""


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> Unusual:
    """What is told of a kernel that not every size fits, and of one whose result has no dimensions, right and wrong."""
    made = tmp_path_factory.mktemp("unusual")
    files = {
        "even/problem.py": EVEN.format(name="even"),
        "even/lecture/numpy.py": plugin_packages.kernel("even"),
        "first/problem.py": FIRST.format(name="first"),
        "first/lecture/numpy.py": OF_FIRST.format(operator="-"),
        "first/tuned/numpy.py": OF_FIRST.format(operator="+"),
    }
    plugin_packages.install(made, plugin_packages.KERNELS, {"even": "even", "first": "first"}, files, "unusual")
    plugin_packages.install(made, "pytest11", {"py_backends": "py_backends.conformance.entry"}, {}, "as-if")
    file = made / "tallies.json"
    into = ("--conformance-json", str(file))
    run = run_suite(
        made, "-q", "--backend", "numpy", "--kernel", "even,first", "-k", "float32 or drawn and lecture", *into
    )
    assert run.returncode == 1, run.stdout + run.stderr
    found: Unusual = {}
    for one in told(file):
        found.setdefault((one["kernel"], one["variant"]), []).append(one)
    return found


@pytest.mark.slow
class TestUnusualKernels:
    def test_sizes_that_do_not_fit_are_raised_or_left_out(self, unusual: Unusual) -> None:
        tallies = unusual["even", "lecture"]
        assert not [one for one in tallies if one["failures"]]
        kinds = {kind.name for kind in (*all_kinds_of("even"), *calls.KINDS)} - {"own-inputs"} | {DRAWN}
        assert {one["kind"] for one in tallies} == kinds
        assert all(one["cases"] > 0 for one in tallies)

    def test_a_result_without_dimensions_is_one_number(self, unusual: Unusual) -> None:
        assert not [one for one in unusual["first", "lecture"] if one["failures"]]
        wrong = {one["kind"]: one["failures"][0][1] for one in unusual["first", "tuned"] if one["failures"]}
        for kind in ("shapes", "layouts", "out"):
            assert re.match(r"1 of 1 .* \[\]: ", wrong[kind])
        assert "unfit-out" not in wrong


@pytest.mark.slow
@pytest.mark.parametrize("dtype", registry.problem(V).dtypes)
def test_special_values_of_any_kernel_reach_the_largest_numbers(dtype: str) -> None:
    (kind,) = (kind for kind in WITHOUT_OWN if kind.name == "special-values")
    cases = [
        case for case in answered(V, dtype, tuple(chosen(kind, V, dtype))).values() if np.isfinite(case.inputs).all()
    ]
    assert any(np.isinf(case.references[0].value).any() for case in cases), "of finite numbers, their sums"


HALVING = "def matmul(a, b, c, m, n, k):\n    c[...] = FAULTS[{name!r}][0](a, b)\n"


@pytest.mark.slow
def test_a_fault_in_a_narrow_format_alone_fails_there(tmp_path: Path) -> None:
    files = dict(scratch.plugin("halved", ["nothing_wrong"], [M], dtypes=("float16", "float32")))
    own = (CLONE / "kernels" / M / "faults.py").read_text(encoding="utf-8")
    files[f"plugin_halved/kernels/{M}/lecture/halved.py"] = own + HALVING.format(name="the low half is left out")
    plugin_packages.install(tmp_path, plugin_packages.BACKENDS, {"halved": "plugin_halved"}, files, "halved")
    plugin_packages.install(
        tmp_path, "pytest11", {"py_backends": "py_backends.conformance.entry"}, {}, "as-if-installed"
    )
    file = tmp_path / "tallies.json"
    run = run_suite(tmp_path, "--backend", "halved", "-k", "float16", "--conformance-json", str(file))
    assert run.returncode == 1, run.stdout
    failing = {one["kind"] for one in told(file) if one["failures"]}
    assert failing >= {"halves", "conversions", "depths"}
    assert not failing & {"long-sums", "whole-numbers"}, "whose numbers have no low half"
    assert "--kind=halves -k float16 --case=7x19x13" in run.stdout


PARTIAL = """
import numpy as np
from py_backends import contract

class Backend(contract.Backend):
    dtypes = {dtypes}

    def targets(self):
        lost = contract.Target.missing("lost", "it is lost", "look for it")
        nothing = contract.Target("takes_nothing", dtypes={{}})
        return [*map(contract.Target, ("in_use", "breaks", "single")), nothing, lost]

    def open(self, target, threads):
        if target == "in_use":
            raise contract.BackendUnavailable("somebody else uses it", "ask them")
        return Device(target)

class Device(contract.HostDevice):
    def __init__(self, target):
        self.target = target

    def prepare(self, text, dtype):
        if self.target == "single" and dtype.name == "float64":
            raise contract.BackendUnavailable("it has no float64", "take another")
        def launch(buffers, sizes):
            a, b, c = text.shaped(buffers, sizes)
            if self.target == "breaks" and len(c) > 60:
                raise contract.BackendUnavailable("it was unplugged", "plug it in")
            with np.errstate(all="ignore"):
                np.add(a, b, out=c)

        return launch
"""
"""What is sound where it is, and says so late where it is not."""


@pytest.mark.slow
class TestWhatIsNotThere:
    @pytest.fixture(scope="class")
    @classmethod
    def partial(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("partial")
        files, backends = {}, {"partial": '("float32", "float64")', "declares_one": '("float32",)'}
        for name, dtypes in backends.items():
            files[f"plugin_{name}/__init__.py"] = PARTIAL.format(dtypes=dtypes)
            files[f"plugin_{name}/kernels/vecadd/lecture/{name}.py"] = "# see the package"
        entries = {name: f"plugin_{name}" for name in backends}
        plugin_packages.install(folder, plugin_packages.BACKENDS, entries, files, "partial")
        plugin_packages.install(
            folder, "pytest11", {"py_backends": "py_backends.conformance.entry"}, {}, "as-if-installed"
        )
        return folder

    @pytest.mark.parametrize(
        ("target", "words"),
        [
            ("in_use", "is said to be available, and can compute in no dtype: {'float32': 'somebody else uses it"),
            ("breaks", "unavailable: it was unplugged"),
            ("lost", "partial is required but not there: it is lost"),
            ("takes_nothing", "partial takes_nothing takes no dtype of what was chosen"),
        ],
    )
    def test_it_fails_where_it_was_chosen(self, partial: Path, target: str, words: str) -> None:
        run = run_suite(partial, "--backend", "partial", "--target", target, "--kind", "shapes,out,drawn")
        assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
        assert words in run.stdout

    def test_a_target_that_takes_nothing_fails_only_where_it_was_chosen(self, partial: Path) -> None:
        """As `amx` of avx, which has no vecadd: the backend was named, and its other targets take it."""
        run = run_suite(partial, "--backend", "partial", "--kind", "shapes", "-k", "test_it_is_there", "--quick")
        assert run.returncode == 0, run.stdout
        assert "4 passed" in run.stdout

    def test_a_target_is_chosen_by_its_name_alone(self, partial: Path) -> None:
        run = run_suite(partial, "--target", "lost", "--kernel", V)
        assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout

    @pytest.mark.parametrize(
        ("backend", "target", "words"),
        [
            ("partial", "single", "it has no float64"),
            ("declares_one", "single", "4 passed"),
        ],
    )
    def test_what_it_cannot_is_skipped_and_the_rest_tried(
        self, partial: Path, tmp_path: Path, backend: str, target: str, words: str
    ) -> None:
        file = tmp_path / "tallies.json"
        chosen = ("--backend", backend, "--target", target, "--kind", "shapes,out,drawn")
        run = run_suite(partial, *chosen, "-rs", "--conformance-json", str(file))
        assert run.returncode == 0, run.stdout
        assert words in run.stdout
        tried = {(one["kind"], one["dtype"]) for one in told(file) if one["cases"]}
        assert tried == {("shapes", "float32"), ("out", "float32"), ("drawn", "float32")}


@pytest.mark.slow
class TestWrongUsage:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--backend", "nunpy"], "unknown backend 'nunpy': did you mean 'numpy'?"),
            (["--backend", "numpy", "--target", "gpu"], "unknown target 'gpu': did you mean 'cpu'?"),
            (["--kernel", "matmull"], "unknown kernel 'matmull': did you mean 'matmul'?"),
            (["--variant", "tunde"], "unknown variant 'tunde': did you mean 'tuned'?"),
            (["--kind", "shape"], "unknown kind 'shape': did you mean 'shapes'?"),
            (["--backend", "numpy", "--case", "nosuch"], "there is no case of --case nosuch among the other choices"),
            (
                ["--backend", "numpy", "--kernel", "matmul", "--kind", "rounding"],
                "there is no case of --kind rounding among the other choices",
            ),
            (
                ["--backend", "openmp,python", "--kind", "beyond-the-caches"],
                "there is no case of --kind beyond-the-caches among the other choices for python",
            ),
            (
                ["--backend", "numpy", "--variant", "tuned"],
                "backend numpy has no source of any chosen kernel and variant: choose others",
            ),
            (
                ["--backend", "numpy,openmp", "--kernel", "matmul", "--variant", "packing"],
                "backend numpy has no source of any chosen kernel and variant: choose others",
            ),
            (
                ["--kernel", "vecadd", "--variant", "packing"],
                "no backend has a source of any chosen kernel and variant: choose others",
            ),
            (
                ["--target", "cpu,nothing_wrong", "--variant", "packing"],
                "target nothing_wrong has no source of any chosen kernel and variant: choose others",
            ),
            (
                ["--backend", "numpy,wrong_vecadd_and_matmul", "--target", "nothing_wrong"],
                "backend numpy has no target nothing_wrong: choose others",
            ),
        ],
    )
    def test_is_one_line(self, folder: Path, options: list[str], words: str) -> None:
        run = run_suite(folder, *options)
        assert run.returncode == pytest.ExitCode.USAGE_ERROR
        assert f"ERROR: {words}" in run.stderr.splitlines(), run.stderr

    @pytest.mark.parametrize("patience", ["nan", "0", "-5", "inf", "soon"])
    def test_of_patience_is_told(self, folder: Path, patience: str) -> None:
        run = run_suite(folder, "--backend", "numpy", "--collect-only", f"--patience={patience}")
        assert run.returncode == pytest.ExitCode.USAGE_ERROR
        assert "--patience: " in run.stderr
        assert f"'{patience}'" in run.stderr

    def test_of_files_is_told_before_the_run(self, folder: Path) -> None:
        run = run_suite(folder, "--backend", "numpy", "--kind", "nothing", "--conformance-json", "/nowhere/a.json")
        assert run.returncode == pytest.ExitCode.USAGE_ERROR
        (line,) = run.stderr.strip().splitlines()
        assert "--conformance-json" in line
        assert "/nowhere" in line

    def test_what_is_not_there_fails(self, folder: Path, tmp_path: Path) -> None:
        missing = """
            from py_backends import contract

            class Backend(contract.Backend):
                def targets(self):
                    return [contract.Target.missing("moon", "it is too far away", "wait")]

                def open(self, target, threads):
                    raise AssertionError
        """
        files = {"far_away/__init__.py": missing, "far_away/kernels/vecadd/lecture/faraway.py": "# nothing"}
        plugin_packages.install(tmp_path, plugin_packages.BACKENDS, {"faraway": "far_away"}, files, "far")
        plugin_packages.install(tmp_path, "pytest11", {"py_backends": "py_backends.conformance.entry"}, {}, "as-if")
        run = run_suite(tmp_path, "--backend", "faraway")
        assert run.returncode == 1
        assert re.search(r"faraway .*: it is too far away .*wait", run.stdout)
        assert "1 error in" in run.stdout


@pytest.mark.slow
def test_nobody_elses_run_is_changed(folder: Path, tmp_path: Path) -> None:
    """The entry point is there for all who have py-backends installed."""
    (tmp_path / "test_own.py").write_text(
        "import sys\n\n\ndef test_it(pytestconfig):\n"
        "    assert 'py_backends.conformance.plugin' not in sys.modules\n"
        "    assert 'numpy' not in sys.modules\n"
        "    assert not any(line.startswith('opencl') for line in pytestconfig.getini('markers'))\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(CLONE), os.environ.get("PYTHONPATH", "")]))
        run = run_python("-m", "pytest", "-p", "no:cacheprovider", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


@pytest.mark.slow
def test_it_starts_in_a_clone_with_what_its_extra_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest refuses settings of the clone that no plug-in knows."""
    extras = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    packages = [metadata.distribution(Requirement(each).name) for each in extras["conformance"]]
    found = [entry.value for package in packages for entry in package.entry_points.select(group="pytest11")]
    assert found
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = [word for name in (*found, "py_backends.conformance.entry") for word in ("-p", name)]
    suite = "--pyargs", "py_backends.conformance", "--backend", "python", "--quick"
    run = run_python("-m", "pytest", "-p", "no:cacheprovider", *plugins, *suite, "--collect-only", "-q", cwd=CLONE)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kernel", registry.kernel_names())
def test_there_are_enough_distinct_cases(kernel: str) -> None:
    """For a backend with one variant, in two dtypes: 1,000 of each of two kernels and more."""
    names = [(kind.name, trial.name) for kind in all_kinds_of(kernel) for trial in chosen(kind, kernel, "float32")]
    assert len(set(names)) == len(names), "a case is run alone by its name"
    assert len(names) > {V: 700, M: 1200}.get(kernel, 0)


@pytest.mark.documents
def test_every_kind_has_its_line_in_the_documentation() -> None:
    page = (CLONE / "docs" / "conformance.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z][a-z-]*)` \|", page, re.MULTILINE))
    assert documented == set(kind_names())


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [V, M])
def test_every_kind_has_a_fault_that_fails_it(kernel: str) -> None:
    """That is so of every kernel's own kinds. These two also have backends for what answers alone cannot show."""
    failing = {kind for kernels in FAILS.values() for kind in kernels.get(kernel, ())}
    failing |= {kind for fault in answers.wrong(kernel) for kind in fault.kinds}
    assert failing == {kind.name for kind in (*all_kinds_of(kernel), *calls.KINDS)}


NEED_EQUAL_SHAPES = "one-array-twice", "to-device"
"""Kinds of calls that only some kernels have: another input, or the output, is like the first input."""


@pytest.mark.slow
def test_names_of_calls_are_distinct() -> None:
    for kernel, kind in itertools.product(registry.kernel_names(), calls.KINDS):
        names = [call.name for call in chosen(kind, kernel, "float32")]
        assert names or kind.name in NEED_EQUAL_SHAPES, (kernel, kind.name)
        assert len(set(names)) == len(names), kind.name


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_result_that_numpy_has_is_exact_where_it_must_be(dtype: str) -> None:
    """Of a case that must come out exact, the reference is."""
    of_results = limits(registry.problem(M).result_dtype(np.dtype(dtype)))
    for kind in all_kinds_of(M):
        for case in answered(M, dtype, tuple(chosen(kind, M, dtype, quick=True))).values():
            if case.trial.exact:
                a, b = (x.astype(np.float64).astype(object) for x in case.inputs)
                if a.size * b.shape[1] < 40_000:
                    assert (case.references[0].value == (a @ b).astype(np.float64)).all(), case.trial.name
                assert np.abs(case.references[0].value).max(initial=0) < 2.0**of_results.digits
