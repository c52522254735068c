// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: on a CPU, both products by tiles whose sums stay in vector registers, a block of keys at a time. On a GPU, a group
//   shares tiles of keys and values. (Dao, Fu, Ermon, Rudra and Re, FlashAttention, NeurIPS 2022.)
// Model: on a CPU, lanes of a vector are keys in the first product, and columns in the second. A work item has 12
//   queries. On a GPU, it has one.
// Memory: on a CPU, an earlier kernel packs keys as columns, and values in rows of whole vectors, both widened to Sum. An
//   item has its scaled queries and its sums beside them. On a GPU, a group brings a tile to local memory, and adds to c
//   for 16 keys at a time.
// Edges: keys beyond the last have scores of -infinity, which weigh nothing. Queries beyond the last are zeros, and are
//   not written. Rows of at most 8 numbers would be filled up to many times as many. So they are taken as they are, one
//   key after the other. If all scores of a query are -infinity, 0 / 0 is NaN.
// ---
// Work items of pack on a CPU: ceil(n / 32), in groups of 1
// Work items of attend_tiles on a CPU: ceil(m / 12), in groups of 1
// Work items on a GPU: m, in groups of 64
// Scratch on a CPU: ceil(n / 32) * 32 * d + n * ceil(d / 32) * 32 + ceil(m / 12) * 12 * ceil(d / 32) * 32 + ceil(m /
//   12) * 12 * d elements of Sum, or 1 where d <= 8

#if CPU

/// The tile of sums that stays in registers: 24 where there are 32 registers, which are those of 64 bytes, else 12.
enum {
  lanes = sizeof(Sums) / sizeof(Sum),
  rows = 12,
  registers = sizeof(Sums) >= 64 ? 2 : 1,
  panel = registers * lanes
};
/// Keys whose scores an item has at a time.
enum { block = 8 * lanes };
/// Numbers of a row up to which nothing is packed.
enum { narrow_row = 8 };

long round_up(long x, long unit) { return (x + unit - 1) / unit * unit; }

/// Where values, sums and queries begin in the scratch memory, behind the keys.
global Sum* values_in(global Sum* scratch, long d, long n) { return scratch + round_up(n, 32) * d; }
global Sum* sums_in(global Sum* scratch, long d, long n) { return values_in(scratch, d, n) + n * round_up(d, 32); }
global Sum* queries_in(global Sum* scratch, long m, long d, long n) {
  return sums_in(scratch, d, n) + round_up(m, rows) * round_up(d, 32);
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void pack(global const T* q, global const T* k, global const T* v,
                                                                global Sum* c, global Sum* scratch, long m, long d,
                                                                long n) {
  const long first = get_global_id(0) * 32, width = round_up(d, lanes);
  if (d <= narrow_row) return;
  for (long j0 = first; j0 < min(n, first + 32); j0 += panel) {
    for (long x = 0; x < d; ++x) {
      for (int j = 0; j < panel; ++j) scratch[j0 * d + x * panel + j] = j0 + j < n ? widen(k[(j0 + j) * d + x]) : 0;
    }
  }
  for (long j = first; j < min(n, first + 32); ++j) {
    global Sum* const row = values_in(scratch, d, n) + j * width;
    for (long x = 0; x < d; ++x) row[x] = widen(v[j * d + x]);
    for (long x = d; x < width; ++x) row[x] = 0;
  }
}

/// The scores of a tile of queries, and of the keys of a panel.
__attribute__((always_inline)) void multiply_keys(global const Sum* queries, long d, global const Sums* keys,
                                                  Sums* scores) {
  Sums sum[rows][registers];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < registers; ++s) sum[r][s] = 0;
  }
  for (long x = 0; x < d; ++x, keys += registers) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const Sums query = queries[r * d + x];
#pragma unroll
      for (int s = 0; s < registers; ++s) sum[r][s] += query * keys[s];
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < registers; ++s) scores[r * (block / lanes) + s] = sum[r][s];
  }
}

/// Adds the values of some keys, times their weights, to as many vectors of the sums of a tile.
__attribute__((always_inline)) void add_values(const Sum* weights, int keys, global const Sums* values, long apart,
                                               global Sums* sums, const int vectors) {
  Sums sum[rows][registers];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < vectors; ++s) sum[r][s] = sums[r * apart + s];
  }
  for (int j = 0; j < keys; ++j, values += apart) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const Sums weight = weights[r * block + j];
#pragma unroll
      for (int s = 0; s < vectors; ++s) sum[r][s] += weight * values[s];
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < vectors; ++s) sums[r * apart + s] = sum[r][s];
  }
}

/// Turns the scores of a query into weights, and returns the largest one. Where it is larger than all before, what was
/// summed is made smaller.
Sum weigh(Sums* scores, Sum largest, Sums* total, global Sums* sums, long vectors) {
  Sums most = largest;
  for (int at = 0; at < block / lanes; ++at) most = fmax(most, scores[at]);
  Sum larger = largest;
  for (int lane = 0; lane < lanes; ++lane) larger = fmax(larger, ((const Sum*)&most)[lane]);
  const Sum limit = larger == -INFINITY ? 0 : larger;  // so that a score of -infinity weighs nothing
  if (larger > largest) {
    const Sum kept = exp2(largest - limit);
    for (long x = 0; x < vectors; ++x) sums[x] *= kept;
    *total *= kept;
  }
  for (int at = 0; at < block / lanes; ++at) {
    scores[at] = exp2(scores[at] - limit);
    *total += scores[at];
  }
  return larger;
}

