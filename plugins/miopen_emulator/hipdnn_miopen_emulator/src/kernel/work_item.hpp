// The contract between compiled kernels and the stand-in libamdhip64 that runs them.
//
// A change here needs a new number in the variable's name: a kernel of another build then can't be
// loaded, instead of reading what isn't there.
#pragma once

struct WorkItem {
  unsigned thread[3];      // threadIdx, get_local_id
  unsigned block[3];       // blockIdx, get_group_id
  unsigned block_size[3];  // blockDim, get_local_size
  unsigned blocks[3];      // gridDim, get_num_groups
  unsigned items[3];       // get_global_size
  char *dynamic_shared;    // the launch's shared memory, extern __shared__
};

#define EMULATOR_EXPORT __attribute__((visibility("default")))

extern "C" {
// The item that this thread of the host runs. "initial-exec" makes reading it two instructions.
extern EMULATOR_EXPORT thread_local
    __attribute__((tls_model("initial-exec"))) WorkItem emulator_item_1;

// Waits for all items of the block that have not ended.
EMULATOR_EXPORT void emulator_barrier();

// Waits for the lanes of the wavefront that come here too, then takes what `lane` brought. If that
// lane doesn't take part, the result is what the caller brought. `bytes` is 16 at most.
EMULATOR_EXPORT void emulator_exchange(const void *mine, void *theirs, unsigned bytes,
                                       unsigned lane);

// The lanes that take part, of those for which `predicate` holds.
EMULATOR_EXPORT unsigned long emulator_ballot(bool predicate);

EMULATOR_EXPORT unsigned emulator_lane();
}
