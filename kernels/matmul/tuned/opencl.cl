// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: on a CPU, a work item multiplies panels that an earlier kernel has packed, and holds a tile of c in vector
//   registers. On a GPU, a group of them holds blocks of a and b in local memory, and each item a tile of c.
// Work items of pack on a CPU: ceil(n / 128) + ceil(m / 84) x ceil(k / 256), in groups of 1 x 1
// Work items of multiply on a CPU: ceil(n / 128) x ceil(m / 84), in groups of 1 x 1
// Scratch on a CPU: ceil(n / 128) * 128 * k + ceil(m / 84) * 84 * k elements
// Memory: b is packed into panels as wide as the tile, a into panels as high, so that both are read in order.
// Edges: panels are filled up with zeros, so that a ragged tile is computed like any other; only its part of c is written.

#if CPU

/// Columns and rows of c of one work item: whole tiles of any width and height below.
enum { block_columns = 128, block_rows = 84 };
/// Rows of b, or columns of a, that one work item packs.
enum { packed_depth = 256 };
/// Products summed in registers before a tile of c is read and written again: the longer, the less of c moves.
enum { most_depth = 768 };
/// The tile of c that stays in registers: 28 sums where there are 32 registers, which are those of 64 bytes, else 12.
enum { lanes = sizeof(V) / sizeof(T), registers = 2, columns = registers * lanes, rows = sizeof(V) >= 64 ? 14 : 6 };

/// A vector that lies anywhere.
typedef struct __attribute__((packed)) {
  V v;
} Loose;

/// Where the panels of a begin, behind those of b.
global T* panels_of_a(global T* scratch, long n, long k) {
  return scratch + (n + block_columns - 1) / block_columns * block_columns * k;
}

/// Rows p0 to p1 of a block of b, as panels stored by rows; columns that b has not are zeros.
void pack_b(global const T* b, global T* to, long j0, long p0, long p1, long n, long k) {
  for (long j = j0; j < j0 + block_columns; j += columns, to += columns * k) {
    for (long p = p0; p < p1; ++p) {
      if (j + columns <= n) {
        for (int s = 0; s < registers; ++s) {
          ((global V*)(to + p * columns))[s] = ((global const Loose*)(b + p * n + j))[s].v;
        }
      } else {
        for (long q = 0; q < columns; ++q) to[p * columns + q] = j + q < n ? b[p * n + j + q] : 0;
      }
    }
  }
}

/// Columns p0 to p1 of a block of a, as panels stored by columns; rows that a has not are zeros.
void pack_a(global const T* a, global T* to, long i0, long p0, long p1, long m, long k) {
  for (long i = i0; i < i0 + block_rows; i += rows, to += rows * k) {
    for (int r = 0; r < rows; ++r) {
      if (i + r < m) {
        for (long p = p0; p < p1; ++p) to[p * rows + r] = a[(i + r) * k + p];
      } else {
        for (long p = p0; p < p1; ++p) to[p * rows + r] = 0;
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void pack(global const T* a, global const T* b, global T* c, global T* scratch, long m, long n, long k) {
  const long blocks_of_b = (n + block_columns - 1) / block_columns;
  const long block = get_global_id(0);
  const long p0 = get_global_id(1) * packed_depth, p1 = min(k, p0 + packed_depth);
  if (block < blocks_of_b) {
    const long j0 = block * block_columns;
    pack_b(b, scratch + j0 * k, j0, p0, p1, n, k);
  } else {
    const long i0 = (block - blocks_of_b) * block_rows;
    if (i0 < m) pack_a(a, panels_of_a(scratch, n, k) + i0 * k, i0, p0, p1, m, k);
  }
}

/// c = a b, or c += a b where `add`, for one tile of which c has this much.
__attribute__((always_inline)) void multiply_tile(global const T* a, global const T* b, global T* c, long depth, long n, long height, long width, bool add) {
  V sum[rows][registers];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < registers; ++s) sum[r][s] = 0;
  }
  for (long p = 0; p < depth; ++p) {
    V row[registers];
#pragma unroll
    for (int s = 0; s < registers; ++s) row[s] = ((global const V*)(b + p * columns))[s];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const V factor = a[p * rows + r];
#pragma unroll
      for (int s = 0; s < registers; ++s) sum[r][s] = factor * row[s] + sum[r][s];
    }
  }
  if (height >= rows && width >= columns) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int s = 0; s < registers; ++s) {
        global Loose* const to = (global Loose*)(c + r * n) + s;
        to->v = add ? to->v + sum[r][s] : sum[r][s];
      }
    }
  } else {
    V part[rows][registers];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int s = 0; s < registers; ++s) part[r][s] = sum[r][s];
    }
    for (long r = 0; r < min(height, (long)rows); ++r) {
      for (long q = 0; q < min(width, (long)columns); ++q) {
        const T value = ((T*)part)[r * columns + q];
        c[r * n + q] = add ? c[r * n + q] + value : value;
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void multiply(global const T* a, global const T* b, global T* c, global T* scratch, long m, long n, long k) {
  const long j0 = get_global_id(0) * block_columns, i0 = get_global_id(1) * block_rows;
  global const T* const packed_a = panels_of_a(scratch, n, k);
  for (long p = 0; p == 0 || p < k; p += most_depth) {
    const long depth = min(k - p, (long)most_depth);
    for (long j = j0; j < min(n, j0 + block_columns); j += columns) {
      for (long i = i0; i < min(m, i0 + block_rows); i += rows) {
        multiply_tile(packed_a + i * k + p * rows, scratch + j * k + p * columns, c + i * n + j, depth, n, m - i, n - j, p > 0);
      }
    }
  }
}

#else

kernel void matmul(global const T* a, global const T* b, global T* c, long m, long n, long k) {
  const long j = get_global_id(0);
  const long i = get_global_id(1);
  if (i < m && j < n) {
    T sum = 0;
    for (long p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
    c[i * n + j] = sum;
  }
}

#endif
