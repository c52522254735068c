"""Forms of tuned sources for devices that are not there, which a CPU runs as well: what is tried of them in this run.

They are compiled for seconds, each of every kernel. So as with sources, the probes are tried, and what was changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import probes
import pytest
from stamps import STAMPED, Due, Stamps

from py_backends.conformance.selection import Subject
from py_backends.contract import Target
from py_backends.kernel_text import KernelText


@contextmanager
def tried(request: pytest.FixtureRequest, text: KernelText, target: Target, form: str) -> Iterator[bool]:
    """Whether a form is to be tried. Where that ends well, it gets a stamp.

    make test-all takes none: nothing else of it tries forms.
    """
    subject, stamps = Subject(text, target), Stamps()
    due = stamps.due(subject, form) if request.config.getoption("extent") is None else Due.ALL
    now = due is Due.ALL or (due is Due.LITTLE and text.kernel in probes.of_backend(text.backend))
    state = "sources tried" if now else "by stamp" if due is Due.NOTHING else "not tried"
    request.node.user_properties.append((STAMPED, {state: 1}))
    yield now
    if due is not Due.NOTHING:
        stamps.keep(subject, form, passed=now)
