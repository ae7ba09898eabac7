// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/trip_count.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "ir/graph/attribute_views.h"

namespace hlokit {
namespace {

using Int128 = __int128;

// An instruction of a computation, or of the body of a fusion that `fusion` calls.
struct Value {
  Instruction at;
  Instruction fusion;  // invalid if there is none
};

// Returns the source of the scalar, through forwarding operations and one level of fusions.
Value Source(Value v) {
  while (v.at.valid()) {
    const Opcode opcode = v.at.opcode();
    if (opcode == Opcode::kParameter && v.fusion.valid()) {
      const int64_t n = v.at.parameter_number();
      if (n >= v.fusion.operand_count()) return {};
      v = {v.fusion.operand(n), Instruction()};
    } else if (opcode == Opcode::kFusion && !v.fusion.valid()) {
      const Computation body = v.at.computation_attr(Attr::kCalls);
      if (!body.valid() || !body.root().valid() || body.root().shape().IsTuple()) return v;
      v = {body.root(), v.at};
    } else if (opcode == Opcode::kGetTupleElement && !v.fusion.valid() && v.at.operand(0).opcode() == Opcode::kFusion) {
      const Instruction fusion = v.at.operand(0);
      const Computation body = fusion.computation_attr(Attr::kCalls);
      const int64_t k = v.at.int_attr(Attr::kIndex, -1);
      if (!body.valid() || !body.root().valid() || body.root().opcode() != Opcode::kTuple) return v;
      if (k < 0 || k >= body.root().operand_count()) return v;
      v = {body.root().operand(k), fusion};
    } else if (HasTrait(opcode, kReinterprets)) {
      if (v.at.shape().element_type() != v.at.operand(0).shape().element_type()) return v;
      v.at = v.at.operand(0);
    } else {
      return v;
    }
  }
  return v;
}

Value Source(Instruction i) { return Source({i, Instruction()}); }
Value OperandSource(const Value& v, int64_t k) { return Source({v.at.operand(k), v.fusion}); }

// Returns i if the value is element i of the state, the only parameter of `computation`.
std::optional<int64_t> StateIndex(const Value& v, Computation computation) {
  if (!v.at.valid() || v.at.opcode() != Opcode::kGetTupleElement || v.fusion.valid()) return std::nullopt;
  if (computation.parameter_count() != 1 || v.at.operand(0) != computation.parameter(0)) return std::nullopt;
  return v.at.int_attr(Attr::kIndex, -1);
}

std::optional<int64_t> ConstantOf(const Value& v) { return v.at.valid() ? ScalarInteger(v.at) : std::nullopt; }

// Returns the initial value of element `index` of the state.
std::optional<int64_t> StartOf(Instruction loop, int64_t index) {
  const Instruction init = loop.operand(0);
  if (init.opcode() != Opcode::kTuple || index < 0 || index >= init.operand_count()) return std::nullopt;
  return ConstantOf(Source(init.operand(index)));
}

// Returns the value that the body computes for element `index`, or an invalid one if unknown.
Value NextOf(Computation body, int64_t index) {
  const Instruction root = body.root();
  if (!root.valid() || root.opcode() != Opcode::kTuple || index < 0 || index >= root.operand_count()) return {};
  return Source(root.operand(index));
}

std::optional<int64_t> StepOf(Computation body, int64_t index) {
  const Value next = NextOf(body, index);
  if (!next.at.valid()) return std::nullopt;
  const bool adds = next.at.opcode() == Opcode::kAdd;
  if (!adds && next.at.opcode() != Opcode::kSubtract) return std::nullopt;
  const Value a = OperandSource(next, 0), b = OperandSource(next, 1);
  if (StateIndex(a, body) == index) {
    const std::optional<int64_t> step = ConstantOf(b);
    if (!step || *step == std::numeric_limits<int64_t>::min()) return std::nullopt;
    return adds ? *step : -*step;
  }
  if (adds && StateIndex(b, body) == index) return ConstantOf(a);
  return std::nullopt;
}

// Returns the bound that the condition compares the integer with.
std::optional<int64_t> LimitOf(const Value& v, Instruction loop, Computation condition, Computation body) {
  if (const std::optional<int64_t> constant = ConstantOf(v)) return constant;
  const std::optional<int64_t> index = StateIndex(v, condition);
  if (!index || StateIndex(NextOf(body, *index), body) != index) return std::nullopt;
  return StartOf(loop, *index);
}

ComparisonDirection Mirrored(ComparisonDirection d) {
  switch (d) {
    case ComparisonDirection::kLt:
      return ComparisonDirection::kGt;
    case ComparisonDirection::kGt:
      return ComparisonDirection::kLt;
    case ComparisonDirection::kLe:
      return ComparisonDirection::kGe;
    case ComparisonDirection::kGe:
      return ComparisonDirection::kLe;
    case ComparisonDirection::kEq:
    case ComparisonDirection::kNe:
      return d;
  }
  return d;
}

std::optional<Int128> ComputeTripCount(Int128 start, Int128 step, Int128 limit, ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kLe:
      return ComputeTripCount(start, step, limit + 1, ComparisonDirection::kLt);
    case ComparisonDirection::kGe:
      return ComputeTripCount(start, step, limit - 1, ComparisonDirection::kGt);
    case ComparisonDirection::kGt:
      return ComputeTripCount(-start, -step, -limit, ComparisonDirection::kLt);
    case ComparisonDirection::kLt:
      if (start >= limit) return 0;
      if (step <= 0) return std::nullopt;
      return (limit - start + step - 1) / step;
    case ComparisonDirection::kNe:
      if (start == limit) return 0;
      if (step == 0 || (limit - start) % step != 0 || (limit - start) / step < 0) return std::nullopt;
      return (limit - start) / step;
    case ComparisonDirection::kEq:
      if (start != limit) return 0;
      return step == 0 ? std::nullopt : std::optional<Int128>(1);
  }
  return std::nullopt;
}

// Returns true if the type holds every value of the counter, including the last.
bool Fits(ElementType type, Int128 start, Int128 last) {
  const int bits = BitsOf(type);
  if (!IsInteger(type) || bits > 64) return false;
  const Int128 low = IsSigned(type) ? -(Int128{1} << (bits - 1)) : 0;
  const Int128 high = IsSigned(type) ? (Int128{1} << (bits - 1)) - 1 : (Int128{1} << bits) - 1;
  return start >= low && start <= high && last >= low && last <= high;
}

}  // namespace

