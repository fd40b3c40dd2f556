// Atomic operations on memory that blocks on other threads of the host may touch at the same time.
#pragma once

// What the hardware has no instruction for: replace the old value by `next` of it until nobody
// interfered. Compares bits, so that a NaN doesn't loop for ever.
template <class T, class Next> static inline T emulator_atomic(T *address, Next next) {
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  for (;;) {
    T wanted = next(old);
    if (__atomic_compare_exchange(address, &old, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return old;
  }
}

#define EMULATOR_ATOMIC(name, expression)                                             \
  template <class T> static inline T name(T *address, decltype(T()) value) {          \
    return emulator_atomic(address, [value](T old) -> T { return expression; });      \
  }                                                                                   \
  template <class T> static inline T name##_system(T *address, decltype(T()) value) { \
    return name(address, value);                                                      \
  }
EMULATOR_ATOMIC(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicSub, old - value)
EMULATOR_ATOMIC(atomicMin, old < value ? old : value)
EMULATOR_ATOMIC(atomicMax, old > value ? old : value)
EMULATOR_ATOMIC(atomicAnd, (old & value))
EMULATOR_ATOMIC(atomicOr, old | value)
EMULATOR_ATOMIC(atomicXor, old ^ value)
EMULATOR_ATOMIC(atomicExch, ((void)old, value))
EMULATOR_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1))
EMULATOR_ATOMIC(atomicDec, old == 0 || old > value ? value : T(old - 1))
EMULATOR_ATOMIC(unsafeAtomicAdd, old + value)
#undef EMULATOR_ATOMIC

template <class T>
static inline T atomicCAS(T *address, decltype(T()) expected, decltype(T()) desired) {
  __atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_RELAXED,
                            __ATOMIC_RELAXED);
  return expected;
}

#define __hip_atomic_fetch_add(address, value, order, scope) atomicAdd(address, value)
#define __hip_atomic_load(address, order, scope) __atomic_load_n(address, order)
#define __hip_atomic_store(address, value, order, scope) __atomic_store_n(address, value, order)
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
