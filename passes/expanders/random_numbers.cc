// SPDX-License-Identifier: Apache-2.0
// Random numbers of a distribution as arithmetic on random bits, as XLA's RngExpander: rng has no state, so the state
// of the program is read and advanced by the number of 32-bit words generated. The distribution is that of other
// implementations, the numbers are not.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/expanders/random_bits.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// Returns the digits of a float type that represents all integers below 2^digits; nullopt for types that are not
// expanded.
std::optional<int> DigitsOf(ElementType type) {
  if (type == ElementType::kF64) return 53;
  if (type == ElementType::kF32) return 24;
  if (type == ElementType::kF16) return 11;
  if (type == ElementType::kBF16) return 8;
  return std::nullopt;
}

class RngExpander {
 public:
  RngExpander(PatternRewriter& rewriter, Instruction rng)
      : rewriter_(rewriter), rng_(rng), type_(rng.shape().element_type()) {}

  bool Applies() const {
    if (rng_.operand_count() != 2 || !rng_.shape().IsArray() || rng_.shape().element_count() <= 0) return false;
    for (Instruction bound : rng_.operands()) {
      if (!bound.shape().IsScalar() || bound.shape().element_type() != type_) return false;
    }
    const bool whole = type_ == ElementType::kPred || (IsInteger(type_) && BitsOf(type_) >= 8);
    return DigitsOf(type_).has_value() || (whole && !IsNormal());
  }

  InstructionId Expand() {
    if (IsNormal()) return Normal();
    return IsFloat(type_) ? UniformFloat() : UniformInteger();
  }

 private:
  bool IsNormal() const {
    return rng_.enum_attr(Attr::kDistribution, RngDistribution::kUniform) == RngDistribution::kNormal;
  }
  Shape Array(ElementType type) const { return rewriter_.shapes().Array(type, rng_.shape().dims()); }
  InstructionId Number(ElementType type, double value) {
    return rewriter_.MakeSplat(Array(type), rewriter_.MakeScalarConstant(type, value));
  }
  InstructionId Unary(Opcode opcode, InstructionId a) { return rewriter_.MakeLike(opcode, {a}); }
  InstructionId Binary(Opcode opcode, InstructionId a, InstructionId b) { return rewriter_.MakeLike(opcode, {a, b}); }
  // Returns operand k broadcast to the result, as `type`.
  InstructionId Bound(int64_t k, ElementType type) {
    return rewriter_.MakeSplat(Array(type), rewriter_.MakeConvert(rng_.operand(k).id(), type));
  }

  // Returns an array of random bits.
  InstructionId Bits(Shape values) {
    const bool three_fry = rewriter_.options().String("algorithm") == "three-fry";
    const Shape scalar = rewriter_.shapes().Scalar(ElementType::kU64);
    const Shape pair = rewriter_.shapes().Array(ElementType::kU64, {2}),
                one = rewriter_.shapes().Array(ElementType::kU64, {1});
    const AttrValue delta[] = {
        rewriter_.Int(Attr::kDelta, values.element_count() * (BitsOf(values.element_type()) / 32))};
    const InstructionId counter = rewriter_.Make(Opcode::kRngGetAndUpdateState, pair, {}, delta);
    std::vector<InstructionId> state = {
        rewriter_.MakeScalarConstant(ElementType::kU64, static_cast<double>(rewriter_.options().Int("key")))};
    for (int64_t k = 0; k < (three_fry ? 1 : 2); ++k) {
      const AttrValue part[] = {rewriter_.List(Attr::kSlice, {k, k + 1, 1})};
      state.push_back(rewriter_.MakeReshape(rewriter_.Make(Opcode::kSlice, one, {counter}, part), scalar));
    }
    return MakeRandomBits(rewriter_, three_fry ? RngAlgorithm::kThreeFry : RngAlgorithm::kPhilox, state, values).values;
  }
  // Returns values in [0, 1) from the upper `digits` of the bits.
  InstructionId Fraction(InstructionId bits, ElementType type, int digits) {
    const ElementType word = rewriter_.at(bits).shape().element_type();
    const InstructionId upper = Binary(Opcode::kShiftRightLogical, bits, Number(word, BitsOf(word) - digits));
    const InstructionId unit = Number(type, std::ldexp(1.0, -digits));
    return Binary(Opcode::kMultiply, rewriter_.MakeConvert(upper, type), unit);
  }
  // Returns the float type of intermediate values.
  ElementType Computed() const { return type_ == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32; }
  ElementType Word() const { return type_ == ElementType::kF64 ? ElementType::kU64 : ElementType::kU32; }

