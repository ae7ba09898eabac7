// SPDX-License-Identifier: Apache-2.0
#include "tests/random/module_generator.h"

#include <utility>

namespace hlokit::random_test {

ModuleGenerator::ModuleGenerator(const RandomModuleOptions& options)
    : options_(options),
      random_(options.seed),
      context_(std::make_shared<Context>()),
      scratch_(std::make_unique<Module>(context_)) {}

std::string ModuleGenerator::Make() {
  Region entry;
  region_ = &entry;
  if (options_.first) Emit(*options_.first);
  for (int i = 0; i < options_.instructions; ++i) Emit(static_cast<Opcode>(random_.In(0, kOpcodeCount - 1)));
  std::string parameters;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    StrAppend(&parameters, "  ", parameters_[i].name, " = ", Text(parameters_[i].array), " parameter(", i, ")\n");
  }
  // The last values are the result; some of the others become dead.
  std::vector<std::string> results, shapes;
  for (size_t i = entry.values.size(); i-- > 0 && results.size() < 6;) {
    results.push_back(entry.values[i].name);
    shapes.push_back(Text(entry.values[i].array));
  }
  return StrCat("HloModule random_", options_.seed, "\n\n", computations_, "ENTRY e {\n", parameters, entry.lines,
                "  ROOT results = (", Join(shapes), ") tuple(", Join(results), ")\n}\n");
}

// ---- text ----

std::string ModuleGenerator::Join(const std::vector<std::string>& list) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", list[i]);
  return text;
}

std::string ModuleGenerator::TupleText(const std::vector<Array>& arrays) {
  std::vector<std::string> shapes;
  for (const Array& a : arrays) shapes.push_back(Text(a));
  return StrCat("(", Join(shapes), ")");
}

std::string ModuleGenerator::Line(std::string_view shape, std::string_view opcode,
                                  const std::vector<std::string>& operands, std::string_view attributes) {
  const std::string name = NewName("v");
  StrAppend(&region_->lines, "  ", name, " = ", shape, " ", opcode, "(", Join(operands), ")",
            attributes.empty() ? "" : ", ", attributes, "\n");
  return name;
}

Value ModuleGenerator::Add(const Array& result, std::string_view opcode, const std::vector<std::string>& operands,
                           std::string_view attributes) {
  Value value{Line(Text(result), opcode, operands, attributes), result};
  region_->values.push_back(value);
  return value;
}

void ModuleGenerator::TakeElement(const std::string& tuple, int64_t index, const Array& array) {
  Add(array, "get-tuple-element", {tuple}, StrCat("index=", index));
}

void ModuleGenerator::AddTuple(const std::vector<Array>& results, std::string_view opcode,
                               const std::vector<std::string>& operands, std::string_view attributes) {
  const std::string tuple = Line(TupleText(results), opcode, operands, attributes);
  for (size_t i = 0; i < results.size(); ++i) TakeElement(tuple, static_cast<int64_t>(i), results[i]);
}

// ---- values ----

Dims ModuleGenerator::RandomDims(int64_t min_rank, int64_t max_rank) {
  Dims dims(static_cast<size_t>(random_.In(min_rank, max_rank)));
  for (int64_t& d : dims) d = random_.OneIn(12) ? 0 : Size(24);
  return dims;
}

Dims ModuleGenerator::FullDims(int64_t min_rank, int64_t max_rank) {
  Dims dims(static_cast<size_t>(random_.In(min_rank, max_rank)));
  for (int64_t& d : dims) d = Size(12);
  return dims;
}

std::string ModuleGenerator::Constant(ElementType type) {
  std::string literal = std::to_string(random_.In(0, 3));
  if (type == kPred) literal = random_.OneIn(2) ? "true" : "false";
  if (IsComplex(type)) literal = StrCat("(", literal, ", 1)");
  if (IsSigned(type) && IsInteger(type) && random_.OneIn(2)) literal = StrCat("-", literal);
  return Line(StrCat(ToString(type), "[]"), "constant", {literal});
}

std::string ModuleGenerator::Need(const Array& array) {
  std::vector<std::string> there;
  for (const Value& v : region_->values) {
    if (v.array == array) there.push_back(v.name);
  }
  if (!there.empty() && !random_.OneIn(4)) return random_.Of(there);
  // Another array of these dimensions, converted.
  for (const Value& v : region_->values) {
    if (v.array.dims == array.dims && v.array.type != array.type && random_.OneIn(4) &&
        (!IsComplex(v.array.type) || IsComplex(array.type))) {
      return Add(array, "convert", {v.name}).name;
    }
  }
  if (nesting_ == 0 && parameters_.size() < 12 && !random_.OneIn(3)) {
    const Value parameter{NewName("p"), array};
    parameters_.push_back(parameter);
    region_->values.push_back(parameter);
    return parameter.name;
  }
  if (!array.dims.empty() && random_.OneIn(2) && !IsComplex(array.type) && array.type != kPred) {
    return Add(array, "iota", {}, StrCat("iota_dimension=", random_.In(0, static_cast<int64_t>(array.dims.size()) - 1)))
        .name;
  }
  const std::string scalar = Constant(array.type);
  return array.dims.empty() ? scalar : Add(array, "broadcast", {scalar}, "dimensions={}").name;
}

