"""`show`: prints a kernel's sources side by side, its steps, or the difference of two sources."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from py_backends.commands import _options, _run
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.wording import listed

if TYPE_CHECKING:
    from py_backends.contract import Ladder
    from py_backends.kernel_text import KernelText


HELP = "show a kernel's source in several programming models, side by side"
DESCRIPTION = (
    "Shows a kernel's source in the chosen backends and variants. On a terminal of 120 columns or more they "
    "stand side by side, and long lines are wrapped. On a narrower one they stand below one another. A pipe "
    "gets a single source unchanged, and several below their names."
)
EXAMPLE = "show matmul --backend openmp,cuda --variant lecture"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("kernel", metavar="KERNEL", help="matmul, for instance")
    _options.add(parser, "backend", "variant")
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument("--diff", action="store_true", help="show the unified difference of two sources")
    one_of.add_argument(
        "--steps",
        action="store_true",
        help="show the steps from lecture to tuned, each as a difference from the one before",
    )


def run(options: argparse.Namespace) -> int:
    """Print a kernel's sources side by side, its steps, or the difference of two sources."""
    from py_backends.commands.show.table import print_difference, print_steps, print_texts
    from py_backends.display import console

    chains = chosen_steps(options) if options.steps else []
    texts = [] if options.steps else _two_texts(options) if options.diff else chosen_texts(options)
    with console.output() as out:
        for ladder, sources in chains:
            print_steps(ladder, sources, out)
        if options.diff:
            print_difference(texts[0], texts[1], out)
        elif texts:
            print_texts(texts, out)
    return 0


def chosen_steps(options: argparse.Namespace) -> list[tuple[Ladder, list[KernelText]]]:
    """Each chain of steps of a kernel with its sources. Raises WrongRequest without any, and for further names."""
    from py_backends import registry

    chains = registry.problem(options.kernel).steps
    if _run.names(options.backend) or options.variant:
        raise WrongRequest("--steps shows sources in an order of its own: leave out --backend and --variant")
    if not chains:
        raise WrongRequest(f"{options.kernel} has no steps: leave out --steps")
    return [
        (chain, [registry.kernel_texts(options.kernel, rung.backend)[rung.variant] for rung in chain.rungs])
        for chain in chains
    ]


def _two_texts(options: argparse.Namespace) -> list[KernelText]:
    """The two sources to compare. Without --variant, two backends are compared in the first variant that both have."""
    from py_backends import registry

    if options.variant is None and options.backend and len(options.backend) == 2:
        chosen_texts(options)  # raises an error for wrong names
        first, second = (registry.kernel_texts(options.kernel, backend) for backend in options.backend)
        options.variant = [variant for variant in first if variant in second][:1] or None
    texts = chosen_texts(options)
    if len(texts) != 2:
        raise WrongRequest(
            f"--diff takes two sources, not {len(texts)}: name two backends with a source, as in --backend cpp,openmp"
        )
    return texts


def chosen_texts(options: argparse.Namespace) -> list[KernelText]:
    """The sources that the options name. Raises WrongRequest if there are none."""
    return _texts(
        options.kernel,
        _run.names(options.backend),
        _run.names(options.variant),
        options.variant == [_options.ALL],
    )


def _texts(kernel: str, backends: list[str] | None, variants: list[str] | None, all_variants: bool) -> list[KernelText]:
    """The sources to show: for each backend the preferred variant, the named ones, or all."""
    from py_backends import registry

    registry.problem(kernel)
    shown: list[KernelText] = []
    for backend in backends or registry.backend_names():
        try:
            registry.known_backend(backend)
        except BackendUnavailable as refused:
            raise WrongRequest(str(refused)) from refused
        texts = registry.kernel_texts(kernel, backend)
        chosen = variants or (list(texts) if all_variants else list(texts)[:1])
        shown += [texts[variant] for variant in chosen if variant in texts]
    for variant in variants or ():
        registry.known(variant, registry.variant_names(), "variant")
    if not shown and backends and not any(registry.kernel_texts(kernel, backend) for backend in backends):
        without = listed(backends, "or")
        raise WrongRequest(f"{kernel} has no source for {without}: leave out --backend to see which it has")
    if not shown:
        raise WrongRequest(f"none of these backends has such a variant of {kernel}: --variant all shows what there is")
    return shown
