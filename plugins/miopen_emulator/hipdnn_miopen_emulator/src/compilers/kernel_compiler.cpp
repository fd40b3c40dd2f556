// Compiled kernels are kept in <cache>/kernels/<fingerprint>/, one file for each source with its
// headers and options. The fingerprint stands for all else that decides what comes out: compiler,
// machine options, the kernels' runtime. The compile driver (bin/compile-kernel of the tree)
// computes it when it prepares a tree for its first compilation; looking a kernel up starts no
// process.
#include "kernel_compiler.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "../common/log.hpp"
#include "../common/settings.hpp"
#include "../common/sha256.hpp"

extern char **environ;
namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const fs::path &path, const std::string &text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) throw std::runtime_error("can't write " + path.string());
}

// trees/ and kernels/ are neighbours in the cache folder.
fs::path kernels_folder() {
  return fs::path(tree_folder()).parent_path().parent_path() / "kernels";
}

// In the cache folder, so that what a killed process leaves there goes with the compiled kernels.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    fs::create_directories(kernels_folder());
    std::string pattern = (kernels_folder() / "compiling-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("can't make the folder " + pattern);
    path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// The instruction set that kernels are compiled for. It is a level, not "native", so that machines
// that share a cache mostly share its kernels; the higher one converts halves in hardware.
std::string machine_level() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                 __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2")
             ? "x86-64-v3"
             : "x86-64-v2";
}

// Runs the compile driver and waits. Its messages go to the file "log" in `folder`. It has a process
// group of its own: Ctrl-C is for the program, and a search would take a compilation that it ended for
// a kernel that does not compile.
bool run_driver(const fs::path &folder) {
  std::string driver = tree_folder() + "/bin/compile-kernel", argument = folder.string();
  std::string log = argument + "/log";
  char *arguments[] = {driver.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  int failed = posix_spawn(&child, driver.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) throw std::runtime_error("can't start " + driver + ": " + std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// What the driver wrote when it prepared this tree; "" if that is still to be done.
std::string fingerprint() {
  static std::mutex lock;
  static std::string known;
  std::lock_guard<std::mutex> guard(lock);
  if (known.empty())
    known = read_file(tree_folder() + "/kernel-runtime/" + machine_level() + "/fingerprint");
  return known;
}

std::string digest(const KernelSource &source) {
  Sha256 sum;
  for (const std::string &part : {source.language, source.name, source.text}) sum.part(part);
  for (const auto &[name, text] : source.headers) sum.part(name), sum.part(text);
  for (const std::string &option : source.options) sum.part(option);
  sum.part(std::to_string(wavefront_size()));
  return sum.hex_digest();
}

fs::path kept_file(const KernelSource &source) {
  return kernels_folder() / fingerprint() / (digest(source) + ".so");
}

void write_request(const KernelSource &source, const fs::path &folder) {
  write_file(folder / "tree", tree_folder());
  write_file(folder / "language", source.language);
  write_file(folder / "name", source.name);
  write_file(folder / "machine", machine_level());
  write_file(folder / "wavefront", std::to_string(wavefront_size()));
  write_file(folder / (source.language == "hip" ? "source.hip" : "source.cl"), source.text);
  std::string options;
  for (const std::string &option : source.options) options += option + "\n";
  write_file(folder / "options", options);
  for (const auto &[name, text] : source.headers) write_file(folder / "include" / name, text);
}

// A rename, so that other processes see a whole file or none.
void keep(const std::string &code, const fs::path &file) {
  fs::path partial = file;
  partial +=
      "." + std::to_string(getpid()) + "." + std::to_string(reinterpret_cast<uintptr_t>(&code));
  write_file(partial, code);
  fs::rename(partial, file);
}

// For people who look into what MIOpen compiles. That it fails must not fail the kernel.
void keep_sources(const KernelSource &source, const fs::path &request) {
  const char *folder = setting("MIOPEN_EMULATOR_KEEP_SOURCES", nullptr);
  if (!folder) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error)
    fs::copy(request, fs::path(folder) / (source.name + "-" + digest(source).substr(0, 12)),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
  if (error)
    std::fprintf(stderr, "MIOPEN_EMULATOR_KEEP_SOURCES: %s can't be kept in %s: %s\n",
                 source.name.c_str(), folder, error.message().c_str());
}

CompiledKernel compile_for_the_host(const KernelSource &source, bool &cached) {
  if (!fingerprint().empty()) {
    std::string code = read_file(kept_file(source));
    cached = !code.empty();
    if (cached) return {true, code, ""};
  }
  TemporaryFolder folder;
  write_request(source, folder.path);
  bool ok = run_driver(folder.path);
  std::string code = read_file(folder.path / "kernel.so"), log = read_file(folder.path / "log");
  keep_sources(source, folder.path);
  if (!ok || code.empty())
    return {false, "", log.empty() ? "error: bin/compile-kernel failed without a message\n" : log};
  keep(code, kept_file(source));
  return {true, code, log};
}

}  // namespace

CompiledKernel compile_kernel(const KernelSource &source) {
  auto start = std::chrono::steady_clock::now();
  CompiledKernel result{true, "", ""};
  bool cached = false;
  const char *failing = setting("MIOPEN_EMULATOR_FAIL_COMPILE", nullptr);
  if (failing && source.name.find(failing) != std::string::npos) {
    result = {false, "", "error: MIOPEN_EMULATOR_FAIL_COMPILE names this program\n"};
  } else if (!kernels_are_executed()) {
    result.code = "STANDIN " + source.name + '\0';
  } else if (source.language == "assembly") {
    result = {false, "", "error: GPU assembly can't be run on the host\n"};
  } else {
    try {
      result = compile_for_the_host(source, cached);
    } catch (const std::exception &error) {
      result = {false, "", std::string("error: ") + error.what() + "\n"};
    }
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  LogLine line("compile");
  line.text("name", source.name).text("language", source.language).flag("ok", result.ok);
  line.flag("cached", cached).real("seconds", seconds.count());
  if (!result.ok) line.text("message", result.log);
  return result;
}
