"""Plug-ins: what other packages bring is as the project's own, and whatever is wrong with it is told, and no more."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from commands import LONGEST, Finished, copy_clone, environment
from plugin_packages import BACKEND, BACKENDS, KERNELS, PROBLEM, install, kernel

import py_backends
from py_backends import plugins, registry
from py_backends.functions import api

pytestmark = pytest.mark.stamped

OWN = registry._own_kernels()

IN_WORKERS_ONLY = """
    import sys
    assert sys.orig_argv[3] == "py_backends.workers.session", f"imported by {sys.orig_argv}"
"""
TARGETS = """
    import os, sys, time
    from py_backends import contract
    from py_backends.contract import Target

    class Backend(contract.Backend):
        def targets(self):
            {body}

        def open(self, target, threads):
            return None
"""
WRONG_BACKENDS = {
    "absent": (None, "ModuleNotFoundError: No module named 'brought_absent'"),
    "raises": ("raise RuntimeError('no driver\\nin sight')", "RuntimeError: no driver / in sight"),
    "exits": ("raise SystemExit(3)", "SystemExit: 3"),
    "dies": ("import os; os.abort()", "the worker was ended by SIGABRT"),
    "lacks": ("", "module 'brought_lacks' has no attribute 'Backend'"),
    "alien": ("class Backend: pass", "brings no backend: its Backend is not derived from the contract's"),
    "abstract": ("from py_backends.contract import Backend", "Can't instantiate abstract class Backend"),
    "typeless": (
        TARGETS.format(body="return []").replace("def targets", "dtypes = 7\n        def targets"),
        "its dtypes are 7, not",
    ),
    "targets_raise": (TARGETS.format(body="raise OSError('no bus')"), "OSError: no bus"),
    "targets_none": (TARGETS.format(body="return"), "it returns None, not a list of Target"),
    "targets_empty": (TARGETS.format(body="return []"), "it returns no target"),
    "targets_alien": (TARGETS.format(body="return ['cpu']"), "it returns 'cpu' as a target"),
    "targets_unnamed": (TARGETS.format(body="return [Target(7)]"), "a target is named 7"),
    "targets_alike": (TARGETS.format(body="return [Target('x')] * 2"), "it returns several targets of one name"),
    "targets_mute": (TARGETS.format(body="return [Target('x', available=False)]"), "does not say why"),
    "targets_odd": (TARGETS.format(body="return [Target('x', version=3)]"), "the version of the target x is 3"),
    "targets_typeless": (
        TARGETS.format(body="return [Target('x', dtypes={'vecadd': 'float32'})]"),
        "the dtypes of the target x are {'vecadd': 'float32'}, not tuples by kernel",
    ),
    "targets_listed": (
        TARGETS.format(body="return [Target('x', dtypes=('float32',))]"),
        "the dtypes of the target x are ('float32',), not tuples by kernel",
    ),
    "targets_die": (TARGETS.format(body="os.kill(os.getpid(), 11)"), "the worker was ended by SIGSEGV"),
    "targets_hang": (TARGETS.format(body="time.sleep(3600)"), "no answer to 'targets' within 15 s"),
}
"""What a backend's package holds, and what is to be said of it."""
REFUSED_BACKENDS = {
    "twice": "other-twice 2.0 and some-twice 1.0 bring the same name",
    "numpy": "broken-numpy 1.0 brings the name 'numpy', which py-backends has itself",
    "all": "broken-all 1.0 brings the name 'all', which py-backends has itself",
    "two-words": "broken-two-words 1.0 brings the name 'two-words': names are of letters",
    "_hidden": "broken-_hidden 1.0 brings the name '_hidden': names are of letters",
    "class": "broken-class 1.0 brings the name 'class': names are of letters",
    "attribute": "broken-attribute 1.0 names 'brought_attribute:Backend', which is no package",
}


def with_field(field: str) -> str:
    """The problem with another of its fields."""
    return PROBLEM.replace("in_place = True", f"{field}\n        in_place = True")


