// Lets the runtime call a kernel by a buffer of packed arguments.
#pragma once

struct KernelArgument {
  unsigned offset, bytes;
};

// What the code object has for a kernel K, under the name emulator_kernel_K. For OpenCL the compile
// driver writes the same record as LLVM IR.
struct KernelEntry {
  void (*call)(const char *arguments);
  unsigned count;
  const KernelArgument *arguments;
};

#ifdef EMULATOR_DEVICE_CODE
namespace emulator {

template <unsigned long... I> struct Indices {};
template <class T, T... I> struct IndexList {
  using type = Indices<I...>;
};
template <unsigned count> using IndicesUpTo =
    typename __make_integer_seq<IndexList, unsigned long, count>::type;

template <class... A> struct Signature {
  static constexpr unsigned count = sizeof...(A);
  struct Layout {
    KernelArgument at[count + 1];
  };

  // Each argument at the next multiple of its alignment, as the AMD GPU code object ABI has it.
  static constexpr Layout layout() {
    const unsigned bytes[] = {sizeof(A)..., 0}, alignment[] = {alignof(A)..., 1};
    Layout result{};
    unsigned end = 0;
    for (unsigned i = 0; i < count; i++) {
      unsigned offset = (end + alignment[i] - 1) / alignment[i] * alignment[i];
      result.at[i] = {offset, bytes[i]};
      end = offset + bytes[i];
    }
    return result;
  }

  template <unsigned long... I>
  static void call(void (*kernel)(A...), const char *arguments, Indices<I...>) {
    constexpr Layout positions = layout();
    (void)arguments, (void)positions;
    kernel(*reinterpret_cast<const A *>(arguments + positions.at[I].offset)...);
  }
};

template <class... A> Signature<A...> signature_of(void (*)(A...));

}  // namespace emulator
#endif
