"""Signatures: the sizes and shapes that they say, what fits them, and what is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from py_backends.contract import Array, Problem, Reference
from py_backends.errors import WrongRequest
from py_backends.signature import Signature

MATMUL = Signature.parse("(m,k),(k,n)->(m,n)")


@pytest.mark.parametrize(
    ("text", "dimensions", "shapes"),
    [
        ("(m,k),(k,n)->(m,n)", ("m", "n", "k"), ((2, 5), (5, 3), (2, 3))),
        ("(n),(n)->(n)", ("n",), ((2,), (2,), (2,))),
        ("(1),(n),(n)->(n)", ("n",), ((1,), (2,), (2,), (2,))),
        ("(n),(n)->()", ("n",), ((2,), (2,), ())),
        (" (rows, columns) -> (rows, 3) ", ("rows", "columns"), ((2, 3), (2, 3))),
        ("(n,n)->(n,n)", ("n",), ((2, 2), (2, 2))),
    ],
)
def test_sizes_and_shapes(text: str, dimensions: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> None:
    """The sizes of the output come first: of a product m, n, k, as BLAS and `--shape` have them."""
    found = Signature.parse(text)
    sizes = (2, 3, 5)[: len(dimensions)]
    assert found.dimensions == dimensions
    assert found.shapes(sizes) == shapes
    names = "abcd"[: len(shapes) - 1]
    assert found.sizes("any", names, shapes[:-1]) == sizes


@given(st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_sizes_are_the_way_back_from_shapes(sizes: list[int]) -> None:
    assert MATMUL.sizes("matmul", "ab", MATMUL.shapes(sizes)[:-1]) == tuple(sizes)


@pytest.mark.parametrize(
    ("signature", "shapes", "words"),
    [
        (MATMUL, [(3, 4), (5, 6)], "any takes a of m x k and b of k x n: a is 3 x 4 and b is 5 x 6"),
        (MATMUL, [(3, 4), (4,)], "b of k x n: a is 3 x 4 and b is 4 elements"),
        (MATMUL, [(), (4, 1)], "a is a single number"),
        (Signature.parse("(1),(n)->(n)"), [(2,), (3,)], "a of 1 element and b of n elements: a is 2 elements"),
        (Signature.parse("(n,n)->(n)"), [(2, 3)], "any takes a of n x n: a is 2 x 3"),
    ],
)
def test_what_does_not_fit_is_told_in_a_line(signature: Signature, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match="any takes") as told:
        signature.sizes("any", "ab"[: len(shapes)], tuple(shapes))
    assert words in str(told.value)
    assert "\n" not in str(told.value)


NONE = (
    "",
    "m,k",
    "(m,k)",
    "(m,k)->",
    "(m,k)->(m",
    "(m)(k)->(m)",
    "(m,)->(m)",
    "(m?)->(m)",
    "(01)->(01)",
    "->(m)",
    "(2m)->(m)",
    "(n+window-1)->(n)",
)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_signature(text: str) -> None:
    words = "is no signature: write it as in .*; for a length of two names, or of one of `numbers`"
    with pytest.raises(WrongRequest, match=words):
        Signature.parse(text)


def test_lengths_that_never_change_may_be_all_there_are() -> None:
    """As of arrays that somebody has: then there are no sizes."""
    signature = Signature.parse("(0,3),()->(3):int64,()")
    assert (signature.dimensions, signature.places) == ((), None)
    assert signature.shapes(()) == ((0, 3), (), (3,), ())
    assert signature.sizes("mine", ("x", "y"), ((0, 3), ())) == ()


def test_the_inputs_tell_every_size() -> None:
    with pytest.raises(WrongRequest, match="does not tell n: no input has it"):
        Signature.parse("(m)->(m,n)")


def test_places_are_for_those_whose_lengths_are_all_sizes() -> None:
    assert MATMUL.places == ((0, 2), (2, 1), (0, 1))
    assert Signature.parse("(1),(n)->(n)").places == ((-1,), (0,), (0,))
    assert Signature.parse("(m,3),(n,3),(n)->(m,3)").places == ((0, -3), (1, -3), (1,), (0, -3))


class Bare(Problem):
    """A problem that says nothing of its shapes."""

    name = "bare"

    def reference(self, inputs: Sequence[Array]) -> Reference:
        return Reference(inputs[0])

    def flops(self, sizes: Sequence[int]) -> int:
        return 0


class Square(Bare):
    signature = "(n,n)->(n,n)"


class Triangle(Square):
    """Its shapes follow from the size in a way that no signature says."""

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        (n,) = sizes
        return (n * (n + 1) // 2,), (n, n)


def test_a_problem_takes_all_from_its_signature_but_what_it_says_itself() -> None:
    assert (Square().dimensions, Square().shapes((3,)), Square().sizes(np.ones((3, 3)))) == (
        ("n",),
        ((3, 3), (3, 3)),
        (3,),
    )
    assert Square().size_of_each_dimension() == ((0, 0), (0, 0))
    assert (Triangle().dimensions, Triangle().shapes((3,))) == (("n",), ((6,), (3, 3)))
    assert Triangle().size_of_each_dimension() is None
    with pytest.raises(TypeError, match="Bare has neither a signature nor the methods"):
        Bare().shapes((1,))


def test_inputs_have_names_as_many_as_the_signature_has() -> None:
    """Else the first kernel of one input ends in a traceback of the harness."""
    assert (Square.inputs, Triangle.inputs) == (("a",), ("a",))

    class Three(Bare):
        signature = "(n),(n),(n)->(n)"

    class Named(Bare):
        signature, inputs = "(1),(n)->(n)", ("alpha", "x")

    assert (Three.inputs, Named.inputs) == (("a", "b", "c"), ("alpha", "x"))
    words = r"its inputs are \('x', 'y'\), and its signature \(n\)->\(n\) has 1"
    with pytest.raises(WrongRequest, match=words):

        class Many(Bare):
            signature, inputs = "(n)->(n)", ("x", "y")
