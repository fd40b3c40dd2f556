// What the parts of the stand-in libamdhip64 share: live objects, the clock, and device memory.
#pragma once

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <string>

#include "../common/log.hpp"
#include "../common/settings.hpp"

// Kinds of objects a caller owns. Their numbers are what standinLiveObjects() takes.
enum ObjectKind { DEVICE_MEMORY, HOST_MEMORY, STREAM, EVENT, MODULE, OBJECT_KINDS };

struct Extent {
  char *base;
  size_t bytes;
};

// Objects are registered when created and forgotten when destroyed, so a stale or foreign handle is
// an error instead of a crash, and a leak can be counted.
void object_add(ObjectKind kind, void *object, size_t bytes);
bool object_remove(ObjectKind kind, void *object);
bool object_known(ObjectKind kind, const void *object);
size_t object_bytes_live(ObjectKind kind);

// The object that covers `address`; its base is null if there is none.
Extent object_covering(ObjectKind kind, const void *address);
// The last object that starts at or before `address`.
Extent object_before(ObjectKind kind, const void *address);

inline bool stream_valid(hipStream_t stream) { return !stream || object_known(STREAM, stream); }

// Milliseconds of device time. The virtual clock is advanced by kernel launches only, so that
// timings repeat.
double clock_now();
void clock_advance(double milliseconds);

size_t device_memory_total();

// Event timestamps are written by launches (kernel start and stop) and by streams.
void event_stamp(hipEvent_t event);
