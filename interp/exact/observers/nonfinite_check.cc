// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/observers/nonfinite_check.h"

#include <algorithm>
#include <cmath>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/values/value_summary.h"
#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// First NaN and first infinity of an array; -1: none.
struct Nonfinite {
  int64_t nan = -1;
  int64_t infinity = -1;
};

template <typename T>
Nonfinite FindIn(const T* values, int64_t count) {
  Nonfinite found;
  // Most blocks have none; a sum detects this without a branch per element, since 0 * x is NaN only for those.
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    if constexpr (std::floating_point<T>) {
      T sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += values[i] * 0;
      if (sum == 0) continue;
    }
    for (int64_t i = begin; i < end; ++i) {
      double v;
      if constexpr (AnyComplex<T>) {
        v = static_cast<double>(values[i].real()) * 0 + static_cast<double>(values[i].imag());
        if (std::isinf(values[i].real()) && !std::isnan(values[i].imag())) v = static_cast<double>(values[i].real());
      } else {
        v = static_cast<double>(values[i]);
      }
      if (found.nan < 0 && std::isnan(v)) found.nan = i;
      if (found.infinity < 0 && std::isinf(v)) found.infinity = i;
    }
    if (found.nan >= 0 && found.infinity >= 0) break;
  }
  return found;
}

Nonfinite Find(Shape leaf, const std::byte* data) {
  Nonfinite found;
  if (!leaf.IsArray()) return found;
  VisitType(leaf.element_type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T> || AnyComplex<T>) found = FindIn(reinterpret_cast<const T*>(data), leaf.element_count());
  });
  return found;
}

// Returns "; operand 0 (x.1) is 0 there, operand 1 (y.2): min 0 max 2 mean 1 of 8".
std::string OperandsToString(Instruction instruction, absl::Span<const std::byte* const> operands, Shape result,
                             int64_t element) {
  std::string text;
  size_t leaf = 0;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const Instruction operand = instruction.operand(i);
    std::vector<Shape> leaves;
    AppendLeaves(operand.shape(), &leaves);
    for (Shape shape : leaves) {
      const std::byte* data = operands[leaf++];
      if (!shape.IsArray()) continue;
      StrAppend(&text, text.empty() ? "" : "; ", operand.name(), " ");
      if (shape.rank() == 0) {
        StrAppend(&text, "is ", ElementToString(shape, data, 0));
      } else if (shape.dims() == result.dims()) {
        StrAppend(&text, "is ", ElementToString(shape, data, element), " there");
      } else {
        StrAppend(&text, "has ", ToString(Summarize(shape, data)));
      }
    }
  }
  return text;
}

}  // namespace

std::vector<bool> NonfiniteCheck::InstructionsOf(const Module& module) {
  constexpr Opcode kPassOn[] = {Opcode::kParameter, Opcode::kConstant,    Opcode::kTuple, Opcode::kGetTupleElement,
                                Opcode::kWhile,     Opcode::kConditional, Opcode::kCall,  Opcode::kFusion};
  std::vector<bool> shown(module.instruction_id_bound(), false);
  for (Computation computation : module.computations()) {
    for (Instruction i : computation.instructions()) {
      if (std::find(std::begin(kPassOn), std::end(kPassOn), i.opcode()) != std::end(kPassOn)) continue;
      for (Shape leaf : Leaves(i.shape())) {
        if (leaf.IsArray() && (IsFloat(leaf.element_type()) || IsComplex(leaf.element_type()))) {
          shown[i.id().value] = true;
        }
      }
    }
  }
  return shown;
}

absl::Status NonfiniteCheck::OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                                     absl::Span<const std::byte* const> operands) {
  if (id.value >= shown_.size() || !shown_[id.value]) return absl::OkStatus();
  const Instruction instruction = module_.instruction(id);
  std::vector<Shape> leaves;
  AppendLeaves(instruction.shape(), &leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    Nonfinite found = Find(leaves[i], values[i]);
    if (found.nan < 0 && found.infinity < 0) continue;
    size_t next = 0;
    for (Instruction operand : instruction.operands()) {
      std::vector<Shape> parts;
      AppendLeaves(operand.shape(), &parts);
      for (Shape part : parts) {
        const Nonfinite before = Find(part, operands[next++]);
        if (before.nan >= 0) found.nan = -1;
        if (before.nan >= 0 || before.infinity >= 0) found.infinity = -1;
      }
    }
    if (found.nan < 0 && found.infinity < 0) continue;
    const int64_t element = found.nan >= 0 ? found.nan : found.infinity;
    std::string message = StrCat("produces ", found.nan >= 0 ? "a NaN" : "an infinity", ": ");
    if (leaves[i].rank() != 0) StrAppend(&message, "element ", IndexToString(leaves[i], element), " of ");
    StrAppend(&message, ToString(leaves[i], /*with_layout=*/false), " is ",
              ElementToString(leaves[i], values[i], element));
    const std::string text = OperandsToString(instruction, operands, leaves[i], element);
    if (!text.empty()) StrAppend(&message, "; ", text);
    return absl::OutOfRangeError(message);
  }
  return absl::OkStatus();
}

}  // namespace hlokit::interp
