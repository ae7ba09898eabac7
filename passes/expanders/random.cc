// SPDX-License-Identifier: Apache-2.0
// Random bits as integer arithmetic: ThreeFry-2x32 with 20 rounds and Philox-4x32 with 10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011), in the arrangement of XLA's RngBitGeneratorExpander. The same bits and
// the same next state, exactly.
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/expanders/random_bits.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// An unsigned 64-bit number as two 32-bit words.
struct Words {
  InstructionId low, high;
};

class BitGenerator {
 public:
  BitGenerator(PatternRewriter& rewriter, RngAlgorithm algorithm, std::vector<InstructionId> state, Shape values)
      : rewriter_(rewriter), algorithm_(algorithm), words_(std::move(state)), values_(values) {}

  RandomBits Generate() { return algorithm_ == RngAlgorithm::kThreeFry ? ThreeFry() : Philox(); }

 private:
  bool Is64() const { return BitsOf(values_.element_type()) == 64; }

  // ---- arithmetic on arrays, or on scalars ----
  Shape Array(ElementType type, absl::Span<const int64_t> dims) { return rewriter_.shapes().Array(type, dims); }
  InstructionId Number(InstructionId like, uint64_t value) {
    const Shape shape = rewriter_.at(like).shape();
    return rewriter_.MakeSplat(shape, rewriter_.MakeScalarConstant(shape.element_type(), static_cast<double>(value)));
  }
  InstructionId Binary(Opcode opcode, InstructionId a, InstructionId b) { return rewriter_.MakeLike(opcode, {a, b}); }
  InstructionId Add(InstructionId a, InstructionId b) { return Binary(Opcode::kAdd, a, b); }
  InstructionId Xor(InstructionId a, InstructionId b) { return Binary(Opcode::kXor, a, b); }
  InstructionId ShiftRight(InstructionId a, uint64_t bits) {
    return Binary(Opcode::kShiftRightLogical, a, Number(a, bits));
  }
  InstructionId ShiftLeft(InstructionId a, uint64_t bits) { return Binary(Opcode::kShiftLeft, a, Number(a, bits)); }
  InstructionId RotateLeft(InstructionId a, uint64_t bits) {
    const InstructionId low = ShiftRight(a, 32 - bits);
    return Binary(Opcode::kOr, ShiftLeft(a, bits), low);
  }
  InstructionId Low(InstructionId a) { return rewriter_.MakeConvert(a, ElementType::kU32); }
  InstructionId High(InstructionId a) { return rewriter_.MakeConvert(ShiftRight(a, 32), ElementType::kU32); }
  InstructionId Join(InstructionId low, InstructionId high) {
    const InstructionId upper = ShiftLeft(rewriter_.MakeConvert(high, ElementType::kU64), 32);
    return Binary(Opcode::kOr, rewriter_.MakeConvert(low, ElementType::kU64), upper);
  }
  // Broadcasts a scalar to an array of `count` elements.
  InstructionId Spread(InstructionId scalar, int64_t count) {
    return rewriter_.MakeSplat(Array(rewriter_.at(scalar).shape().element_type(), {count}), scalar);
  }
  InstructionId Slice(InstructionId a, int64_t begin, int64_t end) {
    const AttrValue attrs[] = {rewriter_.List(Attr::kSlice, {begin, end, 1})};
    return rewriter_.Make(Opcode::kSlice, Array(rewriter_.at(a).shape().element_type(), {end - begin}), {a}, attrs);
  }
  InstructionId Concatenate(const std::vector<InstructionId>& parts, int64_t dimension) {
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {dimension})};
    return rewriter_.MakeInferred(Opcode::kConcatenate, parts, attrs);
  }

  // Converts unsigned words of 32 or 64 bits to elements of the result, in its dimensions: the low bits.
  InstructionId Elements(InstructionId bits) {
    const ElementType type = values_.element_type();
    constexpr ElementType kUnsigned[] = {ElementType::kU8, ElementType::kU16, ElementType::kU32, ElementType::kU64};
    ElementType as = ElementType::kU64;
    for (ElementType u : kUnsigned) {
      if (BitsOf(u) == BitsOf(type)) as = u;
    }
    bits = rewriter_.MakeConvert(bits, as);
    return as == type ? bits : rewriter_.Make(Opcode::kBitcastConvert, values_, {bits});
  }

  // ---- the generators ----
  // x: two arrays of counters. key: two scalars.
  Words ThreeFryBlocks(Words x, Words key, int64_t count) {
    constexpr uint64_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const InstructionId constant = Number(key.low, 0x1bd11bda);
    const InstructionId parity = Xor(Xor(key.low, key.high), constant);
    const InstructionId keys[3] = {key.low, key.high, parity};
    x.low = Add(x.low, Spread(keys[0], count));
    x.high = Add(x.high, Spread(keys[1], count));
    for (uint64_t group = 0; group < 5; ++group) {
      for (uint64_t rotation : kRotations[group % 2]) {
        x.low = Add(x.low, x.high);
        x.high = Xor(RotateLeft(x.high, rotation), x.low);
      }
      const InstructionId second = keys[(group + 2) % 3];
      x.low = Add(x.low, Spread(keys[(group + 1) % 3], count));
      x.high = Add(x.high, Spread(Add(second, Number(second, group + 1)), count));
    }
    return x;
  }

  InstructionId Counters(int64_t blocks) {
    const AttrValue attrs[] = {rewriter_.Int(Attr::kIotaDimension, 0)};
    const InstructionId iota = rewriter_.Make(Opcode::kIota, Array(ElementType::kU64, {blocks}), {}, attrs);
    return Add(Spread(words_[1], blocks), iota);
  }

  RandomBits ThreeFry() {
    const Words key = {Low(words_[0]), High(words_[0])};
    // 32-bit numbers come in pairs, which are neighbors in dimension `split`: the first of even size, or else the first
    // of the largest ones, rounded up.
    int64_t split = -1;
    for (int64_t d = 0; d < values_.rank() && split < 0; ++d) {
      if (values_.dim(d) % 2 == 0) split = d;
    }
    if (split < 0) {
      for (int64_t d = 0; d < values_.rank(); ++d) {
        if (split < 0 || values_.dim(d) > values_.dim(split)) split = d;
      }
    }
    int64_t before = 1, size = 1, after = 1;
    for (int64_t d = 0; d < values_.rank(); ++d) (d < split ? before : d == split ? size : after) *= values_.dim(d);
    const int64_t half = (size + 1) / 2;
    const int64_t blocks = Is64() ? values_.element_count() : before * half * after;
    const InstructionId counters = Counters(blocks);
    const Words r = ThreeFryBlocks({Low(counters), High(counters)}, key, blocks);
    InstructionId bits;
    if (Is64()) {
      bits = rewriter_.MakeReshape(Join(r.low, r.high), Array(ElementType::kU64, values_.dims()));
    } else {
      const Shape pair = Array(ElementType::kU32, {before, half, 1, after});
      bits = Concatenate({rewriter_.MakeReshape(r.low, pair), rewriter_.MakeReshape(r.high, pair)}, 2);
      bits = rewriter_.MakeReshape(bits, Array(ElementType::kU32, {before, 2 * half, after}));
      if (2 * half != size) {
        const AttrValue attrs[] = {rewriter_.List(Attr::kSlice, {0, before, 1, 0, size, 1, 0, after, 1})};
        bits = rewriter_.Make(Opcode::kSlice, Array(ElementType::kU32, {before, size, after}), {bits}, attrs);
      }
      bits = rewriter_.MakeReshape(bits, Array(ElementType::kU32, values_.dims()));
    }
    const InstructionId next = Add(words_[1], Number(words_[1], static_cast<uint64_t>(blocks)));
    return {{words_[0], next}, Elements(bits)};
  }

  std::array<InstructionId, 4> PhiloxBlocks(std::array<InstructionId, 4> x, Words key, int64_t count) {
    for (int round = 0; round < 10; ++round) {
      const auto product = [&](InstructionId a, uint64_t factor) {
        const InstructionId wide = rewriter_.MakeConvert(a, ElementType::kU64);
        return Binary(Opcode::kMultiply, wide, Number(wide, factor));
      };
      const InstructionId a = product(x[0], 0xd2511f53), b = product(x[2], 0xcd9e8d57);
      const auto mixed = [&](InstructionId of, InstructionId with, InstructionId half_key) {
        const InstructionId keys = Spread(half_key, count);
        return Xor(Xor(High(of), with), keys);
      };
      x = {mixed(b, x[1], key.low), Low(b), mixed(a, x[3], key.high), Low(a)};
      key.low = Add(key.low, Number(key.low, 0x9e3779b9));
      key.high = Add(key.high, Number(key.high, 0xbb67ae85));
    }
    return x;
  }

  // Returns `high` plus the carry of a sum of low halves, given the result `sum` and the operand `low`.
  InstructionId Carried(InstructionId high, InstructionId sum, InstructionId low) {
    const InstructionId carry = rewriter_.MakeCompare(ComparisonDirection::kLt, sum, low);
    return Add(high, rewriter_.MakeConvert(carry, ElementType::kU64));
  }

  // The counter has 128 bits. A state of two numbers holds the key and its low half; the high half is then the key.
  RandomBits Philox() {
    const InstructionId high = words_.size() >= 3 ? words_[2] : words_[0];
    const int64_t per_block = Is64() ? 2 : 4, count = values_.element_count();
    const int64_t blocks = (count + per_block - 1) / per_block;
    const InstructionId low = Counters(blocks);
    const InstructionId begin = Spread(words_[1], blocks), highs = Spread(high, blocks);
    const InstructionId carried = Carried(highs, low, begin);
    const Words key = {Low(words_[0]), High(words_[0])};
    const std::array<InstructionId, 4> r =
        PhiloxBlocks({Low(low), High(low), Low(carried), High(carried)}, key, blocks);
    std::vector<InstructionId> parts;
    if (Is64()) {
      parts = {Join(r[0], r[1]), Join(r[2], r[3])};
    } else {
      parts.assign(r.begin(), r.end());
    }
    const ElementType type = rewriter_.at(parts[0]).shape().element_type();
    for (InstructionId& part : parts) part = rewriter_.MakeReshape(part, Array(type, {blocks, 1}));
    InstructionId bits = rewriter_.MakeReshape(Concatenate(parts, 1), Array(type, {blocks * per_block}));
    if (blocks * per_block != count) bits = Slice(bits, 0, count);
    bits = rewriter_.MakeReshape(bits, Array(type, values_.dims()));
    const InstructionId next = Add(words_[1], Number(words_[1], static_cast<uint64_t>(blocks)));
    std::vector<InstructionId> state = {words_[0], next};
    if (words_.size() >= 3) state.push_back(Carried(high, next, words_[1]));
    return {state, Elements(bits)};
  }

  PatternRewriter& rewriter_;
  RngAlgorithm algorithm_;
  std::vector<InstructionId> words_;  // of the state, as scalars u64
  Shape values_;
};

