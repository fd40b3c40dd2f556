#include "grid.hpp"

#include <atomic>
#include <mutex>

#include "block.hpp"
#include "faults.hpp"
#include "thread_pool.hpp"

namespace {

unsigned threads_wanted() {
  const char *text = setting("MIOPEN_EMULATOR_THREADS", nullptr);
  if (!text) return std::max(1u, std::thread::hardware_concurrency());
  char *end = nullptr;
  long count = std::strtol(text, &end, 10);
  if (*end || count < 1 || count > 1024) {
    std::fprintf(
        stderr,
        "error: environment variable MIOPEN_EMULATOR_THREADS is '%s'; allowed are 1 to 1024\n",
        text);
    std::_Exit(2);
  }
  return static_cast<unsigned>(count);
}

}  // namespace

hipError_t run_grid(const Launch &launch) {
  static std::mutex one_at_a_time;
  std::lock_guard<std::mutex> guard(one_at_a_time);
  catch_faults();
  const Shape &shape = launch.shape;
  size_t columns = shape.blocks(0), rows = shape.blocks(1);
  size_t total = columns * rows * shape.blocks(2);
  size_t threads = std::min<size_t>(threads_wanted(), total);
  // several shares for each thread, as blocks don't all take the same time
  size_t share = std::max<size_t>(1, total / std::max<size_t>(1, threads * 16));
  std::atomic<size_t> next{0};
  std::atomic<hipError_t> status{hipSuccess};
  run_on_threads(threads, [&] {
    BlockRunner &runner = BlockRunner::of_this_thread();
    hipError_t own = guard_against_faults(launch, [&] {
      while (status == hipSuccess) {
        size_t first = next.fetch_add(share);
        if (first >= total) return;
        for (size_t i = first; i < std::min(first + share, total); i++)
          runner.run(launch,
                     {static_cast<unsigned>(i % columns), static_cast<unsigned>(i / columns % rows),
                      static_cast<unsigned>(i / columns / rows)});
      }
    });
    if (own != hipSuccess) {
      runner.abandon();
      status.store(own);
    }
  });
  return status;
}
