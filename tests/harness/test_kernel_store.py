"""Compiled kernels that are kept between runs: the bound, damage, processes that are killed or write at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import CLONE, LONGEST, environment

from py_backends.backend import _kernel_keys
from py_backends.system import cpu, kernel_store

NAME = "a" * 64
FROM_ANOTHER = """
import os, sys, time
from py_backends.system import kernel_store
"""
KILLED = f"""{FROM_ANOTHER}
def replace(written, place):
    print("written", flush=True)
    time.sleep({LONGEST})
os.replace = replace
kernel_store.kept(sys.argv[1], lambda kept: kept, lambda: (b"", b"half" * 1000))
"""
AT_ONCE = f"""{FROM_ANOTHER}
size = int(sys.argv[2])
for _ in range(200):
    def load(kept):
        assert len(kept) % 1000 == 0 and len(set(kept)) == 1, "torn"
        return kept
    kernel_store.kept(sys.argv[1], load, lambda: (b"", b""))
    kernel_store._write(sys.argv[1], bytes([size]) * 1000 * size)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(kernel_store.PLACE, str(tmp_path / "kernels"))
    return tmp_path / "kernels"


class Compiler:
    """Compiles the same every time, and counts."""

    def __init__(self, content: bytes | None = b"machine code") -> None:
        self.content, self.times = content, 0

    def __call__(self) -> tuple[bytes, bytes | None]:
        self.times += 1
        return b"machine code", self.content


def kept(compiler: Compiler, name: str | None = NAME, load: Callable[[bytes], bytes] = bytes) -> bytes:
    return kernel_store.kept(name, load, compiler)


@pytest.mark.usefixtures("folder")
def test_is_compiled_once() -> None:
    compiler = Compiler()
    with kernel_store.watched() as found:
        assert [kept(compiler) for _ in range(3)] == [b"machine code"] * 3
    assert (compiler.times, found) == (1, [False, True, True])


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:-1],
        lambda whole: whole[:5],
        lambda _: b"",
        lambda whole: whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:],
        lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    ],
    ids=["cut", "begun", "empty", "a bit", "a bit of its digest"],
)
def test_what_was_damaged_is_compiled_again(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    compiler = Compiler()
    kept(compiler)
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))

    def load(content: bytes) -> bytes:
        pytest.fail(f"a driver was given {content!r}")

    assert kept(compiler, load=load) == b"machine code"
    assert kept(compiler) == b"machine code"
    assert compiler.times == 2, "and was whole again afterwards"


@pytest.mark.usefixtures("folder")
def test_what_a_driver_refuses_is_compiled_again() -> None:
    def refuse(_: bytes) -> bytes:
        raise RuntimeError("another driver")

    compiler = Compiler()
    kept(compiler)
    with kernel_store.watched() as found:
        assert kept(compiler, load=refuse) == b"machine code"
    assert (compiler.times, found) == (2, [False])


@pytest.mark.parametrize(("name", "content"), [(None, b"code"), (NAME, None)])
def test_what_cannot_be_kept_is_compiled_every_time(folder: Path, name: str | None, content: bytes | None) -> None:
    compiler = Compiler(content)
    assert kept(compiler, name) == kept(compiler, name)
    assert (compiler.times, list(folder.glob("*"))) == (2, [])


