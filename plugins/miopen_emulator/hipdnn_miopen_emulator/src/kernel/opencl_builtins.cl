// OpenCL C's mathematical, integer and atomic functions, for the vector sizes and types that kernels
// use. What is missing here is a link error that names the function.
//
// float and double are the C library's functions; half is computed in float and rounded once.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define BUILTIN __attribute__((overloadable))

// An elementwise function of one, two and three arguments in a vector type, by the scalar function.
#define ELEMENTWISE_1(name, T, n)                                                 \
  T##n BUILTIN name(T##n x) {                                                     \
    for (int i = 0; i < n; i++) x[i] = name(x[i]);                                \
    return x;                                                                     \
  }
#define ELEMENTWISE_2(name, T, n)                                                 \
  T##n BUILTIN name(T##n x, T##n y) {                                             \
    for (int i = 0; i < n; i++) x[i] = name(x[i], y[i]);                          \
    return x;                                                                     \
  }
#define ELEMENTWISE_3(name, T, n)                                                 \
  T##n BUILTIN name(T##n x, T##n y, T##n z) {                                     \
    for (int i = 0; i < n; i++) x[i] = name(x[i], y[i], z[i]);                    \
    return x;                                                                     \
  }
#define VECTORS(arity, name, T) \
  ELEMENTWISE_##arity(name, T, 2) ELEMENTWISE_##arity(name, T, 3) ELEMENTWISE_##arity(name, T, 4) \
  ELEMENTWISE_##arity(name, T, 8) ELEMENTWISE_##arity(name, T, 16)

#define UNARY_AS(name, in_float, in_double)                                       \
  float BUILTIN name(float x) { return in_float; }                                \
  double BUILTIN name(double x) { return in_double; }                             \
  half BUILTIN name(half h) {                                                     \
    float x = h;                                                                  \
    return (half)(in_float);                                                      \
  }                                                                               \
  VECTORS(1, name, float) VECTORS(1, name, double) VECTORS(1, name, half)
