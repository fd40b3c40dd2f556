// A kernel function as hipModuleGetFunction hands it out.
#pragma once

#include <string>

#include "../kernel/entry.hpp"

struct KernelFunction {
  std::string name;
  const KernelEntry *entry;  // null if the module is a marker: the kernel can't be run
};
