// SPDX-License-Identifier: Apache-2.0
// Steps that run primitives of the library of products and convolutions. The work is divided into pieces that depend on
// shapes alone, each a primitive for one thread, so that results are the same for any number of threads.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_LIBRARY_THUNK_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_LIBRARY_THUNK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "interp/compiled/code/library_interface.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp::compiled {

// Weights in the layouts of primitives. A thunk of its own packs them, which primitives with equal weights and layout
// share, and which leaves a loop in which the weights do not change. Constants are packed with the program, in at most
// Limits::max_bytes; others in each run.
class PackedWeights {
 public:
  // A part of the weights with a layout of its own.
  struct Part {
    std::shared_ptr<const LibraryPrimitive> primitive;
    int64_t from = 0;    // offset in the weights, in bytes
    int64_t to = 0;      // in the packed weights
    int64_t packed = 0;  // bytes
  };
  // Returns true if the parts are within the limit of memory.
  static bool Fits(CompiledComputationBuilder& builder, const std::vector<Part>& parts);
  // Returns the packed weights, an array of bytes. Requires: positive strides.
  View Pack(CompiledComputationBuilder& builder, const View& weights, std::vector<Part> parts);

 private:
  // By computation, slot, strides, offset, shape and layout of the parts.
  using Key = std::tuple<uint32_t, uint32_t, const int64_t*, int64_t, const ShapeRecord*, std::string>;
  absl::flat_hash_map<Key, View> packed_;
  int64_t constant_bytes_ = 0;  // of constants
};

// Returns bytes of an element.
int64_t BytesOf(LibraryType type);
// Returns true for types that the library computes in f32, if not in their own.
bool IsLibraryType(ElementType type);
// Returns true if products of bf16 are primitives of their own, not those of f32.
bool HasFastBf16();

// Conversions and copies of operands for a primitive. Planned ones emit nothing: their views have the shape and strides
// that emitted ones will have, so that the primitive can be made before anything is emitted.
class OperandCopies {
 public:
  OperandCopies(CompiledComputationBuilder& builder, bool planned) : builder_(builder), planned_(planned) {}

  CompiledComputationBuilder& builder() const { return builder_; }
  // Converts the elements to the type of the instruction's result, if that is narrower than f32, as the exact engine
  // does, and then to `type`. Returns nullopt after an error report.
  std::optional<View> To(ElementType type, const View& view) const;
  View MakeDense(const View& view) const;

 private:
  CompiledComputationBuilder& builder_;
  const bool planned_;
};

// Sets the result of the instruction to an array converted to its type. `order`, if not empty: dimensions of the result
// by dimension of the view.
void SetConvertedResult(CompiledComputationBuilder& builder, const View& view, absl::Span<const int64_t> order = {});

// Returns at least `bytes` bytes of memory of the calling thread, aligned to 64, which the next call overwrites.
// Requires that HasThreadScratch was true.
std::byte* ThreadScratch(int64_t bytes);
// As ThreadScratch. If the system has no memory, fails the run, for `user`, "a product", and returns null.
std::byte* ThreadScratch(RunContext& context, int64_t bytes, std::string_view user);
// Returns the most scratch memory that each thread may have.
int64_t MaxThreadScratch(CompiledComputationBuilder& builder);
// Returns true if scratch memory of this size for each thread is within the limit of memory (Limits::max_bytes).
bool HasThreadScratch(CompiledComputationBuilder& builder, int64_t bytes);
// Returns the most scratch memory that the threads of a run may share in a thunk, a small part of the limit of memory.
int64_t MaxSharedScratch(CompiledComputationBuilder& builder);

constexpr int64_t AlignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_LIBRARY_THUNK_H_