@pytest.mark.parametrize("place", ["off", "a file", "under a file"])
def test_without_a_place_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv(kernel_store.PLACE, {"off": "off", "a file": str(file), "under a file": str(file / "x")}[place])
    compiler = Compiler()
    assert [kept(compiler) for _ in range(2)] == [b"machine code"] * 2
    assert (compiler.times, list(tmp_path.iterdir())) == (2, [file])


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_counts(folder: Path) -> None:
    command = [sys.executable, "-c", KILLED, NAME]
    with subprocess.Popen(command, cwd=CLONE, env=environment(), stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        writer.send_signal(signal.SIGKILL)
    (left,) = folder.iterdir()
    compiler = Compiler()
    assert kept(compiler) == kept(compiler) == b"machine code"
    assert compiler.times == 1
    assert left.exists()
    os.utime(left, (0, 0))
    kernel_store._keep_to_bound(folder)
    assert left.exists(), "there is room"


def test_processes_that_write_at_once_never_see_a_part(folder: Path) -> None:
    commands = [[sys.executable, "-c", AT_ONCE, NAME, str(size)] for size in (1, 7, 30)]
    runs = [subprocess.Popen(each, cwd=CLONE, env=environment(), stderr=subprocess.PIPE) for each in commands]
    assert [(run.communicate(timeout=LONGEST)[1], run.returncode) for run in runs] == [(b"", 0)] * 3
    assert [file.name for file in folder.iterdir()] == [NAME]


def test_what_was_not_used_for_the_longest_time_goes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what a killed process has left."""
    monkeypatch.setattr(kernel_store, "MOST_BYTES", 3 * (1000 + 32))
    a, b, c, d = (letter * 64 for letter in "abcd")
    for age, name in enumerate((c, a, b), start=10):
        kept(Compiler(b"x" * 1000), name)
        os.utime(folder / name, (time.time() - 100 + age,) * 2)
    (folder / "unfinished-left").write_bytes(b"x" * 1000)
    os.utime(folder / "unfinished-left", (0, 0))
    kept(Compiler(), c)  # which was the oldest
    kept(Compiler(b"x" * 1000), d)
    assert sorted(file.name for file in folder.iterdir()) == [b, c, d]


def test_files_of_others_in_a_folder_that_the_user_names_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_store, "MOST_BYTES", 10)
    folder.mkdir()
    thesis = folder / "thesis.tex"
    thesis.write_bytes(b"x" * 1000)
    os.utime(thesis, (0, 0))
    kept(Compiler())
    assert list(folder.iterdir()) == [thesis]


def test_what_others_may_have_written_is_not_loaded(folder: Path) -> None:
    """It is machine code, or a pickle."""
    compiler = Compiler()
    kept(compiler)
    (folder / NAME).chmod(0o666)
    kept(compiler)
    assert compiler.times == 2


def test_a_key_tells_parts_apart() -> None:
    keys = [kernel_store.key(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), ("ab", "c", ""))]
    assert len(set(keys)) == len(keys)
    assert kernel_store.key("ab", b"c") == keys[0], "and is the same for the same ones"


@pytest.mark.parametrize("variable", ["CL_CONFIG_CPU_TARGET_ARCH", "NUMBA_CPU_NAME", "SYCL_PROGRAM_COMPILE_OPTIONS"])
def test_a_key_has_the_variables_of_compilers(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.delenv(variable, raising=False)
    before = kernel_store.key("x")
    monkeypatch.setenv(variable, "skx")
    assert kernel_store.key("x") != before


@pytest.mark.parametrize("other", ["flags : sse avx2", "model name : Another", "stepping : 2"])
def test_a_key_has_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, other: str) -> None:
    """Also where a virtual machine hides instructions of a CPU of the same name."""
    told, keys = tmp_path / "cpuinfo", []
    monkeypatch.setattr(cpu, "_CPUS", told)
    lines = {"model name": "One", "flags": "sse avx2 avx512f", "stepping": "1", "cpu MHz": "2000.1"}
    name, value = other.split(" : ")
    for facts in (lines, {**lines, "cpu MHz": "3100.7"}, {**lines, name: value}):
        told.write_text("".join(f"{name}\t: {value}\n" for name, value in facts.items()))
        cpu.identity.cache_clear()
        keys.append(kernel_store.key("x"))
    cpu.identity.cache_clear()
    assert keys[0] == keys[1] != keys[2]


class TestFilesRead:
    """What a compiler of C++ reads."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        (tmp_path / "kernels" / "inner").mkdir(parents=True)
        (tmp_path / "formats.hpp").write_text("// formats")
        (tmp_path / "kernels" / "inner" / "tile.hpp").write_text('#include "../../formats.hpp"\n#include "side.hpp"')
        (tmp_path / "kernels" / "side.hpp").write_text("// beside the source")
        (tmp_path / "kernels" / "angles.hpp").write_text("// in angle brackets")
        source = tmp_path / "kernels" / "kernel.cpp"
        source.write_text('#include <cstdint>\n # include "inner/tile.hpp"  // a tile\n#include <angles.hpp>\n')
        return source

    @staticmethod
    def read(source: Path) -> list[bytes] | None:
        return _kernel_keys.files_read(source, source.read_bytes())

    def test_are_all_that_is_included_through_others_too(self, source: Path) -> None:
        before = self.read(source)
        assert before is not None
        assert before[::2] == [b"kernel.cpp", b"inner/tile.hpp", b"angles.hpp", b"../formats.hpp", b"side.hpp"]
        for name in ("kernel.cpp", "inner/tile.hpp", "side.hpp", "angles.hpp", "../formats.hpp"):
            file = source.parent / name
            text = file.read_text()
            file.write_text(f"{text}\n// changed")
            assert self.read(source) != before
            file.write_text(text)
        assert self.read(source) == before

    def test_do_not_depend_on_the_folder(self, source: Path, tmp_path: Path) -> None:
        before = self.read(source)
        moved = tmp_path / "moved" / "further"
        moved.parent.mkdir()
        source.parent.rename(moved)
        (tmp_path / "formats.hpp").rename(moved.parent / "formats.hpp")
        assert self.read(moved / source.name) == before

    @pytest.mark.parametrize(
        "line",
        [
            "#include HEADER",
            '#include "nowhere.hpp"',
            '#if __has_include("other.hpp")',
            "#embed MACRO",
            "#incl\\\nude HEADER",
            "%:include HEADER",
            "#/* */include HEADER",
        ],
    )
    def test_that_cannot_be_known_are_none(self, source: Path, line: str) -> None:
        source.write_text(f"{line}\n")
        assert self.read(source) is None

    def test_of_further_folders_are_none(self, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/opt/include")
        assert self.read(source) is None

    def test_alone(self) -> None:
        assert _kernel_keys.includes_nothing(b"kernel void nothing(void) {}  // what it includes")
        assert not _kernel_keys.includes_nothing(b'#include "more.cl"')
