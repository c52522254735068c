"""The CUDA texts compile for GPUs of several generations: NVIDIA's own compiler (NVRTC), and no GPU.

The emulation shows that they are right; this, that what it reads is CUDA C++.
"""

from __future__ import annotations

import ctypes
import importlib.util
import io
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import nightly
from cuda.bindings import nvrtc
from cuda.core import ObjectCode, Program, ProgramOptions

from py_backends import registry
from py_backends.backend import _cupy, cuda
from py_backends.install import pip_install
from py_backends.kernel_text import KernelText
from py_backends.number_formats import FORMATS

pytestmark = [pytest.mark.slow, pytest.mark.cuda]

ARCHITECTURES = [nightly("sm_75"), nightly("sm_80"), nightly("sm_90"), "sm_100", nightly("sm_120")]
"""Turing, Ampere, Hopper, Blackwell of data centres, and that of others. From sm_100 on the compiler is another one:
it may not end with what it compiles for the others."""
TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "cuda").values()]
STEPS = [text for text in TEXTS if text.variant not in ("lecture", "tuned")]
"""Between the two, an idea each."""
MATMUL = registry.kernel_texts("matmul", "cuda")["tuned"]
MOST_IN_MEMORY = 128
"""Bytes of a thread that may lie in memory in place of registers: a quarter of its sums."""
OF_TENSOR_CORES = {"float16": "HMMA.16816.F32", "bfloat16": "HMMA.16816.F32.BF16", "int8": "IMMA.16832.S8.S8"}
"""What multiplies matrices of each format: the last one wraps around, and would be called .SAT if it did not."""
OF_WARPGROUPS = {
    "float16": "HGMMA.64x128x16.F32",
    "bfloat16": "HGMMA.64x128x16.F32.BF16",
    "int8": "IGMMA.64x64x32.S8.S8",
}
"""The same, of Hopper's warpgroups."""


def compiled(source: str, architecture: str, *names: str, log: io.StringIO | None = None) -> ObjectCode:
    """Compile instances of a template to machine code, as CuPy would."""
    options = ProgramOptions(
        arch=architecture, std="c++17", device_as_default_execution_space=True, ptxas_options="-v" if log else None
    )
    return Program(source, "c++", options).compile("cubin", name_expressions=names, logs=log)


def instance(text: KernelText, dtype: str) -> str:
    """Of a text's template for a number format."""
    return f"{text.kernel}<{FORMATS[dtype].c}>"


def instances(text: KernelText) -> list[str]:
    """Of all kernels that a text launches, in all of its number formats."""
    return [f"{name}<{FORMATS[dtype].c}>" for name, _ in text.stages("GPU").kernels for dtype in text.dtypes]


@cache
def compiled_text(text: KernelText, architecture: str) -> tuple[ObjectCode, str]:
    """A text in all of its number formats, and what the compiler says of each."""
    log = io.StringIO()
    return compiled(cuda.with_includes(text), architecture, *instances(text), log=log), log.getvalue()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "text", [text for text in TEXTS if text not in STEPS], ids=lambda text: f"{text.kernel}-{text.variant}"
)
def test_compiles_to_machine_code_with_its_sums_in_registers(text: KernelText, architecture: str) -> None:
    """What does not fit, or is indexed by what only the running kernel knows, would lie in slow memory.

    NVRTC 12.9 keeps there what a tile's inner loop does not need, in float64; NVRTC 13 nothing.
    """
    cubin, log = compiled_text(text, architecture)
    assert cubin.code.startswith(b"\x7fELF")
    for name in instances(text):
        mangled = cubin.symbol_mapping[name]
        assert b".text." + mangled in cubin.code, "the kernel itself is in it, and not only its name"
    frames = [int(frame) for frame in re.findall(r"(\d+) bytes stack frame", log)]
    assert len(frames) == len(instances(text))
    assert max(frames) <= MOST_IN_MEMORY, log


