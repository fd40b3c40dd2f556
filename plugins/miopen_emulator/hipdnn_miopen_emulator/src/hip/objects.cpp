// Stand-in libamdhip64: the registry of live objects, and the clock.
#include <chrono>
#include <map>
#include <mutex>

#include "runtime.hpp"

namespace {

struct Registry {
  std::map<char *, size_t> objects;
  size_t bytes = 0;
};

std::mutex lock;
Registry live[OBJECT_KINDS];
double virtual_ms;

}  // namespace

void object_add(ObjectKind kind, void *object, size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  live[kind].objects[static_cast<char *>(object)] = bytes;
  live[kind].bytes += bytes;
}

bool object_remove(ObjectKind kind, void *object) {
  std::lock_guard<std::mutex> guard(lock);
  auto found = live[kind].objects.find(static_cast<char *>(object));
  if (found == live[kind].objects.end()) return false;
  live[kind].bytes -= found->second;
  live[kind].objects.erase(found);
  return true;
}

bool object_known(ObjectKind kind, const void *object) {
  std::lock_guard<std::mutex> guard(lock);
  return live[kind].objects.count(static_cast<char *>(const_cast<void *>(object)));
}

Extent object_before(ObjectKind kind, const void *address) {
  std::lock_guard<std::mutex> guard(lock);
  auto next = live[kind].objects.upper_bound(static_cast<char *>(const_cast<void *>(address)));
  if (next == live[kind].objects.begin()) return {nullptr, 0};
  --next;
  return {next->first, next->second};
}

Extent object_covering(ObjectKind kind, const void *address) {
  Extent found = object_before(kind, address);
  return found.base && static_cast<const char *>(address) < found.base + found.bytes ? found
                                                                                     : Extent{};
}

size_t object_bytes_live(ObjectKind kind) {
  std::lock_guard<std::mutex> guard(lock);
  return live[kind].bytes;
}

double clock_now() {
  if (!clock_is_virtual()) {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
  }
  std::lock_guard<std::mutex> guard(lock);
  return virtual_ms;
}

void clock_advance(double milliseconds) {
  std::lock_guard<std::mutex> guard(lock);
  virtual_ms += milliseconds;
}

// Not part of HIP: how many objects of a kind (ObjectKind) exist now. For leak checks.
extern "C" size_t standinLiveObjects(int kind) {
  if (kind < 0 || kind >= OBJECT_KINDS) return 0;
  std::lock_guard<std::mutex> guard(lock);
  return live[kind].objects.size();
}