  InstructionId UniformFloat() {
    const ElementType type = Computed();
    const InstructionId fraction = Fraction(Bits(Array(Word())), type, *DigitsOf(type_));
    const InstructionId low = Bound(0, type);
    const InstructionId range = Binary(Opcode::kSubtract, Bound(1, type), low);
    return rewriter_.MakeConvert(Binary(Opcode::kAdd, low, Binary(Opcode::kMultiply, range, fraction)), type_);
  }

  // Returns 64 bits modulo the range: probabilities differ by at most 2^-32 if the range has 32 bits.
  InstructionId UniformInteger() {
    const ElementType word = ElementType::kU64;
    const InstructionId bits = Bits(Array(word));
    if (type_ == ElementType::kPred) {
      const InstructionId lowest = Binary(Opcode::kAnd, bits, Number(word, 1));
      return rewriter_.MakeCompare(ComparisonDirection::kNe, lowest, Number(word, 0));
    }
    const InstructionId low = Bound(0, word);
    // An empty range yields its start.
    const InstructionId one = Number(word, 1);
    const InstructionId range = Binary(Opcode::kMaximum, Binary(Opcode::kSubtract, Bound(1, word), low), one);
    return rewriter_.MakeConvert(Binary(Opcode::kAdd, low, Binary(Opcode::kRemainder, bits, range)), type_);
  }

  // Returns the cosine branch of the Box–Muller transform.
  InstructionId Normal() {
    const ElementType type = Computed();
    std::vector<int64_t> dims = {2};
    dims.insert(dims.end(), rng_.shape().dims().begin(), rng_.shape().dims().end());
    const InstructionId pairs = Bits(rewriter_.shapes().Array(Word(), dims));
    InstructionId u[2];
    for (int64_t k = 0; k < 2; ++k) {
      std::vector<int64_t> slice = {k, k + 1, 1};
      for (int64_t d : rng_.shape().dims()) slice.insert(slice.end(), {0, d, 1});
      dims[0] = 1;
      const AttrValue attrs[] = {rewriter_.List(Attr::kSlice, slice)};
      const InstructionId half = rewriter_.Make(Opcode::kSlice, rewriter_.shapes().Array(Word(), dims), {pairs}, attrs);
      u[k] = Fraction(rewriter_.MakeReshape(half, Array(Word())), type, *DigitsOf(type));
    }
    const InstructionId positive = Binary(Opcode::kSubtract, Number(type, 1), u[0]);
    const InstructionId log = Unary(Opcode::kLog, positive);
    const InstructionId radius = Unary(Opcode::kSqrt, Binary(Opcode::kMultiply, Number(type, -2), log));
    const InstructionId angle = Binary(Opcode::kMultiply, Number(type, 2 * std::numbers::pi), u[1]);
    const InstructionId standard = Binary(Opcode::kMultiply, radius, Unary(Opcode::kCos, angle));
    const InstructionId scaled = Binary(Opcode::kMultiply, Bound(1, type), standard);
    return rewriter_.MakeConvert(Binary(Opcode::kAdd, Bound(0, type), scaled), type_);
  }

  PatternRewriter& rewriter_;
  Instruction rng_;
  ElementType type_;
};

bool ExpandRng(PatternRewriter& rewriter, Instruction rng) {
  if (!rewriter.MayReplaceEffect(rng)) return false;
  RngExpander expander(rewriter, rng);
  return expander.Applies() && rewriter.ReplaceEffect(rng, expander.Expand());
}

}  // namespace

void AddRngExpanderRules(RewritePatternSet* rules) { rules->Add({Opcode::kRng}, "random numbers expanded", ExpandRng); }

HLOKIT_PASS(RngExpander) {
  return {
      .name = "rng-expander",
      .category = "expand",
      .summary = "expand random numbers",
      .doc =
          "Uniform and normal numbers as arithmetic on bits of Philox or ThreeFry, whose counter is the random "
          "state of the program, read and advanced by rng-get-and-update-state. The distribution is that of other "
          "implementations of rng, the numbers are not.",
      .example = R"(ENTRY e {
  a = f32[] constant(-1)
  b = f32[] constant(1)
  ROOT r = f32[4] rng(a, b), distribution=rng_uniform, metadata={op_name="f/noise"}
})",
      .options = {{.name = "algorithm",
                   .type = OptionInfo::Type::kString,
                   .default_text = "philox",
                   .doc = "the random bit generator",
                   .choices = {"philox", "three-fry"}},
                  {"key", OptionInfo::Type::kInt, "0", "the key of the generator: another one gives other numbers"}},
      .redefines = {Opcode::kRng},
      .create = MakePass<RulesOf<AddRngExpanderRules, RewriteScope::kSequential>>};
}

}  // namespace hlokit
