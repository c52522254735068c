// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: on a CPU, a work item multiplies panels that an earlier kernel has packed, and keeps a tile of c in vector
//   registers. On a GPU, a group keeps blocks of a and b in local memory, and each item a tile of c.
// Memory: on a CPU, panels of b are as wide as the tile and panels of a as high, so that both are read in order. On a
//   GPU, a group reads every element of a block once from global memory. Panels and blocks hold the format of the
//   computation: elements are widened once, on their way there. On a CPU int8 becomes floats, which multiply and add in
//   one instruction, integers in two. The sums of a pass are exact in floats.
//   Where one work item has all of c, it packs the panels of one pass after the other: whole ones would be many times as
//   large as narrow a and b.
// Edges: panels and blocks are filled up with zeros. So a ragged tile is computed like any other, and only the part of
//   it that c has is written.
// ---
// Work items of pack on a CPU: ceil(n / 128) + ceil(m / 48) x ceil(k / 256), in groups of 1 x 1
// Work items of multiply on a CPU: ceil(n / 128) x ceil(m / 48), in groups of 1 x 1
// Work items on a GPU: ceil(n / 8) x ceil(m / 8), in groups of 16 x 16
// Scratch on a CPU: ceil(n / 128) * 128 * k + ceil(m / 48) * 48 * k elements of Sum, or 90112 where n <= 128 and m <=
//   48

#if CPU

#define JOINED_AS_THEY_ARE(x, y) x##y
#define JOINED(x, y) JOINED_AS_THEY_ARE(x, y)
#define FOUR(type) JOINED(type, 4)

/// What panels hold and tiles compute with: one element, a vector, and four elements.
#if FORMAT_int8
#define Factor float
#else
#define Factor Sum
#endif
#define Factors JOINED(Factor, WIDTH)
#define FourFactors FOUR(Factor)
#define to_factors JOINED(convert_, Factors)
#define to_four_factors JOINED(convert_, FourFactors)
#define to_sums JOINED(convert_, Sums)

/// Most columns and rows of c of one work item: whole tiles of every width and height below. Tiles are divided evenly
/// among many work items, since the others wait for a thread with one more.
enum { block_columns = 128, block_rows = 48 };
/// Most rows of b, or columns of a, that one work item packs.
enum { packed_depth = 256 };
/// Products summed in registers before a tile of c is read and written again. The more, the less of c moves. The sum of
/// up to 1024 products of int8 is exact in a float.
enum { most_depth = 512 };
/// The tile of c that stays in registers. It has 24 sums where there are 32 registers, which are those of 64 bytes,
/// else 12. More would fit, but compilers load some elements of a ahead, and would spill.
enum { lanes = sizeof(Factors) / sizeof(Factor), registers = sizeof(Factors) >= 64 ? 2 : 1 };
enum { columns = registers * lanes, rows = 12 };

/// Where one of several equal parts of `whole` begins. Only whole units are divided.
long begin_of(long part, long parts, long whole, long unit) { return (whole + unit - 1) / unit * part / parts * unit; }

/// Vectors that begin at any element. (vload and vstore would do, but are calls in PoCL.)
typedef struct __attribute__((packed)) {
  V v;
} Loose;
typedef struct __attribute__((packed)) {
  Sums v;
} LooseSums;
typedef struct __attribute__((packed)) {
  FOUR(T) v;
} LooseFour;
typedef struct __attribute__((packed)) {
  FourFactors v;
} LooseFourFactors;

/// Whether `multiply` packs what it needs, pass by pass, and `pack` nothing.
bool packs_by_passes(long m, long n, long k) { return n <= block_columns && m <= block_rows && k > most_depth; }

/// Where the panels of a begin, behind those of b. Panels have `depth` columns of a and rows of b.
global Factor* panels_of_a(global Factor* scratch, long n, long depth) {
  return scratch + (n + block_columns - 1) / block_columns * block_columns * depth;
}

/// Packs rows p0 to p1 of columns j0 to j1 of b, as panels stored by rows. Missing columns are zeros.
void pack_b(global const T* b, global Factor* to, long j0, long j1, long p0, long p1, long n, long depth) {
  for (long p = p0; p < p1; ++p) {
    global Factor* panel = to + j0 * depth + p * columns;
    for (long j = j0; j < j1; j += columns, panel += columns * depth) {
      if (j + columns <= n) {
        global const Loose* const from = (global const Loose*)(b + p * n + j);
        for (int s = 0; s < registers; ++s) ((global Factors*)panel)[s] = to_factors(widen(from[s].v));
      } else {
        for (long q = 0; q < columns; ++q) panel[q] = j + q < n ? widen(b[p * n + j + q]) : 0;
      }
    }
  }
}

