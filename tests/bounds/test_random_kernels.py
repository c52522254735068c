"""The project's kernels in any order: whatever a proven bound accepts, the bound that comes by itself accepts too."""

from __future__ import annotations

import pytest
from conftest import nightly
from random_kernels import tried
from written_plainly import KERNELS

FEW, MANY = 40, 10_000


@pytest.mark.parametrize(("first", "count"), [(0, FEW), nightly(FEW, MANY)])
@pytest.mark.parametrize("name", KERNELS)
def test_what_the_proven_bound_accepts_is_accepted(name: str, first: int, count: int) -> None:
    wrong, seen = tried(name, first, count)
    print(seen)
    assert not wrong, wrong[:5]
