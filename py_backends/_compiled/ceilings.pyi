"""The compiled measurements of what the machine can do at most; `py_backends.workers.ceilings` calls them."""

from py_backends._compiled.kernel_module import Kernel as Kernel
from py_backends._compiled.kernel_module import instruction_sets as instruction_sets
from py_backends._compiled.kernel_module import kernels as kernels
