// Products are made in float or double, integers in int32: halves are converted before, accumulated in
// float, and rounded once at the end, as the GPU's matrix instructions do.
#include "gemm.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "openblas.hpp"

namespace {

float from_bfloat16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // NaN
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T> T load(const void *data, DataType type, size_t i) {
  switch (type) {
    case F16: return static_cast<T>(static_cast<float>(static_cast<const _Float16 *>(data)[i]));
    case BF16: return static_cast<T>(from_bfloat16(static_cast<const uint16_t *>(data)[i]));
    case F32: return static_cast<T>(static_cast<const float *>(data)[i]);
    case F64: return static_cast<T>(static_cast<const double *>(data)[i]);
    case I8: return static_cast<T>(static_cast<const int8_t *>(data)[i]);
    default: return static_cast<T>(static_cast<const int32_t *>(data)[i]);
  }
}

template <class T> void store(void *data, DataType type, size_t i, T value) {
  switch (type) {
    case F16: static_cast<_Float16 *>(data)[i] = static_cast<_Float16>(static_cast<float>(value)); break;
    case BF16: static_cast<uint16_t *>(data)[i] = to_bfloat16(static_cast<float>(value)); break;
    case F32: static_cast<float *>(data)[i] = static_cast<float>(value); break;
    case F64: static_cast<double *>(data)[i] = static_cast<double>(value); break;
    default: static_cast<int32_t *>(data)[i] = static_cast<int32_t>(value); break;
  }
}

// op(matrix) in columns without gaps, in the type that is computed in.
template <class T>
std::vector<T> packed(const Matrix &matrix, bool transposed, int rows, int columns) {
  std::vector<T> result(static_cast<size_t>(rows) * columns);
  for (int column = 0; column < columns; column++)
    for (int row = 0; row < rows; row++) {
      size_t from = transposed ? column + static_cast<size_t>(row) * matrix.leading
                               : row + static_cast<size_t>(column) * matrix.leading;
      result[row + static_cast<size_t>(column) * rows] = load<T>(matrix.data, matrix.type, from);
    }
  return result;
}

// product = a * b. Goes through k in steps that keep a slice of a in the cache.
template <class T>
void multiply(const std::vector<T> &a, const std::vector<T> &b, int m, int n, int k, std::vector<T> &product) {
  constexpr int STEP = 64;
  for (int first = 0; first < k; first += STEP)
    for (int column = 0; column < n; column++) {
      T *result = &product[static_cast<size_t>(column) * m];
      for (int l = first; l < std::min(k, first + STEP); l++) {
        const T factor = b[l + static_cast<size_t>(column) * k], *slice = &a[static_cast<size_t>(l) * m];
        for (int row = 0; row < m; row++) result[row] += factor * slice[row];
      }
    }
}

template <class T> void compute_in(const Gemm &g) {
  std::vector<T> product(static_cast<size_t>(g.m) * g.n);
  if (g.k > 0) {
    std::vector<T> a = packed<T>(g.a, g.transpose_a, g.m, g.k), b = packed<T>(g.b, g.transpose_b, g.k, g.n);
    if (!openblas_multiply(a.data(), b.data(), g.m, g.n, g.k, product.data()))
      multiply(a, b, g.m, g.n, g.k, product);
  }
  T alpha = load<T>(g.alpha, g.compute, 0), beta = load<T>(g.beta, g.compute, 0);
  for (int column = 0; column < g.n; column++)
    for (int row = 0; row < g.m; row++) {
      T value = alpha * product[row + static_cast<size_t>(column) * g.m];
      if (beta != T(0))
        value += beta * load<T>(g.c.data, g.c.type, row + static_cast<size_t>(column) * g.c.leading);
      store<T>(const_cast<void *>(g.d.data), g.d.type, row + static_cast<size_t>(column) * g.d.leading, value);
    }
}

}  // namespace

bool gemm_supported(const Gemm &g) {
  auto floating = [](DataType t) { return t == F16 || t == BF16 || t == F32 || t == F64; };
  if (g.compute == I32) return g.a.type == I8 && g.b.type == I8 && g.c.type == I32 && g.d.type == I32;
  return floating(g.compute) && floating(g.a.type) && floating(g.b.type) && floating(g.c.type) &&
         floating(g.d.type);
}

void compute_gemm(const Gemm &g) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.compute == I32) return compute_in<int32_t>(g);
  if (g.compute == F64) return compute_in<double>(g);
  bool plain = g.a.type == F32 && g.b.type == F32 && g.c.type == F32 && g.d.type == F32 && g.compute == F32;
  if (plain && openblas_gemm(g)) return;
  compute_in<float>(g);
}

const char *gemm_backend() { return openblas_found() ? "openblas" : "own"; }
