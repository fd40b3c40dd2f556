// A kernel that touches memory it may not, divides by zero or reaches a trap ends its launch, not
// the process.
#pragma once

#include <functional>

#include "grid.hpp"

// Makes the signals of faults come here. Called for each launch, as others may have taken them
// since; faults outside of kernels are handed on to whoever had the signal before.
void catch_faults();

// Runs `work`, which runs items of `launch` on this thread. If one faults, `work` ends there and
// the fault is reported to log and standard error.
hipError_t guard_against_faults(const Launch &launch, const std::function<void()> &work);