/// A query of few numbers, one key after the other.
void attend_narrow(global const T* q, global const T* k, global const T* v, global Sum* c, long d, long n) {
  const Sum scale = (Sum)1.4426950408889634 / sqrt((Sum)d);
  Sum largest = -INFINITY, total = 0, sum[narrow_row];
  for (int x = 0; x < d; ++x) sum[x] = 0;
  for (long j = 0; j < n; ++j, k += d, v += d) {
    Sum score = 0;
    for (int x = 0; x < d; ++x) score += widen(q[x]) * scale * widen(k[x]);
    if (score == -INFINITY) continue;
    const Sum larger = score > largest ? score : largest;
    const Sum kept = exp2(largest - larger), weight = exp2(score - larger);
    for (int x = 0; x < d; ++x) sum[x] = sum[x] * kept + weight * widen(v[x]);
    total = total * kept + weight;
    largest = larger;
  }
  for (int x = 0; x < d; ++x) c[x] = sum[x] / total;
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void attend_tiles(global const T* q, global const T* k,
                                                                        global const T* v, global Sum* c,
                                                                        global Sum* scratch, long m, long d, long n) {
  const long first = get_global_id(0) * rows, there = min((long)rows, m - first), vectors = (d + lanes - 1) / lanes;
  for (long i = first; d <= narrow_row && i < first + there; ++i) attend_narrow(q + i * d, k, v, c + i * d, d, n);
  if (d <= narrow_row || there == 0) return;  // without queries there is no room for their tile
  global Sum* const queries = queries_in(scratch, m, d, n) + first * d;
  global Sums* const sums = (global Sums*)(sums_in(scratch, d, n) + first * round_up(d, 32));
  const Sum scale = (Sum)1.4426950408889634 / sqrt((Sum)d);  // so that scores are exponents of two
  for (long at = 0; at < rows * d; ++at) queries[at] = at < there * d ? widen(q[first * d + at]) * scale : 0;
  for (long at = 0; at < rows * vectors; ++at) sums[at] = 0;
  Sums scores[rows * (block / lanes)], total[rows];
  Sum largest[rows];
  for (int r = 0; r < rows; ++r) total[r] = 0, largest[r] = -INFINITY;
  for (long j = 0; j < n; j += block) {
    const int count = min((long)block, n - j);
    for (int at = 0; at < count; at += panel) {
      multiply_keys(queries, d, (global const Sums*)(scratch + (j + at) * d), scores + at / lanes);
    }
    for (int r = 0; r < rows; ++r) {
      for (int at = count; at < block; ++at) ((Sum*)scores)[r * block + at] = -INFINITY;
      largest[r] = weigh(scores + r * (block / lanes), largest[r], total + r, sums + r * vectors, vectors);
    }
    global const Sums* const values = (global const Sums*)(values_in(scratch, d, n) + j * vectors * lanes);
    long x = 0;
    for (; x + registers <= vectors; x += registers) {
      add_values((const Sum*)scores, count, values + x, vectors, sums + x, registers);
    }
    if (x < vectors) add_values((const Sum*)scores, count, values + x, vectors, sums + x, 1);
  }
  for (int r = 0; r < there; ++r) {
    Sum all = 0;
    for (int lane = 0; lane < lanes; ++lane) all += ((const Sum*)(total + r))[lane];
    for (long x = 0; x < d; ++x) c[(first + r) * d + x] = ((global const Sum*)(sums + r * vectors))[x] / all;
  }
}

#else

/// Items of a group, and a tile of keys or values that they share.
enum { items = 64, keys = 16, width = 32 };

/// Brings a part of some rows to local memory.
void bring(global const T* from, long apart, int count, int wide, local Sum (*tile)[width]) {
  barrier(CLK_LOCAL_MEM_FENCE);  // nobody reads the tile any more
  for (int at = get_local_id(0); at < count * width; at += items) {
    if (at % width < wide) tile[at / width][at % width] = widen(from[at / width * apart + at % width]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // it is complete
}

__attribute__((reqd_work_group_size(items, 1, 1))) kernel void attention(global const T* q, global const T* k,
                                                                         global const T* v, global Sum* c, long m,
                                                                         long d, long n) {
  local Sum tile[keys][width];
  const long i = get_global_id(0);
  const Sum root = sqrt((Sum)d);
  Sum largest = -INFINITY, sum = 0;
  for (long j = 0; j < n; j += keys) {
    const int count = min((long)keys, n - j);
    Sum weight[keys];
    for (int e = 0; e < keys; ++e) weight[e] = 0;
    for (long x = 0; x < d; x += width) {
      const int wide = min((long)width, d - x);
      bring(k + j * d + x, d, count, wide, tile);
      for (int at = 0; i < m && at < wide; ++at) {
        const Sum own = widen(q[i * d + x + at]);
#pragma unroll
        for (int e = 0; e < keys; ++e) weight[e] += own * tile[e][at];
      }
    }
    Sum larger = largest;
    for (int e = 0; e < keys; ++e) {
      weight[e] = e < count ? weight[e] / root : -INFINITY;
      larger = fmax(larger, weight[e]);
    }
    const Sum limit = larger == -INFINITY ? 0 : larger, kept = exp(largest - limit);
    largest = larger;
    sum *= kept;
    for (int e = 0; e < keys; ++e) sum += weight[e] = exp(weight[e] - limit);
    for (long x = 0; x < d; x += width) {
      const int wide = min((long)width, d - x);
      bring(v + j * d + x, d, count, wide, tile);
      for (int at = 0; i < m && at < wide; ++at) {
        Sum total = j == 0 ? 0 : c[i * d + x + at] * kept;
        for (int e = 0; e < count; ++e) total += weight[e] * tile[e][at];
        c[i * d + x + at] = total;
      }
    }
  }
  for (long x = 0; i < m && x < d; ++x) c[i * d + x] /= sum;
}

#endif
