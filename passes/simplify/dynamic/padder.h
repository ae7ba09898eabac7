// SPDX-License-Identifier: Apache-2.0
// Makes the arrays of one computation static for dynamic-padder.
//
// Each array with dynamic dimensions gets the size of its bounds, and each of these dimensions a scalar s32 with its
// size. In operand order, the sizes of each result are inferred from those of the operands (dimension_inference.cc,
// windows.cc, reshapes.cc, indexed.cc), and elements beyond them are masked where they would count. Calls pass the
// sizes along with the arrays (calls.cc).
#ifndef HLOKIT_PASSES_SIMPLIFY_DYNAMIC_PADDER_H_
#define HLOKIT_PASSES_SIMPLIFY_DYNAMIC_PADDER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/module.h"
#include "passes/simplify/dynamic/dynamic_padder.h"
#include "passes/simplify/dynamic/static_shapes.h"

namespace hlokit {

// Returns true for a set-dimension-size to the bound of the dimension, whose result is static there.
bool UnsetsDimension(Instruction instruction);

// Returns true for a custom call of XLA that makes an array static or dynamic, with its sizes as results or operands.
bool IsSizeBoundary(Instruction instruction);

class Padder {
 public:
  // `original` is the module before the pass, with the same ids.
  // `result`: the shape that callers expect, which may be dynamic where the root is static.
  Padder(Module* module, const Module* original, const StaticShapes* static_shapes, ComputationId computation,
         Shape result);

  // Returns an error of kind Unimplemented that names an unsupported instruction; the module must then be discarded.
  absl::Status Run();

  int64_t set_dimension_sizes() const { return static_cast<int64_t>(set_dimension_sizes_.size()); }
  int64_t masks() const { return masks_; }
  int64_t passed() const { return passed_; }

 private:
  // For each dimension of each leaf in turn, a scalar s32, or an invalid id if the dimension is static.
  using Sizes = std::vector<InstructionId>;
  struct InferredSizes {
    Sizes sizes;
    InstructionId value;  // replaces the result; invalid: the instruction itself
  };

  Instruction at(InstructionId id) const { return module_.instruction(id); }
  ShapeTable& shapes() const { return module_.context().shapes; }
  Shape StaticOf(Shape shape) const { return static_shapes_.Of(shape); }
  absl::Status CannotPad(Instruction i, std::string_view why) const;

  // Returns the sizes; empty if all dimensions are static.
  const Sizes& SizesOf(InstructionId id) const;
  bool HasSizes(Instruction i) const { return !SizesOf(i.id()).empty(); }
  // Returns the size of a dimension of an array.
  InstructionId SizeOf(InstructionId id, int64_t dim) const;
  void SetSizes(InstructionId id, Sizes sizes);

  absl::Status Visit(Instruction i);
  absl::Status SetSize(Instruction i);
  absl::Status GetSize(Instruction i);
  absl::Status VisitParameter(Instruction i);
  // Replaces a dynamic constant, which has the sizes of its bounds.
  absl::Status SizeConstant(Instruction i);
  Sizes ElementSizes(Instruction element) const;
  Sizes TupleSizes(Instruction tuple) const;
  // Returns an error unless each dynamic dimension of `shape` has a size.
  absl::Status CheckComplete(Instruction i, Shape shape, const Sizes& sizes) const;

  // Infers the sizes of the result from those of the operands, and masks the elements that the instruction combines.
  absl::StatusOr<InferredSizes> InferSizes(Instruction i);
  // Returns the error of an operation that has no rule.
  absl::Status NotKnown(Instruction i) const;
  absl::StatusOr<InferredSizes> InferTuple(Instruction i);
  absl::StatusOr<InferredSizes> InferElement(Instruction i);
  absl::StatusOr<InferredSizes> InferForwarded(Instruction i);
  absl::StatusOr<InferredSizes> InferBitcastConvert(Instruction i);
  absl::StatusOr<InferredSizes> InferTranspose(Instruction i);
  absl::StatusOr<InferredSizes> InferBroadcast(Instruction i);
  absl::StatusOr<InferredSizes> InferElementwise(Instruction i);
  absl::StatusOr<InferredSizes> InferBatched(Instruction i);
  absl::StatusOr<InferredSizes> InferCustomCall(Instruction i);
  absl::StatusOr<InferredSizes> InferAllReduce(Instruction i);
  absl::StatusOr<InferredSizes> InferReduce(Instruction i);
  absl::StatusOr<InferredSizes> InferDot(Instruction i);
  absl::StatusOr<InferredSizes> InferConcatenate(Instruction i);
  absl::StatusOr<InferredSizes> InferSlice(Instruction i);
  absl::StatusOr<InferredSizes> InferPad(Instruction i);
  absl::StatusOr<InferredSizes> InferReverse(Instruction i);
  absl::StatusOr<InferredSizes> InferSort(Instruction i);
  absl::StatusOr<InferredSizes> InferGather(Instruction i);
  absl::StatusOr<InferredSizes> InferScatter(Instruction i);
  absl::StatusOr<InferredSizes> InferDynamicSlice(Instruction i);
  absl::StatusOr<InferredSizes> InferDynamicUpdateSlice(Instruction i);
  // Writes only the elements of the update that are within its sizes.
  absl::StatusOr<InferredSizes> UpdateWithinSizes(Instruction i);
  // Makes indices beyond `limits`, one for each component or invalid, negative: out of bounds.
  void DropBeyond(Instruction user, int64_t index, absl::Span<const InstructionId> limits, int64_t index_vector_dim);
  // Returns an array of the shape of the indices with the limit of each component, which are s32.
  InstructionId SpreadLimits(Shape indices, absl::Span<const InstructionId> limits, int64_t index_vector_dim);

