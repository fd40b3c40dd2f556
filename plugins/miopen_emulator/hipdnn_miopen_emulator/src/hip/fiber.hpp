// A stack of its own for a work item that waits: the item is left in the middle and taken up later.
#pragma once

#include <cstddef>

class Fiber {
 public:
  static constexpr size_t STACK_BYTES = 256 << 10;

  Fiber() = default;
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;
  ~Fiber();

  // Makes the next enter() call body(argument), which must never return.
  void reset(void (*body)(void *), void *argument);

  void enter();  // from the scheduler: runs the fiber until it leaves
  void leave();  // from the fiber: back to the scheduler

  // Whether `address` is where the stack would grow to if it overflowed.
  bool guards(const void *address) const;

 private:
  char *mapping_ = nullptr;
  void *own_ = nullptr;  // stack pointers, while the other side runs
  void *scheduler_ = nullptr;
};
