// OpenCL C's functions that ask the runtime. OpenCL C can't name a thread_local variable, but
// mangles function names as C++ does.
#include "work_item.hpp"

typedef unsigned int uint;
typedef unsigned long ulong;

static inline ulong at(const unsigned (&values)[3], uint dimension, ulong otherwise) {
  return dimension < 3 ? values[dimension] : otherwise;
}

uint get_work_dim() {
  return emulator_item_1.items[2] > 1 ? 3 : emulator_item_1.items[1] > 1 ? 2 : 1;
}
ulong get_local_id(uint d) { return at(emulator_item_1.thread, d, 0); }
ulong get_group_id(uint d) { return at(emulator_item_1.block, d, 0); }
ulong get_local_size(uint d) { return at(emulator_item_1.block_size, d, 1); }
ulong get_enqueued_local_size(uint d) { return at(emulator_item_1.block_size, d, 1); }
ulong get_num_groups(uint d) { return at(emulator_item_1.blocks, d, 1); }
ulong get_global_size(uint d) { return at(emulator_item_1.items, d, 1); }
ulong get_global_offset(uint) { return 0; }
ulong get_global_id(uint d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }

void barrier(uint) { emulator_barrier(); }
void work_group_barrier(uint) { emulator_barrier(); }
void work_group_barrier(uint, int) { emulator_barrier(); }
void mem_fence(uint) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void read_mem_fence(uint) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void write_mem_fence(uint) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
