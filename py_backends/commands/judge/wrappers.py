"""Sources in this project's form that call a function in a file of anybody's, which stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from py_backends.commands.judge.call import Call, declared, names, outside_comments
from py_backends.commands.judge.host_code import of_device
from py_backends.contract import Problem, WorkItems
from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS, number_format

_IN_C = ("float32", "float64")
"""The formats for which a function of anybody's is called. For narrower ones its types have no common name."""
_OF_NO_FORMAT = re.compile(
    r"\b(?:_*half2?|_*nv_bfloat162?|_Float16|__fp16|__bf16|b?float16_t|bfloat16_t|\w*[cC]omplex\w*)\b"
)
_LIMITS = {
    "INFINITY": "(__int_as_float(0x7f800000))",
    "NAN": "(__int_as_float(0x7fffffff))",
    "FLT_MAX": "3.402823466e+38F",
    "FLT_MIN": "1.175494351e-38F",
    "FLT_EPSILON": "1.192092896e-07F",
    "DBL_MAX": "1.7976931348623158e+308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
}
_POWERS_OF_TWO_TYPES = """#ifdef __CUDACC_RTC__
__device__ inline double pow(float x, double y) { return pow((double)x, y); }
__device__ inline double pow(double x, float y) { return pow(x, (double)y); }
#endif
"""
_OF_HEADERS = "".join(
    (
        "typedef unsigned int uint;\n",
        *(f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in _LIMITS.items()),
        _POWERS_OF_TWO_TYPES,
    )
)
"""What `nvcc` knows by headers of the host, and the compiler of kernels alone does not."""
_ORDER = re.compile(r"^[ \t]*(?://|#)[ \t]*Order: (any.*)$", re.MULTILINE)


def formats(call: Call, text: str, problem: Problem) -> list[str]:
    """The number formats that a function may take: those of its pointers or template arguments, else both usual ones.

    Raises WrongRequest where it takes or the kernel has none of them.
    """
    usual = [each for each in _IN_C if each in problem.dtypes]
    if not usual:
        raise WrongRequest(f"a function of your own is called in {' or '.join(_IN_C)}, which {problem.name} has not")
    if re.search(r"\bT\b", call.template_arguments):
        return usual
    pointers = _pointers_of(call, text)
    narrow = [found[0] for each in pointers if (found := _OF_NO_FORMAT.search(each))]
    if narrow and len(narrow) == len(pointers):
        raise WrongRequest(f"{call.name} takes {narrow[0]}: a function of your own is called in {' or '.join(_IN_C)}")
    return _told(usual, [call.template_arguments]) or _told(usual, pointers) or usual


def _pointers_of(call: Call, text: str) -> list[str]:
    """The parameters that are arrays, of each function of that name with so many of them; else of all of that name."""
    every = list(declared(text, call.own_name))
    fitting = [each for each in every if len(each) == len(call.arguments)] or every
    return [" ".join(part for part in each if "*" in part or "[" in part) for each in fitting]


def _told(usual: Sequence[str], types: Sequence[str]) -> list[str]:
    """The formats of which a type is among others: `float`, `float4`."""
    said = " ".join(types)
    return [each for each in usual if re.search(rf"\b{FORMATS[each].c}(?:2|3|4|8|16)?\b", said)]


def head(call: Call, file: str, text: str, takes: Sequence[str], problem: Problem, mark: str) -> str:
    """The head comment of such a source. That it adds up in any order is said in the file, as `Order: any`."""
    launched = [f"Work items: {call.work_items}"] if call.work_items else []
    if call.work_items:
        cleared = [f"Work items of clear_{name}: {elements(problem, name)}, in groups of 256" for name in call.cleared]
        launched = [*cleared, *launched]
    said = [f"{problem.name}: calls {call.function} of {file}.", "---", *launched, f"Formats: {', '.join(takes)}"]
    said += [f"Order: {found[1]}"] if (found := _ORDER.search(text)) else []
    return "".join(f"{mark} {each}\n" for each in said)


def in_cpp(call: Call, file: str, problem: Problem) -> str:
    """A template that calls a function of a file beside it, whose `main` is another name."""
    hidden = ["main", *([problem.name] if call.name == problem.name else [])]
    before = "".join(f"#define {name} judged_{name}\n" for name in hidden)
    after = "".join(f"#undef {name}\n" for name in hidden)
    arrays = _pointers(problem, "")
    scalars = [f"{'T' if name in problem.reals else 'std::int64_t'} {name}" for name in _scalars(problem)]
    return (
        f'#include <cstdint>\n{before}#include "{file}"\n{after}\ntemplate <typename T>\n'
        f"static void {problem.name}({', '.join((*arrays, *scalars))}) {{\n"
        + "".join(
            f"  for (std::int64_t at = 0; at < {elements(problem, name)}; ++at) {name}[at] = 0;\n"
            for name in call.cleared
        )
        + f"  {_called(call, problem)}\n}}\n"
    )


