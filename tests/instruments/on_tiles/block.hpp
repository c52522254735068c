// An array that is a block of its own, so that a checker sees each end. `offset` elements lie before the first.
#pragma once

#include <cstddef>
#include <ios>
#include <memory>

template <typename T>
struct Block {
  std::size_t offset, size;
  std::unique_ptr<T[]> memory{new T[offset + size]};
  T* first() const { return memory.get() + offset; }
  char* bytes() const { return reinterpret_cast<char*>(first()); }
  std::streamsize count() const { return static_cast<std::streamsize>(size * sizeof(T)); }
};
