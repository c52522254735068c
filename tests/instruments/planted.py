"""Faults to plant in scratch copies of kernel sources: an instrument that does not report one reports nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from py_backends import registry
from py_backends.kernel_text import KernelText

WRITE, READ, RACE, OVERFLOW = "out-of-bounds write", "out-of-bounds read", "race", "overflow"
BARRIER = "barrier"


@dataclass(frozen=True)
class Fault:
    """A change to one source that is wrong in one way.

    name: says where it is.
    kind: what it is, which decides on the instruments that have to report it.
    old, new: what is replaced, all of it, by what.
    form: of the source that it is in, `CPU` or `GPU`, where it has several.
    """

    name: str
    kind: str
    backend: str
    kernel: str
    variant: str
    old: str
    new: str
    form: str | None = None

    def planted(self, folder: Path) -> KernelText:
        """The faulty source, a file in `folder`. The fault may be in a header beside it, which then lies there too."""
        text = registry.kernel_texts(self.kernel, self.backend)[self.variant]
        files = [text.path, *sorted(text.path.parent.glob("*.hpp"))]
        faulty = next((file for file in files if self.old in file.read_text(encoding="utf-8")), None)
        assert faulty, f"{text.path} is no longer what {self.name} was planted in"
        for file in {text.path, faulty}:
            source = file.read_text(encoding="utf-8")
            changed = source.replace(self.old, self.new) if file == faulty else source
            (folder / file.name).write_text(changed, encoding="utf-8")
        return replace(text, path=folder / text.path.name)


def of(faults: Iterable[Fault], *kinds: str) -> list[Fault]:
    """Those of some kinds."""
    return [fault for fault in faults if fault.kind in kinds]


_SUM = "c[i] = narrow<T>(widen(a[i]) + widen(b[i]))"
"""What the lecture texts of vecadd in C++, CUDA and SYCL compute."""

CUDA = [
    Fault("one element on", WRITE, "cuda", "vecadd", "lecture", _SUM, _SUM.replace("i", "i + 1", 1)),
    Fault("one element before", WRITE, "cuda", "vecadd", "lecture", _SUM, _SUM.replace("i", "i - 1", 1)),
    Fault("too many threads", READ, "cuda", "vecadd", "lecture", "i < n", "i <= n"),
    Fault("the end of shared memory", WRITE, "cuda", "matmul", "tuned", "to_a = p_of_a", "to_a = 9999 + p_of_a"),
    Fault("two threads of a block", RACE, "cuda", "vecadd", "lecture", "c[i]", "c[i / 2]"),
    Fault("two blocks", RACE, "cuda", "vecadd", "lecture", "c[i]", "c[i % 256]"),
    Fault("without the barrier", RACE, "cuda", "matmul", "tuned", "__syncthreads();  // all", "// all"),
    Fault("an index of 32 bits", OVERFLOW, "cuda", "vecadd", "lecture", "threadIdx.x;",
          "(int(threadIdx.x) + 2147483647) % 2;"),
    Fault("some threads only", BARRIER, "cuda", "matmul", "tuned", "__syncthreads();  // all",
          "if (thread) __syncthreads();  // all"),
]  # fmt: skip

SYCL = [
    Fault("one element on", WRITE, "sycl", "vecadd", "lecture", _SUM, _SUM.replace("i", "i + 1", 1)),
    Fault("a part of local memory", WRITE, "sycl", "matmul", "tuned", "part_of_b[at / group_columns]",
          "part_of_b[slice]",
          "GPU"),
    Fault("the last vector", WRITE, "sycl", "matmul", "tuned", "height >= rows && width >= registers * lanes", "true",
          "CPU"),
    Fault("two work items", RACE, "sycl", "vecadd", "lecture", "c[i]", "c[i / 2]"),
    Fault("without the barrier", RACE, "sycl", "matmul", "tuned", "sycl::group_barrier(item.get_group());", "", "GPU"),
    Fault("two chunks", RACE, "sycl", "vecadd", "tuned", "sycl::min(n, begin + chunk)", "n", "CPU"),
    Fault("an index of 32 bits", OVERFLOW, "sycl", "vecadd", "lecture", "item.get_global_id(0)",
          "(int(item.get_global_id(0)) + 2147483647) % 2"),
]  # fmt: skip

MODULES = [
    Fault("one element on", WRITE, "openmp", "vecadd", "lecture", _SUM, _SUM.replace("i", "i + 1", 1)),
    Fault("a column less of workspace", WRITE, "openmp", "matmul", "tuned", "parts(n, width) * width)",
          "parts(n, width) * width - 1)"),
    Fault("a sum for all threads", RACE, "openmp", "matmul", "lecture", "Sum<T> sum = 0;",
          "static Sum<T> sum; sum = 0;"),
    Fault("without the barrier", RACE, "openmp", "matmul", "tuned", "for schedule(static)",
          "for schedule(static) nowait"),
    Fault("one element on", WRITE, "stdpar", "vecadd", "lecture", "b, c, [", "b, c + 1, ["),
    Fault("one register on", WRITE, "avx", "vecadd", "lecture", "V::store(c + i", "V::store(c + i + V::lanes"),
    Fault("the chunk of another thread", RACE, "avx", "vecadd", "tuned", "least(thread * chunk, n)", "Size(0)"),
]  # fmt: skip
"""In sources that are compiled ahead of time."""

MODULES_BY_CLANG = [
    Fault("one lane on", WRITE, "avx", "matmul", "tuned", "sum[r][s], ragged);", "sum[r][s], ragged + 1);"),
    # Where the flags have -fwrapv, as here, g++ and clang++ before 19 look for no overflow.
    Fault("an index of 32 bits", OVERFLOW, "openmp", "vecadd", "lecture", "c[i]", "c[(int(i) + 2147483647) % 2]"),
]  # fmt: skip
"""Nor does g++ instrument intrinsics that load or store some lanes only, or past the cache."""

OPENCL = [
    Fault("one element on", WRITE, "opencl", "vecadd", "lecture", "c[i] =", "c[i + 1] ="),
    Fault("too many work items", READ, "opencl", "vecadd", "lecture", "i < n", "i <= n"),
    Fault("the end of a panel", WRITE, "opencl", "matmul", "tuned", "((global Factors*)panel)[s] =",
          "((global Factors*)panel)[s + 1000000 * depth] =", "CPU"),
    Fault("the end of local memory", WRITE, "opencl", "matmul", "tuned", "to[q / block][q % block]",
          "to[q / block + 1][q % block]", "GPU"),
    Fault("two work items", RACE, "opencl", "vecadd", "lecture", "c[i]", "c[i / 2]"),
    Fault("two groups", RACE, "opencl", "vecadd", "lecture", "c[i]", "c[i % 256]"),
    Fault("two chunks", RACE, "opencl", "vecadd", "tuned", "end = min(n, i + chunk)", "end = n", "CPU"),
    Fault("without the barrier", RACE, "opencl", "matmul", "tuned", "barrier(CLK_LOCAL_MEM_FENCE);  // before",
          "// before", "GPU"),
    Fault("an index of 32 bits", OVERFLOW, "opencl", "vecadd", "lecture", "get_global_id(0)",
          "((int)get_global_id(0) + 2147483647) % 2"),
    Fault("some work items only", BARRIER, "opencl", "matmul", "tuned", "barrier(CLK_LOCAL_MEM_FENCE);  // before",
          "if (get_local_id(0)) barrier(CLK_LOCAL_MEM_FENCE);  // before", "GPU"),
]  # fmt: skip
