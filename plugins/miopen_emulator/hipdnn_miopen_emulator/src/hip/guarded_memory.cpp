#include "guarded_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "runtime.hpp"

namespace {

constexpr size_t PAGE = 4096, ALIGNMENT = 16;
constexpr size_t FREED_RANGES_KEPT = 4096;
constexpr unsigned char PATTERN = 0xa5;

struct Allocation {
  char *mapping;  // starts and ends with an inaccessible page
  size_t mapped;
  char *base;
  size_t bytes;

  char *first_page() const { return mapping + PAGE; }
  char *last_guard() const { return mapping + mapped - PAGE; }
};

std::mutex lock;
std::map<char *, Allocation> allocated;
std::deque<Allocation> freed;

// Writes to the log and to standard error that `allocation` was written around by `when`.
void report(const Allocation &allocation, const char *address, const std::string &when) {
  ptrdiff_t offset = address - allocation.base;
  std::fprintf(stderr, "emulator: %s wrote out of bounds, %s\n", when.c_str(),
               place_beside(offset, allocation.bytes).c_str());
  LogLine("fault")
      .text("kind", "out of bounds write")
      .text("kernel", when)
      .whole("allocation", static_cast<long long>(allocation.bytes))
      .whole("offset", offset);
}

bool intact(const Allocation &allocation, const std::string &when) {
  auto check = [&](char *from, char *to) {
    for (char *p = from; p < to; p++) {
      if (static_cast<unsigned char>(*p) == PATTERN) continue;
      report(allocation, p, when);
      std::memset(from, PATTERN, static_cast<size_t>(to - from));  // once is enough
      return false;
    }
    return true;
  };
  bool before = check(allocation.first_page(), allocation.base);
  return check(allocation.base + allocation.bytes, allocation.last_guard()) && before;
}

}  // namespace

void *guarded_allocate(size_t bytes) {
  size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t pages = (rounded + PAGE - 1) / PAGE * PAGE;
  void *mapping = mmap(nullptr, pages + 2 * PAGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  Allocation made{static_cast<char *>(mapping), pages + 2 * PAGE, nullptr, bytes};
  if (mprotect(made.first_page(), pages, PROT_READ | PROT_WRITE)) {
    munmap(mapping, made.mapped);
    return nullptr;
  }
  made.base = made.last_guard() - rounded;
  std::memset(made.first_page(), PATTERN, pages);
  std::memset(made.base, 0xff, bytes);
  std::lock_guard<std::mutex> guard(lock);
  allocated[made.base] = made;
  return made.base;
}

bool guarded_free(void *pointer) {
  std::lock_guard<std::mutex> guard(lock);
  auto found = allocated.find(static_cast<char *>(pointer));
  if (found == allocated.end()) return false;
  intact(found->second, "something before hipFree");
  // a new mapping in its place gives the memory back and keeps the addresses
  mmap(found->second.mapping, found->second.mapped, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed.push_back(found->second);
  allocated.erase(found);
  if (freed.size() > FREED_RANGES_KEPT) {
    munmap(freed.front().mapping, freed.front().mapped);
    freed.pop_front();
  }
  return true;
}

bool guarded_memory_intact(const std::string &when) {
  std::lock_guard<std::mutex> guard(lock);
  bool all = true;
  for (const auto &[base, allocation] : allocated) all &= intact(allocation, when);
  return all;
}

const char *guarded_freed_before(const void *address, size_t *bytes) {
  std::lock_guard<std::mutex> guard(lock);
  const char *wanted = static_cast<const char *>(address);
  for (auto it = freed.rbegin(); it != freed.rend(); ++it) {
    if (wanted < it->mapping || wanted >= it->mapping + it->mapped) continue;
    *bytes = it->bytes;
    return it->base;
  }
  return nullptr;
}

std::string place_beside(ptrdiff_t offset, size_t bytes) {
  std::string allocation = "an allocation of " + std::to_string(bytes) + " bytes";
  if (offset < 0) return std::to_string(-offset) + " bytes before the start of " + allocation;
  return "at byte " + std::to_string(offset) + " of " + allocation;
}
