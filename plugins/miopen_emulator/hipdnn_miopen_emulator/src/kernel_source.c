/* Preloaded on request only (MIOPEN_EMULATOR_ASM=1).
 *
 * Debian's "+dfsg" package leaves the assembly kernels (*.s) out of libMIOpen, while the solvers that
 * use them stay applicable and then fail. Tests switch those solvers off by MIOpen's own
 * MIOPEN_DEBUG_GCN_ASM_KERNELS=0. This preload is the alternative: it answers miopen::GetKernelSrc()
 * for the missing names with a dummy text, so that assembly solvers (the only *dynamic* tunable ones in
 * this build) can be found, searched and recorded too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef struct { size_t length; const char *text; } string_view; /* libstdc++: std::string_view */
typedef struct { const char *text; size_t length; } path;        /* libstdc++: head of std::filesystem::path */

#define GET_KERNEL_SRC _ZN6miopen12GetKernelSrcERKNSt10filesystem7__cxx114pathE
#define TEXT_OF(name) #name
#define NAME_OF(macro) TEXT_OF(macro)

string_view GET_KERNEL_SRC(const path *name) {
  static const char dummy[] = "; removed from this package\n";
  if (name->length > 2 && !memcmp(name->text + name->length - 2, ".s", 2))
    return (string_view){sizeof dummy - 1, dummy};
  void *library = dlopen("libMIOpen.so.1", RTLD_LAZY | RTLD_NOLOAD);
  string_view (*real)(const path *) = (string_view (*)(const path *))dlsym(library, NAME_OF(GET_KERNEL_SRC));
  return real(name);
}
