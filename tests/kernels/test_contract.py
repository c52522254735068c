"""What every kernel text promises: a head comment of one shape, few lines, indices of 64 bits, exact grids."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from py_backends import registry, source_head
from py_backends.contract import Adopted, Device, Problem, Reference, Target
from py_backends.functions import api
from py_backends.kernel_text import KernelText, Stages, WorkItems

LABEL = r"([A-Z][a-z]+(?: items)?)(?: of \w+)?(?: on a [CG]PU)?: "
TWO_FORMS = """\
// Model: a form for each kind of device.
// ---
// Work items of pack on a CPU: ceil(m / 84), in groups of 1
// Work items of multiply on a CPU: ceil(n / 128) x ceil(m / 84), in groups of 1 x 1
// Work items on a GPU: n x m, in groups of 128 x 128
// Scratch on a CPU: 84 * ceil(m / 84) * k + n elements of Sum
"""
LONGEST_LECTURE = 30
"""Lines of a kernel, without its head comment, includes and imports."""


TEXTS = [
    text
    for kernel in registry.kernel_names()
    for backend in registry.backend_names()
    for text in registry.kernel_texts(kernel, backend).values()
    if text.package is None  # plug-ins' texts are their authors' affair
]


def texts(*suffixes: str, variant: str | None = None) -> list[object]:
    """Every kernel text, those of some languages or of one variant, as parameters."""
    return [
        pytest.param(text, id=f"{text.kernel}-{text.variant}-{text.path.name}")
        for text in TEXTS
        if (not suffixes or text.path.suffix in suffixes) and variant in (None, text.variant)
    ]


class TestWorkItems:
    @pytest.mark.parametrize(
        ("line", "sizes", "groups"),
        [
            ("n, in groups of 256", {"n": 257}, (2,)),
            ("n, in groups of 256", {"n": 256}, (1,)),
            ("n, in groups of 256", {"n": 0}, (1,)),
            ("n x m, in groups of 16 x 8", {"m": 17, "n": 31, "k": 5}, (2, 3)),
            ("n x ceil(m / 4), in groups of 16 x 16", {"m": 65, "n": 16, "k": 5}, (1, 2)),
            ("ceil(n / 64) x ceil(m / 64), in groups of 1 x 1", {"m": 128, "n": 129, "k": 5}, (3, 2)),
            ("ceil(n / 64) + ceil(m / 64) * k, in groups of 1", {"m": 128, "n": 129, "k": 5}, (13,)),
        ],
    )
    def test_groups_cover_the_work(self, line: str, sizes: dict[str, int], groups: tuple[int, ...]) -> None:
        assert WorkItems.parse(line).groups(sizes) == groups

    @given(count=st.integers(2**31, 2**62), width=st.sampled_from([1, 16, 255, 256, 1024]))
    def test_counts_beyond_32_bits_are_exact(self, count: int, width: int) -> None:
        (groups,) = WorkItems.parse(f"n, in groups of {width}").groups({"n": count})
        assert (groups - 1) * width < count <= groups * width
        x, y = WorkItems.parse(f"n x ceil(m / 4), in groups of {width} x 1").groups({"n": 1, "m": count})
        assert (x, 4 * (y - 1) < count <= 4 * y) == (1, True)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "// ---\n// Work items: n",
            "// ---\n// Work items: n, in groups of x",
            "// ---\n// Work items: n, m, in groups of 32, 8",
            "// ---\n// Work items n, in groups of 16",
            "// ---\n// Work items: n, in groups of 0",
            "// ---\n// Work items: n x m, in groups of 16",
            "// ---\n// Work items: n - 1, in groups of 16",
            "// ---\n// Work items: n x m - 1, in groups of 16 x 16",
            "// ---\n// Work items: ceil(n / 0), in groups of 16",
            "// ---\n// Work items of multiply: n",
            "// ---\n// Work items on a GPU: n, in groups of 16",
            "// ---\n// Work items: floor(n / 4), in groups of 16",
        ],
    )
    def test_what_is_unclear_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="head comment"):
            Stages.parse(text, "matmul")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "Work items: n, m, in groups of 32, 8",
                "'n, m, in groups of 32, 8': write it as in n x m, in groups of 32 x",
            ),
            (
                "Work items n",
                "'Work items n': write a name, a colon and a value, as in Work items: n, in groups of 256",
            ),
            ("Scratch: 8 * m", r"'8 \* m': write it as in ceil\(n / 256\) \* m elements of Sum"),
            ("Repeat: steps up to 8", "'steps up to 8': write it as in steps, or steps, up to 8 a launch"),
        ],
    )
    def test_the_right_form_is_told(self, text: str, words: str) -> None:
        with pytest.raises(ValueError, match=f"^unclear below --- in the head comment: {words}"):
            Stages.parse(f"// ---\n// Work items: n, in groups of 1\n// {text}\n", "matmul")

    @pytest.mark.parametrize("count", ["rows", "ceil(rows / 4)", "m * rows"])
    def test_a_size_that_the_kernel_lacks_is_named(self, count: str) -> None:
        with pytest.raises(ValueError, match="head comment names a size 'rows', and its sizes are m, n"):
            WorkItems.parse(f"{count}, in groups of 16").groups({"m": 2, "n": 3})

    def test_stages_are_launched_in_the_order_in_which_they_stand(self) -> None:
        on_cpu, on_gpu = Stages.parse(TWO_FORMS, "matmul", "CPU"), Stages.parse(TWO_FORMS, "matmul", "GPU")
        sizes = {"m": 85, "n": 127, "k": 3}
        assert [(name, items.groups(sizes)) for name, items in on_cpu.kernels] == [("pack", (2,)), ("multiply", (1, 2))]
        assert on_cpu.scratch_elements(sizes) == 84 * 2 * 3 + 127
        assert [(name, items.groups(sizes)) for name, items in on_gpu.kernels] == [("matmul", (1, 1))]
        assert on_gpu.scratch_elements(sizes) is None

    def test_tiles_of_a_cpu_are_a_form_apart(self) -> None:
        text = (
            f"{TWO_FORMS}// Work items of tiles on AMX: ceil(m / 32), in groups of 1\n"
            "// Scratch on AMX: m elements of Sum\n"
        )
        for device in ("CPU", "GPU"):
            assert Stages.parse(text, "matmul", device) == Stages.parse(TWO_FORMS, "matmul", device)
        assert Stages.parse(text, "matmul", "AMX") == Stages(
            (("tiles", WorkItems(("ceil(m / 32)",), (1,))),), "m", "Sum"
        )

    def test_a_plain_line_holds_on_every_device(self) -> None:
        text = "// ---\n// Work items: n, in groups of 256"
        found = [Stages.parse(text, "vecadd", device) for device in (None, "CPU", "GPU")]
        assert found == [Stages((("vecadd", WorkItems(("n",), (256,))),))] * 3

    def test_a_declaration_goes_on_in_lines_that_are_indented(self) -> None:
        text = (
            "// Model: one.\n// ---\n// Work items: n x\n//   ceil(m / 4), in\n//    groups of 16 x 16\n\n// Scratch: n"
        )
        assert Stages.parse(text, "matmul").kernels == (("matmul", WorkItems(("n", "ceil(m / 4)"), (16, 16))),)

    @pytest.mark.parametrize("said", ["Work itmes: n, in groups of 16", "Scratch of n elements", "Order : any"])
    def test_what_nobody_reads_is_refused(self, said: str) -> None:
        with pytest.raises(ValueError, match="below --- in the head comment"):
            Stages.parse(f"// ---\n// Work items: n, in groups of 16\n// {said}\n", "matmul")

    def test_scratch_memory_may_have_a_type_of_its_own(self) -> None:
        stages = Stages.parse("// ---\n// Work items: n, in groups of 1\n// Scratch: n elements of int32\n", "vecadd")
        asked: list[tuple[Any, ...]] = []
        problem = registry.problem("vecadd")
        list(stages.launches(problem, np.dtype("float16"), ["a", "b", "c"], (5,), lambda *each: asked.append(each)))
        assert asked == [(5, np.dtype("int32"), 0)]

    def test_scratch_memory_may_be_bounded_where_sizes_are_small(self) -> None:
        line = "Scratch: ceil(n / 8) * 8 * k elements of Sum, or 99 where n <= 8 and m <= 4"
        stages = Stages.parse(f"// ---\n// Work items: n, in groups of 1\n// {line}\n", "matmul")
        elements = [stages.scratch_elements({"m": m, "n": n, "k": 1000}) for m, n in ((4, 8), (5, 8), (4, 9))]
        assert elements == [99, 8000, 16000]

    @pytest.mark.parametrize(
        "scratch",
        [
            "m * k",
            "m x k elements of Sum",
            "m elements of Sum\n// Scratch: n elements of Sum",
            "m elements of Sum, or n where m <= 4",
            "m elements of Sum, or 9 where m < 4",
        ],
    )
    def test_unclear_scratch_memory_is_refused(self, scratch: str) -> None:
        with pytest.raises(ValueError, match="head comment"):
            Stages.parse(f"// ---\n// Work items: n, in groups of 1\n// Scratch: {scratch}\n", "matmul")

    @pytest.mark.parametrize("text", texts())
    def test_texts_with_work_items_declare_them(self, text: KernelText) -> None:
        own = [path.read_text(encoding="utf-8") for path in text.files if path.parent == text.path.parent]
        has_them = any(
            re.search(r"get_global_id|get_group|cuda\.grid|blockIdx|tl\.program_id|ct\.bid", part) for part in own
        )
        assert has_them == (re.search(r"^Work items", head(text), re.MULTILINE) is not None)
        for device in ("CPU", "GPU") if has_them else ():
            sizes = text.named_sizes([2**33 + 1] * len(text.problem.parameters))
            stages = text.stages(device)
            groups = [items.groups(sizes) for _, items in stages.kernels]
            for count, number in [
                pair for _, items in stages.kernels for pair in zip(items.counts, items.groups(sizes), strict=True)
            ]:
                assert 1 <= number <= 2 ** (34 * (count.count(" * ") + 1))
            assert any(max(of_kernel) > 1 for of_kernel in groups), "another may add up what these leave"
            assert all(re.search(rf"\b{name}\(", code(text)) for name, _ in stages.kernels)
            assert stages.scratch is None or (stages.scratch_elements(sizes) or 0) > 0

    @pytest.mark.parametrize("text", texts())
    def test_scratch_memory_is_in_proportion_to_the_arrays(self, text: KernelText) -> None:
        """A dot product of 153 MiB wanted 13 GiB, since rows and columns were filled up to whole tiles."""
        if not re.search(r"^Scratch", head(text), re.MULTILINE):
            return
        long = 10**7
        edges: list[tuple[int, ...]] = [(1,), (long,)]
        if text.kernel == "attention":
            edges = [(few, d, long // d) for few in (1, 12, 13) for d in (1, 4, 8, 9, 15, 64, 65)]
            edges += [(m, d, n) for n, d, m in edges]
        if text.kernel == "matmul":
            edges = [(m, n, long) for m in (1, 48, 49, 84, 85) for n in (1, 128, 129)]
            edges += [(1, long, 1), (long, 1, 1), (1, 1, 1)]
        elif len(text.problem.dimensions) == 2:
            narrow = [each for few in (1, 2, 3, 4, 15, 64, 65) for each in ((few, long), (long, few))]
            edges = [text.problem.whole_sizes(each) for each in narrow]
        for sizes in edges:
            arrays = sum(map(math.prod, text.problem.shapes(sizes)))
            elements = text.stages("CPU").scratch_elements(text.named_sizes(sizes))
            assert elements is not None
            assert elements <= 5 * arrays + 2**18, sizes


class TestWhatCMakeIsTold:
    """A hash, what to watch, and for each instruction set the formats in which a source is compiled."""

    @pytest.mark.parametrize(
        ("declared", "compiled_for"),
        [
            ("", ["avx2,float32,int8", "avx512,float32,int8"]),
            ("// ---\n// Formats on amx: int8\n", ["avx2,float32,int8", "amx,int8", "avx512,float32,int8"]),
            ("// ---\n// Formats: int8\n// Formats on avx512: float32\n", ["avx2,int8", "avx512,float32"]),
        ],
        ids=["nothing", "for a set that is compiled for where it is named", "for all sets and for one"],
    )  # fmt: skip
    def test_of_formats(self, declared: str, compiled_for: list[str], tmp_path: Path) -> None:
        source = self.source(tmp_path, declared)
        (tmp_path / "problem.py").write_text('class Mine:\n    dtypes = ("float32", "int8")\n')
        _, watched, *told = self.told(source)
        assert told == compiled_for
        assert watched.split(";") == [str(source), str(tmp_path / "beside.hpp"), str(tmp_path / "problem.py")]

    def test_of_formats_that_have_a_second_name(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        (tmp_path / "problem.py").write_text('class Mine:\n    exact = dtypes = ("int8",)\n')
        assert self.told(source)[2:] == ["avx2,int8", "avx512,int8"]

    def test_of_a_kernel_that_says_nothing(self, tmp_path: Path) -> None:
        _, watched, *told = self.told(self.source(tmp_path))
        assert told == ["avx2,float32,float64", "avx512,float32,float64"]
        assert "problem.py" not in watched

    def test_of_a_change_in_what_is_included(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        before, again = self.told(source), self.told(source)
        (tmp_path / "beside.hpp").write_text("// changed\n")
        after = self.told(source)
        assert before == again
        assert before[0] != after[0]
        assert before[1:] == after[1:]

    @staticmethod
    def source(folder: Path, declared: str = "") -> Path:
        (folder / "lecture").mkdir()
        (folder / "beside.hpp").write_text("// beside\n")
        source = folder / "lecture" / "avx.cpp"
        source.write_text(f'// mine: c = a.\n{declared}#include <cmath>\n#include "../beside.hpp"\n')
        return source

    @staticmethod
    def told(source: Path) -> list[str]:
        command = [sys.executable, source_head.__file__, str(source), "avx2;amx;avx512", "amx;sve"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_device_that_says_nothing_of_itself_promises_nothing() -> None:
    """The suite would hold it to bits that stay the same, and a forked child would compute on it."""

    class Silent(Device):
        prepare = upload = allocate = wait = download = release = lambda *_: None  # type: ignore[assignment]  # none is called

    device, launch = Silent(), lambda *_: None
    assert not any((device.deterministic, device.survives_fork, device.profiled, device.processes))
    assert device.on_cpu
    assert device.obeys_threads
    assert (device.note, device.cache_bytes) == (None, 0)
    assert {device.event_seconds(), device.communication(), device.bandwidth()} == {None}
    assert {device.peak(np.dtype(np.float32)), device.remark(launch, (), []), device.adopt(np.ones(1))} == {None}
    target = Target("mine")
    assert target.available
    assert target.subnormals
    assert not any((target.emulated, target.interpreted, target.borrowed, target.just_in_time, target.few_sizes))


class TestPlacing:
    """Buffers for inputs and outputs, in their order; none is left where one cannot be had."""

    class Noting(Device):
        """Notes what it does with arrays, which are named by their lengths, and has no room for one of `full`."""

        def __init__(self, full: int | None = None) -> None:
            self.full, self.released = full, list[Any]()

        def upload(self, array: Any) -> Any:
            return self._made("upload", array)

        def allocate(self, array: Any) -> Any:
            return self._made("allocate", array)

        def _made(self, how: str, array: Any) -> Any:
            if array.size == self.full:
                raise MemoryError
            return how, array.size

        def release(self, buffer: Any) -> None:
            self.released.append(buffer)

        prepare = wait = download = lambda *_: None  # type: ignore[assignment]  # none is called

    ARRAYS: ClassVar = [np.ones(count) for count in (1, 2, 3, 4)]

    @pytest.mark.parametrize(
        ("outputs", "filled", "uploaded"), [(1, False, 3), (2, False, 2), (1, True, 4), (2, True, 4)]
    )
    def test_inputs_are_uploaded_and_outputs_where_they_are_filled(
        self, outputs: int, filled: bool, uploaded: int
    ) -> None:
        placed = self.Noting().place(lambda *_: None, (), self.ARRAYS, outputs=outputs, filled=filled)
        assert placed == [("upload" if at < uploaded else "allocate", at + 1) for at in range(4)]

    def test_one_output_is_the_usual_number(self) -> None:
        assert [how for how, _ in self.Noting().place(lambda *_: None, (), self.ARRAYS)] == ["upload"] * 3 + [
            "allocate"
        ]

    def test_what_was_adopted_is_there(self) -> None:
        adopted = Adopted("there", (9,), np.dtype(np.float64), 0)
        placed = self.Noting().place(lambda *_: None, (), [adopted, *self.ARRAYS[:1]])
        assert placed == ["there", ("allocate", 1)]
        assert adopted.writable, "an output may be adopted, unless its device says that it may not"

    def test_what_was_placed_is_released_where_one_fails(self) -> None:
        device = self.Noting(full=3)
        with pytest.raises(MemoryError):
            device.place(lambda *_: None, (), self.ARRAYS)
        assert device.released == [("upload", 1), ("upload", 2)]


class Stepped(Problem):
    """A kernel with a number, whose output is like its second input."""

    name, signature, numbers = "stepped", "(),(n)->(n)", {"steps": 1}
    rule, rate, in_place = "bitwise", "gflops", False
    default_sizes: ClassVar[tuple[int, ...]] = (5, 2)

    def reference(self, inputs: Any, steps: int = 1) -> Reference:
        return Reference(inputs[1] + steps)

    def flops(self, sizes: Any) -> int:
        return int(math.prod(sizes))


class TestLaunches:
    """Of a source that is launched for each step."""

    STAGES = Stages.parse(
        "// ---\n// Work items of prepare: 1, in groups of 1\n"
        "// Work items of stepped: n, in groups of 2\n"
        "// Scratch: n elements of Sum\n"
        "// Repeat: steps\n",
        "stepped",
    )

    def launched(self, steps: int) -> tuple[list[tuple[Any, ...]], list[tuple[int, int]]]:
        """The launches on named buffers, and the elements of the pieces of scratch memory that were asked for."""
        asked: list[tuple[int, int]] = []

        def scratch(elements: int, _: np.dtype[Any], piece: int) -> str:
            asked.append((piece, elements))
            return f"scratch {piece}"

        buffers = ["factor", "input", "output"]
        launches = self.STAGES.launches(Stepped(), np.dtype("float32"), buffers, (5, steps), scratch)
        return [(each.at, *each.buffers, *each.sizes, *each.groups) for each in launches], asked

    @pytest.mark.parametrize("steps", range(5))
    def test_the_first_reads_the_input_and_the_last_writes_the_output(self, steps: int) -> None:
        launches, asked = self.launched(steps)
        assert [at for at, *_ in launches] == [0, 1] * max(1, steps)
        reads, writes = [each[2] for each in launches[1::2]], [each[3] for each in launches[1::2]]
        assert (reads[0], writes[-1]) == ("input", "output")
        assert reads[1:] == writes[:-1], "each reads what the one before wrote"
        assert all(read != written for read, written in zip(reads, writes, strict=True))
        assert set(writes) <= {"output", "scratch 1"}, "the input is never written"
        assert asked == [(0, 5), (1, 5)][: 2 if steps > 1 else 1]

    @pytest.mark.parametrize(("steps", "told"), [(0, 0), (1, 1), (3, 1)])
    def test_each_is_told_one_step_or_that_there_is_none(self, steps: int, told: int) -> None:
        launches, _ = self.launched(steps)
        assert {each[5:7] for each in launches} == {(5, told)}
        assert {each[7] for each in launches if each[0] == 1} == {3}, "groups of the elements, whatever the steps"

    @pytest.mark.parametrize(("steps", "told"), [(0, [0]), (1, [1]), (8, [8]), (9, [5, 4]), (20, [7, 7, 6])])
    def test_several_steps_of_a_launch_are_shared_evenly(self, steps: int, told: list[int]) -> None:
        stages = Stages.parse(
            "// ---\n// Work items: n, in groups of 1\n// Repeat: steps, up to 8 a launch\n", "stepped"
        )
        buffers = ["factor", "input", "output"]
        launches = list(stages.launches(Stepped(), np.dtype("float32"), buffers, (5, steps), lambda *_: "scratch"))
        assert sorted((each.sizes[1] for each in launches), reverse=True) == told
        assert (launches[0].buffers[1], launches[-1].buffers[2]) == ("input", "output")

    @pytest.mark.parametrize("said", ["steps up to 8 a launch", "steps, up to 0 a launch", "steps\n// Repeat: rounds"])
    def test_repeats_that_are_unclear_are_errors(self, said: str) -> None:
        with pytest.raises(ValueError, match=r"(unclear|twice) below --- in the head comment: .*"):
            Stages.parse(f"// ---\n// Work items: n, in groups of 1\n// Repeat: {said}\n", "stepped")

    def test_an_input_that_happens_to_have_the_length_of_the_output_stays(self) -> None:
        class Weighted(Stepped):
            name, signature, default_sizes = "weighted", "(k),(n)->(n)", (5, 2, 2)

        stages = Stages.parse("// ---\n// Work items: n, in groups of 1\n// Repeat: steps\n", "weighted")
        buffers = ["weights", "input", "output"]
        for k in (2, 5):
            launches = stages.launches(Weighted(), np.dtype("float32"), buffers, (5, k, 2), lambda *_: "scratch")
            assert [each.buffers for each in launches] == [
                ["weights", "input", "scratch"],
                ["weights", "scratch", "output"],
            ]

    def test_without_an_input_like_the_output_it_is_refused(self, tmp_path: Path) -> None:
        class Turned(Stepped):
            name, signature, default_sizes = "turned", "(n,m)->(m,n)", (5, 5, 2)

        path = tmp_path / "opencl.cl"
        path.write_text("// ---\n// Work items: n, in groups of 1\n// Repeat: steps\n", encoding="utf-8")
        with pytest.raises(ValueError, match="no input has the shape of its output"):
            KernelText(Turned(), "lecture", "opencl", path).stages()

    @pytest.mark.parametrize(
        ("problem", "why"),
        [
            (Stepped(), "repeats 'rounds', which is no whole number"),
            (registry.problem("matmul"), "which is no whole number of the kernel"),
        ],
    )
    def test_what_cannot_be_repeated_is_refused(self, tmp_path: Path, problem: Problem, why: str) -> None:
        path = tmp_path / "opencl.cl"
        path.write_text("// ---\n// Work items: n, in groups of 1\n// Repeat: rounds\n", encoding="utf-8")
        with pytest.raises(ValueError, match=why):
            KernelText(problem, "lecture", "opencl", path).stages()


class TestNumbers:
    """Those of a kernel that belong to no array."""

    def test_they_stand_behind_the_sizes(self) -> None:
        problem = Stepped()
        assert problem.parameters == ("n", "steps")
        assert problem.whole_sizes((7,)) == (7, 1)
        assert problem.whole_sizes((7, 3)) == (7, 3)
        assert problem.equal_sizes(9) == (9, 1)
        assert problem.resized((8, 4), lambda size: size // 2) == (4, 4), "only arrays become smaller"
        assert problem.shapes((7, 3)) == problem.shapes((7,)) == ((), (7,), (7,))
        with pytest.raises(ValueError, match="stepped takes the sizes n x steps: got 3 of them"):
            problem.whole_sizes((1, 2, 3))

    @pytest.mark.parametrize("wrong", [True, 1.0, "1", None, -1, 2**41])
    def test_a_call_refuses_what_is_no_whole_number(self, wrong: object) -> None:
        with pytest.raises(TypeError, match="steps of stepped must be a whole number from 0 to"):
            api._numbers(Stepped(), {"steps": wrong})

    def test_a_call_takes_them_by_name(self) -> None:
        named: dict[str, Any] = {"steps": np.int8(3), "other": 1}
        assert api._numbers(Stepped(), named) == (3,)
        assert named == {"other": 1}, "what is left is told as unknown"
        assert api._numbers(Stepped(), {}) == (1,)


class TestTexts:
    def test_there_are_texts_to_look_at(self) -> None:
        assert len(texts(variant="lecture")) >= 20
        assert len(texts(".cu", ".cl", ".cpp")) >= 10

    @pytest.mark.parametrize("text", texts())
    def test_head_comments_have_one_shape(self, text: KernelText) -> None:
        first, *others = head(text).partition("\n---")[0].splitlines()
        assert output(text), f"the first line has to begin with the kernel and what it computes: {first}"
        labels = [match[1] for line in others if (match := re.match(LABEL, line))]
        expected = ["Model", "Memory", "Edges"]
        assert [label for label in labels if label in expected] == expected
        assert set(labels) - {*expected} <= {"Idea", "Numbers"}, "what the machine reads stands below ---"

    @pytest.mark.parametrize("kernel", sorted({text.kernel for text in TEXTS}))
    def test_the_first_line_says_the_same_in_every_model(self, kernel: str) -> None:
        assert len({head(text).splitlines()[0] for text in TEXTS if text.kernel == kernel}) == 1

    @pytest.mark.parametrize("text", texts(variant="lecture"))
    def test_lecture_kernels_explain_what_they_use(self, text: KernelText) -> None:
        """What a first reader of the code would have to look up elsewhere."""
        explained = {
            r"get_global_id|cuda\.grid|blockIdx": "coalesces",
            r"gridDim|cuda\.gridsize": "65,535 blocks",
            r"sycl::ext::oneapi::experimental": "an extension of oneAPI",
        }
        for used, words in explained.items():
            assert (re.search(used, code(text)) is not None) == (words in head(text)), (
                f"the head comment has to say {words!r} where the source has {used}, and only there"
            )
        assert ("dtype.type(0)" in text.text) == ("A zero of c's type" in text.text)

    @pytest.mark.parametrize("text", texts(variant="lecture"))
    def test_lecture_kernels_fit_a_slide(self, text: KernelText) -> None:
        assert 1 <= len(kernel_lines(text)) <= LONGEST_LECTURE

    @pytest.mark.parametrize("text", texts(".cu", ".cl", ".cpp"))
    def test_sizes_have_64_bits(self, text: KernelText) -> None:
        kind = {".cu": "long long", ".cl": "long", ".cpp": "std::int64_t"}[text.path.suffix]
        parameters = ", ".join(f"{kind} {name}" for name in text.problem.parameters)
        names = (*text.problem.inputs, output(text))
        elements = "|".join(("T", "Sum", "Sum<T>", *counters(text)))
        arrays = ", ".join(rf"[\w ]*\b(?:{elements})\s*\*\s*(?:\w+ )*{name}" for name in names)
        scratch = rf"(?:, [\w ]*\b(?:{elements})\s*\*\s*(?:\w+ )*\w+)?"
        signature = rf"\b{text.kernel}\(\s*{arrays}{scratch},\s*{re.escape(parameters)}\s*\)"
        assert re.search(signature, " ".join(code(text).split())), signature

    @pytest.mark.parametrize("text", texts(".cu", ".cl", ".cpp", variant="lecture"))
    def test_indices_have_64_bits(self, text: KernelText) -> None:
        assert narrow_types(without_counters(code(text), counters(text))) == []

    @pytest.mark.parametrize("text", texts(".cu"))
    def test_products_of_cuda_indices_have_64_bits(self, text: KernelText) -> None:
        """`blockIdx.x * blockDim.x` is a product of 32 bits until one factor is widened."""
        assert narrow_products(code(text)) == []

    def test_narrow_integers_would_be_seen(self) -> None:
        assert narrow_types("for (int i = 0; i < n; ++i) unsigned j = uint32_t(i);") == ["int", "unsigned", "uint32_t"]
        assert narrow_types("std::int64_t i = 0; long long j = point;") == []
        counted = "int* c, local int table[256]; sycl::atomic_ref<int, relaxed> at; int i = 0;"
        assert narrow_types(without_counters(counted, ["int"])) == ["int"]
        assert narrow_types(without_counters(counted, [])) == ["int"] * 4
        assert narrow_products("(long long)blockIdx.x * blockDim.x") == []
        assert len(narrow_products("long long i = blockIdx.x * blockDim.x + threadIdx.x;")) == 1
        assert len(narrow_products("rows = gridDim.y * blockDim.y;")) == 1


def head(text: KernelText) -> str:
    """The head comment without its marks."""
    lines: list[str] = []
    for line in text.text.splitlines():
        match = re.match(r"(?://|#)(?: (.*))?$", line)
        if match is None:
            break
        lines.append(match[1] or "")
    return "\n".join(lines)


def output(text: KernelText) -> str:
    """What the source calls its output: the first line says `KERNEL: OUTPUT = ...`, or `OUTPUT[i] = ...`."""
    match = re.match(rf"{text.kernel}: (\w+)(?:\[[\w, ]+\])? = ", head(text))
    return match[1] if match else ""


def kernel_lines(text: KernelText) -> list[str]:
    """What follows the head comment, without blank lines, includes and imports."""
    lines = text.text.splitlines()[len(head(text).splitlines()) :]
    return [line for line in lines if line.strip() and not re.match(r"\s*(#include|import|from)\b", line)]


def code(text: KernelText) -> str:
    return "\n".join(re.sub(r"//.*", "", line) for line in text.text.splitlines())


def narrow_types(code: str) -> list[str]:
    """The integer types of fewer than 64 bits, as they occur."""
    return re.findall(r"\b(?:int|unsigned|short|uint|u?int(?:8|16|32)_t)\b", code)


def counters(text: KernelText) -> list[str]:
    """What the language calls the elements of an output that is int32 in every run; nothing of other outputs."""
    problem = text.problem
    always = {problem.result_dtype(np.dtype(each)).name for each in problem.dtypes} == {"int32"}
    return [{".cpp": "std::int32_t"}.get(text.path.suffix, "int")] if always else []


def without_counters(code: str, types: list[str]) -> str:
    """The code without the types of counters, where these are elements: of pointers, arrays and atomics."""
    for each in types:
        code = re.sub(rf"\b{each}(?=\s*\*|\s+\w+(?:\.\w+)?\s*\[)|(?<=<){each}\b", "", code)
    return code


def narrow_products(code: str) -> list[str]:
    """Products that begin with one of CUDA's built-in indices, which no cast has widened."""
    return list(_narrow_products(code))


def _narrow_products(code: str) -> Iterator[str]:
    index = r"(?:blockIdx|blockDim|gridDim|threadIdx)\.[xyz]"
    for match in re.finditer(rf"{index}\s*\*", code):
        before = code[: match.start()].rstrip()
        if not re.search(r"(\((?:unsigned )?long long\)|\*)$", before):
            yield match[0]
