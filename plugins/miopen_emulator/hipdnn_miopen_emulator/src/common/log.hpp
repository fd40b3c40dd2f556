// One JSON object a line for each event of interest, appended to the file that MIOPEN_EMULATOR_LOG
// names.
//
// The stand-in libraries share this header instead of a library of their own: each line is one
// write() on an O_APPEND descriptor, so lines of several libraries, threads and processes never
// mix. The variable is read for every line: tests point it at a new file within one process.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "settings.hpp"

class LogLine {
 public:
  explicit LogLine(const char *event) : path_(setting("MIOPEN_EMULATOR_LOG", nullptr)) {
    if (path_) text_ = "{\"event\": \"" + std::string(event) + "\"";
  }
  LogLine(const LogLine &) = delete;
  LogLine &operator=(const LogLine &) = delete;

  LogLine &text(const char *key, const std::string &value) { return raw(key, quoted(value)); }
  LogLine &flag(const char *key, bool value) { return raw(key, value ? "true" : "false"); }
  LogLine &whole(const char *key, long long value) { return raw(key, std::to_string(value)); }
  LogLine &triple(const char *key, const unsigned value[3]) {
    return raw(key, "[" + std::to_string(value[0]) + ", " + std::to_string(value[1]) + ", " +
                        std::to_string(value[2]) + "]");
  }
  LogLine &real(const char *key, double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.6g", value);
    return raw(key, digits);
  }

  ~LogLine() {
    if (!path_) return;
    text_ += "}\n";
    int file = open(path_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) return;
    if (write(file, text_.data(), text_.size()) != static_cast<ssize_t>(text_.size()))
      std::perror("MIOPEN_EMULATOR_LOG");
    close(file);
  }

 private:
  LogLine &raw(const char *key, const std::string &value) {
    if (path_) text_ += ", \"" + std::string(key) + "\": " + value;
    return *this;
  }
  static std::string quoted(const std::string &value) {
    std::string result = "\"";
    for (unsigned char c : value) {
      char escaped[8];
      if (c == '"' || c == '\\') result += '\\';
      if (c >= 0x20) {
        result += static_cast<char>(c);
      } else {
        std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
        result += escaped;
      }
    }
    return result + '"';
  }

  const char *path_;
  std::string text_;
};
