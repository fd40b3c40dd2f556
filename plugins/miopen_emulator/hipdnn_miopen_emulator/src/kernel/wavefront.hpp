// Barriers, and what the lanes of a wavefront tell each other.
#pragma once

#include "indices.hpp"

static inline void __syncthreads() { emulator_barrier(); }
static inline uint __lane_id() { return emulator_lane(); }
static inline ulonglong __ballot(int predicate) { return emulator_ballot(predicate != 0); }
static inline ulonglong __activemask() { return emulator_ballot(true); }
static inline int __any(int predicate) { return emulator_ballot(predicate != 0) != 0; }
static inline int __all(int predicate) { return emulator_ballot(predicate == 0) == 0; }

template <class T> static inline T emulator_take(T value, uint lane) {
  static_assert(sizeof(T) <= 16, "a shuffle moves 16 bytes at most");
  T result;
  emulator_exchange(&value, &result, sizeof(T), lane);
  return result;
}

// A lane outside the section of `width` lanes means the caller's own, as HIP has it.
template <class T> static inline T __shfl(T value, int lane, int width = warpSize) {
  uint self = emulator_lane(), first = self & ~uint(width - 1);
  return emulator_take(value, first + (uint(lane) & uint(width - 1)));
}
template <class T> static inline T __shfl_up(T value, uint by, int width = warpSize) {
  uint self = emulator_lane(), first = self & ~uint(width - 1);
  return emulator_take(value, self < first + by ? self : self - by);
}
template <class T> static inline T __shfl_down(T value, uint by, int width = warpSize) {
  uint self = emulator_lane(), inside = self & uint(width - 1);
  return emulator_take(value, inside + by >= uint(width) ? self : self + by);
}
template <class T> static inline T __shfl_xor(T value, int mask, int width = warpSize) {
  uint self = emulator_lane(), other = self ^ uint(mask);
  return emulator_take(value, other >= ((self + uint(width)) & ~uint(width - 1)) ? self : other);
}
template <class T> static inline T __shfl_sync(ulonglong, T value, int lane, int width = warpSize) {
  return __shfl(value, lane, width);
}
template <class T>
static inline T __shfl_up_sync(ulonglong, T value, uint by, int width = warpSize) {
  return __shfl_up(value, by, width);
}
template <class T>
static inline T __shfl_down_sync(ulonglong, T value, uint by, int width = warpSize) {
  return __shfl_down(value, by, width);
}
template <class T>
static inline T __shfl_xor_sync(ulonglong, T value, int mask, int width = warpSize) {
  return __shfl_xor(value, mask, width);
}
