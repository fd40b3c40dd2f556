// SHA-256 (FIPS 180-4), by which compiled kernels are kept.
#pragma once

#include <array>
#include <cstdint>
#include <string>

class Sha256 {
 public:
  // Adds a part with its length, so that moving bytes from one part to the next changes the digest.
  void part(const std::string &bytes);
  std::string hex_digest();

 private:
  void add(const unsigned char *bytes, size_t count);
  void compress();

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  size_t filled_ = 0;
  uint64_t total_ = 0;
};
