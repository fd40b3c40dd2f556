#include "conversions.hpp"

#include <cstring>

namespace {

// Halves take an instruction each where the CPU has it, else a call of the compiler's library.
#define FOR_EACH_CPU __attribute__((target_clones("default", "arch=x86-64-v3")))

FOR_EACH_CPU void widen_halves(const _Float16 *from, size_t count, float *to) {
  for (size_t i = 0; i < count; i++) to[i] = static_cast<float>(from[i]);
}

FOR_EACH_CPU void narrow_to_halves(const float *from, size_t count, _Float16 *to) {
  for (size_t i = 0; i < count; i++) to[i] = static_cast<_Float16>(from[i]);
}

struct Bfloat16 {
  uint16_t bits;

  Bfloat16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    bool is_nan = (wide & 0x7fffffff) > 0x7f800000;
    bits = static_cast<uint16_t>(is_nan ? wide >> 16 | 0x40
                                        : (wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  operator float() const {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

template <class From, class To> void convert(const void *from, size_t count, void *to) {
  for (size_t i = 0; i < count; i++)
    static_cast<To *>(to)[i] = static_cast<To>(static_cast<const From *>(from)[i]);
}

template <class To> void widen_any(const void *from, DataType type, size_t count, To *to) {
  switch (type) {
    case F16: return convert<_Float16, To>(from, count, to);
    case BF16: return convert<Bfloat16, To>(from, count, to);
    case F32: return convert<float, To>(from, count, to);
    case F64: return convert<double, To>(from, count, to);
    case I8: return convert<int8_t, To>(from, count, to);
    default: return convert<int32_t, To>(from, count, to);
  }
}

template <class From> void narrow_any(const From *from, size_t count, void *to, DataType type) {
  switch (type) {
    case F16: return convert<From, _Float16>(from, count, to);
    case BF16: return convert<From, Bfloat16>(from, count, to);
    case F32: return convert<From, float>(from, count, to);
    case F64: return convert<From, double>(from, count, to);
    default: return convert<From, int32_t>(from, count, to);
  }
}

}  // namespace

void widen(const void *from, DataType type, size_t count, float *to) {
  if (type == F16) return widen_halves(static_cast<const _Float16 *>(from), count, to);
  widen_any(from, type, count, to);
}
void widen(const void *from, DataType type, size_t count, double *to) {
  widen_any(from, type, count, to);
}
void widen(const void *from, DataType type, size_t count, int32_t *to) {
  widen_any(from, type, count, to);
}

void narrow(const float *from, size_t count, void *to, DataType type) {
  if (type == F16) return narrow_to_halves(from, count, static_cast<_Float16 *>(to));
  narrow_any(from, count, to, type);
}
void narrow(const double *from, size_t count, void *to, DataType type) {
  narrow_any(from, count, to, type);
}
void narrow(const int32_t *from, size_t count, void *to, DataType type) {
  narrow_any(from, count, to, type);
}

size_t bytes_of(DataType type) {
  switch (type) {
    case I8:
    case U8: return 1;
    case F16:
    case BF16: return 2;
    case F64: return 8;
    default: return 4;
  }
}
