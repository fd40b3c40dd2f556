#include "block.hpp"

#include <algorithm>
#include <cstring>

#include "../kernel/work_item.hpp"

thread_local WorkItem emulator_item_1;

BlockRunner &BlockRunner::of_this_thread() {
  static thread_local BlockRunner runner;
  return runner;
}

void BlockRunner::run(const Launch &launch, std::array<unsigned, 3> block) {
  launch_ = &launch;
  wavefront_size_ = launch.wavefront_size;
  items_ = 1;
  for (int d = 0; d < 3; d++) {
    const Shape &shape = launch.shape;
    emulator_item_1.block[d] = block[d];
    emulator_item_1.block_size[d] = shape.block[d];
    emulator_item_1.blocks[d] = shape.blocks(d);
    emulator_item_1.items[d] = shape.items[d];
    extent_[d] = std::min(shape.block[d], shape.items[d] - block[d] * shape.block[d]);
    items_ *= extent_[d];
  }
  shared_.resize(std::max(shared_.size(), launch.shared + 64));
  emulator_item_1.dynamic_shared =
      shared_.data() + (-reinterpret_cast<uintptr_t>(shared_.data()) & 63);

  started_ = 0;
  used_ = 0;
  while (started_ < items_) {
    if (used_ == fibers_.size()) {
      fibers_.emplace_back().runner = this;
      fibers_.back().stack.reset(fiber_body, &fibers_.back());
    }
    ItemFiber &fiber = fibers_[used_++];
    fiber.state = READY;
    advance(fiber);
  }
  for (;;) {
    bool waiting = false;
    for (size_t i = 0; i < used_; i++) waiting |= fibers_[i].state != IDLE;
    if (!waiting) return;
    release_waiting();
    for (size_t i = 0; i < used_; i++)
      if (fibers_[i].state == READY) advance(fibers_[i]);
  }
}

void BlockRunner::abandon() {
  fibers_.clear();
  wavefronts_.clear();
  current_ = nullptr;
}

bool BlockRunner::stack_overflowed_at(const void *address) const {
  return current_ && current_->stack.guards(address);
}

void BlockRunner::fiber_body(void *argument) {
  auto &fiber = *static_cast<ItemFiber *>(argument);
  BlockRunner &runner = *fiber.runner;
  for (;;) {
    while (runner.take_item()) runner.launch_->call(runner.launch_->arguments);
    fiber.state = IDLE;
    fiber.stack.leave();
  }
}

bool BlockRunner::take_item() {
  if (started_ == items_) return false;
  unsigned item = started_++;
  unsigned *thread = emulator_item_1.thread;
  thread[0] = item % extent_[0];
  thread[1] = item / extent_[0] % extent_[1];
  thread[2] = item / extent_[0] / extent_[1];
  const unsigned *block = launch_->shape.block;
  index_ = thread[0] + block[0] * (thread[1] + block[1] * thread[2]);
  return true;
}

void BlockRunner::advance(ItemFiber &fiber) {
  current_ = &fiber;
  fiber.stack.enter();
}

void BlockRunner::wait(State state) {
  ItemFiber &fiber = *current_;
  std::copy(emulator_item_1.thread, emulator_item_1.thread + 3, fiber.thread);
  fiber.index = index_;
  fiber.state = state;
  fiber.stack.leave();
  std::copy(fiber.thread, fiber.thread + 3, emulator_item_1.thread);
  index_ = fiber.index;
}

// Called when every item has ended or waits. Lanes that wait for their wavefront go first: those of
// their wavefront that wait for the block don't take part. If there are none, the barrier is
// complete.
void BlockRunner::release_waiting() {
  bool released = false;
  for (size_t i = 0; i < used_; i++) {
    ItemFiber &fiber = fibers_[i];
    if (fiber.state != AT_WAVEFRONT_OPERATION) continue;
    fiber.state = READY;
    released = true;
  }
  for (Wavefront &wavefront : wavefronts_) {
    if (!wavefront.operations[wavefront.turn].lanes) continue;
    wavefront.turn ^= 1;
    wavefront.operations[wavefront.turn].lanes = 0;
  }
  for (size_t i = 0; i < used_ && !released; i++)
    if (fibers_[i].state == AT_BARRIER) fibers_[i].state = READY;
}

void BlockRunner::wait_for_block() { wait(AT_BARRIER); }

unsigned BlockRunner::lane() const { return index_ % wavefront_size_; }

BlockRunner::Wavefront::Operation &BlockRunner::take_part(const void *mine, unsigned bytes) {
  size_t number = index_ / wavefront_size_;
  if (wavefronts_.size() <= number) wavefronts_.resize(1024 / wavefront_size_);
  Wavefront &wavefront = wavefronts_[number];
  Wavefront::Operation &operation = wavefront.operations[wavefront.turn];
  std::memcpy(operation.slots[lane()], mine, bytes);
  operation.lanes |= 1ul << lane();
  wait(AT_WAVEFRONT_OPERATION);
  return operation;
}

void BlockRunner::exchange(const void *mine, void *theirs, unsigned bytes, unsigned lane) {
  const Wavefront::Operation &operation = take_part(mine, bytes);
  bool there = lane < wavefront_size_ && operation.lanes >> lane & 1;
  std::memcpy(theirs, there ? operation.slots[lane] : mine, bytes);
}

unsigned long BlockRunner::ballot(bool predicate) {
  const Wavefront::Operation &operation = take_part(&predicate, sizeof predicate);
  unsigned long result = 0;
  for (unsigned lane = 0; lane < wavefront_size_; lane++)
    if (operation.lanes >> lane & 1 && operation.slots[lane][0]) result |= 1ul << lane;
  return result;
}

void emulator_barrier() { BlockRunner::of_this_thread().wait_for_block(); }
void emulator_exchange(const void *mine, void *theirs, unsigned bytes, unsigned lane) {
  BlockRunner::of_this_thread().exchange(mine, theirs, bytes, lane);
}
unsigned long emulator_ballot(bool predicate) {
  return BlockRunner::of_this_thread().ballot(predicate);
}
unsigned emulator_lane() { return BlockRunner::of_this_thread().lane(); }
