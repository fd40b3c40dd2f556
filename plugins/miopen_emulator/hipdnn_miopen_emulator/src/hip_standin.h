/* What the parts of the stand-in libamdhip64 share: live objects and the virtual clock. */
#ifndef MIOPEN_EMULATOR_H
#define MIOPEN_EMULATOR_H

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "log.h"

#pragma GCC visibility push(hidden)

/* Kinds of objects a caller owns. Their numbers are what standinLiveObjects() takes. */
enum object_kind { DEVICE_MEMORY, HOST_MEMORY, STREAM, EVENT, MODULE, OBJECT_KINDS };

/* Objects are registered when created and forgotten when destroyed, so a stale or foreign handle is
 * an error instead of a crash, and a leak can be counted. */
void object_add(enum object_kind kind, void *object, size_t bytes);
bool object_remove(enum object_kind kind, void *object);
bool object_known(enum object_kind kind, const void *object);
size_t object_bytes_live(enum object_kind kind);

/* Finds the object that covers `address`. Returns false if there is none. */
bool object_covering(enum object_kind kind, const void *address, char **base, size_t *bytes);

/* Milliseconds of device time: advanced by kernel launches only, so that timings repeat. */
double clock_now(void);
void clock_advance(double milliseconds);

size_t device_memory_total(void);

/* Event timestamps are written by the module half (kernel start and stop) and the stream half. */
void event_stamp(hipEvent_t event);

#pragma GCC visibility pop

#endif
