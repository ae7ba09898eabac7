// SPDX-License-Identifier: Apache-2.0
#include "interp/interface/mixed_precision.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/program_builder.h"
#include "ir/core/str_cat.h"
#include "ir/inference/applied_types.h"
#include "ir/inference/shape_inference.h"

namespace hlokit::interp {
namespace {

struct ReadBytesParams : ThunkParams {
  size_t copied = 0;
  size_t zeros = 0;
};

void RunReadBytes(const ReadBytesParams& p, const std::byte* const* in, std::byte* const* out, RunContext&) {
  std::memcpy(out[0], in[0], p.copied);
  std::memset(out[0] + p.copied, 0, p.zeros);
}

// Returns the bytes of `view` as an array of `type` with the same dimensions.
View EmitReadBytes(CompiledComputationBuilder& b, const View& view, ElementType type) {
  const Shape shape = b.program_shapes().Array(type, view.dims());
  const View dense = b.MakeDense(view);
  auto params = std::make_unique<ReadBytesParams>();
  const size_t bytes = static_cast<size_t>(view.count() * BytesOf(type));
  params->copied = std::min(bytes, static_cast<size_t>(view.count() * BytesOf(view.type())));
  params->zeros = bytes - params->copied;
  return b.EmitTo(kKernel<RunReadBytes>, std::move(params), {&dense, 1}, {&shape, 1})[0];
}

View Convert(CompiledComputationBuilder& b, const View& view, ElementType type) {
  const Shape shape = b.program_shapes().Array(type, view.dims());
  const std::optional<View> converted = EmitElementwise(b, Opcode::kConvert, b.instruction(), {&view, 1}, shape);
  return converted ? *converted : View{shape};
}

bool IsReal(const View& view) { return view.shape.IsArray() && IsFloat(view.type()); }

// Returns true if all floating-point operands must have one type.
bool HasOneType(Opcode opcode) { return HasTrait(opcode, kElementwise) || HasTrait(opcode, kUniformTypes); }

}  // namespace

bool CompiledComputationBuilder::FitTypes() {
  operands_.clear();
  result_shape_ = current_.shape();
  const InferenceRequest request = RequestFor(current_, &operand_shapes_);
  const std::optional<AppliedTypes> applied = AppliedTypesOf(current_);
  const bool converts = applied && HasOtherTypes(current_, *applied);
  if (!converts && CheckShape(request, /*mixed_precision=*/false).ok()) return true;
  if (const absl::Status status = CheckShape(request, /*mixed_precision=*/true); !status.ok()) {
    Fail(std::string(status.message()));
    return false;
  }
  const Opcode opcode = current_.opcode();
  for (Instruction operand : current_.operands()) {
    const absl::Span<const View> all = leaves(operand);
    if (all.size() != 1) {
      operands_.clear();
      return true;  // forwarded unchanged
    }
    operands_.push_back(all[0]);
  }
  const bool bytes = !applied && program_.options().mixed_precision == MixedPrecisionMode::kReinterpret &&
                     HasOneType(opcode) && opcode != Opcode::kCopy && opcode != Opcode::kConvert &&
                     result_shape_.IsArray();
  if (bytes) {
    const bool compares = opcode == Opcode::kCompare || opcode == Opcode::kIsFinite;
    const ElementType type = compares ? operands_[0].type() : result_shape_.element_type();
    for (size_t i = 0; i < operands_.size(); ++i) {
      View& view = operands_[i];
      if (!IsReal(view) || !IsFloat(type) || view.type() == type) continue;
      Warn(StrCat("operand ", i, " is ", ToString(view.type()), " where ", ToString(type),
                  " is computed: its bytes are reinterpreted as that type"));
      view = EmitReadBytes(*this, view, type);
    }
    return !failed_;
  }
  std::vector<ElementType> results;
  if (applied) {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const ElementType type = applied->operands[i];
      if (IsReal(operands_[i]) && IsFloat(type) && operands_[i].type() != type) {
        operands_[i] = Convert(*this, operands_[i], type);
      }
    }
    results = applied->results;
  } else if (HasOneType(opcode)) {
    std::optional<ElementType> type;
    for (const View& view : operands_) {
      if (IsReal(view)) type = type ? HigherPrecision(*type, view.type()) : view.type();
    }
    for (View& view : operands_) {
      if (IsReal(view) && view.type() != *type) view = Convert(*this, view, *type);
    }
  }
  // Result type of the instruction for these operand types.
  if (results.empty()) {
    std::vector<Shape> shapes;
    for (const View& view : operands_) shapes.push_back(view.shape);
    InferenceRequest again = request;
    again.operands = shapes;
    const absl::StatusOr<Shape> inferred = InferShape(again);
    if (!inferred.ok()) {
      Fail(std::string(inferred.status().message()));
      return false;
    }
    std::vector<Shape> all;
    AppendLeaves(*inferred, &all);
    for (Shape leaf : all) results.push_back(leaf.element_type());
  }
  std::vector<Shape> declared;
  AppendLeaves(result_shape_, &declared);
  if (results.size() != declared.size()) return !failed_;
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].IsArray()) declared[i] = program_shapes().Array(results[i], declared[i].dims());
  }
  result_shape_ = result_shape_.IsTuple() ? program_shapes().Tuple(declared) : declared[0];
  return !failed_;
}

ViewList CompiledComputationBuilder::AsDeclared(absl::Span<const View> views) {
  ViewList converted(views.begin(), views.end());
  if (result_shape_ == current_.shape()) return converted;
  std::vector<Shape> declared;
  AppendLeaves(current_.shape(), &declared);
  for (size_t i = 0; i < converted.size() && i < declared.size(); ++i) {
    if (!IsReal(converted[i]) || converted[i].type() == declared[i].element_type()) continue;
    converted[i] = Convert(*this, converted[i], declared[i].element_type());
  }
  return converted;
}

}  // namespace hlokit::interp
