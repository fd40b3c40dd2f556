// What a HIP kernel sees without including anything: hiprtc's built-in declarations, for the host.
//
// It uses no header of the host's C or C++ library, so kernels mean the same on every machine; the
// few standard headers that MIOpen's kernels include are in include/.
#pragma once

#define EMULATOR_DEVICE_CODE 1
#define __device__
#define __host__
#define __constant__ static const
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __HIPCC__ 1
#define __HIPCC_RTC__ 1
#define __HIP__ 1

#include "amdgcn.hpp"
#include "atomics.hpp"
#include "basic_types.hpp"
#include "entry.hpp"
#include "half_types.hpp"
#include "indices.hpp"
#include "math.hpp"
#include "vector_types.hpp"
#include "wavefront.hpp"
#include "work_item.hpp"

extern "C" {
int printf(const char *, ...);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
}
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
