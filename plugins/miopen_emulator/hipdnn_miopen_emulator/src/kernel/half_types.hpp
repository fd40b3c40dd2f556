// Half precision is the compiler's own type. bfloat16 is a class that computes in float and rounds
// to nearest even, as hip_bfloat16 does.
#pragma once

#include "basic_types.hpp"

typedef _Float16 half;
typedef _Float16 __half;
typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef half2 __half2;

static inline float __half2float(half x) { return x; }
static inline half __float2half(float x) { return x; }
static inline half __float2half_rn(float x) { return x; }
static inline half2 __floats2half2_rn(float x, float y) { return half2{half(x), half(y)}; }
static inline half __low2half(half2 x) { return x.x; }
static inline half __high2half(half2 x) { return x.y; }
static inline float __low2float(half2 x) { return x.x; }
static inline float __high2float(half2 x) { return x.y; }
static inline half2 __half2half2(half x) { return half2{x, x}; }
static inline half __hadd(half x, half y) { return x + y; }
static inline half __hmul(half x, half y) { return x * y; }
static inline half2 __hadd2(half2 x, half2 y) { return x + y; }
static inline half2 __hmul2(half2 x, half2 y) { return x * y; }
static inline ushort __half_as_ushort(half x) { return __builtin_bit_cast(ushort, x); }
static inline half __ushort_as_half(ushort x) { return __builtin_bit_cast(half, x); }

struct hip_bfloat16 {
  ushort data;

  hip_bfloat16() = default;
  hip_bfloat16(float value) : data(rounded(__builtin_bit_cast(uint, value))) {}
  operator float() const { return __builtin_bit_cast(float, uint(data) << 16); }

  hip_bfloat16 &operator+=(float other) { return *this = float(*this) + other; }
  hip_bfloat16 &operator-=(float other) { return *this = float(*this) - other; }
  hip_bfloat16 &operator*=(float other) { return *this = float(*this) * other; }
  hip_bfloat16 &operator/=(float other) { return *this = float(*this) / other; }

 private:
  static ushort rounded(uint bits) {
    bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return ushort(is_nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};
typedef hip_bfloat16 __hip_bfloat16;
static inline float __bfloat162float(hip_bfloat16 x) { return x; }
static inline hip_bfloat16 __float2bfloat16(float x) { return x; }