@pytest.mark.parametrize("architecture", [nightly(f"sm_{each}") for each in (75, 80, 90, 100, 120)])
@pytest.mark.parametrize("text", STEPS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_steps_compile_without_memory_for_registers(text: KernelText, architecture: str) -> None:
    """But for some, in large tiles for sm_120: the limit is that of the tuned ones."""
    _, log = compiled_text(text, architecture)
    frames = [int(frame) for frame in re.findall(r"(\d+) bytes stack frame", log)]
    assert len(frames) == len(instances(text))
    assert max(frames) <= (MOST_IN_MEMORY if "LargeTile" in text.text else 0), log


def test_staged_copies_pass_no_register() -> None:
    text = registry.kernel_texts("matmul", "cuda")["staged_copies"]
    for dtype in text.dtypes:
        found = instructions(text, dtype, "sm_80")
        assert sum(count for name, count in found.items() if name.startswith("LDGSTS")) > 0
        assert not [name for name in found if name.startswith(("LDG.", "STS"))]


@pytest.mark.parametrize("dtype", [nightly("float32"), nightly("float64")])
def test_products_to_and_fro_share_more_operands(dtype: str) -> None:
    """Those that the hardware keeps for the next instruction are marked so."""
    texts = registry.kernel_texts("matmul", "cuda")
    marked = [
        len(re.findall(r"[FD]FMA .*\.reuse", machine_code(texts[variant], dtype, "sm_90")))
        for variant in ("vector_reads", "to_and_fro")
    ]
    assert marked[0] < marked[1]


@pytest.mark.parametrize(("dtype", "architecture"), [nightly("float32", "sm_100"), nightly("float64", "sm_100")])
def test_the_last_step_adds_nothing_without_tensor_cores(dtype: str, architecture: str) -> None:
    before = registry.kernel_texts("matmul", "cuda")["reads_ahead"]
    assert instructions(before, dtype, architecture) == instructions(MATMUL, dtype, architecture)


def instructions(text: KernelText, dtype: str, architecture: str) -> Counter[str]:
    """How often each instruction stands in the machine code of a text in a number format."""
    code = machine_code(text, dtype, architecture)
    return Counter(re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?\w+ )?([A-Z][\w.]*)", code, re.MULTILINE))


def machine_code(text: KernelText, dtype: str, architecture: str) -> str:
    """Of a text in a number format, disassembled."""
    cubin, _ = compiled_text(text, architecture)
    mangled = cubin.symbol_mapping[instance(text, dtype)].decode()
    sections = disassembled(text, architecture).split("//-----")[1:]
    (section,) = (each for each in sections if f".text.{mangled} " in each.partition("\n")[0])
    return section


@cache
def disassembled(text: KernelText, architecture: str) -> str:
    """The machine code of a text in all of its formats. Not by its object, whose hash asks for a driver."""
    program = disassembler()
    if program is None:
        pytest.skip(f"nvdisasm is not installed (to change that: {pip_install('test')})")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(compiled_text(text, architecture)[0].code)
        return subprocess.run([program, "-c", file.name], capture_output=True, text=True, check=True).stdout


def disassembler() -> str | None:
    """NVIDIA's, from its wheel or the system."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(each) for each in found.submodule_search_locations or ()] if found else []
    programs = [str(program) for folder in folders for program in folder.glob("*/bin/nvdisasm")]
    return programs[0] if programs else shutil.which("nvdisasm")


@pytest.mark.parametrize("architecture", ["sm_100", *(nightly(f"sm_{each}") for each in (75, 80, 90, 120))])
@pytest.mark.parametrize("dtype", OF_TENSOR_CORES)
def test_narrow_formats_are_multiplied_by_tensor_cores(dtype: str, architecture: str) -> None:
    """From compute capability 8.0 on, with fragments that are loaded by warps, and copies that are waited for later."""
    found = instructions(MATMUL, dtype, architecture)
    matrices = {name for name in found if "MMA" in name}
    loads = {name for name in found if name.startswith("LDSM")}
    if architecture == "sm_75":
        assert not matrices
        assert not loads
        return
    assert matrices == {OF_TENSOR_CORES[dtype]}
    assert loads == {"LDSM.16.M88.4", "LDSM.16.MT88.4"}
    assert found["LDGSTS.E.BYPASS.128"] > 0
    assert not [name for name in found if name.startswith(("LDL", "STL", "FFMA", "FMUL"))]


@pytest.mark.parametrize("dtype", OF_WARPGROUPS)
def test_warpgroups_multiply_narrow_formats_on_hopper(dtype: str) -> None:
    """a and b stay in shared memory. Only of int8's b a warp loads fragments. No product waits for the one before."""
    found = instructions(MATMUL, dtype, "sm_90a")
    assert {name for name in found if "MMA" in name} == {OF_WARPGROUPS[dtype]}
    assert {name for name in found if name.startswith("LDSM")} == ({"LDSM.16.MT88.4"} if dtype == "int8" else set())
    assert not [name for name in found if name.startswith(("LDL", "STL", "FFMA", "FMUL"))]
    assert "serialized" not in compiled_text(MATMUL, "sm_90a")[1]


@pytest.mark.parametrize(("dtype", "architecture"), [("bfloat16", "90a"), ("bfloat16", "90"), ("float64", "90")])
def test_slices_lie_where_a_warpgroup_finds_them_permuted(dtype: str, architecture: str) -> None:
    """The emulation permutes chunks by their place in a slice, and Hopper by their addresses."""
    assert ".shared .align 1024 .b8" in assembly(
        cuda.with_includes(MATMUL), f"matmul<{FORMATS[dtype].c}>", architecture
    )


@pytest.mark.parametrize("architecture", ["sm_100", *(nightly(f"sm_{each}") for each in (75, 80, 90, 120))])
def test_float32_is_not(architecture: str) -> None:
    """It would be rounded to TF32."""
    found = instructions(MATMUL, "float32", architecture)
    assert found["FFMA"] >= 64
    assert not [name for name in found if "MMA" in name]


@pytest.mark.parametrize("architecture", ["sm_100", *(nightly(f"sm_{each}") for each in (75, 80, 90, 120))])
def test_float64_is_where_that_is_faster(architecture: str) -> None:
    """On A100 and H100."""
    found = instructions(MATMUL, "float64", architecture)
    of_matrices = {name for name in found if "MMA" in name}
    assert of_matrices == {"sm_80": {"DMMA.884"}, "sm_90": {"DMMA.16x8x8"}}.get(architecture, set())
    assert of_matrices or found["DFMA"] >= 64


def assembly(source: str, name: str, architecture: str = "90") -> str:
    """An instance of a template in PTX, for which cuda.core would ask a driver."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"", 0, [], [])
    nvrtc.nvrtcAddNameExpression(program, name.encode())
    options = [
        b"--std=c++17",
        b"--device-as-default-execution-space",
        f"--gpu-architecture=compute_{architecture}".encode(),
    ]
    assert nvrtc.nvrtcCompileProgram(program, len(options), options) == (0,)
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return text.decode()


@pytest.mark.parametrize("variant", ["lecture", "tuned"])
def test_float16_is_widened_and_rounded_by_the_hardware(variant: str) -> None:
    source = cuda.with_includes(registry.kernel_texts("vecadd", "cuda")[variant])
    conversions = re.findall(r"cvt\S*f16\S*", assembly(source, "vecadd<Float16>"))
    assert set(conversions) == {"cvt.f32.f16", "cvt.rn.f16.f32"}


class Compiler:
    """NVRTC by its own binding, in place of CuPy's: there may be no GPU at hand."""

    def __init__(self, *supported: int) -> None:
        self.supported = supported
        self.options: tuple[str, ...] = ()

    def as_in_cupy(self) -> SimpleNamespace:
        return SimpleNamespace(
            NVRTCError=ValueError,
            getSupportedArchs=lambda: self.supported,
            createProgram=lambda source, name, *_: nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])[
                1
            ],
            addNameExpression=lambda program, name: nvrtc.nvrtcAddNameExpression(program, name.encode()),
            compileProgram=self._compile,
            getCUBIN=lambda program: _read(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
            getPTX=lambda program: _read(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
            getProgramLog=lambda program: _read(
                program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog
            ).decode(),
            getLoweredName=lambda program, name: nvrtc.nvrtcGetLoweredName(program, name.encode())[1].decode(),
            destroyProgram=nvrtc.nvrtcDestroyProgram,
        )

    def _compile(self, program: Any, options: tuple[str, ...]) -> None:
        self.options = options
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status:
            raise ValueError(status)


def _read(program: Any, size: Any, get: Any) -> bytes:
    content = b" " * size(program)[1]
    get(program, content)
    return content


class Module:
    """Loaded machine code, in which a kernel is found by its name."""

    def load(self, binary: bytes) -> None:
        self._binary = binary

    def get_function(self, name: str) -> Function:
        assert name.encode() in self._binary
        return Function(self._binary)

    def get_global_var(self, name: str) -> str:
        assert name.encode() in self._binary
        return name


@dataclass
class Function:
    """A kernel, its attributes, and what it was launched with."""

    ptr: bytes
    attributes: dict[int, int] = field(default_factory=dict)
    launched: list[Any] = field(default_factory=list)

    def __call__(self, *arguments: Any) -> None:
        self.launched.append(arguments)


def gpu_of(capability: str, compiler: Compiler) -> cuda.Gpu:
    gpu = object.__new__(cuda.Gpu)
    gpu._gpu = Capability(capability)
    gpu._cupy = SimpleNamespace(cuda=SimpleNamespace(nvrtc=compiler.as_in_cupy(), Module=Module))
    return gpu


class Capability(nullcontext[None]):
    """A device of CuPy that is of a compute capability."""

    def __init__(self, capability: str) -> None:
        super().__init__()
        self.compute_capability = capability


KERNEL = "int one() { return 1; } template <typename T> __global__ void vecadd(T* c) { c[0] += one(); }"


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [("80", "sm_80"), ("90", "sm_90a"), ("100", "sm_100"), ("103", "compute_100"), ("130", "compute_120")],
)
def test_kernels_are_compiled_for_the_gpu_that_is_there(capability: str, architecture: str) -> None:
    """With Hopper's own instructions, and for the driver to finish where the compiler does not know it.

    Without -ftz: subnormals are not flushed, as CuPy's RawModule does.
    """
    compiler = Compiler(75, 80, 90, 100, 120)
    (kernel,) = gpu_of(capability, compiler).compiled(KERNEL, ["vecadd<float>"])
    assert compiler.options == ("-std=c++17", "-default-device", f"-arch={architecture}")
    assert kernel.function.ptr.startswith(b"\x7fELF") == architecture.startswith("sm")
    kernel((2,), (32,), ("c",))
    assert kernel.function.launched == [((2,), (32,), ("c",), 0)], "no shared memory beyond what it declares"


