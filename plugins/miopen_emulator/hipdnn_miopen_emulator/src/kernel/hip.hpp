// What a HIP kernel sees without including anything: hiprtc's built-in declarations, for the host.
//
// It uses no header of the host's C or C++ library, so kernels mean the same on every machine; the few
// standard headers that MIOpen's kernels include are in include/.
#pragma once

#define EMULATOR_DEVICE_CODE 1
#include "entry.hpp"
#include "work_item.hpp"

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
#define __AMDGCN_WAVEFRONT_SIZE EMULATOR_WAVEFRONT
#define __AMDGCN_WAVEFRONT_SIZE__ EMULATOR_WAVEFRONT
static constexpr int warpSize = EMULATOR_WAVEFRONT;

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long long longlong;
typedef unsigned long long ulonglong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
namespace __hip_internal {
using ::int8_t, ::int16_t, ::int32_t, ::int64_t;
using ::uint8_t, ::uint16_t, ::uint32_t, ::uint64_t;
}  // namespace __hip_internal
namespace std {
using ::size_t, ::ptrdiff_t;
using nullptr_t = decltype(nullptr);
}  // namespace std

struct dim3 {
  uint x, y, z;
  constexpr dim3(uint x = 1, uint y = 1, uint z = 1) : x(x), y(y), z(z) {}
};
struct EmulatorIndex { uint x, y, z; };
#define threadIdx (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.thread))
#define blockIdx (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.block))
#define blockDim (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.block_size))
#define gridDim (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.blocks))

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

#include "vector_types.hpp"
#include "half_types.hpp"
#include "math.hpp"
#include "atomics.hpp"
#include "wavefront.hpp"
#include "amdgcn.hpp"
