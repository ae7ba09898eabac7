// SPDX-License-Identifier: Apache-2.0
// Steps that run primitives of the library of products and convolutions. The work is divided into pieces that depend on
// shapes alone, each a primitive for one thread, so that results are the same for any number of threads.
#ifndef HLOKIT_INTERP_COMPILED_LIBRARY_STEP_H_
#define HLOKIT_INTERP_COMPILED_LIBRARY_STEP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "interp/exact/compiled_computation_builder.h"
#include "interp/exact/view.h"

namespace hlokit::interp::compiled {

// Prepares a dot or a convolution. Returns false, with the reason in `why`, if it is left to the exact engine.
bool PrepareProduct(CompiledComputationBuilder& builder, std::string* why);
bool PrepareConvolutionStep(CompiledComputationBuilder& builder, std::string* why);

// Returns true for types that the library computes in f32.
bool IsLibraryType(ElementType type);

// Conversions and copies of operands for a primitive. Planned ones emit nothing: their views have the shape and strides
// that emitted ones will have, so that the primitive can be made before anything is emitted.
class OperandCopies {
 public:
  OperandCopies(CompiledComputationBuilder& builder, bool planned) : builder_(builder), planned_(planned) {}

  CompiledComputationBuilder& builder() const { return builder_; }
  // Converts to f32 where the type is another. Returns nullopt after an error report.
  std::optional<View> ToF32(const View& view) const;
  View MakeDense(const View& view) const;

 private:
  CompiledComputationBuilder& builder_;
  const bool planned_;
};

// Sets the result of the instruction to an f32 array, converted to its type.
void SetF32Result(CompiledComputationBuilder& builder, const View& view);

// Returns at least `bytes` bytes of memory of the calling thread, aligned to 64, which the next call overwrites.
// Requires that HasThreadScratch was true.
std::byte* ThreadScratch(int64_t bytes);
// Returns the most scratch memory that each thread may have.
int64_t MaxThreadScratch(CompiledComputationBuilder& builder);
// Returns true if scratch memory of this size for each thread is within the limit of memory (Limits::max_bytes).
bool HasThreadScratch(CompiledComputationBuilder& builder, int64_t bytes);

constexpr int64_t AlignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LIBRARY_STEP_H_