@pytest.mark.parametrize(("type_name", "count"), [("float", 0), ("double", 2**16)])
def test_blocks_are_given_the_shared_memory_that_a_source_asks_for(type_name: str, count: int) -> None:
    """For its types. A kernel has to be allowed more than 48 KiB first."""
    constant = "template <typename T> __constant__ constexpr int shared_bytes = sizeof(T) == 8 ? 65536 : 0; "
    gpu = gpu_of("90", Compiler(90))
    allowed: list[tuple[bytes, int, int]] = []
    gpu._cupy.cuda.driver = SimpleNamespace(funcSetAttribute=lambda *arguments: allowed.append(arguments))

    def memcpy(to: int, address: str, size: int, kind: int) -> None:
        assert (address, size, kind) == (f"_Z12shared_bytesI{type_name[0]}E", 4, 2)
        ctypes.c_int.from_address(to).value = count

    gpu._cupy.cuda.runtime = SimpleNamespace(memcpy=memcpy, memcpyDeviceToHost=2)
    (kernel,) = gpu.compiled(constant + KERNEL, [f"vecadd<{type_name}>"])
    kernel((2,), (32,), ("c",))
    assert kernel.function.launched[0][-1] == count
    assert allowed == ([(kernel.function.ptr, 8, count)] if count else [])


