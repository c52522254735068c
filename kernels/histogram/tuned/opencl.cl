// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: fewer items meet at a counter. On a CPU, an item finds the places of 512 elements of its chunk first, by vector
//   instructions. Then it counts them in four tables of its own by turns, and no update waits for the one before. On a
//   GPU, a group has four tables in local memory, which its items take by turns, and an item counts 16 elements.
// Model: in the end, the tables of an item or a group are added to c, by atomic updates. A first kernel sets c to 0.
// Memory: reads a once. An item of a CPU reads its chunk in order. Neighbouring items of a GPU read neighbouring elements.
// Edges: the last chunk is shorter. What lies outside of [0, 1), NaN too, has a place that is added to nothing.
// ---
// Work items of clear: 256, in groups of 256
// Work items on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: ceil(n / 16), in groups of 256

enum { bins = 256, tables = 4, apart = bins + 1 };

kernel void clear(global const T* a, global int* c, long n) { c[get_global_id(0)] = 0; }

/// The place of an element's counter: behind all bins if it is in none. Both comparisons are made, and there is no jump.
int place_of(Sum x) {
  const Sum at = sizeof(T) == 1 ? x + 128 : bins * x;
  return (int)(((at >= 0) & (at < bins)) ? at : (Sum)bins);
}

#if CPU

enum { chunk = 65536, block = 512 };

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void histogram(global const T* a, global int* c, long n) {
  int table[tables * apart], place[block];
  for (int at = 0; at < tables * apart; ++at) table[at] = 0;
  const long end = min(n, ((long)get_global_id(0) + 1) * chunk);
  for (long begin = (long)get_global_id(0) * chunk; begin < end; begin += block) {
    const int here = (int)min((long)block, end - begin);
    for (int i = 0; i < here; ++i) place[i] = place_of(widen(a[begin + i]));
    int i = 0;
    for (; i + tables <= here; i += tables) {
#pragma unroll
      for (int of = 0; of < tables; ++of) ++table[of * apart + place[i + of]];
    }
    for (; i < here; ++i) ++table[place[i]];
  }
  for (int k = 0; k < bins; ++k) {
    int sum = 0;
    for (int of = 0; of < tables; ++of) sum += table[of * apart + k];
    if (sum > 0) atomic_add(c + k, sum);
  }
}

#else

enum { items = 256, each = 16 };

kernel void histogram(global const T* a, global int* c, long n) {
  local int table[tables * apart];
  const int item = get_local_id(0);
  for (int at = item; at < tables * apart; at += items) table[at] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const long begin = get_group_id(0) * (long)(items * each), end = min(n, begin + items * each);
  local int* const own = table + item % tables * apart;
#pragma unroll 4
  for (long i = begin + item; i < end; i += items) atomic_inc(own + place_of(widen(a[i])));
  barrier(CLK_LOCAL_MEM_FENCE);
  int sum = 0;
  for (int of = 0; of < tables; ++of) sum += table[of * apart + item];
  if (sum > 0) atomic_add(c + item, sum);
}

#endif
