// Runs a kernel: its blocks on the threads of a pool, the work items of a block one after another.
#pragma once

#include <cstddef>

#include "runtime.hpp"

struct Shape {
  unsigned
      items[3];  // in all, as in an OpenCL launch; the last block of a dimension may be partial
  unsigned block[3];

  unsigned blocks(int dimension) const {
    return (items[dimension] + block[dimension] - 1) / block[dimension];
  }
};

struct Launch {
  const char *kernel;
  void (*call)(const char *arguments);
  const char *arguments;
  Shape shape;
  size_t shared;
  unsigned wavefront_size;
};

// Returns hipErrorIllegalAddress or hipErrorLaunchFailure, after reporting it, if the kernel
// faults.
hipError_t run_grid(const Launch &launch);