/// Transposes four rows of four elements to columns of a panel. It uses vectors, since compilers make slow scatters of
/// a loop.
void transpose(global const T* a, global Factor* to, long k) {
  const FourFactors x = to_four_factors(widen(((global const LooseFour*)a)->v));
  const FourFactors y = to_four_factors(widen(((global const LooseFour*)(a + k))->v));
  const FourFactors z = to_four_factors(widen(((global const LooseFour*)(a + 2 * k))->v));
  const FourFactors w = to_four_factors(widen(((global const LooseFour*)(a + 3 * k))->v));
  ((global LooseFourFactors*)to)->v = (FourFactors)(x.s0, y.s0, z.s0, w.s0);
  ((global LooseFourFactors*)(to + rows))->v = (FourFactors)(x.s1, y.s1, z.s1, w.s1);
  ((global LooseFourFactors*)(to + 2 * rows))->v = (FourFactors)(x.s2, y.s2, z.s2, w.s2);
  ((global LooseFourFactors*)(to + 3 * rows))->v = (FourFactors)(x.s3, y.s3, z.s3, w.s3);
}

/// Packs columns p0 to p1 of rows i0 to i1 of a, as panels stored by columns. Missing rows are zeros.
void pack_a(global const T* a, global Factor* to, long i0, long i1, long p0, long p1, long m, long k, long depth) {
  to += i0 * depth;
  for (long i = i0; i < i1; i += rows, to += rows * depth) {
    long p = p0;
    for (; i + rows <= m && p + 4 <= p1; p += 4) {
      for (int r = 0; r < rows; r += 4) transpose(a + (i + r) * k + p, to + p * rows + r, k);
    }
    for (; p < p1; ++p) {
      for (int r = 0; r < rows; ++r) to[p * rows + r] = i + r < m ? widen(a[(i + r) * k + p]) : 0;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void pack(global const T* a, global const T* b, global Sum* c,
                                                                global Factor* scratch, long m, long n, long k) {
  if (packs_by_passes(m, n, k)) return;
  const long blocks_of_b = (n + block_columns - 1) / block_columns, blocks_of_a = get_global_size(0) - blocks_of_b;
  const long x = get_global_id(0), y = get_global_id(1), depths = get_global_size(1);
  const long p0 = begin_of(y, depths, k, 1), p1 = begin_of(y + 1, depths, k, 1);
  if (x < blocks_of_b) {
    const long j0 = begin_of(x, blocks_of_b, n, columns), j1 = begin_of(x + 1, blocks_of_b, n, columns);
    pack_b(b, scratch, j0, j1, p0, p1, n, k);
  } else {
    const long part = x - blocks_of_b;
    const long i0 = begin_of(part, blocks_of_a, m, rows), i1 = begin_of(part + 1, blocks_of_a, m, rows);
    pack_a(a, panels_of_a(scratch, n, k), i0, i1, p0, p1, m, k, k);
  }
}

/// How many steps of p before its use a panel is prefetched from the second-level cache into the first.
enum { ahead_in_a = 24, ahead_in_b = 16 };
/// Prefetches what will be needed soon.
__attribute__((always_inline)) void fetch(global const Factor* address) {
  __builtin_prefetch((const void*)(ulong)address);
}

/// part = a b for a tile. It is inlined, and only stores follow the loop, so all sums stay in registers.
__attribute__((always_inline)) void multiply_tile(global const Factor* a, global const Factor* b, long depth,
                                                  Factors* part) {
  Factors sum[rows][registers];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < registers; ++s) sum[r][s] = 0;
  }
  for (long p = 0; p < depth; ++p, a += rows, b += columns) {
    Factors row[registers];
    fetch(a + ahead_in_a * rows);
#pragma unroll
    for (int s = 0; s < registers; ++s) fetch(b + ahead_in_b * columns + s * lanes);
#pragma unroll
    for (int s = 0; s < registers; ++s) row[s] = ((global const Factors*)b)[s];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const Factors factor = a[r];
#pragma unroll
      for (int s = 0; s < registers; ++s) sum[r][s] = factor * row[s] + sum[r][s];
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < registers; ++s) part[r * registers + s] = sum[r][s];
  }
}

