/* Preloaded in trees whose libMIOpen was built without hiprtc and comgr (3.4.0): such a library starts
 * "cd FOLDER; /usr/bin/clang++-NN ... -o OBJECT" by popen(). This popen() starts nothing: it writes the
 * object as a marker that hipModuleLoad accepts, and succeeds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "log.h"

FILE *popen(const char *command, const char *mode) {
  FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "popen");
  const char *output = NULL;
  if (strstr(command, "/clang"))
    for (const char *p = command; (p = strstr(p, " -o ")); p += 4) output = p + 4;
  if (!output) return real(command, mode);
  char path[4096];
  snprintf(path, sizeof path, "%.*s", (int)strcspn(output, " '\""), output);
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  log_line("compile %s", name);
  FILE *object = fopen(path, "w");
  if (!object) return real("false", mode);
  fprintf(object, "STANDIN %s", name);
  fclose(object);
  return real("true", mode);
}
