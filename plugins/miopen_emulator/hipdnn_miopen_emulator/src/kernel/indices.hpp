// Which item a kernel runs for.
#pragma once

#include "basic_types.hpp"
#include "work_item.hpp"

#define __AMDGCN_WAVEFRONT_SIZE EMULATOR_WAVEFRONT
#define __AMDGCN_WAVEFRONT_SIZE__ EMULATOR_WAVEFRONT
static constexpr int warpSize = EMULATOR_WAVEFRONT;

struct dim3 {
  uint x, y, z;
  constexpr dim3(uint x = 1, uint y = 1, uint z = 1) : x(x), y(y), z(z) {}
};
struct EmulatorIndex {
  uint x, y, z;
};
#define threadIdx (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.thread))
#define blockIdx (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.block))
#define blockDim (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.block_size))
#define gridDim (*reinterpret_cast<const EmulatorIndex *>(emulator_item_1.blocks))
