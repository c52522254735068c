// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: up to eight steps a launch, in one pass over the rows. As soon as a step has computed three rows, the next step
//   computes the middle one. So a launch reads and writes memory once for all of its steps.
// Model: on a CPU, a work item has a part of the matrix, and computes a row in vectors. On a GPU, it has a column of a
//   part, and of each step the last two elements in registers. Those beside come from its neighbours in the group.
// Memory: on a CPU, three rows of each step between stay in the second-level cache. On a GPU, local memory has a row of
//   each step twice: one is read while the next one is written.
// Edges: around a part, as many more rows and columns are computed as there are steps to come. The boundary is copied.
//   What is left after a row's last full vector is computed one element at a time.
// ---
// Work items of sweep on a CPU: ceil(n / 512) x ceil(m / 256), in groups of 1 x 1
// Scratch on a CPU: ceil(m / 256) * 21 * n + ceil(m / 256) * ceil(n / 512) * 336 elements of Sum, or 1 where m <= 2
// Work items on a GPU: ceil(n / 208) * 224 x ceil(m / 128), in groups of 224 x 1
// Repeat: steps, up to 8 a launch
#include <sycl/sycl.hpp>

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

constexpr Size most_steps = 8;

/// Of a CPU's part: its rows and columns, and the rows that are kept of each step.
constexpr Size part_rows = 256, part_columns = 512, kept_rows = 3;

/// A vector that begins at any element. (No alias template, since clang would forget its alignment.)
template <typename T>
struct __attribute__((packed)) Loose {
  using Vector = T __attribute__((ext_vector_type(64 / sizeof(T))));
  static constexpr Size lanes = 64 / sizeof(T);
  Vector v;
};

template <typename T>
auto load(const T* from) {
  return reinterpret_cast<const Loose<T>*>(from)->v;
}

/// The elements of a row that have neighbours on all sides.
template <typename T>
void compute(const T* up, const T* row, const T* down, T* after, Size count) {
  Size j = 0;
  for (; j + Loose<T>::lanes <= count; j += Loose<T>::lanes) {
    const auto sum = load(up + j) + load(down + j) + (load(row + j - 1) + load(row + j + 1));
    reinterpret_cast<Loose<T>*>(after + j)->v = load(row + j) * T(0.5) + sum * T(0.125);
  }
  for (; j < count; ++j) after[j] = row[j] / 2 + (up[j] + down[j] + row[j - 1] + row[j + 1]) / 8;
}

/// A row of a step, all of it or a part.
template <typename T>
void step_row(const T* up, const T* row, const T* down, T* after, Size count, bool first, bool last) {
  if (first) after[0] = row[0];
  if (last) after[count - 1] = row[count - 1];
  compute(up + first, row + first, down + first, after + first, count - first - last);
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, 1>))
void sweep(const T* u, T* c, T* scratch, std::int64_t m, std::int64_t n, std::int64_t steps) {
  const auto item = get_nd_item<2>();
  const Size across = item.get_global_id(1), down_there = item.get_global_id(0), strips = item.get_global_range(1);
  const Size top = down_there * part_rows, bottom = sycl::min(m, top + part_rows);
  const Size left = across * part_columns, right = sycl::min(n, left + part_columns);
  if (left >= n) return;
  if (steps == 0 || m <= 2) {
    for (Size i = top; i < bottom; ++i) {
      for (Size j = left; j < right; ++j) c[i * n + j] = u[i * n + j];
    }
    return;
  }
  // The rows that are kept: as many as the part has columns, and some more on each side. Those of parts above and on the
  // left come first.
  const Size length = right - left + 2 * most_steps, of_step = kept_rows * length;
  const Size of_band = n + 2 * most_steps * strips, before_part = left + 2 * most_steps * across;
  T* const rows = scratch + (most_steps - 1) * kept_rows * (down_there * of_band + before_part);
  for (Size of_first = top - steps + 1; of_first < bottom + steps - 1; ++of_first) {
    for (Size step = 0; step < steps; ++step) {
      const Size i = of_first - step, more = steps - 1 - step;
      if (i < sycl::max(Size(0), top - more) || i >= sycl::min(m, bottom + more)) continue;
      const Size first = sycl::max(Size(0), left - more), end = sycl::min(n, right + more), count = end - first;
      // Rows of the step before and of this one, which begin so many elements before column `first`.
      T *const before = rows + (step - 1) * of_step, *const behind = before + of_step;
      const Size at = most_steps + first - left;
      const T* const row = step == 0 ? u + i * n + first : before + i % kept_rows * length + at;
      T* const after = step == steps - 1 ? c + i * n + first : behind + i % kept_rows * length + at;
      if (i == 0 || i == m - 1) {
        for (Size j = 0; j < count; ++j) after[j] = row[j];
        continue;
      }
      const T* const up = step == 0 ? row - n : before + (i - 1) % kept_rows * length + at;
      const T* const down = step == 0 ? row + n : before + (i + 1) % kept_rows * length + at;
      step_row(up, row, down, after, count, first == 0, end == n);
    }
  }
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  // Items of a group, whose rows take less than the 32 KiB of local memory that every device has.
  constexpr Size items = 224, columns = items - 2 * most_steps, rows = 128;
  static syclexp::work_group_static<T[2][most_steps][items + 2]> memory;
  T(&shared)[2][most_steps][items + 2] = memory;
  const auto item = get_nd_item<2>();
  const Size place = item.get_local_id(1), x = place + 1;
  const Size j = Size(item.get_group(1)) * columns + place - most_steps;
  const Size top = item.get_group(0) * rows, bottom = sycl::min(m, top + rows);
  const bool inside = j >= 0 && j < n, edge = j == 0 || j == n - 1;
  const bool own = inside && place >= most_steps && place < most_steps + columns;
  T above[most_steps] = {}, last[most_steps] = {};  // of each step before, of the two rows that came before
  for (Size i = sycl::max(Size(0), top - steps); i < bottom + steps; ++i) {
    T next = inside && i < m ? u[i * n + j] : T(0);
    const Size now = i % 2;
#pragma unroll
    for (Size step = 0; step < most_steps; ++step) {
      if (step < steps) {
        const Size row = i - step - 1;
        const T *const beside = shared[1 - now][step], sum = above[step] + next + beside[x - 1] + beside[x + 1];
        const T after = edge || row == 0 || row == m - 1 ? last[step] : last[step] / 2 + sum / 8;
        above[step] = last[step];
        last[step] = next;
        shared[now][step][x] = next;
        next = after;
      }
    }
    const Size row = i - steps;
    if (own && row >= top && row < bottom) c[row * n + j] = next;
    sycl::group_barrier(item.get_group());  // the rows that were written are complete; nobody reads the others any more
  }
}