// Expands rng-bit-generator, whose state is an array of u64, or of u32 in pairs.
class GeneratorExpander {
 public:
  GeneratorExpander(PatternRewriter& rewriter, Instruction i)
      : rewriter_(rewriter),
        instruction_(i),
        state_(i.operand(0)),
        algorithm_(i.enum_attr(Attr::kRngAlgorithm, RngAlgorithm::kDefault)) {}

  bool Applies() const {
    const Shape values = instruction_.shape().element(1);
    const ElementType type = values.element_type();
    const int64_t state_bytes = ByteSize(state_.shape());
    const bool is_word =
        state_.shape().element_type() == ElementType::kU64 || state_.shape().element_type() == ElementType::kU32;
    return rewriter_.IsReplaceable(instruction_) && is_word && state_.shape().rank() == 1 &&
           (state_bytes == 16 || (state_bytes == 24 && algorithm_ != RngAlgorithm::kThreeFry)) && BitsOf(type) >= 8 &&
           BitsOf(type) <= 64 && !IsComplex(type) && type != ElementType::kPred && values.element_count() > 0;
  }

  InstructionId Expand() {
    std::vector<InstructionId> words;
    for (int64_t k = 0; k < ByteSize(state_.shape()) / 8; ++k) words.push_back(StateWord(k));
    const RandomBits bits = MakeRandomBits(rewriter_, algorithm_, std::move(words), instruction_.shape().element(1));
    return rewriter_.Make(Opcode::kTuple, instruction_.shape(), {NextState(bits.state), bits.values});
  }

