// OpenBLAS, if there is one.
#pragma once

#include <cstdint>

#include "gemm.hpp"

bool openblas_found();

// The product in place, without conversions: float matrices only. False if there is no OpenBLAS.
bool openblas_gemm(const Gemm &gemm);

// product = a * b for matrices without gaps. False if there is no OpenBLAS or it lacks the type.
bool openblas_multiply(const float *a, const float *b, int m, int n, int k, float *product);
bool openblas_multiply(const double *a, const double *b, int m, int n, int k, double *product);
inline bool openblas_multiply(const int32_t *, const int32_t *, int, int, int, int32_t *) { return false; }