std::optional<int64_t> ScalarInteger(Instruction constant) {
  if (constant.opcode() != Opcode::kConstant) return std::nullopt;
  const LiteralRecord& literal = constant.literal();
  const Shape shape = literal.shape;
  if (literal.elided || !shape.IsArray() || shape.element_count() != 1) return std::nullopt;
  const ElementType type = shape.element_type();
  if (!IsInteger(type) && type != ElementType::kPred) return std::nullopt;
  if (literal.size_bytes > sizeof(uint64_t) || literal.size_bytes == 0) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, literal.data, literal.size_bytes);
  const int unused = 64 - 8 * static_cast<int>(literal.size_bytes);
  if (IsSigned(type)) return static_cast<int64_t>(bits << unused) >> unused;
  if (bits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(bits);
}

std::optional<CountedLoop> CountLoop(Instruction loop) {
  if (loop.opcode() != Opcode::kWhile || loop.operand_count() != 1) return std::nullopt;
  const Computation condition = loop.computation_attr(Attr::kCondition), body = loop.computation_attr(Attr::kBody);
  if (!condition.valid() || !body.valid() || !condition.root().valid()) return std::nullopt;
  const Value test = Source(condition.root());
  if (!test.at.valid() || test.at.opcode() != Opcode::kCompare) return std::nullopt;
  auto direction = test.at.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  Value counter = OperandSource(test, 0), other = OperandSource(test, 1);
  std::optional<int64_t> index = StateIndex(counter, condition);
  if (!index || !StepOf(body, *index)) {
    std::swap(counter, other);
    direction = Mirrored(direction);
    index = StateIndex(counter, condition);
  }
  if (!index) return std::nullopt;
  const std::optional<int64_t> start = StartOf(loop, *index), step = StepOf(body, *index);
  const std::optional<int64_t> limit = LimitOf(other, loop, condition, body);
  if (!start || !step || !limit) return std::nullopt;
  const std::optional<Int128> trip_count = ComputeTripCount(*start, *step, *limit, direction);
  if (!trip_count || *trip_count > std::numeric_limits<int64_t>::max()) return std::nullopt;
  if (!Fits(counter.at.shape().element_type(), *start, *start + Int128{*step} * *trip_count)) return std::nullopt;
  return CountedLoop{*index, *start, *step, static_cast<int64_t>(*trip_count)};
}

std::optional<int64_t> TripCount(Instruction loop) {
  if (loop.opcode() != Opcode::kWhile) return std::nullopt;
  if (const std::optional<CountedLoop> counted = CountLoop(loop)) return counted->trip_count;
  const std::string_view config = loop.string_attr(Attr::kBackendConfig);
  if (config.find("known_trip_count") == std::string_view::npos) return std::nullopt;
  const auto json = nlohmann::json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("known_trip_count")) return std::nullopt;
  const auto& known = json["known_trip_count"];
  if (!known.is_object() || !known.contains("n")) return std::nullopt;
  const auto& n = known["n"];
  const std::string digits = n.is_string() ? n.get<std::string>() : n.is_number_integer() ? n.dump() : std::string();
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(digits);
}

}  // namespace hlokit
