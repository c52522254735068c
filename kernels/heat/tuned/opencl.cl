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

enum { most_steps = 8 };

#if CPU

enum { part_rows = 256, part_columns = 512, kept_rows = 3 };
enum { lanes = sizeof(V) / sizeof(T) };

/// A vector that begins at any element. (vload and vstore would do, but are calls in PoCL.)
typedef struct __attribute__((packed)) {
  V v;
} Loose;

V load(global const T* from) { return ((global const Loose*)from)->v; }

/// The elements of a row that have neighbours on all sides.
void compute(global const T* up, global const T* row, global const T* down, global T* after, long count) {
  long j = 0;
  for (; j + lanes <= count; j += lanes) {
    const V sum = load(up + j) + load(down + j) + (load(row + j - 1) + load(row + j + 1));
    ((global Loose*)(after + j))->v = load(row + j) * (T)0.5 + sum * (T)0.125;
  }
  for (; j < count; ++j) after[j] = row[j] / 2 + (up[j] + down[j] + row[j - 1] + row[j + 1]) / 8;
}

/// A row of a step, all of it or a part.
void step_row(global const T* up, global const T* row, global const T* down, global T* after, long count, bool first,
              bool last) {
  if (first) after[0] = row[0];
  if (last) after[count - 1] = row[count - 1];
  compute(up + first, row + first, down + first, after + first, count - first - last);
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void sweep(global const T* u, global T* c, global T* scratch,
                                                                 long m, long n, long steps) {
  const long top = get_global_id(1) * part_rows, bottom = min(m, top + part_rows);
  const long left = get_global_id(0) * part_columns, right = min(n, left + part_columns);
  if (left >= n) return;
  if (steps == 0 || m <= 2) {
    for (long i = top; i < bottom; ++i) {
      for (long j = left; j < right; ++j) c[i * n + j] = u[i * n + j];
    }
    return;
  }
  // The rows that are kept: as many as the part has columns, and some more on each side. Those of parts above and on the
  // left come first.
  const long length = right - left + 2 * most_steps, of_step = kept_rows * length;
  const long of_band = n + 2 * most_steps * get_global_size(0), before_part = left + 2 * most_steps * get_global_id(0);
  global T* const rows = scratch + (most_steps - 1) * kept_rows * (get_global_id(1) * of_band + before_part);
  for (long of_first = top - steps + 1; of_first < bottom + steps - 1; ++of_first) {
    for (long step = 0; step < steps; ++step) {
      const long i = of_first - step, more = steps - 1 - step;
      if (i < max(0L, top - more) || i >= min(m, bottom + more)) continue;
      const long first = max(0L, left - more), end = min(n, right + more), count = end - first;
      // Rows of the step before and of this one, which begin so many elements before column `first`.
      global T* const before = rows + (step - 1) * of_step;
      global T* const behind = before + of_step;
      const long at = most_steps + first - left;
      global const T* const row = step == 0 ? u + i * n + first : before + i % kept_rows * length + at;
      global T* const after = step == steps - 1 ? c + i * n + first : behind + i % kept_rows * length + at;
      if (i == 0 || i == m - 1) {
        for (long j = 0; j < count; ++j) after[j] = row[j];
        continue;
      }
      global const T* const up = step == 0 ? row - n : before + (i - 1) % kept_rows * length + at;
      global const T* const down = step == 0 ? row + n : before + (i + 1) % kept_rows * length + at;
      step_row(up, row, down, after, count, first == 0, end == n);
    }
  }
}

#else

/// Items of a group, whose rows take less than the 32 KiB of local memory that every device has. Columns that it writes.
enum { items = 224, columns = items - 2 * most_steps, rows = 128 };

__attribute__((reqd_work_group_size(items, 1, 1))) kernel void heat(global const T* u, global T* c, long m, long n,
                                                                    long steps) {
  local T shared[2][most_steps][items + 2];
  const int item = get_local_id(0), x = item + 1;
  const long j = get_group_id(0) * columns + item - most_steps;
  const long top = get_group_id(1) * rows, bottom = min(m, top + rows);
  const bool inside = j >= 0 && j < n, edge = j == 0 || j == n - 1;
  const bool own = inside && item >= most_steps && item < most_steps + columns;
  T above[most_steps], last[most_steps];  // of each step before, of the two rows that came before
#pragma unroll
  for (int step = 0; step < most_steps; ++step) above[step] = last[step] = 0;
  for (long i = max(0L, top - steps); i < bottom + steps; ++i) {
    T next = inside && i < m ? u[i * n + j] : 0;
    const int now = i % 2;
#pragma unroll
    for (int step = 0; step < most_steps; ++step) {
      if (step < steps) {
        const long row = i - step - 1;
        local const T* const beside = shared[1 - now][step];
        const T sum = above[step] + next + beside[x - 1] + beside[x + 1];
        const T after = edge || row == 0 || row == m - 1 ? last[step] : last[step] / 2 + sum / 8;
        above[step] = last[step];
        last[step] = next;
        shared[now][step][x] = next;
        next = after;
      }
    }
    const long row = i - steps;
    if (own && row >= top && row < bottom) c[row * n + j] = next;
    barrier(CLK_LOCAL_MEM_FENCE);  // the rows that were written are complete, and nobody reads the others any more
  }
}

#endif
