// Stand-in librocblas: the entry points that libMIOpen imports. In accept mode nothing is computed.
#include <chrono>

#include "../common/log.hpp"
#include "conversions.hpp"
#include "gemm.hpp"

namespace {

enum Status {
  SUCCESS = 0,
  INVALID_HANDLE = 1,
  NOT_IMPLEMENTED = 2,
  INVALID_POINTER = 3,
  INVALID_SIZE = 4
};
enum Operation { NONE = 111, TRANSPOSE = 112, CONJUGATE_TRANSPOSE = 113 };

struct Handle {
  int atomics_mode = 1;
};

// The same product for each of `count` sets of matrices, which lie the given numbers of elements
// apart.
struct Batch {
  int count = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
};

void move(Matrix &matrix, int64_t elements) {
  matrix.data = static_cast<const char *>(matrix.data) +
                elements * static_cast<int64_t>(bytes_of(matrix.type));
}

int run(const char *name, Gemm gemm, const Batch &batch) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || batch.count < 0) return INVALID_SIZE;
  if (!gemm.alpha || !gemm.beta || !gemm.a.data || !gemm.b.data || !gemm.d.data)
    return INVALID_POINTER;
  bool executed = kernels_are_executed();
  if (executed && !gemm_supported(gemm)) return NOT_IMPLEMENTED;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; executed && i < batch.count; i++) {
    compute_gemm(gemm);
    move(gemm.a, batch.stride_a);
    move(gemm.b, batch.stride_b);
    move(gemm.c, batch.stride_c);
    move(gemm.d, batch.stride_d);
  }
  std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  const unsigned size[3] = {static_cast<unsigned>(gemm.m), static_cast<unsigned>(gemm.n),
                            static_cast<unsigned>(gemm.k)};
  LogLine line("gemm");
  line.text("name", name)
      .triple("mnk", size)
      .whole("batch", batch.count)
      .whole("type", gemm.a.type);
  line.flag("executed", executed).real("ms", taken.count());
  if (executed) line.text("backend", gemm_backend());
  return SUCCESS;
}

DataType type(int value) { return static_cast<DataType>(value); }

}  // namespace

extern "C" {

int rocblas_create_handle(Handle **created) {
  *created = new Handle;
  return SUCCESS;
}

int rocblas_destroy_handle(Handle *handle) {
  delete handle;
  return SUCCESS;
}

int rocblas_set_stream(Handle *, void *) { return SUCCESS; }

int rocblas_get_atomics_mode(Handle *handle, int *mode) {
  *mode = handle->atomics_mode;
  return SUCCESS;
}

int rocblas_set_atomics_mode(Handle *handle, int mode) {
  handle->atomics_mode = mode;
  return SUCCESS;
}

int rocblas_gemm_ex(Handle *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                    const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                    const void *beta, const void *c, int type_c, int ldc, void *d, int type_d,
                    int ldd, int compute, int, int32_t, uint32_t) {
  if (!handle) return INVALID_HANDLE;
  const Matrix matrix_a{a, type(type_a), lda}, matrix_b{b, type(type_b), ldb};
  const Matrix matrix_c{c, type(type_c), ldc}, matrix_d{d, type(type_d), ldd};
  const Gemm gemm{op_a != NONE, op_b != NONE, m,    n,        k,        alpha,
                  matrix_a,     matrix_b,     beta, matrix_c, matrix_d, type(compute)};
  return run("gemm_ex", gemm, {});
}

int rocblas_gemm_strided_batched_ex(Handle *handle, int op_a, int op_b, int m, int n, int k,
                                    const void *alpha, const void *a, int type_a, int lda,
                                    int64_t stride_a, const void *b, int type_b, int ldb,
                                    int64_t stride_b, const void *beta, const void *c, int type_c,
                                    int ldc, int64_t stride_c, void *d, int type_d, int ldd,
                                    int64_t stride_d, int count, int compute, int, int32_t,
                                    uint32_t) {
  if (!handle) return INVALID_HANDLE;
  const Matrix matrix_a{a, type(type_a), lda}, matrix_b{b, type(type_b), ldb};
  const Matrix matrix_c{c, type(type_c), ldc}, matrix_d{d, type(type_d), ldd};
  const Gemm gemm{op_a != NONE, op_b != NONE, m,    n,        k,        alpha,
                  matrix_a,     matrix_b,     beta, matrix_c, matrix_d, type(compute)};
  return run("gemm_strided_batched_ex", gemm, {count, stride_a, stride_b, stride_c, stride_d});
}

// y = alpha * op(a) * x + beta * y, where a is m x n: the product of op(a) and a matrix of one
// column, if x and y have no gaps.
int rocblas_sgemv(Handle *handle, int op, int m, int n, const float *alpha, const float *a, int lda,
                  const float *x, int step_x, const float *beta, float *y, int step_y) {
  if (!handle) return INVALID_HANDLE;
  if (step_x != 1 || step_y != 1) return kernels_are_executed() ? NOT_IMPLEMENTED : SUCCESS;
  const bool transposed = op != NONE;
  const int rows = transposed ? n : m, inner = transposed ? m : n;
  const Matrix matrix{a, F32, lda}, vector{x, F32, inner}, result{y, F32, rows};
  return run("sgemv",
             {transposed, false, rows, 1, inner, alpha, matrix, vector, beta, result, result, F32},
             {});
}

// Imported by MIOpen 3.4.0 only, which runs in accept mode only.
int rocblas_gemm_ex3() {
  LogLine("gemm").text("name", "gemm_ex3").flag("executed", false);
  return kernels_are_executed() ? NOT_IMPLEMENTED : SUCCESS;
}
int rocblas_gemm_strided_batched_ex3() {
  LogLine("gemm").text("name", "gemm_strided_batched_ex3").flag("executed", false);
  return kernels_are_executed() ? NOT_IMPLEMENTED : SUCCESS;
}
}
