"""The compiled kernels of the backend stdpar."""

from py_backends._compiled.kernel_module import Kernel as Kernel
from py_backends._compiled.kernel_module import instruction_sets as instruction_sets
from py_backends._compiled.kernel_module import kernels as kernels
