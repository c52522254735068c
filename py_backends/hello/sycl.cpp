// SYCL as on the slide: buffers, accessors, and a lambda that is the kernel.
// Build: icpx -fsycl -O2 sycl.cpp -o sycl
// Compiler: Intel's oneAPI DPC++, or another that compiles host and lambda together
#include <cstdio>
#include <sycl/sycl.hpp>
#include <vector>

int main() {
  try {
    // 1. A queue takes commands for one device, the best that there is.
    sycl::queue queue;
    const auto device = queue.get_device();
    std::printf("%s\n", device.get_info<sycl::info::device::name>().c_str());

    // 2. Three vectors on the host, all of one declared size.
    constexpr int n = 10;
    std::vector<float> a(n, 1.5f), b(n, 2.25f), c(n);
    {
      // 3. While buffers live, the runtime moves the vectors' elements.
      sycl::buffer from_a(a), from_b(b), to_c(c);

      // 4. A command group says by accessors what it reads and writes, so
      //    that the runtime knows what has to be copied before and after.
      queue.submit([&](sycl::handler& group) {
        const sycl::accessor x(from_a, group, sycl::read_only);
        const sycl::accessor y(from_b, group, sycl::read_only);
        const sycl::accessor z(to_c, group, sycl::write_only);
        // 5. The lambda is the kernel: the code of one element.
        group.parallel_for(n, [=](sycl::id<1> i) { z[i] = x[i] + y[i]; });
      });

      // 6. The host waits, and gets the errors of the device as exceptions.
      queue.wait_and_throw();
    }
    // 7. The buffers have ended, so the sums are in the vector again.
    for (float each : c) std::printf("%g ", each);
  } catch (const sycl::exception& error) {
    std::printf("SYCL: %s\n", error.what());
  }
}
