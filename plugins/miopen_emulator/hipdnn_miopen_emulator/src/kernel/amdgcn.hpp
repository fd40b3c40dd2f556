// The GPU compiler's intrinsic functions that MIOpen's kernels use.
#pragma once

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

// Dot products of packed bytes and halves; `clamp` is ignored, no caller sets it.
static inline int __builtin_amdgcn_sdot4(int a, int b, int sum, bool) {
  for (int shift = 0; shift < 32; shift += 8) sum += (signed char)(a >> shift) * (signed char)(b >> shift);
  return sum;
}
static inline int __builtin_amdgcn_sdot2(short2 a, short2 b, int sum, bool) {
  return sum + a.x * b.x + a.y * b.y;
}
static inline float __builtin_amdgcn_fdot2(half2 a, half2 b, float sum, bool) {
  return sum + float(a.x) * float(b.x) + float(a.y) * float(b.y);
}
