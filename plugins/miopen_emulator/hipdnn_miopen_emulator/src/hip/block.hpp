// Runs the work items of one block on one thread.
//
// A fiber runs items one after another, in a plain loop, until one waits at a barrier; then another
// fiber goes on with the next items. A kernel without barriers thus needs one fiber and no
// switches.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "fiber.hpp"
#include "grid.hpp"

class BlockRunner {
 public:
  static BlockRunner &of_this_thread();

  void run(const Launch &launch, std::array<unsigned, 3> block);
  void abandon();  // after a fault: forgets the items that wait
  bool stack_overflowed_at(const void *address) const;

  // What emulator_barrier() and the others in kernel/work_item.hpp come to.
  void wait_for_block();
  void exchange(const void *mine, void *theirs, unsigned bytes, unsigned lane);
  unsigned long ballot(bool predicate);
  unsigned lane() const;

 private:
  enum State { IDLE, READY, AT_BARRIER, AT_WAVEFRONT_OPERATION };

  struct ItemFiber {
    Fiber stack;
    BlockRunner *runner = nullptr;
    State state = IDLE;
    unsigned thread[3] = {};  // saved while the item waits
    unsigned index = 0;
  };

  // Two sets of slots take turns: who reads the last operation's may be overtaken by one that
  // writes the next one's, but not by two operations.
  struct Wavefront {
    struct Operation {
      unsigned long lanes = 0;  // that took part
      alignas(16) char slots[64][16];
    } operations[2];
    unsigned turn = 0;
  };

  static void fiber_body(void *fiber);
  bool take_item();
  void advance(ItemFiber &fiber);
  void wait(State state);
  void release_waiting();
  Wavefront::Operation &take_part(const void *mine, unsigned bytes);

  const Launch *launch_ = nullptr;
  unsigned wavefront_size_ = 64;
  unsigned extent_[3] = {};  // items of this block in each dimension
  unsigned started_ = 0, items_ = 0;
  ItemFiber *current_ = nullptr;
  unsigned index_ = 0;  // of the current item, in the whole block
  std::deque<ItemFiber> fibers_;
  size_t used_ = 0;  // fibers that hold an item
  std::vector<Wavefront> wavefronts_;
  std::vector<char> shared_;
};
