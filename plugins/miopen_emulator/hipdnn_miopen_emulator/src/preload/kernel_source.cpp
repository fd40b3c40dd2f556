// Preloaded on request only (MIOPEN_EMULATOR_ASM=1), for accept mode.
//
// Debian's "+dfsg" package leaves the assembly kernels (*.s) out of libMIOpen, while the solvers
// that use them stay applicable and then fail. Tests switch those solvers off by MIOpen's own
// MIOPEN_DEBUG_GCN_ASM_KERNELS=0. This preload is the alternative: it answers
// miopen::GetKernelSrc() for the missing names with a dummy text, so that assembly solvers (the
// only *dynamic* tunable ones in this build) can be found, searched and recorded too.
#include <dlfcn.h>

#include <filesystem>
#include <string_view>

namespace miopen {

std::string_view GetKernelSrc(const std::filesystem::path &name) {
  if (name.extension() == ".s") return "; removed from this package\n";
  static const auto real = reinterpret_cast<decltype(&GetKernelSrc)>(
      dlsym(dlopen("libMIOpen.so.1", RTLD_LAZY | RTLD_NOLOAD),
            "_ZN6miopen12GetKernelSrcERKNSt10filesystem7__cxx114pathE"));
  return real(name);
}

}  // namespace miopen
