// Products are made in float or double, integers in int32: halves are converted before, accumulated
// in float, and rounded once at the end, as the GPU's matrix instructions do.
#include "gemm.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "conversions.hpp"
#include "openblas.hpp"

namespace {

const void *column_of(const Matrix &matrix, int column) {
  size_t elements = static_cast<size_t>(column) * static_cast<size_t>(matrix.leading);
  return static_cast<const char *>(matrix.data) + elements * bytes_of(matrix.type);
}

// A matrix as it lies, but in the type that is computed in and without gaps between columns.
template <class T> std::vector<T> widened(const Matrix &matrix, int rows, int columns) {
  std::vector<T> result(static_cast<size_t>(rows) * static_cast<size_t>(columns));
  for (int column = 0; column < columns; column++)
    widen(column_of(matrix, column), matrix.type, static_cast<size_t>(rows),
          &result[static_cast<size_t>(column) * static_cast<size_t>(rows)]);
  return result;
}

template <class T> std::vector<T> transposed(const std::vector<T> &matrix, int rows, int columns) {
  std::vector<T> result(matrix.size());
  for (size_t column = 0, m = static_cast<size_t>(rows), n = static_cast<size_t>(columns);
       column < n; column++)
    for (size_t row = 0; row < m; row++) result[column + row * n] = matrix[row + column * m];
  return result;
}

// product = op(a) * op(b) without OpenBLAS. Goes through k in steps that keep a slice of a in the
// cache.
template <class T>
void multiply(const Gemm &g, std::vector<T> a, std::vector<T> b, std::vector<T> &product) {
  if (g.transpose_a) a = transposed(a, g.k, g.m);
  if (g.transpose_b) b = transposed(b, g.n, g.k);
  const size_t m = static_cast<size_t>(g.m), n = static_cast<size_t>(g.n),
               k = static_cast<size_t>(g.k);
  constexpr size_t STEP = 64;
  for (size_t first = 0; first < k; first += STEP)
    for (size_t column = 0; column < n; column++)
      for (size_t l = first; l < std::min(k, first + STEP); l++) {
        const T factor = b[l + column * k];
        for (size_t row = 0; row < m; row++) product[row + column * m] += factor * a[row + l * m];
      }
}

template <class T> T scalar(const void *value, DataType type) {
  T result;
  widen(value, type, 1, &result);
  return result;
}

template <class T> void compute_in(const Gemm &g) {
  const size_t m = static_cast<size_t>(g.m), n = static_cast<size_t>(g.n);
  std::vector<T> product(m * n), added(m);
  if (g.k > 0) {
    std::vector<T> a = widened<T>(g.a, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k);
    std::vector<T> b = widened<T>(g.b, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n);
    if (!openblas_multiply(g, a.data(), b.data(), product.data()))
      multiply(g, std::move(a), std::move(b), product);
  }
  const T alpha = scalar<T>(g.alpha, g.compute), beta = scalar<T>(g.beta, g.compute);
  for (int column = 0; column < g.n; column++) {
    T *result = &product[static_cast<size_t>(column) * m];
    for (size_t row = 0; row < m; row++) result[row] *= alpha;
    if (beta != T(0)) {
      widen(column_of(g.c, column), g.c.type, m, added.data());
      for (size_t row = 0; row < m; row++) result[row] += beta * added[row];
    }
    narrow(result, m, const_cast<void *>(column_of(g.d, column)), g.d.type);
  }
}

}  // namespace

bool gemm_supported(const Gemm &g) {
  auto floating = [](DataType t) { return t == F16 || t == BF16 || t == F32 || t == F64; };
  if (g.compute == I32)
    return g.a.type == I8 && g.b.type == I8 && g.c.type == I32 && g.d.type == I32;
  return floating(g.compute) && floating(g.a.type) && floating(g.b.type) && floating(g.c.type) &&
         floating(g.d.type);
}

void compute_gemm(const Gemm &g) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.compute == I32) return compute_in<int32_t>(g);
  if (g.compute == F64) return compute_in<double>(g);
  bool plain =
      g.a.type == F32 && g.b.type == F32 && g.c.type == F32 && g.d.type == F32 && g.compute == F32;
  if (plain && openblas_gemm(g)) return;
  compute_in<float>(g);
}

const char *gemm_backend() { return openblas_found() ? "openblas" : "own"; }
