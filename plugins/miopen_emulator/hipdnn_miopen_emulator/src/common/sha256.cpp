#include "sha256.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

uint32_t rotated(uint32_t word, int by) { return word >> by | word << (32 - by); }

// The round constants: fractional parts of the cube roots of the first 64 primes.
std::array<uint32_t, 64> round_constants() {
  std::array<uint32_t, 64> constants{};
  size_t found = 0;
  for (int candidate = 2; found < constants.size(); candidate++) {
    bool prime = true;
    for (int divisor = 2; divisor * divisor <= candidate; divisor++)
      prime &= candidate % divisor != 0;
    if (!prime) continue;
    long double root = cbrtl(candidate);
    constants[found++] = static_cast<uint32_t>((root - floorl(root)) * 4294967296.0L);
  }
  return constants;
}

}  // namespace

void Sha256::part(const std::string &bytes) {
  uint64_t length = bytes.size();
  unsigned char prefix[8];
  for (int i = 0; i < 8; i++) prefix[i] = static_cast<unsigned char>(length >> (8 * i));
  add(prefix, sizeof prefix);
  add(reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
}

void Sha256::add(const unsigned char *bytes, size_t count) {
  total_ += count;
  while (count) {
    size_t taken = std::min(count, block_.size() - filled_);
    std::memcpy(block_.data() + filled_, bytes, taken);
    filled_ += taken;
    bytes += taken;
    count -= taken;
    if (filled_ == block_.size()) compress();
  }
}

std::string Sha256::hex_digest() {
  uint64_t bits = total_ * 8;
  const unsigned char one = 0x80, zero = 0;
  add(&one, 1);
  while (filled_ != 56) add(&zero, 1);
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  add(length, sizeof length);
  std::string digest;
  for (uint32_t word : state_) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", word);
    digest += digits;
  }
  return digest;
}

void Sha256::compress() {
  static const std::array<uint32_t, 64> constants = round_constants();
  uint32_t w[64];
  for (int i = 0; i < 16; i++)
    w[i] = static_cast<uint32_t>(block_[4 * i]) << 24 |
           static_cast<uint32_t>(block_[4 * i + 1]) << 16 |
           static_cast<uint32_t>(block_[4 * i + 2]) << 8 | block_[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; i++) {
    uint32_t s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    uint32_t s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t result[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state_[i] += result[i];
  filled_ = 0;
}
