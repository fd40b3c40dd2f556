// Stand-in libamdhip64: streams and events. Work is done when it is enqueued, so there is nothing
// to wait for.
#include "guarded_memory.hpp"
#include "runtime.hpp"

namespace {

struct Stream {
  unsigned flags;
};
struct Event {
  double time;
  bool recorded;
};

template <class T> hipError_t create(ObjectKind kind, void **handle) {
  T *object = new T{};
  object_add(kind, object, sizeof(T));
  *handle = object;
  return hipSuccess;
}

template <class T> hipError_t destroy(ObjectKind kind, void *handle) {
  if (!object_remove(kind, handle)) return hipErrorInvalidHandle;
  delete static_cast<T *>(handle);
  return hipSuccess;
}

Event *event_of(hipEvent_t event) { return reinterpret_cast<Event *>(event); }

}  // namespace

void event_stamp(hipEvent_t event) {
  if (event) *event_of(event) = {clock_now(), true};
}

extern "C" {

hipError_t hipStreamCreate(hipStream_t *stream) {
  return create<Stream>(STREAM, reinterpret_cast<void **>(stream));
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned) {
  return hipStreamCreate(stream);
}

hipError_t hipStreamDestroy(hipStream_t stream) { return destroy<Stream>(STREAM, stream); }

hipError_t hipStreamSynchronize(hipStream_t stream) {
  if (!stream_valid(stream)) return hipErrorInvalidHandle;
  return guarded_memory_intact("synchronize") ? hipSuccess : hipErrorIllegalAddress;
}

hipError_t hipStreamQuery(hipStream_t stream) {
  return stream_valid(stream) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
  return stream_valid(stream) && object_known(EVENT, event) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipEventCreate(hipEvent_t *event) {
  return create<Event>(EVENT, reinterpret_cast<void **>(event));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned) { return hipEventCreate(event); }

hipError_t hipEventDestroy(hipEvent_t event) { return destroy<Event>(EVENT, event); }

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  if (!stream_valid(stream) || !object_known(EVENT, event)) return hipErrorInvalidHandle;
  event_stamp(event);
  return hipSuccess;
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return object_known(EVENT, event) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipEventQuery(hipEvent_t event) { return hipEventSynchronize(event); }

hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  if (!object_known(EVENT, start) || !object_known(EVENT, stop)) return hipErrorInvalidHandle;
  const Event &a = *event_of(start), &b = *event_of(stop);
  if (!a.recorded || !b.recorded) return hipErrorInvalidHandle;
  double elapsed = b.time - a.time;
  *milliseconds = elapsed > 0 ? static_cast<float>(elapsed) : 0.001f;  // callers divide by it
  return hipSuccess;
}
}
