# SYCL as it runs here: a queue, shared memory (USM), a kernel compiled at run time.
import sys
from pathlib import Path

import numpy as np

from py_backends import _compiled
from py_backends.backend import _sycl

# 1. A device is taken, by the name that this program is given.
devices = {each.name.strip(): each for each in _sycl.devices("sycl").values()}
device = devices[sys.argv[1]]
print(device.name)
# 2. Commands go through a queue.
import dpctl.memory

queue = dpctl.SyclQueue(device)
# 3. USM is memory that host and device reach by the same address: no copies.
memory = [dpctl.memory.MemoryUSMShared(40, queue=queue) for _ in range(3)]
a, b, c = (np.ndarray(10, np.float32, each) for each in memory)
addresses = [each.ctypes.data for each in (a, b, c)]
a[:], b[:] = np.arange(10), 0.5
print(memory[0].get_usm_type(), *map(hex, addresses))
# 4. The kernel is a function. The SYCL runtime has a compiler for it.
source = """
namespace one = sycl::ext::oneapi;
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((one::experimental::nd_range_kernel<1>))
void vecadd(const float* a, const float* b, float* c, long n) {
    long i = one::this_work_item::get_nd_item<1>().get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}"""
compiler = _compiled.load("sycl_compiler")
options = _sycl.standard_headers(Path(str(compiler.__file__)).parent)
include = "#include <sycl/sycl.hpp>"
(kernel,), *_ = compiler.compile(queue, include, "hello", source, ["vecadd"], options)
# 5. Three groups of 4 work items cover 10 elements. The host waits for them.
compiler.launch(queue, kernel, addresses, [10], [3], [4])
queue.wait()
print(*c)
print("as NumPy adds:", np.array_equal(c, a + b))