def in_cuda(call: Call, file: str, text: str, problem: Problem) -> str:
    """A kernel that calls one of a file, once for each thread, which is a function of the device for that.

    What the compiler of kernels alone does not have is left out: headers of the host, and its functions.
    """
    arrays = _pointers(problem, "")
    scalars = [f"{'T' if name in problem.reals else 'long long'} {name}" for name in _scalars(problem)]
    kernel, at = "template <typename T>\n__global__ void", "(long long)blockIdx.x * blockDim.x + threadIdx.x"
    ours = _kernels(call, problem, kernel, [*arrays, *scalars], at)
    theirs = _under_another_name(of_device(text), call, problem)
    return f"{_OF_HEADERS}{begin(file)}{theirs}\n\n{ours}"


def begin(file: str) -> str:
    """The line before what a file holds, for compilers that say where an error is."""
    return f'#line 1 "{file}"\n'


def _kernels(call: Call, problem: Problem, kernel: str, parameters: Sequence[str], at: str) -> str:
    """The kernels that clear outputs, and the one that calls a function of anybody's.

    kernel: how the definition of one begins.
    at: the place of a work item in one dimension.
    """
    empty = "".join(f"if ({size} == 0) return;\n  " for size in sizes_of_nothing(call, problem))
    bodies = {f"clear_{name}": f"if ({at} < {elements(problem, name)}) {name}[{at}] = 0;" for name in call.cleared} | {
        problem.name: f"{empty}{_called(call, problem)}"
    }
    given = ", ".join(parameters)
    return "".join(f"{kernel} {name}({given}) {{\n  {body}\n}}\n" for name, body in bodies.items())


def sizes_of_nothing(call: Call, problem: Problem) -> list[str]:
    """The sizes that make the grid empty, and all outputs too, where they are 0.

    No host code launches an empty grid, which is an error. Here a launch has one group at least, as our own sources
    need it. A kernel that expects an element for each work item would write to one that is not there.
    """
    places = problem.size_of_each_dimension()
    if call.work_items is None or places is None:
        return []
    outputs = places[len(problem.inputs) :]
    products = [count for count in WorkItems.parse(call.work_items).counts if "+" not in count]
    launched = re.findall(r"\w+", " ".join(products))
    every = enumerate(problem.dimensions)
    return [name for at, name in every if name in launched and all(at in own for own in outputs)]


def in_opencl(call: Call, file: str, text: str, problem: Problem) -> str:
    """A kernel that calls one of a file, once for each work item."""
    arrays = _pointers(problem, "global ")
    scalars = [f"{'Sum' if name in problem.reals else 'long'} {name}" for name in _scalars(problem)]
    ours = _kernels(call, problem, "kernel void", [*arrays, *scalars], "get_global_id(0)")
    return f"{begin(file)}{_under_another_name(text, call, problem)}\n{ours}"


def _under_another_name(text: str, call: Call, problem: Problem) -> str:
    """A source whose function has another name than the kernel, which is that of the wrapper's.

    A header may be called as the kernel is, and keeps its name.
    """
    if call.name != problem.name:
        return text
    return outside_comments(text, partial(re.sub, rf"\b{problem.name}\b", f"judged_{problem.name}"))


def _pointers(problem: Problem, space: str) -> list[str]:
    """The arrays as parameters. Nothing is constant: their function may lack the word."""
    dtype = np.dtype(next(each for each in _IN_C if each in problem.dtypes))
    types = ("T" if each == dtype else number_format(each).c for each in problem.array_dtypes(dtype))
    return [f"{space}{kind}* {name}" for kind, name in zip(types, names(problem), strict=False)]


def elements(problem: Problem, array: str) -> str:
    """How many elements an array has, as a product of sizes. Raises WrongRequest where it is none."""
    return " * ".join(sides(problem, array)) or "1"


def sides(problem: Problem, array: str) -> list[str]:
    """How long an array is along each dimension: sizes and numbers. Raises WrongRequest where these do not say it."""
    places = problem.size_of_each_dimension()
    if places is None:
        raise WrongRequest(f"{array} of {problem.name} cannot begin as zeros: its length is no product of sizes")
    own = places[names(problem).index(array)]
    return [problem.dimensions[at] if at >= 0 else str(-at) for at in own]


def _scalars(problem: Problem) -> tuple[str, ...]:
    return names(problem)[len(problem.inputs) + problem.outputs :]


def _called(call: Call, problem: Problem) -> str:
    renamed = f"judged_{call.function}" if call.name == problem.name else call.function
    called = f"{renamed}({', '.join(call.arguments)});"
    if call.result is None:
        return called
    if call.work_items or elements(problem, call.result) != "1":
        raise WrongRequest(f"{call.function} has to write to {call.result}, which it gets as a parameter")
    return f"{call.result}[0] = {called}"
