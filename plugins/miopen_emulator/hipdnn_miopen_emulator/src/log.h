/* One line per event of interest, appended to the file that MIOPEN_EMULATOR_LOG names.
 *
 * The stand-in libraries share this header instead of a library of their own: each line is one
 * write() on an O_APPEND descriptor, so lines of several libraries, threads and processes never mix.
 * The variable is read on every call: tests point it at a new file within one process.
 */
#ifndef STANDIN_LOG_H
#define STANDIN_LOG_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2))) static inline void log_line(const char *format, ...) {
  const char *path = getenv("MIOPEN_EMULATOR_LOG");
  if (!path || !*path) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (write(file, line, (size_t)length) != length) perror("stand-in log");
  close(file);
}

#endif
