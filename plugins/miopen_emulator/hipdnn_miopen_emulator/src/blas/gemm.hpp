// Matrix products on the host, column-major as in BLAS.
#pragma once

#include <cstdint>

// rocblas_datatype
enum DataType {
  F16 = 150,
  F32 = 151,
  F64 = 152,
  I8 = 160,
  U8 = 161,
  I32 = 162,
  U32 = 163,
  BF16 = 168,
};

struct Matrix {
  const void *data;
  DataType type;
  int leading;  // elements from one column to the next
};

// d = alpha * op(a) * op(b) + beta * c, where op(a) is m x k, op(b) k x n, and c and d are m x n.
// alpha and beta point to a value of the compute type. If beta is zero, c is not read.
struct Gemm {
  bool transpose_a, transpose_b;
  int m, n, k;
  const void *alpha;
  Matrix a, b;
  const void *beta;
  Matrix c, d;  // d is written
  DataType compute;
};

// False if a combination of types isn't supported: nothing is written then.
bool gemm_supported(const Gemm &gemm);
void compute_gemm(const Gemm &gemm);

// "openblas", or "own" if the tree has none.
const char *gemm_backend();
