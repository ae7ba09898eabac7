// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/dynamic_values.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interp/arguments/argument_generator.h"
#include "interp/equivalence/equivalence_check.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"

namespace hlokit::properties {
namespace {

enum class Fill : uint8_t { kZero, kInvalid };

std::vector<InstructionId> SizeSetters(const Module& module) {
  std::vector<InstructionId> setters;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kSetDimensionSize) setters.push_back(i.id());
    }
  }
  return setters;
}

// The largest integer of the type that a double has exactly.
double LargestInteger(ElementType type) {
  const int bits = BitsOf(type) - (IsSigned(type) ? 1 : 0);
  return type == ElementType::kPred ? 1 : std::ldexp(1.0, std::min(bits, 53)) - 1;
}

// Replaces the elements beyond the size of each set-dimension-size of a static array.
void FillBeyondSizes(Fill fill, Module* module) {
  for (InstructionId id : SizeSetters(*module)) {
    const Instruction setter = module->instruction(id);
    const Instruction operand = setter.operand(0);
    const Shape shape = operand.shape();
    if (shape.has_dynamic_dims()) continue;
    const bool invalid = fill == Fill::kInvalid;
    const ElementType type = shape.element_type();
    const double value = !invalid ? 0 : IsFloat(type) ? std::numeric_limits<double>::quiet_NaN() : LargestInteger(type);
    Builder b(module, id);
    const Shape index_shape = b.shapes().WithElementType(shape, ElementType::kS32);
    const AttrValue attrs[] = {b.Int(Attr::kIotaDimension, setter.list_attr(Attr::kDimensions)[0])};
    const InstructionId source = operand.id(), size = setter.operand(1).id();
    const InstructionId index = b.Make(Opcode::kIota, index_shape, {}, attrs);
    const InstructionId valid = b.MakeCompare(ComparisonDirection::kLt, index, b.MakeSplat(index_shape, size));
    const InstructionId beyond = b.MakeSplat(shape, b.MakeScalarConstant(type, value));
    module->ReplaceOperand(id, 0, b.Make(Opcode::kSelect, shape, {valid, source, beyond}));
  }
}

// The bound of each parameter of the entry that sets a size; nullopt if a size comes from elsewhere or has two bounds.
std::optional<std::map<int64_t, int64_t>> BoundsOfSizes(const Module& module) {
  std::map<int64_t, int64_t> bounds;
  for (InstructionId id : SizeSetters(module)) {
    const Instruction setter = module.instruction(id), size = setter.operand(1);
    if (size.opcode() != Opcode::kParameter || !size.parent().is_entry()) return std::nullopt;
    const int64_t bound = setter.shape().dim(setter.list_attr(Attr::kDimensions)[0]);
    if (bounds.try_emplace(size.parameter_number(), bound).first->second != bound) return std::nullopt;
  }
  return bounds;
}

// Generates arguments, with sizes of a numerator / 4 of their bounds. Parameters of such modules are arrays.
std::optional<std::vector<Literal>> ArgumentsWithSizes(const Module& module, const std::map<int64_t, int64_t>& bounds,
                                                       int64_t numerator) {
  std::vector<Literal> arguments = interp::MakeFakeArguments(module, 1);
  if (static_cast<int64_t>(arguments.size()) != module.entry().parameter_count()) return std::nullopt;
  for (const auto& [parameter, bound] : bounds) {
    Literal& size = arguments[static_cast<size_t>(parameter)];
    if (size.shape().element_type() != ElementType::kS32) return std::nullopt;
    const auto value = static_cast<int32_t>(bound * numerator / 4);
    std::memcpy(size.data(), &value, sizeof(value));
  }
  return arguments;
}

}  // namespace

bool SetsDimensionSizes(const Module& module) { return !SizeSetters(module).empty(); }

ValueComparison CompareDynamicValues(const Module& before, const Module& after, std::string_view pipeline) {
  ValueComparison comparison;
  const auto different = [&](std::string what) {
    comparison.outcome = ValueComparison::Outcome::kDifferent;
    comparison.what = std::move(what);
    return comparison;
  };
  const auto bounds = BoundsOfSizes(before);
  const auto whole = bounds ? ArgumentsWithSizes(before, *bounds, 4) : std::nullopt;
  const auto partial = bounds ? ArgumentsWithSizes(before, *bounds, 2) : std::nullopt;
  if (!whole || !partial) {
    comparison.what = "a dynamic size is not a parameter";
    return comparison;
  }
  const auto expected = RunReference(before, *whole, &comparison.what);
  if (!expected) return comparison;
  const auto found = RunReference(after, *whole, &comparison.what);
  if (!found) return different(StrCat("runs before, but after the pass: ", comparison.what));
  if (const std::string difference = interp::CompareResults(*expected, *found, interp::Tolerance::OfPass(0));
      !difference.empty()) {
    return different(StrCat("with sizes at their bounds: ", difference));
  }
  std::vector<std::vector<Literal>> results;
  for (Fill fill : {Fill::kZero, Fill::kInvalid}) {
    Module module = before.Clone();
    FillBeyondSizes(fill, &module);
    absl::StatusOr<Pipeline> pass = Pipeline::Parse(pipeline);
    if (!pass.ok() || !pass->Run(module).ok()) return different("the pass declines the module with filled elements");
    FillBeyondSizes(Fill::kZero, &module);
    std::optional<std::vector<Literal>> run = RunReference(module, *partial, &comparison.what);
    if (!run) return different(comparison.what);
    results.push_back(*std::move(run));
  }
  if (const std::string difference = interp::CompareResults(results[0], results[1], interp::Tolerance::OfPass(0));
      !difference.empty()) {
    return different(StrCat("depends on elements beyond the size: ", difference));
  }
  comparison.outcome = ValueComparison::Outcome::kEqual;
  return comparison;
}

}  // namespace hlokit::properties