#define UNARY(name) UNARY_AS(name, __builtin_##name##f(x), __builtin_##name(x))
#define BINARY(name)                                                              \
  float BUILTIN name(float x, float y) { return __builtin_##name##f(x, y); }      \
  double BUILTIN name(double x, double y) { return __builtin_##name(x, y); }      \
  half BUILTIN name(half x, half y) { return (half)__builtin_##name##f(x, y); }   \
  VECTORS(2, name, float) VECTORS(2, name, double) VECTORS(2, name, half)

UNARY(acos) UNARY(asin) UNARY(atan) UNARY(ceil) UNARY(cos) UNARY(cosh) UNARY(erf) UNARY(exp)
UNARY(exp2) UNARY(expm1) UNARY(fabs) UNARY(floor) UNARY(log) UNARY(log10) UNARY(log1p) UNARY(log2)
UNARY(rint) UNARY(round) UNARY(sin) UNARY(sinh) UNARY(sqrt) UNARY(tan) UNARY(tanh) UNARY(trunc)
UNARY_AS(rsqrt, 1.0f / __builtin_sqrtf(x), 1.0 / __builtin_sqrt(x))
BINARY(atan2) BINARY(copysign) BINARY(fmax) BINARY(fmin) BINARY(fmod) BINARY(pow)

// The native functions are approximations on a GPU and exact here.
#define NATIVE(name, expression)                                                  \
  float BUILTIN native_##name(float x) { return expression; }                     \
  VECTORS(1, native_##name, float)
NATIVE(exp, __builtin_expf(x)) NATIVE(exp2, __builtin_exp2f(x)) NATIVE(log, __builtin_logf(x))
NATIVE(log2, __builtin_log2f(x)) NATIVE(sqrt, __builtin_sqrtf(x)) NATIVE(recip, 1.0f / x)
NATIVE(rsqrt, 1.0f / __builtin_sqrtf(x)) NATIVE(sin, __builtin_sinf(x)) NATIVE(cos, __builtin_cosf(x))
float BUILTIN native_divide(float x, float y) { return x / y; }

// In half, the GPU's multiply-add rounds once; a product of halves is exact in float.
#define MULTIPLY_ADD(T, plain, fused)                                             \
  T BUILTIN mad(T x, T y, T z) { return (T)(plain); }                             \
  T BUILTIN fma(T x, T y, T z) { return (T)(fused); }                             \
  VECTORS(3, mad, T) VECTORS(3, fma, T)
MULTIPLY_ADD(float, x * y + z, __builtin_fmaf(x, y, z))
MULTIPLY_ADD(double, x * y + z, __builtin_fma(x, y, z))
MULTIPLY_ADD(half, (float)x * (float)y + (float)z, (float)x * (float)y + (float)z)

#define ORDERED(T)                                                                \
  T BUILTIN min(T x, T y) { return y < x ? y : x; }                               \
  T BUILTIN max(T x, T y) { return x < y ? y : x; }                               \
  T BUILTIN clamp(T x, T low, T high) { return x < low ? low : high < x ? high : x; } \
  VECTORS(2, min, T) VECTORS(2, max, T) VECTORS(3, clamp, T)
ORDERED(float) ORDERED(double) ORDERED(half) ORDERED(char) ORDERED(uchar) ORDERED(short)
ORDERED(ushort) ORDERED(int) ORDERED(uint) ORDERED(long) ORDERED(ulong)

#define CLASSIFICATION(T)                                                         \
  int BUILTIN isnan(T x) { return x != x; }                                       \
  int BUILTIN isinf(T x) { return x == x && x - x != x - x; }                     \
  int BUILTIN isfinite(T x) { return x - x == x - x; }
CLASSIFICATION(float) CLASSIFICATION(double) CLASSIFICATION(half)

float BUILTIN dot(float x, float y) { return x * y; }
float BUILTIN dot(float2 x, float2 y) { return x.x * y.x + x.y * y.y; }
float BUILTIN dot(float4 x, float4 y) { return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w; }

// 24-bit products: what the factors have above bit 23 is undefined, and kept here.
#define INTEGER_24(T)                                                             \
  T BUILTIN mul24(T x, T y) { return x * y; }                                     \
  T BUILTIN mad24(T x, T y, T z) { return x * y + z; }
INTEGER_24(int) INTEGER_24(uint)
int BUILTIN mul_hi(int x, int y) { return (int)((long)x * y >> 32); }
uint BUILTIN mul_hi(uint x, uint y) { return (uint)((ulong)x * y >> 32); }
int BUILTIN clz(int x) { return x ? __builtin_clz(x) : 32; }
uint BUILTIN clz(uint x) { return x ? __builtin_clz(x) : 32; }
uint BUILTIN popcount(uint x) { return __builtin_popcount(x); }
uint BUILTIN abs(int x) { return x < 0 ? -x : x; }

// Callers use it to tell the compiler that a value is the same in all lanes, so each lane has it.
int __builtin_amdgcn_readfirstlane(int x) { return x; }

#define ATOMICS(space, T, prefix)                                                                  \
  T BUILTIN prefix##_add(volatile space T *p, T v) { return __sync_fetch_and_add(p, v); }          \
  T BUILTIN prefix##_sub(volatile space T *p, T v) { return __sync_fetch_and_sub(p, v); }          \
  T BUILTIN prefix##_and(volatile space T *p, T v) { return __sync_fetch_and_and(p, v); }          \
  T BUILTIN prefix##_or(volatile space T *p, T v) { return __sync_fetch_and_or(p, v); }            \
  T BUILTIN prefix##_xor(volatile space T *p, T v) { return __sync_fetch_and_xor(p, v); }          \
  T BUILTIN prefix##_inc(volatile space T *p) { return __sync_fetch_and_add(p, (T)1); }            \
  T BUILTIN prefix##_dec(volatile space T *p) { return __sync_fetch_and_sub(p, (T)1); }            \
  T BUILTIN prefix##_cmpxchg(volatile space T *p, T expected, T desired) {                         \
    return __sync_val_compare_and_swap(p, expected, desired);                                      \
  }                                                                                                \
  T BUILTIN prefix##_xchg(volatile space T *p, T v) {                                              \
    for (;;) {                                                                                     \
      T old = *p;                                                                                  \
      if (__sync_bool_compare_and_swap(p, old, v)) return old;                                     \
    }                                                                                              \
  }
#define ATOMICS_IN(space) \
  ATOMICS(space, int, atomic) ATOMICS(space, uint, atomic) ATOMICS(space, int, atom) \
  ATOMICS(space, uint, atom) ATOMICS(space, long, atom) ATOMICS(space, ulong, atom)
ATOMICS_IN(__global)
ATOMICS_IN(__local)
