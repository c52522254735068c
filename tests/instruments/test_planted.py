"""Every planted fault still has its place, those that only nightly runs compile as well."""

from __future__ import annotations

from pathlib import Path

import planted
import pytest

from py_backends import registry

FAULTS = [*planted.CUDA, *planted.SYCL, *planted.OPENCL, *planted.MODULES, *planted.MODULES_BY_CLANG]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.backend}-{fault.kernel}-{fault.name}")
def test_a_fault_changes_its_source(fault: planted.Fault, tmp_path: Path) -> None:
    source = fault.planted(tmp_path)
    assert source.path.parent == tmp_path
    originals = registry.kernel_texts(fault.kernel, fault.backend)[fault.variant].path.parent
    written = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    assert [name for name, words in written.items() if words != (originals / name).read_text(encoding="utf-8")]
