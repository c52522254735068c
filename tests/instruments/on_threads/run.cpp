// Runs a text on threads: cases come from standard input, results go to standard output.
//
// A case is a line `DTYPE ELEMENTS_OF_SCRATCH OFFSET ELEMENTS... SIZES... GROUPS...` (elements of each array, three
// numbers of groups for each stage) and then the inputs' bytes; its answer is the output's bytes. Arrays are blocks of
// their own, so that a checker sees each end; OFFSET elements lie before the first, so that it is not aligned.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "work_items.hpp"

namespace on_threads {

namespace {

/// The barrier of a team. A group's end is one too, of another kind: who waits there waits for nobody in the kernel.
class Barrier {
 public:
  enum Kind { in_kernel, at_end };

  explicit Barrier(std::size_t threads) : threads_(threads) {}

  void wait(Kind kind) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (waiting_ > 0 && kind != kind_) {
      std::fputs("not all work items of a group come to its barrier\n", stderr);
      std::_Exit(3);
    }
    kind_ = kind;
    const std::size_t turn = turn_;
    if (++waiting_ == threads_) {
      waiting_ = 0;
      ++turn_;
      lock.unlock();
      all_there_.notify_all();
    } else {
      all_there_.wait(lock, [&] { return turn != turn_; });
    }
  }

 private:
  const std::size_t threads_;
  std::mutex mutex_;
  std::condition_variable all_there_;
  std::size_t waiting_ = 0, turn_ = 0;
  Kind kind_ = in_kernel;
};

/// Where the work items of a warp meet, and what each brings.
struct Warp {
  explicit Warp(std::size_t threads) : barrier(threads) {}

  Barrier barrier;
  std::uint64_t brought[32];
};

__thread Barrier* of_team;
__thread Warp* of_warp;
__thread std::uint64_t* brought_by_group;

/// Every second group, by the calling thread among its team. No thread ends before all have done their groups: of one
/// that has ended ThreadSanitizer may not know any more what it wrote, and keeps the race to itself.
void run_groups(const Stage& stage, int team, std::size_t item, const std::size_t* groups, Barrier* barrier, Warp* warp,
                std::uint64_t* brought, Barrier* of_all, void* const* arrays, const std::int64_t* sizes) {
  of_team = barrier;
  of_warp = warp;
  brought_by_group = brought;
  const std::size_t *const size = stage.group_size, all = groups[0] * groups[1] * groups[2];
  place = {{item % size[0], item / size[0] % size[1], item / size[0] / size[1]},
           {},
           {size[0], size[1], size[2]},
           {groups[0], groups[1], groups[2]},
           stage.dimensions};
  for (std::size_t group = static_cast<std::size_t>(team); group < all; group += 2) {
    place.group[0] = group % groups[0];
    place.group[1] = group / groups[0] % groups[1];
    place.group[2] = group / groups[0] / groups[1];
    stage.of_team[team](arrays, sizes);
    barrier->wait(Barrier::at_end);
  }
  of_all->wait(Barrier::at_end);
}

void launch(const Stage& stage, const std::size_t* groups, void* const* arrays, const std::int64_t* sizes) {
  const std::size_t items = stage.group_size[0] * stage.group_size[1] * stage.group_size[2];
  Barrier barriers[2] = {Barrier(items), Barrier(items)}, of_all(2 * items);
  std::vector<std::uint64_t> brought[2] = {std::vector<std::uint64_t>(items), std::vector<std::uint64_t>(items)};
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Warp>> warps;
  for (int team = 0; team < 2; ++team) {
    for (std::size_t item = 0; item < items; ++item) {
      if (item % 32 == 0) warps.push_back(std::make_unique<Warp>(items - item < 32 ? items - item : 32));
      threads.emplace_back(run_groups, std::cref(stage), team, item, groups, &barriers[team], warps.back().get(),
                           brought[team].data(), &of_all, arrays, sizes);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

const Text* text_for(const std::string& dtype) {
  for (int at = 0; at < number_of_texts; ++at) {
    if (dtype == texts[at].dtype) return &texts[at];
  }
  std::fprintf(stderr, "no text for %s\n", dtype.c_str());
  std::exit(2);
}

/// Memory of exactly so many bytes: a checker sees what lies beyond.
using Block = std::unique_ptr<void, decltype(&std::free)>;

Block block(std::size_t bytes) {
  Block made(std::malloc(bytes), &std::free);
  if (bytes > 0) std::memset(made.get(), 0xff, bytes);  // NaN, in either dtype
  return made;
}

/// Runs the case whose line begins with `dtype`.
void run_case(const std::string& dtype) {
  const Text& text = *text_for(dtype);
  std::size_t scratch_elements, offset;
  std::cin >> scratch_elements >> offset;
  std::vector<std::size_t> elements(static_cast<std::size_t>(text.arrays));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(text.sizes));
  std::vector<std::size_t> groups(static_cast<std::size_t>(3 * text.stages));
  for (auto& count : elements) std::cin >> count;
  for (auto& size : sizes) std::cin >> size;
  for (auto& count : groups) std::cin >> count;
  std::cin.ignore(1);  // the end of the line

  std::vector<Block> blocks;
  std::vector<void*> arrays;
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < elements.size(); ++at) {
    const std::size_t of_element = at + 1 < elements.size() ? text.element_bytes : text.result_bytes;
    bytes = elements[at] * of_element;
    blocks.push_back(block(bytes + offset * of_element));
    arrays.push_back(static_cast<char*>(blocks.back().get()) + offset * of_element);
    if (at + 1 < elements.size()) std::cin.read(static_cast<char*>(arrays[at]), static_cast<std::streamsize>(bytes));
  }
  if (text.scratch) {
    // Devices begin memory at a cache line, on which texts rely.
    void* memory = nullptr;
    const std::size_t bytes_of_scratch = scratch_elements * text.element_bytes;
    if (posix_memalign(&memory, 128, bytes_of_scratch) != 0) std::abort();
    std::memset(memory, 0xff, bytes_of_scratch);
    blocks.emplace_back(memory, &std::free);
    arrays.push_back(blocks.back().get());
  }
  for (int at = 0; at < text.stages; ++at) launch(text.stage[at], &groups[3 * at], arrays.data(), sizes.data());
  std::cout.write(static_cast<const char*>(arrays[elements.size() - 1]), static_cast<std::streamsize>(bytes));
}

}  // namespace

__thread Place place;

void barrier() { of_team->wait(Barrier::in_kernel); }

std::uint64_t* of_group() { return brought_by_group; }

std::uint64_t exchanged(std::uint64_t mine, std::size_t from) {
  of_warp->brought[place_in_warp()] = mine;
  of_warp->barrier.wait(Barrier::in_kernel);
  const std::uint64_t theirs = of_warp->brought[from];
  of_warp->barrier.wait(Barrier::in_kernel);  // before the next exchange
  return theirs;
}

}  // namespace on_threads

int main() {
  for (std::string dtype; std::cin >> dtype;) on_threads::run_case(dtype);
}
