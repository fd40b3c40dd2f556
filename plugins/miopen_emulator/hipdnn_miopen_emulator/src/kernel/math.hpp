// Mathematical functions: the C library's, by its own names and overloaded for float, double and half.
#pragma once

#include "basic_types.hpp"
#include "half_types.hpp"

#define EMULATOR_UNARY(name)                                                   \
  extern "C" float name##f(float);                                             \
  extern "C" double name(double);                                              \
  static inline float name(float x) { return name##f(x); }                     \
  static inline half name(half x) { return half(name##f(float(x))); }          \
  namespace std { using ::name; }
#define EMULATOR_BINARY(name)                                                  \
  extern "C" float name##f(float, float);                                      \
  extern "C" double name(double, double);                                      \
  static inline float name(float x, float y) { return name##f(x, y); }         \
  static inline half name(half x, half y) { return half(name##f(x, y)); }      \
  namespace std { using ::name; }

EMULATOR_UNARY(acos) EMULATOR_UNARY(acosh) EMULATOR_UNARY(asin) EMULATOR_UNARY(asinh)
EMULATOR_UNARY(atan) EMULATOR_UNARY(atanh) EMULATOR_UNARY(cbrt) EMULATOR_UNARY(ceil)
EMULATOR_UNARY(cos) EMULATOR_UNARY(cosh) EMULATOR_UNARY(erf) EMULATOR_UNARY(erfc)
EMULATOR_UNARY(exp) EMULATOR_UNARY(exp2) EMULATOR_UNARY(expm1) EMULATOR_UNARY(fabs)
EMULATOR_UNARY(floor) EMULATOR_UNARY(lgamma) EMULATOR_UNARY(log) EMULATOR_UNARY(log10)
EMULATOR_UNARY(log1p) EMULATOR_UNARY(log2) EMULATOR_UNARY(nearbyint) EMULATOR_UNARY(rint)
EMULATOR_UNARY(round) EMULATOR_UNARY(sin) EMULATOR_UNARY(sinh) EMULATOR_UNARY(sqrt)
EMULATOR_UNARY(tan) EMULATOR_UNARY(tanh) EMULATOR_UNARY(tgamma) EMULATOR_UNARY(trunc)
EMULATOR_BINARY(atan2) EMULATOR_BINARY(copysign) EMULATOR_BINARY(fmax) EMULATOR_BINARY(fmin)
EMULATOR_BINARY(fmod) EMULATOR_BINARY(pow)
#undef EMULATOR_UNARY
#undef EMULATOR_BINARY

extern "C" float fmaf(float, float, float);
extern "C" double fma(double, double, double);
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline half fma(half x, half y, half z) { return half(fma(double(x), double(y), double(z))); }
static inline double pow(double x, int y) { return pow(x, double(y)); }
static inline float pow(float x, int y) { return powf(x, float(y)); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline half hexp(half x) { return exp(x); }

#define EMULATOR_CLASSIFICATION(T)                                             \
  static inline bool isnan(T x) { return __builtin_isnan(x); }                 \
  static inline bool isinf(T x) { return __builtin_isinf(x); }                 \
  static inline bool isfinite(T x) { return __builtin_isfinite(x); }           \
  static inline bool signbit(T x) { return __builtin_signbit(x); }
EMULATOR_CLASSIFICATION(float)
EMULATOR_CLASSIFICATION(double)
#undef EMULATOR_CLASSIFICATION
static inline bool isnan(half x) { return isnan(float(x)); }
static inline bool isinf(half x) { return isinf(float(x)); }
static inline bool __hisnan(half x) { return isnan(float(x)); }
namespace std { using ::isnan, ::isinf, ::isfinite, ::fma; }

// fmin and fmax, which drop a NaN, are what HIP's min and max of floating types are
#define EMULATOR_EXTREMES(T, least, most)                                      \
  static inline constexpr T min(T x, T y) { return least; }                    \
  static inline constexpr T max(T x, T y) { return most; }
#define EMULATOR_INTEGER_EXTREMES(T) EMULATOR_EXTREMES(T, x < y ? x : y, x > y ? x : y)
EMULATOR_INTEGER_EXTREMES(int) EMULATOR_INTEGER_EXTREMES(uint)
EMULATOR_INTEGER_EXTREMES(long) EMULATOR_INTEGER_EXTREMES(ulong)
EMULATOR_INTEGER_EXTREMES(longlong) EMULATOR_INTEGER_EXTREMES(ulonglong)
EMULATOR_EXTREMES(float, __builtin_fminf(x, y), __builtin_fmaxf(x, y))
EMULATOR_EXTREMES(double, __builtin_fmin(x, y), __builtin_fmax(x, y))
static inline half min(half x, half y) { return fmin(x, y); }
static inline half max(half x, half y) { return fmax(x, y); }
#undef EMULATOR_EXTREMES
#undef EMULATOR_INTEGER_EXTREMES

static inline constexpr int abs(int x) { return x < 0 ? -x : x; }
static inline constexpr long abs(long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }

// The GPU's fast approximations are exact here.
static inline float __expf(float x) { return expf(x); }
static inline float __exp2f(float x) { return exp2f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }

static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline float __uint_as_float(uint x) { return __builtin_bit_cast(float, x); }
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline uint __float_as_uint(float x) { return __builtin_bit_cast(uint, x); }
static inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
static inline int __clz(int x) { return x ? __builtin_clz(uint(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(ulonglong(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __popc(uint x) { return __builtin_popcount(x); }
static inline int __popcll(ulonglong x) { return __builtin_popcountll(x); }
static inline uint __brev(uint x) { return __builtin_bitreverse32(x); }
static inline int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
static inline uint __umul24(uint x, uint y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline int __mulhi(int x, int y) { return int(long(x) * y >> 32); }
static inline uint __umulhi(uint x, uint y) { return uint(ulong(x) * y >> 32); }
static inline ulonglong __umul64hi(ulonglong x, ulonglong y) {
  return ulonglong((unsigned __int128)x * y >> 64);
}