WRONG_PROBLEMS = {
    "absent_kernel": (None, "ModuleNotFoundError: No module named 'brought_absent_kernel'"),
    "raising": ("raise RuntimeError('no\\nway')", "RuntimeError: no / way"),
    "exiting": ("raise SystemExit(3)", "SystemExit: 3"),
    "without": ("", "module 'brought_without.problem' has no attribute 'PROBLEM'"),
    "number": ("PROBLEM = 7", "PROBLEM is 7, which is no Problem"),
    "misnamed": (PROBLEM.format(name="other"), "its problem is named 'other', and its entry point 'misnamed'"),
    "unfinished": ("from py_backends.contract import Problem\nPROBLEM = Problem()", "Can't instantiate abstract class"),
    "shapeless": (PROBLEM.replace("return (n,), (n,), (n,)", "return n"), "its shapes are 10007, not a tuple of one"),
    "shapes_of_text": (PROBLEM.replace("return (n,), (n,), (n,)", "return ('n',) * 3"), "one of its shapes is 'n'"),
    "broken_shapes": (PROBLEM.replace("(n,) = sizes", "n, m = sizes"), "ValueError: not enough values to unpack"),
    "unsized": (PROBLEM.replace("(10007,)", "10007"), "its default_sizes are 10007, not a tuple"),
    "many_sizes": (PROBLEM.replace("(10007,)", "(7, 8)"), "its default_sizes are (7, 8), not a tuple of a size for"),
    "flat": (PROBLEM.replace('("n",)', "()"), "its dimensions are (), not a tuple of names"),
    "unruly": (PROBLEM.replace('"bitwise"', '"roughly"'), "its rule is 'roughly', and not bitwise or componentwise"),
    "unrated": (PROBLEM.replace('"gbytes_per_second"', '"words"'), "its rate is 'words', and not gflops or"),
    "endless": (
        PROBLEM.replace("in_place", "edges = (1, 2)\n        in_place"),
        "its edges are (1, 2), not a tuple of",
    ),
    "lazy": (PROBLEM.replace("return sizes[0]", "return 'much'"), "its flops must be a whole number, not 'much'"),
    "anonymous": (PROBLEM.replace("in_place", 'inputs = ("a", "a")\n        in_place'), "not different identifiers"),
    "keyworded": (
        PROBLEM.replace("in_place", 'inputs = ("lambda", "x")\n        in_place'),
        "one of its inputs is named 'lambda', which is a word of Python or of the functions",
    ),
    "optional": (PROBLEM.replace("in_place", 'inputs = ("x", "out")\n        in_place'), "is named 'out', which is"),
    "typeless_kernel": (with_field("dtypes = None"), "its dtypes are None, not a tuple of names"),
    "no_types": (with_field("dtypes = ()"), "its dtypes are (), not a tuple of names"),
    "no_comma": (with_field('dtypes = ("float32")'), "its dtypes are 'float32', not a tuple of names"),
    "other_types": (with_field('dtypes = ("float32", "foo")'), "its dtypes have 'foo', and not only float32, float64,"),
    "no_inputs_type": (with_field('dtypes = ("int32",)'), "its dtypes have 'int32': a run has one of float32,"),
    "no_results": (with_field("results = None"), "its results are None, not a mapping from dtypes to dtypes"),
    "other_results": (with_field('results = {"float32": None}'), "its results have None, and not only float32,"),
    "other_sums": (with_field('sums = {np.dtype("int8"): "int32"}'), "its sums have dtype('int8'), and not only"),
    "listed_sums": (with_field('sums = ("int8", "int32")'), "its sums are ('int8', 'int32'), not a mapping"),
    "numbers_listed": (with_field('numbers = ("steps",)'), "its numbers are ('steps',), not a mapping from names to"),
    "numbers_named": (with_field('numbers = {"to": 1}'), "one of its numbers is named 'to', which is a word of"),
    "numbers_twice": (with_field('numbers = {"n": 1}'), "its numbers have 'n', which is a size or an input"),
    "numbers_below": (with_field('numbers = {"steps": -1}'), "the default of steps must be from 0 to"),
    "numbers_unsized": (with_field('numbers = {"steps": 1}'), "its default_sizes are (10007,), not a tuple of a size"),
    "by_chance": (with_field('by_default = "maybe"'), "its by_default is 'maybe', which is neither True nor False"),
    "other_in_numpy": (with_field("in_numpy = np.subtract"), "its in_numpy is <ufunc 'subtract'>, which is no text"),
}
"""What the problem.py of a kernel's package holds, and what is to be said of it."""
_RETURN = "return Reference(inputs[0] - inputs[1])"
MISBEHAVING_PROBLEMS = {
    "reference_raises": (_RETURN, "raise ZeroDivisionError('oh')", "ZeroDivisionError: oh"),
    "reference_is_none": (_RETURN, "return None", "its reference has the type NoneType"),
    "reference_of_other_shape": (
        _RETURN,
        "return Reference(inputs[0][:3])",
        "the value of its reference has the shape (3,)",
    ),
    "reference_of_other_dtype": (
        _RETURN,
        f"{_RETURN[:-1]}.astype('d'))",
        "its reference has the dtype float64, but its result has float32",
    ),
    "reference_with_bound": (
        _RETURN,
        f"{_RETURN[:-1]}, abs(inputs[0]))",
        "its rule is bitwise, but its reference has a",
    ),
    "reference_without_bound": ('"bitwise"', '"componentwise"', "its rule is componentwise, but its reference has no"),
    "shapes_raise_elsewhere": ("(n,) = sizes", "(n,) = sizes; 1 / (n == 10007)", "ZeroDivisionError: division by zero"),
}
"""Problems that are sound as far as can be told without running them."""
REFUSED_KERNELS = {
    "twice": "other-twice-kernel 2.0 and some-twice-kernel 1.0 bring the same name",
    "matmul": "broken-matmul-kernel 1.0 brings the name 'matmul', which py-backends has itself",
    "compare": "broken-compare-kernel 1.0 brings the name 'compare', which py-backends has itself",
    "two-words": "broken-two-words-kernel 1.0 brings the name 'two-words': names are of letters",
}
SMALL = ("--shape", "vecadd=509", "--shape", "matmul=9")
WITH_PATIENCE = """
import sys
import py_backends.workers.process as workers
from py_backends.__main__ import main
workers.ANSWER_WITHIN = 15.0
sys.exit(main())
"""
SAID = """
import numpy as np
import py_backends as pb

def said(function, *arguments, **options):
    try:
        print(function(*arguments, **options))
    except (pb.BackendUnavailable, ValueError, TypeError, AttributeError) as error:
        print(type(error).__name__, error)

a, b = np.float32([5, 7]), np.float32([1, 2])
"""
FUNCTIONS_OF_WRONG_BACKENDS = f"""{SAID}
for name in ("raises", "targets_none", "alien", "exits", "twice", "finger"):
    said(pb.vecadd, a, b, backend=name)
"""
FUNCTIONS_OF_WRONG_KERNELS = f"""{SAID}
said(pb.vecsub, a, b, backend="numpy")
said(lambda: pb.raising)
said(lambda: pb.nothing)
print(sorted(set(dir(pb)) & {{"vecadd", "matmul", "vecsub", "raising", "twice"}}))
"""
NOTHING = (
    TARGETS.format(body="return [Target('x')]")
    + """
        def target(self, name):
            if name == "raises":
                raise OSError("no bus")
            return {"text": "x", "odd": Target("odd", version=3)}.get(name)
"""
)
FUNCTIONS_OF_NOTHING = f"""{SAID}
for target in ("raises", "text", "odd", "unknown", "x"):
    said(pb.vecadd, a, b, backend="nothing", target=target)
"""
WITHIN = """
    import numpy as np
    import py_backends as pb
    from py_backends import contract

    class Backend(contract.Backend):
        def targets(self):
            return [contract.Target("x")]

        def open(self, target, threads):
            add()
            return Device()

    class Device(contract.HostDevice):
        def prepare(self, text, dtype):
            add()
            return lambda buffers, sizes: pb.vecadd(*buffers[:2], backend="numpy", out=buffers[2])

    def add():
        assert pb.vecadd(np.ones(3), np.ones(3), backend="numpy").tolist() == [2, 2, 2]
"""
FUNCTIONS_OF_WITHIN = f"""{SAID}
import signal
signal.alarm(20)  # ends a call that waits for itself
said(pb.vecadd, a, b, backend="within")
"""
PICKLED = """
import pickle
import py_backends as pb

print(*(pickle.loads(pickle.dumps(each)) is each for each in (pb.vecadd, pb.vecsub)))
"""

