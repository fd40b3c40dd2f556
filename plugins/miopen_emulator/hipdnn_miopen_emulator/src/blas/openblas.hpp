// OpenBLAS, if there is one.
#pragma once

#include <cstdint>

#include "gemm.hpp"

bool openblas_found();

// The product in place, without conversions: float matrices only. False if there is no OpenBLAS.
bool openblas_gemm(const Gemm &gemm);

// product = op(a) * op(b), with a and b in the type that is computed in and without gaps between
// columns. False if there is no OpenBLAS or it lacks the type.
bool openblas_multiply(const Gemm &gemm, const float *a, const float *b, float *product);
bool openblas_multiply(const Gemm &gemm, const double *a, const double *b, double *product);
inline bool openblas_multiply(const Gemm &, const int32_t *, const int32_t *, int32_t *) {
  return false;
}
