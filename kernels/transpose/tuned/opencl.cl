// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: on a CPU, a work item turns a tile over in registers, square by square, on its way to local memory. From there
//   it streams whole cache lines of c past the caches. On a GPU, a group turns a tile over in local memory, so that it
//   reads and writes neighbours.
// Model: on a CPU, a work item has a block of 96 rows of c and up to 512 columns. On a GPU, it moves four elements.
// Memory: an ordinary store first reads the line that it overwrites, a third of all traffic here. So c is streamed
//   where the matrices exceed the cache. Neighbouring rows of a lie further apart than the CPU's own prefetching
//   reaches: a work item prefetches by itself. Rows of a tile on a GPU are padded by an element, so that those of a
//   column lie in different banks.
// Edges: tiles of c end where lines begin, in each row elsewhere. So only the ends of a row of c are parts of lines,
//   which are stored element by element. What is left of a tile beside its squares is moved element by element too.
// ---
// Work items on a CPU: ceil(n / 512) x ceil(m / 96), in groups of 1 x 1
// Work items on a GPU: n x ceil(m / 4), in groups of 32 x 8

#if CPU

/// Stands before loops of which the compiler is to make no vectors. It would gather and scatter.
#define NO_VECTORS _Pragma("clang loop vectorize(disable)")

/// A row of a square. Two vectors of 16 bytes are interleaved in one instruction, and longer ones in few.
typedef T Vector __attribute__((ext_vector_type(sizeof(T) == 1 ? 16 : 8)));
/// A cache line.
typedef uint16 Line;
/// The same, where they begin at any element. (vload and vstore would do, but are calls in PoCL.)
typedef struct __attribute__((packed)) {
  Vector v;
} LooseVector;
typedef struct __attribute__((packed)) {
  Line v;
} LooseLine;

/// Columns of c of a work item.
enum { block_columns = 512 };
/// Elements of a vector and of a line; rows and columns of a tile of c, which may have a line more.
enum { lanes = sizeof(Vector) / sizeof(T), line = sizeof(Line) / sizeof(T), rows = 96, columns = 4 * line };
/// Elements from a row of a tile to the next. The tile takes less than the 32 KiB of local memory that every device
/// has.
enum { stride = columns + line };
/// Rows of a between what is read and what is prefetched.
enum { ahead = 16 };

/// Turns a square over. Each time that rows are interleaved with those half a square further down, twice as many
/// elements of a column are neighbours.
__attribute__((always_inline)) void turn(global const T* a, local T* to, long m) {
  Vector x[lanes], y[lanes];
#pragma unroll
  for (int r = 0; r < lanes; ++r) {
    __builtin_prefetch((const void*)(ulong)(a + (r + ahead) * m));
    x[r] = ((global const LooseVector*)(a + r * m))->v;
  }
#pragma unroll
  for (int together = 1; together < lanes; together *= 2) {
#pragma unroll
    for (int r = 0; r < lanes / 2; ++r) {
      y[2 * r].even = x[r].lo;
      y[2 * r].odd = x[r + lanes / 2].lo;
      y[2 * r + 1].even = x[r].hi;
      y[2 * r + 1].odd = x[r + lanes / 2].hi;
    }
#pragma unroll
    for (int r = 0; r < lanes; ++r) x[r] = y[r];
  }
#pragma unroll
  for (int r = 0; r < lanes; ++r) *(local Vector*)(to + r * stride) = x[r];
}

/// Copies `height` columns of a, from `width` of its rows, to rows of the tile.
void read_tile(global const T* a, local T* tile, long m, long height, long width) {
  const long whole_height = height / lanes * lanes, whole_width = width / lanes * lanes;
  NO_VECTORS for (long j = 0; j < whole_width; j += lanes) {
    NO_VECTORS for (long i = 0; i < whole_height; i += lanes) turn(a + j * m + i, tile + i * stride + j, m);
  }
  NO_VECTORS for (long j = 0; j < width; ++j) {
    NO_VECTORS for (long i = j < whole_width ? whole_height : 0; i < height; ++i) tile[i * stride + j] = a[j * m + i];
  }
}

/// Copies elements `begin` to `end` of a row of the tile to c.
void write_row(local const T* tile, global T* c, long begin, long end, bool streamed) {
  long j = begin;
  if (streamed) {
    NO_VECTORS for (; j < end && (ulong)(c + j) % sizeof(Line) != 0; ++j) c[j] = tile[j];
    NO_VECTORS for (; j + line <= end; j += line) {
      __builtin_nontemporal_store(((local const LooseLine*)(tile + j))->v, (global Line*)(c + j));
    }
  } else {
    NO_VECTORS for (; j + line <= end; j += line) {
      ((global LooseLine*)(c + j))->v = ((local const LooseLine*)(tile + j))->v;
    }
  }
  NO_VECTORS for (; j < end; ++j) c[j] = tile[j];
}

/// How many elements from c on come before the first that begins a line.
long before_line(global const T* c) { return -(ulong)c % sizeof(Line) / sizeof(T); }

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void transpose(global const T* a, global T* c, long m, long n) {
  local T tile[rows * stride] __attribute__((aligned(sizeof(Line))));
  const bool streamed = 2 * m * n * (long)sizeof(T) > CACHE_BYTES;
  const bool ragged = streamed && ((ulong)c | n * sizeof(T)) % sizeof(Line) != 0;  // lines begin elsewhere in each row
  const long i = get_global_id(1) * rows, height = min((long)rows, m - i);
  const long first = get_global_id(0) * block_columns, last = min(n, first + block_columns);
  NO_VECTORS for (long j = first; j < last; j += columns) {
    const long width = min((long)columns, last - j);
    const long more = ragged ? min((long)line, n - j - width) : 0;  // of lines that begin in this tile
    read_tile(a + j * m + i, tile, m, height, width + more);
    NO_VECTORS for (long r = 0; r < height; ++r) {
      global T* const to = c + (i + r) * n + j;
      const long begin = ragged && j > 0 ? before_line(to) : 0;
      const long end = ragged && j + width < n ? width + before_line(to + width) : width;
      write_row(tile + r * stride, to, begin, min(end, width + more), streamed);
    }
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);  // other threads see streamed stores only after this
}

#else

/// Rows and columns of a tile, and rows between two elements of a work item.
enum { side = 32, rows = 8 };

__attribute__((reqd_work_group_size(side, rows, 1))) kernel void transpose(global const T* a, global T* c, long m,
                                                                           long n) {
  local T tile[side][side + 1];
  const int x = get_local_id(0), y = get_local_id(1);
  const long j0 = get_group_id(0) * side, i0 = get_group_id(1) * side;
#pragma unroll
  for (int r = 0; r < side; r += rows) {
    if (j0 + y + r < n && i0 + x < m) tile[y + r][x] = a[(j0 + y + r) * m + i0 + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int r = 0; r < side; r += rows) {
    if (i0 + y + r < m && j0 + x < n) c[(i0 + y + r) * n + j0 + x] = tile[x][y + r];
  }
}

#endif
