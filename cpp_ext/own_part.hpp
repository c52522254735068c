// What each module has of its own. All the rest is compiled once for all modules.
#pragma once

#include "instance.hpp"

extern const Instance* const instances[];  ///< its kernels
extern const int count_of_instances;

/// Runs a kernel, whose parallel regions have `threads` threads. Returns what the kernel returns.
using OnThreads = bool (*)(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes, int threads);

/// This module's own. What another compiler made may have another OpenMP, and so another one of these.
bool run_on_threads(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes, int threads);

/// To be called once, before any kernel runs. Then a forked child can run kernels, too.
void survive_forks();