 private:
  bool IsWide() const { return state_.shape().element_type() == ElementType::kU64; }
  // Returns element k of the state.
  InstructionId Element(int64_t k) {
    const ElementType type = state_.shape().element_type();
    const AttrValue attrs[] = {rewriter_.List(Attr::kSlice, {k, k + 1, 1})};
    const Shape one = rewriter_.shapes().Array(type, {1});
    return rewriter_.MakeReshape(rewriter_.Make(Opcode::kSlice, one, {state_.id()}, attrs),
                                 rewriter_.shapes().Scalar(type));
  }
  // Returns word k of the state as a scalar u64.
  InstructionId StateWord(int64_t k) {
    if (IsWide()) return Element(k);
    const InstructionId low = rewriter_.MakeConvert(Element(2 * k), ElementType::kU64);
    const InstructionId high = rewriter_.MakeConvert(Element(2 * k + 1), ElementType::kU64);
    const InstructionId bits = rewriter_.MakeScalarConstant(ElementType::kU64, 32);
    return rewriter_.MakeLike(Opcode::kOr, {low, rewriter_.MakeLike(Opcode::kShiftLeft, {high, bits})});
  }
  InstructionId NextState(const std::vector<InstructionId>& state) {
    std::vector<InstructionId> parts;
    const Shape one = rewriter_.shapes().Array(state_.shape().element_type(), {1});
    for (InstructionId word : state) {
      if (IsWide()) {
        parts.push_back(rewriter_.MakeReshape(word, one));
        continue;
      }
      const InstructionId bits = rewriter_.MakeScalarConstant(ElementType::kU64, 32);
      const InstructionId high = rewriter_.MakeLike(Opcode::kShiftRightLogical, {word, bits});
      for (InstructionId half : {word, high}) {
        parts.push_back(rewriter_.MakeReshape(rewriter_.MakeConvert(half, ElementType::kU32), one));
      }
    }
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {0})};
    return rewriter_.MakeInferred(Opcode::kConcatenate, parts, attrs);
  }

  PatternRewriter& rewriter_;
  Instruction instruction_, state_;
  RngAlgorithm algorithm_;
};

