// Stand-in libamdhip64: modules. A code object is a shared object of the host; in accept mode it
// may also be a marker, which has every function and can't be run.
#include <elf.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "module.hpp"
#include "runtime.hpp"

namespace fs = std::filesystem;

namespace {

struct Module {
  void *library = nullptr;
  std::mutex lock;
  // By name, one for each: callers ask again before each launch, and keep pointers to the elements,
  // which a map leaves in place.
  std::map<std::string, KernelFunction> functions;
};

bool starts_with(const void *image, const char *text) {
  return !std::memcmp(image, text, std::strlen(text));
}

hipError_t refuse(const std::string &reason) {
  std::fprintf(stderr, "emulator: code object refused: %s\n", reason.c_str());
  LogLine("refused code object").text("reason", reason);
  return hipErrorInvalidImage;
}

// The length of an ELF image, whose section headers come last.
size_t image_bytes(const void *image) {
  const auto *header = static_cast<const Elf64_Ehdr *>(image);
  return header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
}

// dlopen wants a file, and takes one by a name it knows for the library it already has: so each
// image gets a name of its own, for as long as it takes.
void *load_library(const void *image) {
  static std::atomic<unsigned> count;
  fs::path file = fs::temp_directory_path() /
                  ("kernel-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".so");
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char *>(image), static_cast<std::streamsize>(image_bytes(image)));
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::error_code ignored;
  fs::remove(file, ignored);
  return library;
}

hipError_t load(hipModule_t *module, const void *image) {
  auto *made = new Module;
  if (kernels_are_executed()) {
    hipError_t status = hipSuccess;
    if (!starts_with(image, ELFMAG)) {
      status = refuse(
          "it is a marker, made with MIOPEN_EMULATOR_KERNELS=accept (or by a MIOpen that starts "
          "its own "
          "compiler, which can't be executed); MIOpen keeps code objects, so use another "
          "MIOPEN_CUSTOM_CACHE_DIR when kernels are to be executed");
    } else if (!(made->library = load_library(image))) {
      const char *why = dlerror();
      status =
          refuse(std::string(why ? why : "unknown reason") +
                 " (made by another build of the emulator? use another MIOPEN_CUSTOM_CACHE_DIR)");
    }
    if (status != hipSuccess) {
      delete made;
      return status;
    }
  } else if (!starts_with(image, "STANDIN ") && !starts_with(image, ELFMAG)) {
    delete made;
    return refuse("it was not made by this emulator");
  }
  object_add(MODULE, made, sizeof *made);
  *module = reinterpret_cast<hipModule_t>(made);
  return hipSuccess;
}

}  // namespace

extern "C" {

hipError_t hipModuleLoad(hipModule_t *module, const char *file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return hipErrorFileNotFound;
  std::string image((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  image.resize(std::max(image.size(), sizeof(Elf64_Ehdr)));
  return load(module, image.data());
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) { return load(module, image); }

hipError_t hipModuleUnload(hipModule_t module) {
  if (!object_remove(MODULE, module)) return hipErrorInvalidHandle;
  auto *unloaded = reinterpret_cast<Module *>(module);
  if (unloaded->library) dlclose(unloaded->library);
  delete unloaded;
  return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  if (!object_known(MODULE, module)) return hipErrorInvalidHandle;
  auto *owner = reinterpret_cast<Module *>(module);
  std::lock_guard<std::mutex> guard(owner->lock);
  auto found = owner->functions.find(name);
  if (found == owner->functions.end()) {
    const void *entry = nullptr;
    if (owner->library) {
      entry = dlsym(owner->library, (std::string("emulator_kernel_") + name).c_str());
      if (!entry) return hipErrorNotFound;
    }
    KernelFunction made{name, static_cast<const KernelEntry *>(entry)};
    found = owner->functions.emplace(name, made).first;
  }
  *function = reinterpret_cast<hipFunction_t>(&found->second);
  return hipSuccess;
}
}
