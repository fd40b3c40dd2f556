/* Stand-in libamdhip64: modules and kernel launches. A launch is logged and moves the virtual clock;
 * the kernel is not run.
 *
 * A kernel's invented time depends on its name and launch shape only. Which solver "wins" therefore
 * means nothing, but it repeats.
 */
#include "hip_standin.h"

#include <stdint.h>
#include <string.h>

struct function { struct function *next; char name[512]; };
struct module { struct function *functions; };

static hipError_t load(hipModule_t *module) {
  *module = calloc(1, sizeof(struct module));
  if (!*module) return hipErrorOutOfMemory;
  object_add(MODULE, *module, sizeof(struct module));
  return hipSuccess;
}

hipError_t hipModuleLoad(hipModule_t *module, const char *file) {
  if (access(file, R_OK)) return hipErrorFileNotFound;
  return load(module);
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  /* every code object of the stand-in compilers starts so */
  if (strncmp(image, "STANDIN ", 8)) return hipErrorInvalidImage;
  return load(module);
}

hipError_t hipModuleUnload(hipModule_t module) {
  if (!object_remove(MODULE, module)) return hipErrorInvalidHandle;
  for (struct function *f = ((struct module *)module)->functions, *next; f; f = next) {
    next = f->next;
    free(f);
  }
  free(module);
  return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  if (!object_known(MODULE, module)) return hipErrorInvalidHandle;
  struct module *owner = (struct module *)module;
  struct function *f = calloc(1, sizeof *f);
  if (!f) return hipErrorOutOfMemory;
  snprintf(f->name, sizeof f->name, "%s", name);
  f->next = owner->functions;
  owner->functions = f;
  *function = (hipFunction_t)f;
  return hipSuccess;
}

/* 0.01 to 1.01 ms, by an FNV-1a hash of the kernel's name mixed with its launch shape. */
static double invented_time(const char *name, unsigned grid, unsigned block) {
  uint32_t hash = 2166136261u;
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
  hash ^= grid * 2654435761u ^ block * 40503u;
  return 0.01 + (hash % 1000) / 1000.0;
}

static hipError_t launch(hipFunction_t function, const unsigned grid[3], const unsigned block[3]) {
  const char *name = ((struct function *)function)->name;
  log_line("launch %s grid %u,%u,%u block %u,%u,%u", name, grid[0], grid[1], grid[2], block[0], block[1],
           block[2]);
  clock_advance(invented_time(name, grid[0], block[0]));
  return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                 unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                 hipStream_t stream, void **parameters, void **extra) {
  (void)shared, (void)stream, (void)parameters, (void)extra;
  return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz});
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                            unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                            unsigned shared, hipStream_t stream, void **parameters) {
  return hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

/* Here the grid is in work items, and two events may time the kernel itself. */
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t gx, uint32_t gy, uint32_t gz,
                                    uint32_t bx, uint32_t by, uint32_t bz, size_t shared,
                                    hipStream_t stream, void **parameters, void **extra,
                                    hipEvent_t start, hipEvent_t stop, uint32_t flags) {
  (void)shared, (void)stream, (void)parameters, (void)extra, (void)flags;
  event_stamp(start);
  hipError_t status = launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz});
  event_stamp(stop);
  return status;
}