def test_a_source_that_does_not_compile_is_told_by_the_compilers_log() -> None:
    with pytest.raises(RuntimeError, match=r'kernel.cu\(1\): error: identifier "d" is undefined'):
        gpu_of("80", Compiler(80)).compiled(KERNEL.replace("c[0]", "d[0]"), ["vecadd<float>"])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type_name", ["float", "double"])
def test_what_measures_the_peak_compiles(type_name: str, architecture: str) -> None:
    source, name = _cupy.MULTIPLY_ADD.read_text(encoding="utf-8"), f"multiply_add<{type_name}>"
    assert compiled(source, architecture, name).code.startswith(b"\x7fELF")


def test_what_pauses_a_gpu_compiles() -> None:
    assert b".text.pause" in compiled(_cupy.PAUSE.read_text(encoding="utf-8"), "sm_90", "pause").code


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_measures_the_peak_computes(dtype: str) -> None:
    """Every chain tends to 2, so that the sum of the 8 says that all of them were gone through."""
    device = cuda.Emulation(cuda._cpu(), 2)
    prelude = Path(cuda.__file__).with_name("_cuda_on_sycl.hpp").read_text(encoding="utf-8")
    (start,) = device.compiled(_cupy.MULTIPLY_ADD, np.dtype(dtype), ["multiply_add"], prelude)
    constants, sums = np.array([0.5, 1.0], dtype), np.full(128, np.nan, dtype)
    buffers = [device.upload(constants), device.upload(sums)]
    start(buffers, [100], (2, 1, 1), (64, 1, 1))
    device.wait()
    device.download(buffers[1], sums)
    assert sums.tolist() == [16.0] * 128


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_a_text_with_an_error_does_not_compile(text: KernelText) -> None:
    assert text.text.count("blockIdx") >= 1
    line = text.text[: text.text.index("blockIdx")].count("\n") + 1
    with pytest.raises(Exception, match=rf"cuda\.cu\({line}\): error: identifier \"blokIdx\" is undefined"):
        compiled(cuda.with_includes(text).replace("blockIdx", "blokIdx"), "sm_80", *instances(text))
