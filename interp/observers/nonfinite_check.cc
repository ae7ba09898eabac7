// SPDX-License-Identifier: Apache-2.0
#include "interp/observers/nonfinite_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/evaluator.h"
#include "interp/observers/value_summary.h"
#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"
#include "passes/query/extract.h"

namespace hlokit::interp {
namespace {

// First NaN and first infinity of an array; -1: none.
struct Nonfinite {
  int64_t nan = -1;
  int64_t infinity = -1;
};

// The bits of the exponent, all of which are set in NaN and infinities; 0: of a type that is looked at by element.
template <typename T>
constexpr uint64_t kExponentBits = 0;
template <>
constexpr uint64_t kExponentBits<double> = 0x7ff0000000000000;
template <>
constexpr uint64_t kExponentBits<float> = 0x7f800000;
template <>
constexpr uint64_t kExponentBits<BF16> = 0x7f80;
template <>
constexpr uint64_t kExponentBits<F16> = 0x7c00;
template <size_t kBytes>
using Bits = std::conditional_t<kBytes == 8, uint64_t, std::conditional_t<kBytes == 4, uint32_t, uint16_t>>;

constexpr int64_t kBlock = 256;  // elements

// Returns true if no element of a block is a NaN or an infinity. Without a branch for each element.
template <typename T>
bool IsBlockFinite(const T* values) {
  using Word = Bits<sizeof(T)>;
  constexpr Word kMask = static_cast<Word>(kExponentBits<T>);
  Word any = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    Word word;
    std::memcpy(&word, static_cast<const void*>(values + i), sizeof(word));
    any |= static_cast<Word>((word & kMask) == kMask);
  }
  return any == 0;
}

template <typename T>
Nonfinite FindIn(const T* values, int64_t count) {
  Nonfinite found;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    if constexpr (kExponentBits<T> != 0) {
      if (end - begin == kBlock && IsBlockFinite(values + begin)) continue;
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

std::vector<bool> InstructionsOf(const Module& module) {
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

// A value of an instruction or a group: shapes of its leaves, and their bytes.
struct LeavesOfValues {
  std::vector<Shape> shapes;
  absl::Span<const std::byte* const> data;

  LeavesOfValues(absl::Span<const Instruction> instructions, absl::Span<const std::byte* const> bytes) : data(bytes) {
    for (Instruction i : instructions) AppendLeaves(i.shape(), &shapes);
  }
  Nonfinite Find(size_t leaf) const { return interp::Find(shapes[leaf], data[leaf]); }
  bool HasNonfinite() const {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (const Nonfinite found = Find(i); found.nan >= 0 || found.infinity >= 0) return true;
    }
    return false;
  }
};

// A value that no operand explains.
struct Produced {
  size_t leaf = 0;
  int64_t element = 0;
  bool is_nan = false;

  // Returns "produces a NaN: element {2} of f32[4] is nan".
  std::string ToString(const LeavesOfValues& values) const {
    const Shape shape = values.shapes[leaf];
    std::string text = StrCat("produces ", is_nan ? "a NaN" : "an infinity", ": ");
    if (shape.rank() != 0) StrAppend(&text, "element ", IndexToString(shape, element), " of ");
    StrAppend(&text, hlokit::ToString(shape, /*with_layout=*/false), " is ",
              ElementToString(shape, values.data[leaf], element));
    return text;
  }
};

std::optional<Produced> FindProduced(const LeavesOfValues& values, const LeavesOfValues& operands) {
  for (size_t i = 0; i < values.shapes.size(); ++i) {
    Nonfinite found = values.Find(i);
    if (found.nan < 0 && found.infinity < 0) continue;
    for (size_t k = 0; k < operands.shapes.size(); ++k) {
      const Nonfinite before = operands.Find(k);
      if (before.nan >= 0) found.nan = -1;
      if (before.nan >= 0 || before.infinity >= 0) found.infinity = -1;
    }
    if (found.nan >= 0) return Produced{i, found.nan, true};
    if (found.infinity >= 0) return Produced{i, found.infinity, false};
  }
  return std::nullopt;
}

// Looks for the first instruction of a part that produces a value.
class PartCheck : public NonfiniteCheck {
 public:
  using NonfiniteCheck::NonfiniteCheck;
  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override {
    const absl::Status status = NonfiniteCheck::OnValue(instruction, values, operands);
    if (!status.ok()) found = {instruction, status};
    return status;
  }
  std::pair<InstructionId, absl::Status> found;
};

}  // namespace

NonfiniteCheck::NonfiniteCheck(const Module& module) : module_(module), shown_(InstructionsOf(module)) {}

void NonfiniteCheck::AddTo(const Module& module, ObservationRequest* request) {
  request->operands = true;
  request->grouped = InstructionsOf(module);
}

bool NonfiniteCheck::NeedsValue(InstructionId id, absl::Span<const std::byte* const> elements) {
  if (id.value >= shown_.size() || !shown_[id.value]) return false;
  const Instruction instruction = module_.instruction(id);
  return LeavesOfValues({&instruction, 1}, elements).HasNonfinite();
}

bool NonfiniteCheck::NeedsGroup(const ObservedGroup& group, absl::Span<const std::byte* const> elements) {
  return LeavesOfValues(group.results, elements).HasNonfinite();
}

absl::Status NonfiniteCheck::OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                                     absl::Span<const std::byte* const> operands) {
  if (id.value >= shown_.size() || !shown_[id.value]) return absl::OkStatus();
  const Instruction instruction = module_.instruction(id);
  const LeavesOfValues result({&instruction, 1}, values);
  std::vector<Instruction> from;
  for (Instruction operand : instruction.operands()) from.push_back(operand);
  const std::optional<Produced> produced = FindProduced(result, LeavesOfValues(from, operands));
  if (!produced) return absl::OkStatus();
  std::string message = produced->ToString(result);
  const std::string text = OperandsToString(instruction, operands, result.shapes[produced->leaf], produced->element);
  if (!text.empty()) StrAppend(&message, "; ", text);
  return absl::OutOfRangeError(message);
}

absl::Status NonfiniteCheck::OnGroup(const ObservedGroup& group, absl::Span<const std::byte* const> values,
                                     absl::Span<const std::byte* const> operands, InstructionId* at) {
  const LeavesOfValues results(group.results, values), inputs(group.operands, operands);
  absl::flat_hash_map<uint32_t, absl::Span<const std::byte* const>> data;  // of operands, by id
  size_t next = 0;
  for (Instruction operand : group.operands) {
    const size_t count = LeavesOfValues({&operand, 1}, {}).shapes.size();
    data[operand.id().value] = operands.subspan(next, count);
    next += count;
  }
  absl::flat_hash_map<std::string_view, size_t> members;  // by name
  for (size_t i = 0; i < group.members.size(); ++i) members[group.members[i].name()] = i;
  // The first member found, of the parts that compute the results.
  size_t first = group.members.size();
  absl::Status status;
  for (Instruction result : group.results) {
    const query::Part part = query::ExtractPart(result, [&](Instruction i) { return data.contains(i.id().value); });
    std::vector<Literal> arguments;
    for (Instruction input : part.inputs) {
      std::vector<Shape> shapes;
      AppendLeaves(input.shape(), &shapes);
      for (size_t i = 0; i < shapes.size(); ++i) {
        arguments.push_back(
            Literal::Borrowed(shapes[i], const_cast<std::byte*>(data.at(input.id().value)[i])));  // only read
      }
    }
    PartCheck check(part.module);
    EvaluatorOptions options;
    options.num_threads = 1;
    options.observer = &check;
    AddTo(part.module, &options.observation);
    DiagnosticSink ignored;
    const std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(part.module, options, &ignored);
    if (evaluator == nullptr) continue;
    evaluator->Run(arguments, &ignored);
    const auto& [instruction, found] = check.found;
    if (found.ok()) continue;
    const auto member = members.find(part.module.instruction(instruction).name());
    if (member == members.end() || member->second >= first) continue;
    first = member->second;
    status = found;
  }
  if (first < group.members.size()) {
    *at = group.members[first].id();
    return status;
  }
  // The instructions by themselves produce none, but the loop may.
  const std::optional<Produced> produced = FindProduced(results, inputs);
  if (!produced) return absl::OkStatus();
  return absl::OutOfRangeError(StrCat("the loop of ", group.members.size(), " instructions that ends here ",
                                      produced->ToString(results), "; by themselves they do not"));
}

}  // namespace hlokit::interp
