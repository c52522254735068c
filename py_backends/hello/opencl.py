# OpenCL: the host finds a device, compiles a kernel for it, and has it run.
import sys

import numpy as np

from py_backends.backend import _opencl_drivers

_opencl_drivers.find()  # those that pip installs, beside the system's
import pyopencl as cl

# 1. A platform is a maker's driver. It has devices: CPUs, GPUs and others.
platforms = cl.get_platforms()
makers = {each.name: each.vendor for each in platforms}  # a driver may be found twice
print(*(f"{name}, made by {maker}" for name, maker in makers.items()), sep="\n")
# 2. One device is taken: by the name that this program is given.
devices = {each.name.strip(): each for one in platforms for each in one.get_devices()}
device = devices[sys.argv[1]]
print(device.name, "in", device.platform.name)
# 3. A context holds what belongs together. Commands go through a queue.
context = cl.Context([device])
queue = cl.CommandQueue(context)
# 4. The kernel is written in OpenCL C. The driver compiles it now.
source = """
kernel void vecadd(global float* a, global float* b, global float* c, int n) {
    int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}"""
kernel = cl.Kernel(cl.Program(context, source).build(), "vecadd")
# 5. Buffers are memory of the device. The inputs are copied to it.
a, b = np.arange(10, dtype=np.float32), np.full(10, 0.5, np.float32)
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
arrays = [cl.Buffer(context, flags, hostbuf=each) for each in (a, b, 0 * a)]
# 6. Groups of 4 work items cover 10 elements: 12 items, 2 without work.
kernel(queue, (12,), (4,), *arrays, np.int32(10))
# 7. The host reads the result back, which waits until the kernel has ended.
c = np.empty_like(a)
cl.enqueue_copy(queue, c, arrays[2])
print(*c)
print("as NumPy adds:", np.array_equal(c, a + b))
