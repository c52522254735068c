"""A process that has imported the conformance suite, and runs it in a fork of itself for each request.

To start Python and to import everything takes as long as most mutants live. It is a script that is started by its path,
in the folder whose suite it is to run: `python serve.py BACKEND`.

A request is a line of JSON: the arguments of pytest, the variables of its environment, and the file for what it writes.
The answer is two lines: the number of the process, and, when that has ended, its exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def main() -> None:
    """Serve until the other end closes."""
    sys.path[0] = str(Path.cwd())
    importlib.import_module("hypothesis.strategies")
    importlib.import_module("py_backends.conformance.plugin")
    importlib.import_module("py_backends.conformance.at_hand").targets_of(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(**json.loads(line))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(arguments: list[str], environment: dict[str, str], output: str) -> NoReturn:
    """Be the process of one run of the suite, the first of its own group."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in enumerate((os.devnull, output, output)):
        os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), descriptor)
    code = int(pytest.main(arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
