// rocRAND's XORWOW generator (Marsaglia, "Xorshift RNGs", 2003, with rocRAND's seeding), of which MIOpen's
// kernels use subsequence 0.
#pragma once

namespace rocrand_device {

class xorwow_engine {
 public:
  xorwow_engine() : xorwow_engine(0, 0, 0) {}
  xorwow_engine(unsigned long long seed, unsigned long long subsequence, unsigned long long offset) {
    if (subsequence) __builtin_trap();  // 2^67 numbers away each: nobody asks for one
    uint low = 1228688033u * (uint(seed) ^ 0x2c7f967fu);
    uint high = 2073658381u * (uint(seed >> 32) ^ 0xa03697cbu);
    x_[0] += low;
    x_[1] ^= low;
    x_[2] += high;
    x_[3] ^= high;
    x_[4] += low;
    counter_ += low + high;
    while (offset--) next();
  }

  uint next() {
    uint t = x_[0] ^ (x_[0] >> 2);
    for (int i = 0; i < 4; i++) x_[i] = x_[i + 1];
    x_[4] = (x_[4] ^ (x_[4] << 4)) ^ (t ^ (t << 1));
    counter_ += 362437u;
    return counter_ + x_[4];
  }
  uint operator()() { return next(); }

 private:
  uint x_[5] = {123456789u, 362436069u, 521288629u, 88675123u, 5783321u};
  uint counter_ = 6615241u;
};

}  // namespace rocrand_device

typedef rocrand_device::xorwow_engine rocrand_state_xorwow;

static inline void rocrand_init(unsigned long long seed, unsigned long long subsequence,
                                unsigned long long offset, rocrand_state_xorwow *state) {
  *state = rocrand_state_xorwow(seed, subsequence, offset);
}
static inline uint rocrand(rocrand_state_xorwow *state) { return state->next(); }
