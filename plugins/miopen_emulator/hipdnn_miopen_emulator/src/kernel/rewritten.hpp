// The macros that the compile driver puts into a preprocessed HIP program, where those of hip.hpp
// are gone.
#pragma once

// The entry of a kernel, see entry.hpp.
#define EMULATOR_KERNEL(kernel)                                                              \
  namespace emulator::of_##kernel {                                                          \
    using S = decltype(emulator::signature_of(&::kernel));                                   \
    static constexpr S::Layout layout = S::layout();                                         \
    static void call(const char *arguments) {                                                \
      S::call(&::kernel, arguments, emulator::IndicesUpTo<S::count>{});                      \
    }                                                                                        \
    extern "C" EMULATOR_EXPORT const KernelEntry emulator_kernel_##kernel = {call, S::count, \
                                                                             layout.at};     \
  }
#define EMULATOR_EXPORT __attribute__((visibility("default")))

// Instructions written out for the GPU. MIOpen's switches for them are turned off; where one is
// left, it must not be reached. The trap ends the kernel with a fault.
#define EMULATOR_GPU_ASSEMBLY(...) __builtin_trap()
