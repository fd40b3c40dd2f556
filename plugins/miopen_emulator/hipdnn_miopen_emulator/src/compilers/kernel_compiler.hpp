// Turns a kernel's source into a code object: what hiprtc and comgr have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

struct KernelSource {
  std::string language;  // "hip", "opencl" or "assembly", which only accept mode takes
  std::string name;
  std::string text;
  std::vector<std::pair<std::string, std::string>> headers;  // name as in #include, text
  std::vector<std::string> options;
};

struct CompiledKernel {
  bool ok;
  std::string code;  // a shared object of the host, or a marker if kernels are only accepted
  std::string log;   // the compiler's messages
};

// Never throws; whatever goes wrong is a failed compilation with the reason in its log.
//
//   MIOPEN_EMULATOR_FAIL_COMPILE  compiling a program whose name contains this text fails
//   MIOPEN_EMULATOR_KEEP_SOURCES  folder that gets the source, headers and options of what is
//   compiled
CompiledKernel compile_kernel(const KernelSource &source);
