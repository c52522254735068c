// What each module has of its own; all the rest of it is compiled once for all of them.
#pragma once

#include "instance.hpp"

extern const Instance* const instances[];  ///< its kernels
extern const int count_of_instances;

/// Runs one of them: the parallel regions that it starts have `threads` threads. Returns what the kernel returns.
bool run_on_threads(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes, int threads);

/// To be called once, before any kernel runs: then a child that is forked can run kernels too.
void survive_forks();
