// Preloaded in trees whose libMIOpen was built without hiprtc and comgr (3.4.0): such a library
// starts "cd FOLDER; /usr/bin/clang++-NN ... -o OBJECT" by popen(). This popen() starts nothing: it
// writes the object as a marker that hipModuleLoad accepts, and succeeds. Such a tree is for accept
// mode.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "../common/log.hpp"

extern "C" FILE *popen(const char *command, const char *mode) {
  static const auto real = reinterpret_cast<decltype(&popen)>(dlsym(RTLD_NEXT, "popen"));
  const char *output = nullptr;
  if (std::strstr(command, "/clang"))
    for (const char *p = command; (p = std::strstr(p, " -o ")); p += 4) output = p + 4;
  if (!output) return real(command, mode);
  std::string path(output, std::strcspn(output, " '\""));
  std::string name = path.substr(path.rfind('/') + 1);
  LogLine("compile")
      .text("name", name)
      .text("language", "offline")
      .flag("ok", true)
      .flag("cached", false);
  FILE *object = std::fopen(path.c_str(), "w");
  if (!object) return real("false", mode);
  std::fprintf(object, "STANDIN %s", name.c_str());
  std::fclose(object);
  return real("true", mode);
}
