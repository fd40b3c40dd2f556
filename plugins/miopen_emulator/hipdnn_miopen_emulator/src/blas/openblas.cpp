#include "openblas.hpp"

#include <cstring>

#include "../common/settings.hpp"

namespace {

enum { COLUMN_MAJOR = 102, AS_IS = 111, TRANSPOSED = 112 };  // CBLAS_LAYOUT, CBLAS_TRANSPOSE

template <class T> using GemmFunction = void(int layout, int transpose_a, int transpose_b, int m,
                                             int n, int k, T alpha, const T *a, int lda, const T *b,
                                             int ldb, T beta, T *c, int ldc);

struct OpenBlas {
  GemmFunction<float> *sgemm = nullptr;
  GemmFunction<double> *dgemm = nullptr;

  // The tree's own, else whatever the loader finds under the name. It lives in a namespace of
  // symbols of its own: numpy brings another OpenBLAS into the process.
  OpenBlas() {
    void *library =
        dlopen((tree_folder() + "/lib/libopenblas.so.0").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    sgemm = reinterpret_cast<GemmFunction<float> *>(dlsym(library, "cblas_sgemm"));
    dgemm = reinterpret_cast<GemmFunction<double> *>(dlsym(library, "cblas_dgemm"));
    auto *set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    const char *threads = setting("MIOPEN_EMULATOR_THREADS", nullptr);
    if (set_threads && threads) set_threads(std::atoi(threads));
  }
};

const OpenBlas &openblas() {
  static const OpenBlas found;
  return found;
}

int operation(bool transpose) { return transpose ? TRANSPOSED : AS_IS; }

template <class T>
bool multiply(GemmFunction<T> *function, const Gemm &g, const T *a, const T *b, T *product) {
  if (!function) return false;
  function(COLUMN_MAJOR, operation(g.transpose_a), operation(g.transpose_b), g.m, g.n, g.k, 1, a,
           g.transpose_a ? g.k : g.m, b, g.transpose_b ? g.n : g.k, 0, product, g.m);
  return true;
}

}  // namespace

bool openblas_found() { return openblas().sgemm; }

bool openblas_gemm(const Gemm &g) {
  if (!openblas().sgemm) return false;
  const float alpha = *static_cast<const float *>(g.alpha),
              beta = *static_cast<const float *>(g.beta);
  auto *d = static_cast<float *>(const_cast<void *>(g.d.data));
  if (beta != 0 && g.c.data != d) {
    for (int column = 0; column < g.n; column++)
      std::memcpy(d + static_cast<size_t>(column) * g.d.leading,
                  static_cast<const float *>(g.c.data) + static_cast<size_t>(column) * g.c.leading,
                  sizeof(float) * static_cast<size_t>(g.m));
  }
  openblas().sgemm(COLUMN_MAJOR, operation(g.transpose_a), operation(g.transpose_b), g.m, g.n, g.k,
                   alpha, static_cast<const float *>(g.a.data), g.a.leading,
                   static_cast<const float *>(g.b.data), g.b.leading, beta, d, g.d.leading);
  return true;
}

bool openblas_multiply(const Gemm &g, const float *a, const float *b, float *product) {
  return multiply(openblas().sgemm, g, a, b, product);
}
bool openblas_multiply(const Gemm &g, const double *a, const double *b, double *product) {
  return multiply(openblas().dgemm, g, a, b, product);
}
