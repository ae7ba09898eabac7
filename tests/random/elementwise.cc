// SPDX-License-Identifier: Apache-2.0
// Elementwise instructions, of all types that shape inference and the kernels take.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/program/element_op.h"
#include "ir/graph/attribute_views.h"
#include "ir/inference/shape_inference.h"
#include "tests/random/module_generator.h"

namespace hlokit::random_test {

bool ModuleGenerator::Accepts(Opcode opcode, const std::vector<ElementType>& types, ElementType result) {
  std::vector<Shape> shapes;
  for (ElementType t : types) shapes.push_back(context_->shapes.Array(t, {}));
  const InferenceRequest request = {scratch_.get(), opcode, shapes, {}, context_->shapes.Array(result, {})};
  if (!CheckShape(request, /*mixed_precision=*/false).ok()) return false;
  // Shape inference accepts some meaningless ones, such as shifts of floats.
  std::string error;
  return opcode == Opcode::kReducePrecision ||
         interp::ElementOp::Create(opcode, AttrReader(*scratch_, {}), types, result, &error).has_value();
}

std::optional<ElementType> ModuleGenerator::TypeFor(Opcode opcode, size_t count) {
  std::vector<ElementType> types;
  for (ElementType t : kTypes) {
    if (Accepts(opcode, std::vector<ElementType>(count, t), t)) types.push_back(t);
  }
  if (types.empty()) return std::nullopt;
  return random_.Of(types);
}

bool ModuleGenerator::EmitElementwise(Opcode opcode) {
  const std::string_view text = ToString(opcode);
  const Dims dims = RandomDims();
  const auto operands = [&](ElementType type, int n) {
    std::vector<std::string> names;
    for (int i = 0; i < n; ++i) names.push_back(Need({type, dims}));
    return names;
  };
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kUnary:
    case ShapeRule::kBinary: {
      const int n = InfoOf(opcode).min_operands;
      const bool reduces = opcode == Opcode::kReducePrecision;
      const std::optional<ElementType> type = reduces ? random_.Of(kReals) : TypeFor(opcode, static_cast<size_t>(n));
      if (!type) {
        // The result has another type: abs of a complex number.
        Add({kF32, dims}, text, operands(kC64, n));
        return true;
      }
      const bool real_result = opcode == Opcode::kAbs && IsComplex(*type);
      Add({real_result ? ComponentType(*type) : *type, dims}, text, operands(*type, n),
          reduces ? StrCat("exponent_bits=", random_.In(1, 8), ", mantissa_bits=", random_.In(0, 10)) : "");
      return true;
    }
    case ShapeRule::kCompare: {
      const ElementType type = random_.Of(kTypes);
      const bool ordered = !IsComplex(type);
      static const std::vector<std::string_view> kAny = {"EQ", "NE"};
      static const std::vector<std::string_view> kOrdered = {"EQ", "NE", "LT", "LE", "GT", "GE"};
      Add({kPred, dims}, text, operands(type, 2),
          StrCat("direction=", random_.Of(ordered ? kOrdered : kAny),
                 IsFloat(type) && random_.OneIn(3) ? ", type=TOTALORDER" : ""));
      return true;
    }
    case ShapeRule::kComplex: {
      const ElementType part = random_.OneIn(2) ? kF32 : kF64;
      Add({part == kF32 ? kC64 : kC128, dims}, text, operands(part, 2));
      return true;
    }
    case ShapeRule::kRealImag:
      Add({kF32, dims}, text, operands(kC64, 1));
      return true;
    case ShapeRule::kIsFinite:
      Add({kPred, dims}, text, operands(random_.Of(kReals), 1));
      return true;
    case ShapeRule::kConvert: {
      const ElementType from = random_.Of(kTypes);
      ElementType to = random_.Of(kTypes);
      if (IsComplex(from) && !IsComplex(to)) to = kC128;
      Add({to, dims}, text, operands(from, 1));
      return true;
    }
    case ShapeRule::kBitcastConvert: {
      static const std::vector<std::pair<ElementType, ElementType>> kPairs = {
          {kF32, kS32}, {kU64, kF64}, {kBF16, kU16}, {kS8, kU8}, {kF16, kBF16}};
      const auto [from, to] = random_.Of(kPairs);
      Add({to, dims}, text, operands(from, 1));
      // Another width: the last dimension is removed or added.
      Dims wide = dims;
      wide.push_back(4);
      Add({kU8, wide}, text, {Need({kS32, dims})});
      return true;
    }
    case ShapeRule::kStochasticConvert:
      Add({random_.OneIn(2) ? kS8 : kS32, dims}, text, {Need({kF32, dims}), Need({kU32, dims})});
      return true;
    case ShapeRule::kClamp: {
      const ElementType type = random_.Of(kNumbers);
      const Array bound{type, random_.OneIn(2) ? dims : Dims()};
      Add({type, dims}, text, {Need(bound), Need({type, dims}), Need(bound)});
      return true;
    }
    case ShapeRule::kSelect: {
      const ElementType type = random_.Of(kTypes);
      Add({type, dims}, text,
          {Need({kPred, random_.OneIn(2) ? dims : Dims()}), Need({type, dims}), Need({type, dims})});
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hlokit::random_test
