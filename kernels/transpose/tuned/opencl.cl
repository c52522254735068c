// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: on a CPU, a work item turns a tile over in registers, vector by vector, into local memory. From there it streams
//   whole cache lines of c past the caches. On a GPU, a group turns a tile over in local memory, so that it reads and
//   writes neighbours.
// Model: on a CPU, a work item has a block of c, and moves it tile by tile. On a GPU, a work item moves four elements.
// Work items on a CPU: ceil(n / 512) x ceil(m / 128), in groups of 1 x 1
// Work items on a GPU: n x ceil(m / 4), in groups of 32 x 8
// Memory: a tile of a CPU has rows of a of 64 bytes, a cache line or parts of two. Where the matrices exceed the cache,
//   c is streamed. An ordinary store first reads the line that it overwrites, a third of all traffic here. Rows of a tile
//   of a GPU are padded by an element, so that those of a column lie in different banks.
// Edges: a row of c is divided where its lines begin. So only its ends have parts of lines, which are stored element by
//   element. Elements past the last column or row are left out.

#if CPU

/// Before a loop that is not to become one of vectors across its turns, which would take gathers and scatters.
#define NO_VECTORS _Pragma("clang loop vectorize(disable)")

/// Elements of a vector. Two vectors of 16 bytes are interleaved in one instruction, and longer ones in few.
#ifndef LANES
#define LANES (sizeof(T) == 1 ? 16 : 8)
#endif
#ifndef ROWS
#define ROWS 64
#define COLUMNS (4 * line)
#endif
#ifndef LOC
#define LOC 3
#endif
#ifndef AHEAD
#define AHEAD 16
#endif
typedef T Vector __attribute__((ext_vector_type(LANES)));
/// A cache line.
typedef uint16 Line;
/// The same, where they begin at any element. (vload and vstore would do, but are calls in PoCL.)
typedef struct __attribute__((packed)) {
  Vector v;
} LooseVector;
typedef struct __attribute__((packed)) {
  Line v;
} LooseLine;

/// Most rows and columns of c of a work item.
enum { block_rows = 128, block_columns = 512 };
/// Elements of a vector and of a line, rows and columns of a tile.
enum { lanes = sizeof(Vector) / sizeof(T), line = sizeof(Line) / sizeof(T), rows = ROWS, columns = COLUMNS };
/// Elements from a row of a tile to the next: more than are read, by a line. Rows a power of two apart would take places
/// from each other in the cache.
enum { stride = columns + 2 * line };
/// Rows of a between what is read and what is prefetched. The CPU's own prefetching ends with a page.
enum { ahead = AHEAD };

Vector interleaved_low(Vector x, Vector y) {
  Vector z;
  z.even = x.lo;
  z.odd = y.lo;
  return z;
}
Vector interleaved_high(Vector x, Vector y) {
  Vector z;
  z.even = x.hi;
  z.odd = y.hi;
  return z;
}

/// Turns a square over. Each time that row r is interleaved with the one half a square further down, twice as many
/// elements of a column are neighbours.
__attribute__((always_inline)) void turn(global const T* a, local T* to, long m) {
  Vector x[lanes], y[lanes];
#pragma unroll
  for (int r = 0; r < lanes; ++r) x[r] = ((global const LooseVector*)(a + r * m))->v;
#pragma unroll
  for (int together = 1; together < lanes; together *= 2) {
#pragma unroll
    for (int r = 0; r < lanes / 2; ++r) {
      y[2 * r] = interleaved_low(x[r], x[r + lanes / 2]);
      y[2 * r + 1] = interleaved_high(x[r], x[r + lanes / 2]);
    }
#pragma unroll
    for (int r = 0; r < lanes; ++r) x[r] = y[r];
  }
#pragma unroll
  for (int r = 0; r < lanes; ++r) *(local Vector*)(to + r * stride) = x[r];
}

/// Copies `height` columns of a, from `width` of its rows, to rows of the tile.
__attribute__((always_inline)) void read_tile(global const T* a, local T* tile, long m, long height, long width) {
  long j = 0;
  NO_VECTORS for (; j + lanes <= width; j += lanes) {
    for (int r = 0; r < lanes; ++r) {
      for (int q = 0; q < rows; q += line) __builtin_prefetch((const void*)(ulong)(a + (j + r + ahead) * m + q), 0, LOC);
    }
    long i = 0;
    NO_VECTORS for (; i + lanes <= height; i += lanes) turn(a + j * m + i, tile + i * stride + j, m);
    NO_VECTORS for (; i < height; ++i) {
      NO_VECTORS for (int r = 0; r < lanes; ++r) tile[i * stride + j + r] = a[(j + r) * m + i];
    }
  }
  NO_VECTORS for (; j < width; ++j) {
    NO_VECTORS for (long i = 0; i < height; ++i) tile[i * stride + j] = a[j * m + i];
  }
}

/// How many elements from c on come before the first that begins a line.
long before_line(global const T* c) { return -(ulong)c % sizeof(Line) / sizeof(T); }

/// Copies elements `begin` to `end` of a row of the tile to c.
void write_row(local const T* tile, global T* c, long begin, long end, bool streamed) {
  long j = begin;
  if (streamed) {
    NO_VECTORS for (; j < end && (ulong)(c + j) % sizeof(Line) != 0; ++j) c[j] = tile[j];
    NO_VECTORS for (; j + line <= end; j += line) {
      __builtin_nontemporal_store(((local const LooseLine*)(tile + j))->v, (global Line*)(c + j));
    }
  } else {
    NO_VECTORS for (; j + line <= end; j += line) ((global LooseLine*)(c + j))->v = ((local const LooseLine*)(tile + j))->v;
  }
  NO_VECTORS for (; j < end; ++j) c[j] = tile[j];
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void transpose(global const T* a, global T* c, long m, long n) {
  local T tile[rows * stride] __attribute__((aligned(64)));
  const bool streamed = 2 * m * n * (long)sizeof(T) > CACHE_BYTES;
  // Where lines begin elsewhere in each row, tiles of c do too.
  const bool ragged = streamed && ((ulong)c | n * sizeof(T)) % sizeof(Line) != 0;
  const long j0 = get_global_id(0) * block_columns, j1 = min(n, j0 + block_columns);
  const long i0 = get_global_id(1) * block_rows, i1 = min(m, i0 + block_rows);
  NO_VECTORS for (long i = i0; i < i1; i += rows) {
    NO_VECTORS for (long j = j0; j < j1; j += columns) {
      const long height = min((long)rows, i1 - i), width = min((long)columns, j1 - j);
      const long more = ragged ? min((long)line, n - j - width) : 0;  // of a line that begins in this tile
#if FULL
      if (height == rows) {
        read_tile(a + j * m + i, tile, m, rows, width + more);
      } else {
        read_tile(a + j * m + i, tile, m, height, width + more);
      }
#else
      read_tile(a + j * m + i, tile, m, height, width + more);
#endif
      NO_VECTORS for (long r = 0; r < height; ++r) {
        global T* const to = c + (i + r) * n + j;
        const long begin = ragged && j > 0 ? before_line(to) : 0;
        const long end = ragged && j + width < n ? width + before_line(to + width) : width;
        write_row(tile + r * stride, to, begin, min(end, width + more), streamed);
      }
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
  for (int r = y; r < side; r += rows) {
    if (j0 + r < n && i0 + x < m) tile[r][x] = a[(j0 + r) * m + i0 + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int r = y; r < side; r += rows) {
    if (i0 + r < m && j0 + x < n) c[(i0 + r) * n + j0 + x] = tile[x][r];
  }
}

#endif
