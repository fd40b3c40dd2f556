// Stand-in libamdhip64: memory. "Device" memory is host memory, copies are done at once.
//
// A copy or fill whose device side is not wholly inside one live allocation is refused with
// hipErrorInvalidValue, where a GPU would fault or write over its neighbour.
#include <cstring>

#include "guarded_memory.hpp"
#include "runtime.hpp"

namespace {

// Memory that was allocated with guards is freed with guards: the variable may change in between.
hipError_t allocate(ObjectKind kind, void **pointer, size_t bytes) {
  *pointer = nullptr;
  if (!bytes) return hipSuccess;  // as HIP does
  if (bytes > device_memory_total() - object_bytes_live(kind)) return hipErrorOutOfMemory;
  bool guarded = memory_is_guarded();
  if (guarded)
    *pointer = guarded_allocate(bytes);
  else if (posix_memalign(pointer, 4096, bytes))
    *pointer = nullptr;
  if (!*pointer) return hipErrorOutOfMemory;
  object_add(kind, *pointer, bytes);
  LogLine("alloc")
      .whole("bytes", static_cast<long long>(bytes))
      .flag("device", kind == DEVICE_MEMORY);
  return hipSuccess;
}

hipError_t release(ObjectKind kind, void *pointer) {
  if (!pointer) return hipSuccess;
  if (!object_remove(kind, pointer)) return hipErrorInvalidValue;
  if (!guarded_free(pointer)) std::free(pointer);
  return hipSuccess;
}

// Whether [address, address + bytes) lies in one live device allocation.
bool inside(const void *address, size_t bytes) {
  Extent found = object_covering(DEVICE_MEMORY, address);
  return found.base && bytes <= found.bytes - static_cast<size_t>(
                                                  static_cast<const char *>(address) - found.base);
}

hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  if (!bytes) return hipSuccess;
  bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  if ((to_device && !inside(to, bytes)) || (from_device && !inside(from, bytes))) {
    LogLine("fault")
        .text("kind", "copy out of bounds")
        .whole("bytes", static_cast<long long>(bytes))
        .whole("copy_kind", kind);
    return hipErrorInvalidValue;
  }
  std::memmove(to, from, bytes);
  return hipSuccess;
}

}  // namespace

extern "C" {

hipError_t hipMalloc(void **pointer, size_t bytes) {
  return allocate(DEVICE_MEMORY, pointer, bytes);
}
hipError_t hipFree(void *pointer) { return release(DEVICE_MEMORY, pointer); }

hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned) {
  return allocate(HOST_MEMORY, pointer, bytes);
}
hipError_t hipHostFree(void *pointer) { return release(HOST_MEMORY, pointer); }

hipError_t hipMemGetInfo(size_t *available, size_t *total) {
  *total = device_memory_total();
  *available = *total - object_bytes_live(DEVICE_MEMORY);
  return hipSuccess;
}

hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes) {
  Extent found = object_covering(DEVICE_MEMORY, pointer);
  *bytes = found.bytes;
  return found.base ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
  *attributes = {};
  bool device = object_covering(DEVICE_MEMORY, pointer).base;
  if (!device && !object_covering(HOST_MEMORY, pointer).base) return hipErrorInvalidValue;
  attributes->type = device ? hipMemoryTypeDevice : hipMemoryTypeHost;
  attributes->devicePointer = attributes->hostPointer = const_cast<void *>(pointer);
  return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  return copy(to, from, bytes, kind);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  return stream_valid(stream) ? copy(to, from, bytes, kind) : hipErrorInvalidHandle;
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, kind, stream);
}

hipError_t hipMemset(void *to, int value, size_t bytes) {
  if (bytes && !inside(to, bytes)) return hipErrorInvalidValue;
  std::memset(to, value, bytes);
  return hipSuccess;
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
  return stream_valid(stream) ? hipMemset(to, value, bytes) : hipErrorInvalidHandle;
}
}
