/* Stand-in libamdhip64: streams and events. Work is done when it is enqueued, so there is nothing
 * to wait for; events carry the virtual clock. */
#include "hip_standin.h"

struct event { double time; bool recorded; };

static hipError_t create(enum object_kind kind, void **handle, size_t bytes) {
  *handle = calloc(1, bytes);
  if (!*handle) return hipErrorOutOfMemory;
  object_add(kind, *handle, bytes);
  return hipSuccess;
}

static hipError_t destroy(enum object_kind kind, void *handle) {
  if (!object_remove(kind, handle)) return hipErrorInvalidHandle;
  free(handle);
  return hipSuccess;
}

static bool valid(hipStream_t stream) { return !stream || object_known(STREAM, stream); }

hipError_t hipStreamCreate(hipStream_t *stream) { return create(STREAM, (void **)stream, 64); }

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  (void)flags;
  return hipStreamCreate(stream);
}

hipError_t hipStreamDestroy(hipStream_t stream) { return destroy(STREAM, stream); }

hipError_t hipStreamSynchronize(hipStream_t stream) {
  return valid(stream) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipStreamQuery(hipStream_t stream) { return hipStreamSynchronize(stream); }

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  (void)flags;
  return valid(stream) && object_known(EVENT, event) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipEventCreate(hipEvent_t *event) {
  return create(EVENT, (void **)event, sizeof(struct event));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  (void)flags;
  return hipEventCreate(event);
}

hipError_t hipEventDestroy(hipEvent_t event) { return destroy(EVENT, event); }

void event_stamp(hipEvent_t event) {
  if (event) *(struct event *)event = (struct event){clock_now(), true};
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  if (!valid(stream) || !object_known(EVENT, event)) return hipErrorInvalidHandle;
  event_stamp(event);
  return hipSuccess;
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return object_known(EVENT, event) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipEventQuery(hipEvent_t event) { return hipEventSynchronize(event); }

hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  if (!object_known(EVENT, start) || !object_known(EVENT, stop)) return hipErrorInvalidHandle;
  struct event *a = (struct event *)start, *b = (struct event *)stop;
  if (!a->recorded || !b->recorded) return hipErrorInvalidHandle;
  double elapsed = b->time - a->time;
  *milliseconds = elapsed > 0 ? (float)elapsed : 0.001f; /* callers divide by it */
  return hipSuccess;
}
