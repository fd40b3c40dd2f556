/* Stand-in libamdhip64: memory. "Device" memory is host memory, copies are done at once.
 *
 * A copy or fill whose device side is not wholly inside one live allocation is refused with
 * hipErrorInvalidValue, where a GPU would fault or write over its neighbour.
 */
#include "hip_standin.h"

#include <string.h>

static hipError_t allocate(enum object_kind kind, void **pointer, size_t bytes) {
  *pointer = NULL;
  if (!bytes) return hipSuccess; /* as HIP does */
  if (bytes > device_memory_total() - object_bytes_live(kind)) return hipErrorOutOfMemory;
  if (posix_memalign(pointer, 4096, bytes)) return hipErrorOutOfMemory;
  object_add(kind, *pointer, bytes);
  log_line("malloc %zu", bytes);
  return hipSuccess;
}

static hipError_t release(enum object_kind kind, void *pointer) {
  if (!pointer) return hipSuccess;
  if (!object_remove(kind, pointer)) return hipErrorInvalidValue;
  free(pointer);
  return hipSuccess;
}

hipError_t hipMalloc(void **pointer, size_t bytes) { return allocate(DEVICE_MEMORY, pointer, bytes); }
hipError_t hipFree(void *pointer) { return release(DEVICE_MEMORY, pointer); }

hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(HOST_MEMORY, pointer, bytes);
}

hipError_t hipHostFree(void *pointer) { return release(HOST_MEMORY, pointer); }

hipError_t hipMemGetInfo(size_t *available, size_t *total) {
  *total = device_memory_total();
  *available = *total - object_bytes_live(DEVICE_MEMORY);
  return hipSuccess;
}

hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes) {
  char *base;
  return object_covering(DEVICE_MEMORY, pointer, &base, bytes) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
  char *base;
  size_t bytes;
  memset(attributes, 0, sizeof *attributes);
  bool device = object_covering(DEVICE_MEMORY, pointer, &base, &bytes);
  if (!device && !object_covering(HOST_MEMORY, pointer, &base, &bytes)) return hipErrorInvalidValue;
  attributes->type = device ? hipMemoryTypeDevice : hipMemoryTypeHost;
  attributes->devicePointer = attributes->hostPointer = (void *)pointer;
  return hipSuccess;
}

/* Whether [address, address + bytes) lies in one live device allocation. */
static bool inside(const void *address, size_t bytes) {
  char *base;
  size_t size;
  return object_covering(DEVICE_MEMORY, address, &base, &size) &&
         bytes <= size - (size_t)((const char *)address - base);
}

static hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  if (!bytes) return hipSuccess;
  bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  if ((to_device && !inside(to, bytes)) || (from_device && !inside(from, bytes))) {
    log_line("copy of %zu bytes out of bounds, kind %d", bytes, (int)kind);
    return hipErrorInvalidValue;
  }
  memmove(to, from, bytes);
  return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  return copy(to, from, bytes, kind);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  if (stream && !object_known(STREAM, stream)) return hipErrorInvalidHandle;
  return copy(to, from, bytes, kind);
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, kind, stream);
}

hipError_t hipMemset(void *to, int value, size_t bytes) {
  if (bytes && !inside(to, bytes)) return hipErrorInvalidValue;
  memset(to, value, bytes);
  return hipSuccess;
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
  if (stream && !object_known(STREAM, stream)) return hipErrorInvalidHandle;
  return hipMemset(to, value, bytes);
}
