/* Stand-in librocblas: the entry points that libMIOpen imports. Products are not computed. */
#include "log.h"

typedef struct { int atomics_mode; } rocblas;

int rocblas_create_handle(rocblas **created) {
  *created = calloc(1, sizeof **created);
  if (!*created) return 5; /* rocblas_status_memory_error */
  (*created)->atomics_mode = 1;
  return 0;
}

int rocblas_destroy_handle(rocblas *handle) { free(handle); return 0; }
int rocblas_set_stream(rocblas *handle, void *stream) { (void)handle, (void)stream; return 0; }
int rocblas_get_atomics_mode(rocblas *handle, int *mode) { *mode = handle->atomics_mode; return 0; }
int rocblas_set_atomics_mode(rocblas *handle, int mode) { handle->atomics_mode = mode; return 0; }

/* The arguments are not looked at; in the x86-64 calling convention a callee may ignore them. */
int rocblas_gemm_ex(void) { log_line("gemm"); return 0; }
int rocblas_gemm_strided_batched_ex(void) { log_line("gemm"); return 0; }
int rocblas_sgemv(void) { log_line("gemv"); return 0; }

/* imported by 3.4.0 only */
int rocblas_gemm_ex3(void) { log_line("gemm"); return 0; }
int rocblas_gemm_strided_batched_ex3(void) { log_line("gemm"); return 0; }
