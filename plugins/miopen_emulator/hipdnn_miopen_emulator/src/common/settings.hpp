// What the stand-ins are told by environment variables, and where they are installed.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

inline const char *setting(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// One of two words. A third is a mistake that would silently change what a whole run means.
inline bool is_first_word(const char *name, const char *first, const char *second) {
  const char *value = setting(name, first);
  if (!std::strcmp(value, first)) return true;
  if (!std::strcmp(value, second)) return false;
  std::fprintf(stderr, "error: environment variable %s is '%s'; allowed are '%s' and '%s'\n", name,
               value, first, second);
  std::_Exit(2);
}

// MIOPEN_EMULATOR_KERNELS: "execute" compiles kernels for the host and runs them, "accept" makes
// markers of them and logs their launches. Read on every call: tests switch within one process.
inline bool kernels_are_executed() {
  return is_first_word("MIOPEN_EMULATOR_KERNELS", "execute", "accept");
}

// MIOPEN_EMULATOR_CLOCK: whether events carry invented times, which repeat, or real ones.
inline bool clock_is_virtual() { return is_first_word("MIOPEN_EMULATOR_CLOCK", "virtual", "real"); }

inline bool memory_is_guarded() { return !is_first_word("MIOPEN_EMULATOR_GUARD", "0", "1"); }

// The folder that holds lib/, bin/ and toolchain/: two levels above the library this is compiled
// into.
inline const std::string &tree_folder() {
  static const std::string folder = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void *>(&tree_folder), &info);
    std::string path = info.dli_fname ? info.dli_fname : "";
    for (int level = 0; level < 2; level++) {
      size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
    return path.empty() ? std::string(".") : path;
  }();
  return folder;
}

// The lanes of a wavefront on the device that is imitated.
inline const char *device_architecture() {
  return setting("MIOPEN_EMULATOR_ARCH", "gfx90a:sramecc+:xnack-");
}
inline unsigned wavefront_size() {
  return std::strncmp(device_architecture(), "gfx1", 4) ? 64 : 32;
}