Rows = dict[Any, Any]
"""Rows of a comparison, or lists of them, by what names them."""


@dataclass(frozen=True)
class Place:
    """A clone, and a folder with plug-ins on the path of all that runs in it."""

    clone: Path
    installed: Path

    def python(self, *arguments: str | Path) -> Finished:
        path = os.pathsep.join(map(str, (self.clone, self.installed)))
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.installed,
            env=environment(PYTHONPATH=path),
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    def command(self, *arguments: str | Path) -> Finished:
        return self.python("-c", WITH_PATIENCE, *arguments)

    def results(self, *arguments: str) -> tuple[int, Any]:
        """Run a command that writes JSON; its exit code, and what it wrote."""
        path = self.installed / "results.json"
        run = self.command(*arguments, "--json", path)
        assert path.exists(), run.stdout + run.stderr
        assert "Traceback" not in run.stdout + run.stderr
        found = json.loads(path.read_text())
        path.unlink()
        return run.returncode, found


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_clone(tmp_path_factory.mktemp("clone"), backends=["numpy", "python"])


@pytest.fixture(scope="module")
def sound(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The backend `fingers`, with texts of its own, and the kernel `vecsub`."""
    folder = tmp_path_factory.mktemp("sound")
    install_sound(folder)
    return Place(clone, folder)


def install_sound(folder: Path) -> None:
    backend = {
        "fingers_backend/__init__.py": IN_WORKERS_ONLY + BACKEND,
        "fingers_backend/kernels/vecadd/tuned/fingers.py": kernel("vecadd", "+"),
        "fingers_backend/kernels/vecadd/lecture/numpy.py": kernel("vecadd", "*"),  # not its to bring
        "fingers_backend/kernels/vecsub/tuned/fingers.py": kernel("vecsub"),
        "fingers_backend/kernels/vecsub/lecture/fingers.py": kernel("vecsub", "*"),  # the kernel's own comes first
        "fingers_backend/kernels/vecadd/__pycache__/fingers.pyc": "",
    }
    install(folder, BACKENDS, {"fingers": "fingers_backend"}, backend, "some-fingers", "1.2")
    texts = {f"vecsub_kernel/deeper/lecture/{name}": kernel("vecsub") for name in ("fingers.py", "numpy.py")}
    problem = {"vecsub_kernel/__init__.py": "", "vecsub_kernel/deeper/problem.py": PROBLEM.format(name="vecsub")}
    install(folder, KERNELS, {"vecsub": "vecsub_kernel.deeper"}, problem | texts, "some-vecsub", "3.4")


@pytest.fixture(scope="module")
def sound_doctor(sound: Place) -> Any:
    code, found = sound.results("doctor")
    assert code == 0
    return found


@pytest.fixture(scope="module")
def sound_rows(sound: Place) -> Rows:
    code, report = sound.results("compare", "--variant", "all", *SMALL, "--shape", "vecsub=521", "--budget", "2")
    assert code == 0, report
    return {(row["kernel"], row["backend"], row["variant"]): row for row in report["rows"]}


class TestSound:
    def test_doctor_sees_them(self, sound_doctor: Any) -> None:
        entries = {entry["backend"]: entry for entry in sound_doctor["backends"]}
        assert set(entries) == {"fingers", "numpy", "python"}
        assert entries["numpy"]["package"] is None
        fingers = {name: entries["fingers"][name] for name in ("target", "available", "device", "package", "reason")}
        assert fingers == {
            "target": "abacus", "available": True, "device": "wood", "package": "some-fingers 1.2", "reason": None,
        }  # fmt: skip
        assert sound_doctor["plugin_kernels"] == [
            {
                "kernel": "vecsub", "package": "some-vecsub 3.4", "available": True,
                "backends": ["fingers", "numpy"], "reason": None, "fix": None,
            }
        ]  # fmt: skip

    def test_doctor_prints_them(self, sound: Place) -> None:
        lines = [" ".join(line.split()) for line in sound.command("doctor").stdout.splitlines()]
        assert "fingers abacus available wood, 1, from some-fingers 1.2" in lines
        assert "vecsub some-vecsub 3.4 available fingers, numpy" in lines

    def test_compare_runs_them(self, sound_rows: Rows) -> None:
        ran = {name for name, row in sound_rows.items() if row["status"] == "ok"}
        assert {name for name in ran if "fingers" in name or "vecsub" in name} == {
            ("vecadd", "fingers", "tuned"), ("vecsub", "fingers", "tuned"), ("vecsub", "fingers", "lecture"),
            ("vecsub", "numpy", "lecture"),
        }  # fmt: skip
        assert sound_rows["vecsub", "fingers", "tuned"]["target"] == "abacus"
        assert sound_rows["vecsub", "fingers", "tuned"]["seconds"]["kernel"]["samples"] >= 1

    def test_results_tell_their_versions(self, sound_doctor: Any) -> None:
        packages = sound_doctor["machine"]["packages"]
        assert (packages["some-fingers"], packages["some-vecsub"]) == ("1.2", "3.4")

    def test_a_plug_in_is_no_baseline(self, sound_rows: Rows) -> None:
        baselines = {row["versus"]["baseline"] for row in sound_rows.values() if row["versus"]}
        assert baselines == {"numpy"}

    def test_show_tells_where_texts_lie(self, sound: Place) -> None:
        shown = sound.command("show", "vecsub", "--backend", "fingers,numpy", "--variant", "all").stdout
        heads = [line.split()[1:3] for line in shown.splitlines() if line.startswith("==>")]
        assert heads == [
            ["fingers", "fingers_backend/kernels/vecsub/tuned/fingers.py"],
            ["fingers", "vecsub_kernel/deeper/lecture/fingers.py"],
            ["numpy", "vecsub_kernel/deeper/lecture/numpy.py"],
        ]

    def test_a_text_in_python_is_a_module_of_its_package(self, sound: Place) -> None:
        """Numba compiles no other, and its simulator swaps a module's names."""
        load = "print(registry.kernel_texts('vecsub', 'numpy')['lecture'].load().__name__)"
        run = sound.python("-c", f"from py_backends import registry; {load}")
        assert run.stdout.strip() == "vecsub_kernel.deeper.lecture.numpy", run.stderr

    def test_names_are_known_and_near_ones_suggested(self, sound: Place) -> None:
        assert "'vecsub'" in sound.command("compare", "--kernel", "vecsubb").stderr
        assert "'fingers'" in sound.command("compare", "--backend", "finger").stderr
        assert "dimensions N" in sound.command("compare", "--shape", "vecsub=3x4").stderr

    @pytest.mark.parametrize("what", [["-c", "import py_backends"], ["-m", "py_backends", "compare", "--help"]])
    def test_none_is_looked_for_where_none_is_asked_for(self, sound: Place, what: list[str]) -> None:
        errors = sound.python("-X", "importtime", *what).stderr
        loaded = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
        assert "py_backends" in loaded
        assert not {"importlib.metadata", "vecsub_kernel", "fingers_backend"} & loaded


@pytest.fixture(scope="module")
def wrong_backends(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Backends with every fault, and one that is sound."""
    folder = tmp_path_factory.mktemp("wrong-backends")
    install_sound(folder)
    for name, (text, _) in WRONG_BACKENDS.items():
        texts = {f"brought_{name}/kernels/vecadd/lecture/{name}.py": kernel("vecadd", "+")}
        files = {} if text is None else {f"brought_{name}/__init__.py": text} | texts
        install(folder, BACKENDS, {name: f"brought_{name}"}, files, f"broken-{name}")
    for name in REFUSED_BACKENDS.keys() - {"twice", "attribute"}:
        install(folder, BACKENDS, {name: "brought_lacks"}, {}, f"broken-{name}")
    install(folder, BACKENDS, {"attribute": "brought_attribute:Backend"}, {}, "broken-attribute")
    install(folder, BACKENDS, {"twice": "one"}, {}, "some-twice")
    install(folder, BACKENDS, {"twice": "other"}, {}, "other-twice", "2.0")
    return Place(clone, folder)


@pytest.fixture(scope="module")
def backend_rows(wrong_backends: Place) -> Rows:
    code, report = wrong_backends.results("compare", "--kernel", "vecadd", *SMALL[:2], "--budget", "2")
    assert code == 0, "what is unavailable is no failure"
    return {(row["backend"], row["target"]): row for row in report["rows"]}


@pytest.fixture(scope="module")
def backend_doctor(wrong_backends: Place) -> Rows:
    code, found = wrong_backends.results("doctor")
    assert code == 0
    return {(entry["backend"], entry["target"]): entry for entry in found["backends"]}


def test_who_writes_a_backend_is_told_where_it_fails_and_what_it_lacks(clone: Path, tmp_path: Path) -> None:
    stumbles = BACKEND.replace("return lambda buffers, sizes: ", "return lambda buffers, sizes: {}[dtype] or ")
    assert stumbles != BACKEND
    files = {
        "stumbling/__init__.py": stumbles,
        "stumbling/kernels/vecadd/lecture/stumbles.py": kernel("vecadd", "+"),
        "textless/__init__.py": BACKEND,
    }
    install(tmp_path, BACKENDS, {"stumbles": "stumbling", "textless": "textless"}, files, "some-beginners")
    _, report = Place(clone, tmp_path).results("compare", *SMALL[:2], "--backend", "stumbles,textless", "--budget", "1")
    said = {(row["kernel"], row["backend"]): (row["status"], row["reason"], row["fix"]) for row in report["rows"]}
    line = next(at for at, text in enumerate(dedent(stumbles).splitlines(), 1) if "{}[dtype]" in text)
    reason = f"KeyError: dtype('float32') (stumbling/__init__.py, line {line})"
    assert said["vecadd", "stumbles"][:2] == ("error", reason)
    status, reason, fix = said["matmul", "stumbles"]
    assert (status, "no matmul" in reason, fix) == ("skipped", True, None)
    status, reason, lacks = said["vecadd", "textless"]
    assert (status, "no vecadd" in reason) == ("skipped", True)
    assert ("some-beginners 1.0" in lacks, "kernels/KERNEL/VARIANT/textless.*" in lacks) == (True, True)
    options = "-p", "no:cacheprovider", "--pyargs", "py_backends.conformance", "--backend", "textless"
    suite = Place(clone, tmp_path).python("-m", "pytest", *options)
    assert re.search(rf"ERROR: .*textless .*: {re.escape(lacks)}", suite.stderr)


@pytest.mark.slow
class TestWrongBackends:
    @pytest.mark.parametrize("fault", WRONG_BACKENDS)
    def test_a_fault_is_an_unavailable_row(self, backend_rows: Rows, fault: str) -> None:
        row = backend_rows[fault, "unknown"]
        assert row["status"] == "unavailable"
        assert WRONG_BACKENDS[fault][1] in row["reason"]
        assert f"broken-{fault} 1.0" in row["reason"]
        assert f"pip uninstall broken-{fault}" in row["fix"]

    @pytest.mark.parametrize("name", REFUSED_BACKENDS)
    def test_a_refused_name_is_an_unavailable_row(self, backend_rows: Rows, name: str) -> None:
        row = backend_rows[name, "unknown"]
        assert row["status"] == "unavailable"
        assert row["reason"].startswith(REFUSED_BACKENDS[name])

    def test_doctor_says_the_same(self, backend_rows: Rows, backend_doctor: Rows) -> None:
        for name in [*WRONG_BACKENDS, *REFUSED_BACKENDS]:
            said = backend_doctor[name, "unknown"]
            assert (
                said["reason"].split("; it last wrote")[0]
                == backend_rows[name, "unknown"]["reason"].split("; it last")[0]
            )
            assert not said["available"]

    def test_the_others_stand(self, backend_rows: Rows) -> None:
        right = {name for (name, _), row in backend_rows.items() if row["status"] == "ok"}
        assert right == {"fingers", "numpy", "python"}

    def test_a_refused_one_can_be_asked_for_too(self, wrong_backends: Place) -> None:
        code, report = wrong_backends.results("compare", "--kernel", "vecadd", "--backend", "twice,two-words")
        assert [(row["backend"], row["status"]) for row in report["rows"]] == [
            ("twice", "unavailable"), ("two-words", "unavailable"),
        ]  # fmt: skip
        assert code == 1, "nothing ran"

    def test_functions_say_why(self, wrong_backends: Place) -> None:
        run = wrong_backends.python("-c", FUNCTIONS_OF_WRONG_BACKENDS)
        assert run.returncode == 0, run.stderr
        said = run.stdout.splitlines()
        for line, name in zip(said, ["raises", "targets_none", "alien", "exits"], strict=False):
            assert line.startswith("BackendUnavailable")
            assert WRONG_BACKENDS[name][1] in line
        assert said[4].startswith("BackendUnavailable other-twice 2.0 and some-twice 1.0 ")
        assert said[5].startswith("WrongRequest ")
        assert "'fingers'" in said[5]

    def test_show_says_why(self, wrong_backends: Place) -> None:
        run = wrong_backends.command("show", "vecadd", "--backend", "twice")
        assert (run.returncode, run.stderr.count("\n")) == (2, 1)
        assert "other-twice 2.0 and some-twice 1.0 " in run.stderr


def install_backend(folder: Path, name: str, text: str) -> None:
    """A backend with a source of vecadd."""
    files = {f"{name}_backend/__init__.py": text, f"{name}_backend/kernels/vecadd/lecture/{name}.py": "\n"}
    install(folder, BACKENDS, {name: f"{name}_backend"}, files, f"some-{name}")


@pytest.mark.slow
def test_a_device_that_is_none_is_an_error(clone: Path, tmp_path: Path) -> None:
    install_backend(tmp_path, "nothing", NOTHING)
    code, report = Place(clone, tmp_path).results("compare", "--kernel", "vecadd", *SMALL[:2], "--backend", "nothing")
    assert (code, [row["status"] for row in report["rows"]]) == (1, ["error"])
    assert re.match(r"TypeError: open\(\) .*None", report["rows"][0]["reason"])


@pytest.mark.slow
def test_a_launch_that_is_none_is_an_error(clone: Path, tmp_path: Path) -> None:
    files = {
        "idle/__init__.py": BACKEND.replace("return lambda buffers, sizes: ", "lambda buffers, sizes: "),
        "idle/kernels/vecadd/lecture/starts_nothing.py": kernel("vecadd", "+"),
    }
    install(tmp_path, BACKENDS, {"starts_nothing": "idle"}, files, "some-idle")
    place = Place(clone, tmp_path)
    code, report = place.results("compare", "--kernel", "vecadd", *SMALL[:2], "--backend", "starts_nothing")
    words = "TypeError: prepare() returns None, not what launches the kernel"
    assert (code, [row["reason"] for row in report["rows"]]) == (1, [words])
    called = f'{SAID}\nsaid(pb.vecadd, a, b, backend="starts_nothing")'
    assert place.python("-c", called).stdout.strip() == words.replace(":", "", 1)


def test_functions_say_what_is_wrong_with_a_target_that_is_named(clone: Path, tmp_path: Path) -> None:
    install_backend(tmp_path, "nothing", NOTHING)
    run = Place(clone, tmp_path).python("-c", FUNCTIONS_OF_NOTHING)
    *wrong, unknown, none = run.stdout.splitlines()
    for line, name, why in zip(wrong, ("raises", "text", "odd"), ("OSError: no bus", "'x'", " 3,"), strict=True):
        assert line.startswith(f"BackendUnavailable target('{name}') of some-nothing 1.0 ")
        assert why in line
        assert line.endswith(" pip uninstall some-nothing")
    assert re.fullmatch("WrongRequest .*'unknown'.* 'x'", unknown)
    assert re.match(r"TypeError open\(\) .*None", none)


def test_a_backend_may_call_another_in_its_first_call(clone: Path, tmp_path: Path) -> None:
    install_backend(tmp_path, "within", WITHIN)
    run = Place(clone, tmp_path).python("-c", FUNCTIONS_OF_WITHIN)
    assert (run.returncode, run.stdout) == (0, "[6. 9.]\n"), run.stderr


def test_functions_can_be_pickled(sound: Place) -> None:
    """As arguments of a pool of processes are."""
    run = sound.python("-c", PICKLED)
    assert (run.stdout, run.stderr) == ("True True\n", "")


@pytest.fixture(scope="module")
def wrong_kernels(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Kernels with every fault, and one that is sound."""
    folder = tmp_path_factory.mktemp("wrong-kernels")
    install_sound(folder)
    texts = {name: text for name, (text, _) in WRONG_PROBLEMS.items() if text is not None}
    texts |= {name: PROBLEM.replace(old, new) for name, (old, new, _) in MISBEHAVING_PROBLEMS.items()}
    for name, text in texts.items():
        files = {
            f"brought_{name}/__init__.py": "",
            f"brought_{name}/problem.py": text.replace("{name}", name),
            f"brought_{name}/lecture/numpy.py": kernel(name),
        }
        install(folder, KERNELS, {name: f"brought_{name}"}, files, f"broken-{name}")
    install(folder, KERNELS, {"absent_kernel": "brought_absent_kernel"}, {}, "broken-absent_kernel")
    for name in REFUSED_KERNELS.keys() - {"twice"}:
        install(folder, KERNELS, {name: "brought_number"}, {}, f"broken-{name}-kernel")
    install(folder, KERNELS, {"twice": "brought_number"}, {}, "some-twice-kernel")
    install(folder, KERNELS, {"twice": "brought_raising"}, {}, "other-twice-kernel", "2.0")
    return Place(clone, folder)


@pytest.fixture(scope="module")
def kernel_rows(wrong_kernels: Place) -> Rows:
    small = [option for kernel in OWN for option in ("--shape", f"{kernel}=9")]  # none is too long for the budget
    code, report = wrong_kernels.results("compare", "--kernel", "all", *small, "--budget", "3")
    assert code == 1
    by_kernel: Rows = {}
    for row in report["rows"]:
        by_kernel.setdefault(row["kernel"], []).append(row)
    return by_kernel


@pytest.mark.slow
class TestWrongKernels:
    @pytest.mark.parametrize("fault", [name for name in WRONG_PROBLEMS if name != "absent_kernel"])
    def test_a_fault_is_an_error_where_there_is_a_text(self, kernel_rows: Rows, fault: str) -> None:
        (row,) = kernel_rows[fault]
        assert (row["backend"], row["variant"], row["status"]) == ("numpy", "lecture", "error")
        assert (row["shape"], row["check"], row["seconds"]) == ({}, None, None)
        assert row["reason"].startswith(f"broken-{fault} 1.0 ")
        assert WRONG_PROBLEMS[fault][1] in row["reason"]
        assert f"pip uninstall broken-{fault}" in row["fix"]

    def test_without_any_text_it_is_an_error_everywhere(self, kernel_rows: Rows) -> None:
        found = {row["backend"]: (row["status"], row["reason"]) for row in kernel_rows["absent_kernel"]}
        error = (
            "broken-absent_kernel 1.0 brings no problem: ModuleNotFoundError: No module named 'brought_absent_kernel'"
        )
        assert {name for name, said in found.items() if said == ("error", error)} == {"fingers", "numpy", "python"}

    @pytest.mark.parametrize("fault", MISBEHAVING_PROBLEMS)
    def test_what_fails_when_it_runs_is_an_error_too(self, kernel_rows: Rows, fault: str) -> None:
        row = next(row for row in kernel_rows[fault] if row["backend"] == "numpy")
        assert row["status"] == "error"
        assert f"broken-{fault} 1.0 " in row["reason"]
        assert MISBEHAVING_PROBLEMS[fault][2] in row["reason"]

    def test_a_refused_name_is_an_error_unless_it_stands_for_a_sound_one(self, kernel_rows: Rows) -> None:
        for name in ("twice", "two-words", "compare"):
            assert {row["status"] for row in kernel_rows[name] if row["backend"] == "numpy"} == {"error"}
            assert kernel_rows[name][0]["reason"].startswith(REFUSED_KERNELS[name])
        assert "error" not in {row["status"] for row in kernel_rows["matmul"]}

    def test_the_others_stand(self, kernel_rows: Rows) -> None:
        right = {
            (row["kernel"], row["backend"]) for found in kernel_rows.values() for row in found if row["status"] == "ok"
        }
        assert right == {
            *((kernel, own) for own in ("numpy", "python") for kernel in OWN if registry.kernel_files(kernel, own)),
            ("vecadd", "fingers"), ("vecsub", "fingers"), ("vecsub", "numpy"),
        }  # fmt: skip

    def test_doctor_says_it_too(self, wrong_kernels: Place) -> None:
        code, found = wrong_kernels.results("doctor")
        assert code == 0
        reasons = {entry["kernel"]: entry["reason"] for entry in found["plugin_kernels"]}
        for name, (_, words) in WRONG_PROBLEMS.items():
            assert words in reasons[name]
        for name, words in REFUSED_KERNELS.items():
            assert reasons[name].startswith(words)
        assert reasons["vecsub"] is None
        assert "kernel raising" in wrong_kernels.command("doctor").stdout

    @pytest.mark.parametrize("command", [["show", "raising"], ["sweep", "--kernel", "raising"]], ids=lambda c: c[0])
    def test_who_asks_for_one_alone_is_told_in_a_line(self, wrong_kernels: Place, command: list[str]) -> None:
        run = wrong_kernels.command(*command)
        assert (run.returncode, run.stderr.count("\n")) == (2, 1)
        assert re.search("broken-raising 1.0 .*RuntimeError: no / way", run.stderr)

    def test_commands_that_need_a_shape_of_every_kernel_do_without_those(self, wrong_kernels: Place) -> None:
        options = "--kernel", "all", "--sizes", "8,16,32", "--backend", "python", "--variant", "tuned"  # it has none
        code, report = wrong_kernels.results("sweep", *options)
        assert (code, {row["status"] for row in report["rows"]}) == (1, {"skipped"})
        assert {row["kernel"] for row in report["rows"]} - MISBEHAVING_PROBLEMS.keys() == {*OWN, "vecsub"}

    def test_a_page_shows_a_report_with_them(self, wrong_kernels: Place, tmp_path: Path) -> None:
        results, page = tmp_path / "r.json", tmp_path / "page.html"
        options = "--kernel", "raising,reference_raises", "--backend", "numpy", "--budget", "1", "--json", results
        wrong_kernels.command("compare", *options, "--markdown", tmp_path / "r.md", "--csv", tmp_path / "r.csv")
        run = wrong_kernels.command("report", results, "-o", page)
        assert run.returncode == 0, run.stderr
        for path in (page, tmp_path / "r.md", tmp_path / "r.csv"):
            assert "broken-raising 1.0 " in path.read_text()
        assert "brought_reference_raises/lecture/numpy.py" in page.read_text()

    def test_functions_say_why(self, wrong_kernels: Place) -> None:
        run = wrong_kernels.python("-c", FUNCTIONS_OF_WRONG_KERNELS)
        assert run.returncode == 0, run.stderr
        result, raising, nothing, names = run.stdout.splitlines()
        assert (result, names) == ("[4. 5.]", "['matmul', 'vecadd', 'vecsub']")
        why = "broken-raising 1.0 .*RuntimeError: no / way; .*pip uninstall broken-raising"
        assert re.fullmatch(f"AttributeError .*'raising': {why}", raising)
        assert re.fullmatch("AttributeError .*'nothing'", nothing)


def test_a_damaged_installation_is_told_too(clone: Path, tmp_path: Path) -> None:
    install(tmp_path, BACKENDS, {"lost": "nowhere"}, {}, "some-lost")
    (tmp_path / "some_lost-1.0.dist-info" / "METADATA").unlink()
    code, found = Place(clone, tmp_path).results("doctor")
    (lost,) = (entry for entry in found["backends"] if entry["backend"] == "lost")
    assert code == 0
    assert re.fullmatch("a nameless package .*ModuleNotFoundError: .*'nowhere'", lost["reason"])


def test_names_that_py_backends_has_are_taken() -> None:
    """Who adds a module or a public name finds out here that plug-ins may not have it."""
    taken = set(plugins._TAKEN[KERNELS])
    package = Path(registry.__file__).parent
    modules = {path.stem for path in package.glob("[!_]*.py")}
    folders = {path.parent.name for path in package.glob("*/__init__.py") if not path.parent.name.startswith("_")}
    assert (modules | folders | set(py_backends._MODULES) | {"kernels"}) - taken == set()


@pytest.mark.parametrize("kernel", registry.kernel_names())
def test_problems_are_as_those_of_plug_ins_have_to_be(kernel: str) -> None:
    """Who adds a kernel finds out here what is wrong with its problem."""
    plugins.checked_problem(registry.problem(kernel), kernel)


def test_options_of_the_functions_are_no_names_of_inputs() -> None:
    """Who adds an option finds out here that no input may be named as it is."""
    for function in (api._of_a_and_b, api._of_any):
        parameters = inspect.signature(function(registry.problem("vecadd"))).parameters
        assert set(parameters) == {"a", "b"} | plugins._OPTIONS
