// What texts in OpenCL C call, under the names that its compiler gives: those of C++ functions of the same parameters.
#include "work_items.hpp"

using on_threads::place;

std::size_t get_local_id(unsigned at) { return place.local[at]; }
std::size_t get_group_id(unsigned at) { return place.group[at]; }
std::size_t get_global_id(unsigned at) { return place.group[at] * place.group_size[at] + place.local[at]; }
std::size_t get_global_size(unsigned at) { return place.groups[at] * place.group_size[at]; }
void barrier(unsigned) { on_threads::barrier(); }
void mem_fence(unsigned) {}
long min(long x, long y) { return y < x ? y : x; }