  // ---- reshapes.cc ----
  absl::StatusOr<InferredSizes> InferReshape(Instruction i);
  absl::StatusOr<InferredSizes> InferDynamicReshape(Instruction i);
  // Returns the elements of `operand` within its sizes in row-major order as an array of `shape` with these sizes.
  InstructionId Reordered(InstructionId operand, Shape shape, const Sizes& sizes);
  InstructionId SizeOrBound(InstructionId size, int64_t bound) { return size.valid() ? size : Number(bound); }

  // ---- windows.cc ----
  absl::StatusOr<InferredSizes> InferReduceWindow(Instruction i);
  absl::StatusOr<InferredSizes> InferSelectAndScatter(Instruction i);
  absl::StatusOr<InferredSizes> InferConvolution(Instruction i);
  // Returns the number of positions of a window in a dimension of `size` elements, at most `bound`.
  InstructionId WindowCount(InstructionId size, int64_t bound, const WindowDim& window);

  // ---- calls.cc ----
  absl::Status VisitCall(Instruction i);
  // Takes the sizes of a parameter of the entry, or of an element of one, from the caller of the program.
  absl::Status ReceiveSizes(Instruction source);
  // Gives a parameter or result the shape with sizes; users get its former elements.
  absl::Status Unpack(Instruction i);
  // Returns a tuple of `value`, which is passed on as `shape`, and its sizes: a static dimension has its bound.
  absl::StatusOr<InstructionId> Packed(InstructionId value, Shape shape);
  // Returns `result` with the dynamic dimensions of `shape`.
  absl::StatusOr<InstructionId> Restored(InstructionId result, Shape shape);
  absl::Status RestoreResults();
  absl::Status PackResult();
  // Erases an unused tuple whose elements `by` has.
  void EraseTuple(Instruction tuple, InstructionId by);

  // ---- new instructions, with the metadata of the visited instruction ----
  void SetInsertionPoint(InstructionId position, MetadataId metadata) {
    builder_.SetInsertionPoint(position);
    builder_.SetMetadata(metadata);
  }
  InstructionId Number(ElementType type, int64_t value);
  InstructionId Number(int64_t value) { return Number(ElementType::kS32, value); }
  InstructionId Zero(ElementType type);
  // Returns a binary operation of scalars of one type.
  InstructionId Binary(Opcode opcode, InstructionId a, InstructionId b);
  InstructionId Plus(InstructionId a, int64_t b) { return b == 0 ? a : Binary(Opcode::kAdd, a, Number(b)); }
  // Returns a size as it counts: one beyond the bound is the bound, a negative one 0.
  InstructionId WithinBound(Instruction size, int64_t bound);
  // Returns a mask that is true before `size` in dimension `dim` of an array of these dimensions.
  InstructionId ValidMask(Shape shape, int64_t dim, InstructionId size);
  // Sets the elements of operand `index` of `user` from position `size` of dimension `dim` on to `value`.
  void Mask(Instruction user, int64_t index, int64_t dim, InstructionId size, InstructionId value);
  // Returns a limit on indices as a scalar of their type.
  InstructionId LimitOf(InstructionId limit, ElementType type);
  // Clamps operand `index` of `user`, a start index along a dimension of `size` elements, so that `length` elements
  // fit.
  void ClampStart(Instruction user, int64_t index, InstructionId size, int64_t length);

  Module& module_;
  const Module& original_;
  const StaticShapes& static_shapes_;
  const ComputationId computation_;
  const bool is_entry_;
  const Shape root_shape_;  // before the pass, for callers
  absl::flat_hash_map<uint32_t, Sizes> sizes_;
  std::vector<InstructionId> set_dimension_sizes_;  // set-dimension-size instructions, erased at the end
  std::vector<InstructionId> made_;
  int64_t masks_ = 0;
  int64_t passed_ = 0;
  Builder builder_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DYNAMIC_PADDER_H_
