/* Stand-in libamd_comgr, through which MIOpen compiles its OpenCL kernels. Every action succeeds and
 * yields, for each kind of result a caller may ask for, one marker that hipModuleLoadData accepts. */
#include "log.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { STATUS_SUCCESS = 0, STATUS_ERROR = 1, STATUS_OUT_OF_RESOURCES = 3 };
enum { KIND_LOG = 5, KIND_EXECUTABLE = 8 }; /* bytes, bitcode and relocatable lie between them */

typedef struct { uint64_t handle; } handle;
struct data { int kind, references; size_t bytes; char *content; char name[256]; };
struct data_set { size_t count, capacity; struct data **items; };

static struct data *data_of(handle h) { return (struct data *)(uintptr_t)h.handle; }
static struct data_set *set_of(handle h) { return (struct data_set *)(uintptr_t)h.handle; }
static handle handle_of(void *object) { return (handle){(uintptr_t)object}; }

void amd_comgr_get_version(size_t *major, size_t *minor) { *major = 3; *minor = 0; }

int amd_comgr_status_string(int status, const char **text) {
  *text = status == STATUS_SUCCESS ? "SUCCESS" : "ERROR";
  return STATUS_SUCCESS;
}

int amd_comgr_create_data(int kind, handle *created) {
  struct data *d = calloc(1, sizeof *d);
  if (!d) return STATUS_OUT_OF_RESOURCES;
  d->kind = kind;
  d->references = 1;
  *created = handle_of(d);
  return STATUS_SUCCESS;
}

int amd_comgr_release_data(handle h) {
  struct data *d = data_of(h);
  if (--d->references == 0) {
    free(d->content);
    free(d);
  }
  return STATUS_SUCCESS;
}

int amd_comgr_set_data(handle h, size_t bytes, const char *content) {
  struct data *d = data_of(h);
  free(d->content);
  d->content = malloc(bytes + 1);
  if (!d->content) return STATUS_OUT_OF_RESOURCES;
  memcpy(d->content, content, bytes);
  d->bytes = bytes;
  return STATUS_SUCCESS;
}

int amd_comgr_set_data_name(handle h, const char *name) {
  snprintf(data_of(h)->name, sizeof data_of(h)->name, "%s", name ? name : "");
  return STATUS_SUCCESS;
}

int amd_comgr_get_data(handle h, size_t *bytes, char *content) {
  struct data *d = data_of(h);
  if (content) memcpy(content, d->content, d->bytes);
  *bytes = d->bytes;
  return STATUS_SUCCESS;
}

int amd_comgr_create_data_set(handle *created) {
  struct data_set *s = calloc(1, sizeof *s);
  *created = handle_of(s);
  return s ? STATUS_SUCCESS : STATUS_OUT_OF_RESOURCES;
}

int amd_comgr_destroy_data_set(handle h) {
  struct data_set *s = set_of(h);
  for (size_t i = 0; i < s->count; i++) amd_comgr_release_data(handle_of(s->items[i]));
  free(s->items);
  free(s);
  return STATUS_SUCCESS;
}

int amd_comgr_data_set_add(handle h, handle added) {
  struct data_set *s = set_of(h);
  if (s->count == s->capacity) {
    s->capacity = s->capacity ? 2 * s->capacity : 16;
    s->items = realloc(s->items, s->capacity * sizeof *s->items);
    if (!s->items) abort();
  }
  data_of(added)->references++;
  s->items[s->count++] = data_of(added);
  return STATUS_SUCCESS;
}

int amd_comgr_action_data_count(handle h, int kind, size_t *count) {
  *count = 0;
  for (size_t i = 0; i < set_of(h)->count; i++) *count += set_of(h)->items[i]->kind == kind;
  return STATUS_SUCCESS;
}

int amd_comgr_action_data_get_data(handle h, int kind, size_t index, handle *found) {
  for (size_t i = 0; i < set_of(h)->count; i++) {
    struct data *d = set_of(h)->items[i];
    if (d->kind == kind && index-- == 0) {
      d->references++;
      *found = handle_of(d);
      return STATUS_SUCCESS;
    }
  }
  return STATUS_ERROR;
}

/* What an action would do is never looked at, so an action info holds nothing. */
int amd_comgr_create_action_info(handle *created) {
  *created = handle_of(calloc(1, 1));
  return STATUS_SUCCESS;
}

int amd_comgr_destroy_action_info(handle h) { free((void *)(uintptr_t)h.handle); return STATUS_SUCCESS; }
int amd_comgr_action_info_set_isa_name(handle h, const char *name) { (void)h, (void)name; return STATUS_SUCCESS; }
int amd_comgr_action_info_set_language(handle h, int language) { (void)h, (void)language; return STATUS_SUCCESS; }
int amd_comgr_action_info_set_logging(handle h, bool on) { (void)h, (void)on; return STATUS_SUCCESS; }
int amd_comgr_action_info_set_option_list(handle h, const char **texts, size_t count) {
  (void)h, (void)texts, (void)count;
  return STATUS_SUCCESS;
}

int amd_comgr_do_action(int action, handle info, handle input, handle output) {
  (void)info;
  const char *name = set_of(input)->count ? set_of(input)->items[0]->name : "unnamed";
  log_line("comgr action %d %s", action, name);
  for (int kind = KIND_LOG; kind <= KIND_EXECUTABLE; kind++) {
    char marker[320];
    int length = kind == KIND_LOG ? 0 : snprintf(marker, sizeof marker, "STANDIN %s", name) + 1;
    handle result;
    if (amd_comgr_create_data(kind, &result)) return STATUS_OUT_OF_RESOURCES;
    amd_comgr_set_data(result, (size_t)length, marker);
    amd_comgr_set_data_name(result, name);
    amd_comgr_data_set_add(output, result);
    amd_comgr_release_data(result);
  }
  return STATUS_SUCCESS;
}
