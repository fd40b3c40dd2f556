// float4 and the like, with make_float4. HIP's are classes; clang's vectors have the same layout (but
// for three elements, which here take the space of four) and operators.
#pragma once

#define EMULATOR_VECTOR(T, E)                                                                    \
  typedef E T##1 __attribute__((ext_vector_type(1)));                                            \
  typedef E T##2 __attribute__((ext_vector_type(2)));                                            \
  typedef E T##3 __attribute__((ext_vector_type(3)));                                            \
  typedef E T##4 __attribute__((ext_vector_type(4)));                                            \
  static inline T##1 make_##T##1(E x) { return T##1{x}; }                                        \
  static inline T##2 make_##T##2(E x, E y) { return T##2{x, y}; }                                \
  static inline T##3 make_##T##3(E x, E y, E z) { return T##3{x, y, z}; }                        \
  static inline T##4 make_##T##4(E x, E y, E z, E w) { return T##4{x, y, z, w}; }

EMULATOR_VECTOR(char, signed char)
EMULATOR_VECTOR(uchar, unsigned char)
EMULATOR_VECTOR(short, short)
EMULATOR_VECTOR(ushort, unsigned short)
EMULATOR_VECTOR(int, int)
EMULATOR_VECTOR(uint, unsigned int)
EMULATOR_VECTOR(long, long)
EMULATOR_VECTOR(ulong, unsigned long)
EMULATOR_VECTOR(longlong, long long)
EMULATOR_VECTOR(ulonglong, unsigned long long)
EMULATOR_VECTOR(float, float)
EMULATOR_VECTOR(double, double)
#undef EMULATOR_VECTOR
