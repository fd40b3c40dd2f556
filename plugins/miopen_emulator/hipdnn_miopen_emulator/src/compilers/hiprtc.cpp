// Stand-in libhiprtc, through which MIOpen compiles its HIP kernels.
#include <cstring>

#include "kernel_compiler.hpp"

enum Result { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_PROGRAM = 4, COMPILATION = 6 };

struct Program {
  KernelSource source;
  CompiledKernel compiled;
};

extern "C" {

int hiprtcVersion(int *major, int *minor) {
  *major = 9;
  *minor = 0;
  return SUCCESS;
}

const char *hiprtcGetErrorString(int result) {
  switch (result) {
    case SUCCESS: return "HIPRTC_SUCCESS";
    case OUT_OF_MEMORY: return "HIPRTC_ERROR_OUT_OF_MEMORY";
    case INVALID_PROGRAM: return "HIPRTC_ERROR_INVALID_PROGRAM";
    case COMPILATION: return "HIPRTC_ERROR_COMPILATION";
    default: return "HIPRTC_ERROR_INTERNAL_ERROR";
  }
}

int hiprtcCreateProgram(Program **created, const char *source, const char *name, int headers,
                        const char **header_texts, const char **include_names) {
  auto *program = new Program{{"hip", name ? name : "unnamed", source, {}, {}}, {}};
  for (int i = 0; i < headers; i++)
    program->source.headers.emplace_back(include_names[i], header_texts[i]);
  *created = program;
  return SUCCESS;
}

int hiprtcCompileProgram(Program *program, int count, const char **options) {
  program->source.options.assign(options, options + count);
  program->compiled = compile_kernel(program->source);
  return program->compiled.ok ? SUCCESS : COMPILATION;
}

int hiprtcGetCodeSize(Program *program, size_t *bytes) {
  *bytes = program->compiled.code.size();
  return program->compiled.ok ? SUCCESS : INVALID_PROGRAM;
}

int hiprtcGetCode(Program *program, char *code) {
  std::memcpy(code, program->compiled.code.data(), program->compiled.code.size());
  return program->compiled.ok ? SUCCESS : INVALID_PROGRAM;
}

int hiprtcGetProgramLogSize(Program *program, size_t *bytes) {
  *bytes = program->compiled.log.size() + 1;
  return SUCCESS;
}

int hiprtcGetProgramLog(Program *program, char *text) {
  std::memcpy(text, program->compiled.log.c_str(), program->compiled.log.size() + 1);
  return SUCCESS;
}

int hiprtcDestroyProgram(Program **program) {
  delete *program;
  *program = nullptr;
  return SUCCESS;
}
}
