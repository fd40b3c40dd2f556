#include "faults.hpp"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <memory>

#include "../kernel/work_item.hpp"
#include "block.hpp"
#include "guarded_memory.hpp"

namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous[NSIG];

// What a thread's kernel fell over. The handler only fills this in; the report is made after
// leaving it.
struct ThreadState {
  bool in_kernel = false;
  sigjmp_buf escape;
  int signal = 0;
  char *address = nullptr;
  bool write = false;
  bool address_known = false;
};
thread_local ThreadState state;

// What the handler runs on, as the fault may be an overflow of the fiber's stack. It goes with its
// thread: a program may launch from many, one after the other.
class HandlerStack {
 public:
  ~HandlerStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  void use() {
    constexpr size_t BYTES = 64 << 10;
    if (memory_) return;
    memory_.reset(new char[BYTES]);
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = BYTES;
    sigaltstack(&stack, nullptr);
  }

 private:
  std::unique_ptr<char[]> memory_;
};
thread_local HandlerStack handler_stack;  // apart from the state, which the handler itself reads

void hand_on(int signal, siginfo_t *info, void *context) {
  const struct sigaction &old = previous[signal];
  if (old.sa_flags & SA_SIGINFO) {
    old.sa_sigaction(signal, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal);
  } else {
    sigaction(signal, &old, nullptr);  // and the instruction faults again
  }
}

void handle(int signal, siginfo_t *info, void *context) {
  if (!state.in_kernel) {
    hand_on(signal, info, context);
    return;
  }
  constexpr long long PAGE_FAULT_WAS_WRITE = 2;
  state.signal = signal;
  state.address = static_cast<char *>(info->si_addr);
  state.address_known =
      info->si_code != SI_KERNEL;  // misaligned or impossible: the CPU doesn't say
  state.write =
      static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & PAGE_FAULT_WAS_WRITE;
  siglongjmp(state.escape, 1);
}

struct Place {
  const char *kind;
  const char *base = nullptr;  // of the allocation that the address is in or near; null if unknown
  size_t bytes = 0;
};

// Which allocation was meant. With guards an overrun ends within a page of its own allocation;
// without them the nearest one below is a guess that is only made if it is as near.
Place place_of(const char *address, bool write) {
  constexpr ptrdiff_t NEAR = 4096;
  size_t bytes = 0;
  if (const char *base = guarded_freed_before(address, &bytes))
    return {write ? "write after free" : "read after free", base, bytes};
  const char *kind = write ? "out of bounds write" : "out of bounds read";
  for (ObjectKind owner : {DEVICE_MEMORY, HOST_MEMORY}) {
    Extent below = object_before(owner, address);
    if (below.base && address - (below.base + below.bytes) < NEAR)
      return {kind, below.base, below.bytes};
    Extent above = object_before(owner, address + NEAR);
    if (above.base && above.base > address) return {kind, above.base, above.bytes};
  }
  return {kind};
}

void report(const Launch &launch) {
  const unsigned *block = emulator_item_1.block, *thread = emulator_item_1.thread;
  bool memory = state.signal == SIGSEGV || state.signal == SIGBUS;
  Place place{memory ? "misaligned access" : state.signal == SIGFPE ? "division by zero" : "trap"};
  memory &= state.address_known;
  bool overflow = memory && BlockRunner::of_this_thread().stack_overflowed_at(state.address);
  if (overflow) place.kind = "stack overflow";
  if (memory && !overflow) place = place_of(state.address, state.write);
  LogLine line("fault");
  line.text("kind", place.kind)
      .text("kernel", launch.kernel)
      .triple("block", block)
      .triple("thread", thread);
  std::fprintf(stderr, "emulator: kernel %s: %s by thread %u,%u,%u of block %u,%u,%u",
               launch.kernel, place.kind, thread[0], thread[1], thread[2], block[0], block[1],
               block[2]);
  if (memory) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", static_cast<void *>(state.address));
    line.text("address", text);
    std::fprintf(stderr, ", address %s", text);
  }
  if (place.base) {
    ptrdiff_t offset = state.address - place.base;
    line.whole("allocation", static_cast<long long>(place.bytes)).whole("offset", offset);
    std::fprintf(stderr, ", %s", place_beside(offset, place.bytes).c_str());
  }
  std::fputc('\n', stderr);
}

}  // namespace

void catch_faults() {
  struct sigaction now{};
  sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle) return;
  struct sigaction ours{};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // left by a jump, it must not stay blocked
  for (int signal : SIGNALS) {
    struct sigaction old{};
    sigaction(signal, &ours, &old);
    if (!(old.sa_flags & SA_SIGINFO && old.sa_sigaction == handle)) previous[signal] = old;
  }
}

hipError_t guard_against_faults(const Launch &launch, const std::function<void()> &work) {
  handler_stack.use();
  if (sigsetjmp(state.escape, 0)) {
    state.in_kernel = false;
    report(launch);
    return state.signal == SIGSEGV || state.signal == SIGBUS ? hipErrorIllegalAddress
                                                             : hipErrorLaunchFailure;
  }
  state.in_kernel = true;
  work();
  state.in_kernel = false;
  return hipSuccess;
}