bool ExpandBits(PatternRewriter& rewriter, Instruction i) {
  if (!i.shape().IsTuple() || i.shape().tuple_size() != 2 || !i.shape().element(1).IsArray()) return false;
  GeneratorExpander expander(rewriter, i);
  return expander.Applies() && rewriter.Replace(i, expander.Expand());
}

}  // namespace

RandomBits MakeRandomBits(PatternRewriter& rewriter, RngAlgorithm algorithm, std::vector<InstructionId> state,
                          Shape values) {
  return BitGenerator(rewriter, algorithm, std::move(state), values).Generate();
}

void AddRngBitGeneratorExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kRngBitGenerator}, "random bit generators expanded", ExpandBits);
}

HLOKIT_PASS(RngBitGeneratorExpander) {
  return {.name = "rng-bit-generator-expander",
          .category = "expand",
          .summary = "expand random bit generators",
          .doc =
              "ThreeFry and Philox as integer arithmetic on arrays of counters: the same bits and the same "
              "next state. The default algorithm is Philox.",
          .example = R"(ENTRY e {
  state = u64[2] parameter(0)
  ROOT r = (u64[2], u32[3]) rng-bit-generator(state), algorithm=rng_philox, metadata={op_name="f/random"}
})",
          .create = MakePass<RulesOf<AddRngBitGeneratorExpanderRules>>};
}

}  // namespace hlokit
