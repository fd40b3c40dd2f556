// Between the types that matrices are given in and those that are computed in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm.hpp"

void widen(const void *from, DataType type, size_t count, float *to);
void widen(const void *from, DataType type, size_t count, double *to);
void widen(const void *from, DataType type, size_t count, int32_t *to);

// Rounds to nearest even.
void narrow(const float *from, size_t count, void *to, DataType type);
void narrow(const double *from, size_t count, void *to, DataType type);
void narrow(const int32_t *from, size_t count, void *to, DataType type);

size_t bytes_of(DataType type);
