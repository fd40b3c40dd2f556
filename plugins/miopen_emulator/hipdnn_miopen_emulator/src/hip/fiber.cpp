#include "fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace {

constexpr size_t GUARD_BYTES = 4096;

extern "C" void emulator_switch_stack(void **from, void *to) __attribute__((visibility("hidden")));
extern "C" void emulator_start_fiber() __attribute__((visibility("hidden")));

// Saves what the calling convention lets a callee change at its peril, and does the same in reverse
// on the other stack. A new fiber's stack holds its function and argument in place of two such
// registers.
asm(R"(
.text
.hidden emulator_switch_stack
.globl emulator_switch_stack
emulator_switch_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
.hidden emulator_start_fiber
.globl emulator_start_fiber
emulator_start_fiber:
    mov %r14, %rdi
    call *%r15
    ud2
)");

}  // namespace

Fiber::~Fiber() {
  if (mapping_) munmap(mapping_, STACK_BYTES + GUARD_BYTES);
}

void Fiber::reset(void (*body)(void *), void *argument) {
  if (!mapping_) {
    void *made = mmap(nullptr, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<char *>(made);
    mprotect(mapping_, GUARD_BYTES, PROT_NONE);  // finds an overflow; works without it too
  }
  void **top = reinterpret_cast<void **>(mapping_ + GUARD_BYTES + STACK_BYTES);
  *--top = nullptr;  // two, so that the stack is aligned where emulator_start_fiber calls
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(emulator_start_fiber);      // what the switch returns to
  for (int unused = 0; unused < 4; unused++) *--top = nullptr;  // rbp, rbx, r12, r13
  *--top = argument;                                            // r14
  *--top = reinterpret_cast<void *>(body);                      // r15
  own_ = top;
}

bool Fiber::guards(const void *address) const {
  const char *at = static_cast<const char *>(address);
  return mapping_ && at >= mapping_ && at < mapping_ + GUARD_BYTES;
}

void Fiber::enter() { emulator_switch_stack(&scheduler_, own_); }
void Fiber::leave() { emulator_switch_stack(&own_, scheduler_); }
