/* Stand-in libhiprtc: "compiles" any program to a marker that hipModuleLoadData accepts.
 *
 *   MIOPEN_EMULATOR_FAIL_COMPILE  compiling a program whose name contains this text fails
 */
#include "log.h"

#include <string.h>

enum { HIPRTC_SUCCESS = 0, HIPRTC_ERROR_OUT_OF_MEMORY = 1, HIPRTC_ERROR_COMPILATION = 6 };

typedef struct { char name[256]; char code[320]; const char *log; } program;

int hiprtcVersion(int *major, int *minor) { *major = 9; *minor = 0; return HIPRTC_SUCCESS; }

const char *hiprtcGetErrorString(int result) {
  switch (result) {
    case HIPRTC_SUCCESS: return "HIPRTC_SUCCESS";
    case HIPRTC_ERROR_OUT_OF_MEMORY: return "HIPRTC_ERROR_OUT_OF_MEMORY";
    case HIPRTC_ERROR_COMPILATION: return "HIPRTC_ERROR_COMPILATION";
    default: return "HIPRTC_ERROR_INTERNAL_ERROR";
  }
}

int hiprtcCreateProgram(program **created, const char *source, const char *name, int headers,
                        const char **header_texts, const char **include_names) {
  (void)source, (void)headers, (void)header_texts, (void)include_names;
  program *p = *created = calloc(1, sizeof *p);
  if (!p) return HIPRTC_ERROR_OUT_OF_MEMORY;
  snprintf(p->name, sizeof p->name, "%s", name ? name : "unnamed");
  snprintf(p->code, sizeof p->code, "STANDIN %s", p->name);
  p->log = "";
  return HIPRTC_SUCCESS;
}

int hiprtcCompileProgram(program *p, int options, const char **texts) {
  (void)options, (void)texts;
  const char *fail = getenv("MIOPEN_EMULATOR_FAIL_COMPILE");
  int failing = fail && *fail && strstr(p->name, fail);
  log_line("compile %s%s", p->name, failing ? " (made to fail)" : "");
  if (failing) p->log = "error: MIOPEN_EMULATOR_FAIL_COMPILE names this program";
  return failing ? HIPRTC_ERROR_COMPILATION : HIPRTC_SUCCESS;
}

int hiprtcGetCodeSize(program *p, size_t *bytes) { *bytes = strlen(p->code) + 1; return HIPRTC_SUCCESS; }
int hiprtcGetCode(program *p, char *code) { strcpy(code, p->code); return HIPRTC_SUCCESS; }
int hiprtcGetProgramLogSize(program *p, size_t *bytes) { *bytes = strlen(p->log) + 1; return HIPRTC_SUCCESS; }
int hiprtcGetProgramLog(program *p, char *text) { strcpy(text, p->log); return HIPRTC_SUCCESS; }
int hiprtcDestroyProgram(program **p) { free(*p); *p = NULL; return HIPRTC_SUCCESS; }