std::string ModuleGenerator::NeedWithNans(const Array& array) {
  const std::string value = Need(array);
  if (!IsFloat(array.type) || !random_.OneIn(3)) return value;
  const int64_t along = random_.In(0, static_cast<int64_t>(array.dims.size()) - 1);
  const int64_t index = random_.In(0, array.dims[static_cast<size_t>(along)] - 1);
  const auto fill = [&](ElementType type, const std::string& literal) {
    const std::string scalar = Line(StrCat(ToString(type), "[]"), "constant", {literal});
    return Add({type, array.dims}, "broadcast", {scalar}, "dimensions={}").name;
  };
  const std::string at = Add({kS32, array.dims}, "iota", {}, StrCat("iota_dimension=", along)).name;
  const std::string is_there =
      Add({kPred, array.dims}, "compare", {at, fill(kS32, std::to_string(index))}, "direction=EQ").name;
  return Add(array, "select", {is_there, fill(array.type, "nan"), value}).name;
}

// ---- computations ----

std::string ModuleGenerator::Function(ElementType type) {
  static const std::vector<std::string_view> kOfNumbers = {"add", "multiply", "maximum", "minimum", "subtract"};
  static const std::vector<std::string_view> kOfComplex = {"add", "multiply", "subtract"};
  static const std::vector<std::string_view> kOfPred = {"and", "or", "xor"};
  const std::string_view opcode = random_.Of(type == kPred ? kOfPred : IsComplex(type) ? kOfComplex : kOfNumbers);
  const std::string name = NewName("function");
  const std::string t = StrCat(ToString(type), "[]");
  StrAppend(&computations_, name, " {\n  a = ", t, " parameter(0)\n  b = ", t, " parameter(1)\n  ROOT r = ", t, " ",
            opcode, "(a, b)\n}\n\n");
  return name;
}

std::string ModuleGenerator::Comparison(const std::vector<ElementType>& types) {
  const std::string name = NewName("less");
  StrAppend(&computations_, name, " {\n");
  for (size_t i = 0; i < types.size(); ++i) {
    for (int side = 0; side < 2; ++side) {
      StrAppend(&computations_, "  p", 2 * i + side, " = ", ToString(types[i]), "[] parameter(", 2 * i + side, ")\n");
    }
  }
  StrAppend(&computations_, "  ROOT r = pred[] compare(p0, p1), direction=", random_.OneIn(2) ? "LT" : "GT",
            IsFloat(types[0]) && random_.OneIn(2) ? ", type=TOTALORDER" : "", "\n}\n\n");
  return name;
}

std::string ModuleGenerator::Body(const std::vector<Array>& parameters, const Array& result) {
  Region region;
  Region* const outer = std::exchange(region_, &region);
  ++nesting_;
  std::vector<std::string> lines;
  const std::string name = NewName("body");
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value v{NewName("p"), parameters[i]};
    StrAppend(&region.lines, "  ", v.name, " = ", Text(v.array), " parameter(", i, ")\n");
    region.values.push_back(v);
  }
  for (int64_t i = random_.In(0, 3); i > 0; --i) Emit(static_cast<Opcode>(random_.In(0, kOpcodeCount - 1)));
  const std::string operand = Need(result);
  StrAppend(&region.lines, "  ROOT ", NewName("r"), " = ", Text(result), " copy(", operand, ")\n");
  StrAppend(&computations_, name, " {\n", region.lines, "}\n\n");
  --nesting_;
  region_ = outer;
  return name;
}

// ---- instructions ----

void ModuleGenerator::Emit(Opcode opcode) {
  if (opcode == Opcode::kDomain) {
    const Array array{random_.Of(kTypes), RandomDims()};
    Add(array, "domain", {Need(array)},
        "domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=0}}");
    return;
  }
  if (EmitElementwise(opcode) || EmitMovement(opcode) || EmitCombination(opcode) || EmitWindows(opcode) ||
      EmitLinearAlgebra(opcode) || EmitControl(opcode) || EmitDevices(opcode)) {
    return;
  }
  // No rule to infer shapes with: any operands.
  const Array array{random_.Of(kNumbers), RandomDims()};
  if (opcode == Opcode::kConstant) {
    Constant(random_.Of(kTypes));
  } else if (opcode == Opcode::kIota && !array.dims.empty()) {
    Add(array, "iota", {}, "iota_dimension=0");
  } else if (opcode == Opcode::kFusion) {
    const std::string name = NewName("fused");
    StrAppend(&computations_, name, " {\n  p = ", Text(array), " parameter(0)\n  ROOT r = ", Text(array),
              " maximum(p, p)\n}\n\n");
    Add(array, "fusion", {Need(array)}, StrCat("kind=kLoop, calls=", name));
  } else if (opcode == Opcode::kBitcast) {
    Add(array, "bitcast", {Need(array)});
  } else if (opcode == Opcode::kCustomCall) {
    Add(array, "custom-call", {Need(array)}, "custom_call_target=\"Sharding\", sharding={replicated}");
  } else if (opcode == Opcode::kDynamicReshape) {
    const int64_t n = random_.In(1, 4);
    const std::string size = Line("s32[]", "constant", {std::to_string(n)});
    const std::string reshaped =
        Line(StrCat(ToString(array.type), "[<=", n, "]"), "dynamic-reshape", {Need({array.type, {n}}), size});
    Add({kS32, {}}, "get-dimension-size", {reshaped}, "dimensions={0}");
  } else {
    Need(array);  // parameters
  }
}

std::string RandomModule(const RandomModuleOptions& options) { return ModuleGenerator(options).Make(); }

}  // namespace hlokit::random_test