/// c = part, or c += part where `add`, for as much of the tile as c has.
void write_tile(const Factors* part, global Sum* c, long n, long height, long width, bool add) {
  for (long r = 0; r < rows && r < height; ++r, c += n, part += registers) {
    if (width >= columns) {
      for (int s = 0; s < registers; ++s) {
        global LooseSums* const to = (global LooseSums*)c + s;
        const Sums sum = to_sums(part[s]);
        to->v = add ? to->v + sum : sum;
      }
    } else {
      for (long q = 0; q < width; ++q) {
        const Sum sum = ((const Factor*)part)[q];
        c[q] = add ? c[q] + sum : sum;
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void multiply(global const T* a, global const T* b, global Sum* c,
                                                                    global Factor* scratch, long m, long n, long k) {
  const long x = get_global_id(0), y = get_global_id(1);
  const long j0 = begin_of(x, get_global_size(0), n, columns), j1 = begin_of(x + 1, get_global_size(0), n, columns);
  const long i0 = begin_of(y, get_global_size(1), m, rows), i1 = begin_of(y + 1, get_global_size(1), m, rows);
  const bool by_passes = packs_by_passes(m, n, k);
  for (long p = 0; p == 0 || p < k; p += most_depth) {
    const long depth = min(k - p, (long)most_depth);
    const long packed = by_passes ? depth : k, first = by_passes ? 0 : p;
    global Factor* const packed_a = panels_of_a(scratch, n, packed);
    if (by_passes) {
      pack_b(b + p * n, scratch, j0, j1, 0, depth, n, packed);
      pack_a(a + p, packed_a, i0, i1, 0, depth, m, k, packed);
    }
    for (long i = i0; i < i1; i += rows) {
      for (long j = j0; j < j1; j += columns) {
        Factors part[rows * registers];
        multiply_tile(packed_a + i * packed + first * rows, scratch + j * packed + first * columns, depth, part);
        write_tile(part, c + i * n + j, n, m - i, n - j, p > 0);
      }
    }
  }
}

#else

/// Rows and columns of c of a group, the depth of its blocks of a and b, and the rows and columns of a work item.
enum { block = 128, depth = 8, tile = 8, side = block / tile };

/// Copies the group's block of a from row i0 and column p0 on, as columns. Zeros stand for what a lacks.
void load_a(global const T* a, local Sum (*to)[block], long i0, long p0, long m, long k) {
  const int item = get_local_id(1) * side + get_local_id(0);
  for (int q = item; q < block * depth; q += side * side) {
    const long i = i0 + q / depth, p = p0 + q % depth;
    to[q % depth][q / depth] = i < m && p < k ? widen(a[i * k + p]) : 0;
  }
}

/// Copies the group's block of b from row p0 and column j0 on. Zeros stand for what b lacks.
void load_b(global const T* b, local Sum (*to)[block], long p0, long j0, long n, long k) {
  const int item = get_local_id(1) * side + get_local_id(0);
  for (int q = item; q < block * depth; q += side * side) {
    const long p = p0 + q / block, j = j0 + q % block;
    to[q / block][q % block] = p < k && j < n ? widen(b[p * n + j]) : 0;
  }
}

/// sum += the products of the blocks. Rows and columns of an item are `side` apart, so that neighbours read neighbours.
void multiply_blocks(local const Sum (*a)[block], local const Sum (*b)[block], Sum (*sum)[tile]) {
  const int x = get_local_id(0), y = get_local_id(1);
  for (int p = 0; p < depth; ++p) {
    Sum row[tile];
#pragma unroll
    for (int s = 0; s < tile; ++s) row[s] = b[p][x + s * side];
#pragma unroll
    for (int r = 0; r < tile; ++r) {
      const Sum factor = a[p][y + r * side];
#pragma unroll
      for (int s = 0; s < tile; ++s) sum[r][s] += factor * row[s];
    }
  }
}

__attribute__((reqd_work_group_size(side, side, 1))) kernel void matmul(global const T* a, global const T* b,
                                                                        global Sum* c, long m, long n, long k) {
  local Sum block_of_a[depth][block], block_of_b[depth][block];
  const long j0 = get_group_id(0) * block, i0 = get_group_id(1) * block;
  Sum sum[tile][tile] = {{0}};
  for (long p0 = 0; p0 < k; p0 += depth) {
    load_a(a, block_of_a, i0, p0, m, k);
    load_b(b, block_of_b, p0, j0, n, k);
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_blocks(block_of_a, block_of_b, sum);
    barrier(CLK_LOCAL_MEM_FENCE);  // before the blocks are overwritten
  }
  for (int r = 0; r < tile; ++r) {
    for (int s = 0; s < tile; ++s) {
      const long i = i0 + get_local_id(1) + r * side, j = j0 + get_local_id(0) + s * side;
      if (i < m && j < n) c[i * n + j] = sum[r][s];
    }
  }
}

#endif
