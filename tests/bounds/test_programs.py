"""Random programs on a machine that rounds up or down and adds in any order: no result lies outside its bound."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import nightly
from random_programs import outcome

FEW, MANY = 250, 20_000


@pytest.mark.parametrize(("first", "count"), [(0, FEW), nightly(FEW, MANY)])
def test_no_result_lies_outside_its_bound(first: int, count: int) -> None:
    seen: Counter[str] = Counter()
    wrong = [each for seed in range(first, first + count) if (each := outcome(seed, seen))]
    assert not wrong, wrong[:5]
    assert seen["unbounded"] < 0.1 * seen["elements"], "what has no bound judges nothing"
    assert seen["exact"] > 0.05 * seen["elements"]
    assert seen["refused"] < 0.02 * count
