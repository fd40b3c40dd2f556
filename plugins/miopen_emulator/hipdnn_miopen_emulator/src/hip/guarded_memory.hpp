// Memory with guards (MIOPEN_EMULATOR_GUARD=1): finds accesses out of bounds and after free.
//
// An allocation ends, but for at most 15 bytes, where an inaccessible page begins, and another lies
// before its first page. Bytes between allocation and guards hold a pattern that is looked at after
// each launch. A freed allocation stays inaccessible until many others have been freed. Fresh
// memory holds NaNs, whatever floating type is read.
#pragma once

#include <cstddef>
#include <string>

void *guarded_allocate(size_t bytes);  // null if there is no memory
bool guarded_free(void *pointer);      // false if it was allocated without guards

// Whether all patterns are as written. Reports to log and standard error where not; `when` names
// the kernel or call before which they still were. Always true when memory is not guarded.
bool guarded_memory_intact(const std::string &when);

// A freed allocation that covered `address`: its base, or null.
const char *guarded_freed_before(const void *address, size_t *bytes);

// Where a byte lies that is `offset` bytes from the base of an allocation, for messages.
std::string place_beside(ptrdiff_t offset, size_t bytes);
