// Stand-in libamdhip64: kernel launches. A launch is done when the call returns, so streams are in
// order by themselves.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "grid.hpp"
#include "guarded_memory.hpp"
#include "module.hpp"
#include "runtime.hpp"

namespace {

// 0.01 to 1.01 ms, by an FNV-1a hash of the kernel's name mixed with its launch shape. Which solver
// "wins" by it means nothing, but it repeats.
double invented_time(const std::string &name, unsigned grid, unsigned block) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : name) hash = (hash ^ c) * 16777619u;
  hash ^= grid * 2654435761u ^ block * 40503u;
  return 0.01 + (hash % 1000) / 1000.0;
}

// The kernel's arguments as one buffer: callers give either that or a pointer for each argument.
// Vectors in it are aligned to 64 bytes at most.
struct ArgumentBuffer {
  explicit ArgumentBuffer(size_t bytes) : storage(bytes / sizeof(Line) + 2) {}
  char *data() { return reinterpret_cast<char *>(storage.data()); }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> storage;
};

hipError_t pack(const KernelEntry &entry, void **parameters, void **extra,
                ArgumentBuffer *&buffer) {
  size_t needed = 0;
  for (unsigned i = 0; i < entry.count; i++)
    needed = std::max(needed, size_t{entry.arguments[i].offset} + entry.arguments[i].bytes);
  const void *given = nullptr;
  size_t given_bytes = 0;
  for (void **item = extra; item && *item && *item != HIP_LAUNCH_PARAM_END; item += 2) {
    if (item[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER) given = item[1];
    if (item[0] == HIP_LAUNCH_PARAM_BUFFER_SIZE) given_bytes = *static_cast<size_t *>(item[1]);
  }
  if (entry.count && !given && !parameters) return hipErrorInvalidValue;
  buffer = new ArgumentBuffer(std::max(needed, given_bytes));
  if (given) {
    std::memcpy(buffer->data(), given, given_bytes);
  } else {
    for (unsigned i = 0; i < entry.count; i++)
      std::memcpy(buffer->data() + entry.arguments[i].offset, parameters[i],
                  entry.arguments[i].bytes);
  }
  return hipSuccess;
}

hipError_t execute(const KernelFunction &function, const Shape &shape, size_t shared,
                   void **parameters, void **extra) {
  ArgumentBuffer *buffer = nullptr;
  hipError_t status = pack(*function.entry, parameters, extra, buffer);
  if (status == hipSuccess)
    status = run_grid({function.name.c_str(), function.entry->call, buffer->data(), shape, shared,
                       wavefront_size()});
  delete buffer;
  if (status == hipSuccess && !guarded_memory_intact(function.name))
    status = hipErrorIllegalAddress;
  return status;
}

hipError_t launch(hipFunction_t handle, const Shape &shape, size_t shared, hipStream_t stream,
                  void **parameters, void **extra) {
  if (!handle) return hipErrorInvalidHandle;
  if (!stream_valid(stream)) return hipErrorInvalidHandle;
  const auto &function = *reinterpret_cast<KernelFunction *>(handle);
  size_t items = size_t{shape.block[0]} * shape.block[1] * shape.block[2];
  if (!items || items > 1024) return hipErrorInvalidConfiguration;
  bool executed = kernels_are_executed();
  if (executed && !function.entry) return hipErrorInvalidImage;
  auto start = std::chrono::steady_clock::now();
  hipError_t status = hipSuccess;
  if (executed) status = execute(function, shape, shared, parameters, extra);
  std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  clock_advance(invented_time(function.name, shape.items[0], shape.block[0]));
  LogLine line("launch");
  line.text("kernel", function.name).triple("grid", shape.items).triple("block", shape.block);
  line.flag("executed", executed).real("ms", taken.count());
  line.whole("stream", static_cast<long long>(reinterpret_cast<intptr_t>(stream)));
  if (status != hipSuccess) line.text("error", hipGetErrorName(status));
  return status;
}

}  // namespace

extern "C" {

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                 unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                 hipStream_t stream, void **parameters, void **extra) {
  return launch(function, {{gx * bx, gy * by, gz * bz}, {bx, by, bz}}, shared, stream, parameters,
                extra);
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                            unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                            unsigned shared, hipStream_t stream,
                                            void **parameters) {
  return hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters,
                               nullptr);
}

// Here the grid is in work items, and two events may time the kernel itself.
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t gx, uint32_t gy, uint32_t gz,
                                    uint32_t bx, uint32_t by, uint32_t bz, size_t shared,
                                    hipStream_t stream, void **parameters, void **extra,
                                    hipEvent_t start, hipEvent_t stop, uint32_t) {
  event_stamp(start);
  hipError_t status =
      launch(function, {{gx, gy, gz}, {bx, by, bz}}, shared, stream, parameters, extra);
  event_stamp(stop);
  return status;
}
}
