/* Stand-in libamdhip64: the registry of live objects, and the virtual clock. */
#include "hip_standin.h"

#include <pthread.h>
#include <string.h>

struct object { char *base; size_t bytes; };
static struct { struct object *items; size_t count, capacity, bytes; } live[OBJECT_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double clock_ms;

void object_add(enum object_kind kind, void *object, size_t bytes) {
  pthread_mutex_lock(&lock);
  if (live[kind].count == live[kind].capacity) {
    live[kind].capacity = live[kind].capacity ? 2 * live[kind].capacity : 64;
    live[kind].items = realloc(live[kind].items, live[kind].capacity * sizeof(struct object));
    if (!live[kind].items) abort();
  }
  live[kind].items[live[kind].count++] = (struct object){object, bytes};
  live[kind].bytes += bytes;
  pthread_mutex_unlock(&lock);
}

/* Newest first: most objects die young. Call with the lock held. Returns count if unknown. */
static size_t find(enum object_kind kind, const char *address, bool inside) {
  for (size_t i = live[kind].count; i-- > 0;) {
    struct object *o = &live[kind].items[i];
    if (o->base == address || (inside && address > o->base && address < o->base + o->bytes)) return i;
  }
  return live[kind].count;
}

bool object_remove(enum object_kind kind, void *object) {
  pthread_mutex_lock(&lock);
  size_t i = find(kind, object, false);
  bool found = i < live[kind].count;
  if (found) {
    live[kind].bytes -= live[kind].items[i].bytes;
    live[kind].items[i] = live[kind].items[--live[kind].count];
  }
  pthread_mutex_unlock(&lock);
  return found;
}

bool object_known(enum object_kind kind, const void *object) {
  pthread_mutex_lock(&lock);
  bool found = find(kind, object, false) < live[kind].count;
  pthread_mutex_unlock(&lock);
  return found;
}

bool object_covering(enum object_kind kind, const void *address, char **base, size_t *bytes) {
  pthread_mutex_lock(&lock);
  size_t i = find(kind, address, true);
  bool found = i < live[kind].count;
  if (found) {
    *base = live[kind].items[i].base;
    *bytes = live[kind].items[i].bytes;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

size_t object_bytes_live(enum object_kind kind) {
  pthread_mutex_lock(&lock);
  size_t bytes = live[kind].bytes;
  pthread_mutex_unlock(&lock);
  return bytes;
}

double clock_now(void) {
  pthread_mutex_lock(&lock);
  double now = clock_ms;
  pthread_mutex_unlock(&lock);
  return now;
}

void clock_advance(double milliseconds) {
  pthread_mutex_lock(&lock);
  clock_ms += milliseconds;
  pthread_mutex_unlock(&lock);
}

/* Not part of HIP: how many objects of a kind (enum object_kind) exist now. For leak checks. */
__attribute__((visibility("default"))) size_t standinLiveObjects(int kind) {
  if (kind < 0 || kind >= OBJECT_KINDS) return 0;
  pthread_mutex_lock(&lock);
  size_t count = live[kind].count;
  pthread_mutex_unlock(&lock);
  return count;
}
