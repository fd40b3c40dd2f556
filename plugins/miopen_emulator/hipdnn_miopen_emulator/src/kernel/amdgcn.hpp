// The GPU compiler's intrinsic functions that MIOpen's kernels use.
#pragma once

#include "half_types.hpp"
#include "indices.hpp"
#include "math.hpp"
#include "vector_types.hpp"
#include "wavefront.hpp"

static inline void __builtin_amdgcn_s_barrier() { emulator_barrier(); }
static inline void __builtin_amdgcn_s_waitcnt(int) {}
static inline void __builtin_amdgcn_sched_barrier(int) {}
static inline float __builtin_amdgcn_rcpf(float x) { return 1.0f / x; }
static inline float __builtin_amdgcn_rsqf(float x) { return 1.0f / sqrtf(x); }
static inline uint __builtin_amdgcn_workitem_id_x() { return threadIdx.x; }
static inline uint __builtin_amdgcn_workitem_id_y() { return threadIdx.y; }
static inline uint __builtin_amdgcn_workitem_id_z() { return threadIdx.z; }
static inline uint __builtin_amdgcn_workgroup_id_x() { return blockIdx.x; }
static inline uint __builtin_amdgcn_workgroup_id_y() { return blockIdx.y; }
static inline uint __builtin_amdgcn_workgroup_id_z() { return blockIdx.z; }

// Callers use it to tell the compiler that a value is the same in all lanes, so each lane has it.
static inline int __builtin_amdgcn_readfirstlane(int x) { return x; }

static inline int __builtin_amdgcn_ds_bpermute(int address, int value) {
  return emulator_take(value, uint(address) / 4 % uint(warpSize));
}

// The lane whose value a swizzle takes: within four lanes if bit 15 of the pattern is set, by two
// bits for each; otherwise within 32, by masks that are and-ed, or-ed and xor-ed with the lane's
// number.
static inline uint emulator_swizzled(uint lane, uint pattern) {
  if (pattern & 0x8000) return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);
  uint inside = ((lane & pattern & 31) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  return (lane & ~31u) | inside;
}
template <int pattern> static inline float __hip_ds_swizzlef_N(float value) {
  return emulator_take(value, emulator_swizzled(emulator_lane(), pattern));
}
template <int pattern> static inline int __hip_ds_swizzle_N(int value) {
  return emulator_take(value, emulator_swizzled(emulator_lane(), pattern));
}

// Dot products of packed bytes and halves; `clamp` is ignored, no caller sets it.
static inline int __builtin_amdgcn_sdot4(int a, int b, int sum, bool) {
  for (int shift = 0; shift < 32; shift += 8)
    sum += (signed char)(a >> shift) * (signed char)(b >> shift);
  return sum;
}
static inline int __builtin_amdgcn_sdot2(short2 a, short2 b, int sum, bool) {
  return sum + a.x * b.x + a.y * b.y;
}
static inline float __builtin_amdgcn_fdot2(half2 a, half2 b, float sum, bool) {
  return sum + float(a.x) * float(b.x) + float(a.y) * float(b.y);
}
