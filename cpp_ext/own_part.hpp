// What each module has of its own. All the rest is compiled once for all modules.
#pragma once

#include "instance.hpp"

extern const Instance* const instances[];  ///< its kernels
extern const int count_of_instances;

/// Runs a kernel, whose parallel regions have `threads` threads. Returns what the kernel returns.
bool run_on_threads(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes, int threads);

/// To be called once, before any kernel runs. Then a forked child can run kernels, too.
void survive_forks();
