// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/fold.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string_view>

namespace hlokit::stablehlo {
namespace {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::NodeTable;
using mlir::OpKind;
using Ints = std::vector<int64_t>;
using Folded = std::optional<Ints>;

struct IntegerForm {
  int64_t width = 64;
  bool is_unsigned = false;
};

// The form of the elements of a tensor of integers, or of an integer; nullopt for others.
std::optional<IntegerForm> FormOf(const NodeTable& n, NodeId type) {
  const NodeId element = n.kind(type) == NodeKind::kTensorType ? n.child(type, 0) : type;
  if (n.kind(element) == NodeKind::kIndexType) return IntegerForm{};
  if (n.kind(element) != NodeKind::kIntegerType || n.ints(element)[0] < 1 || n.ints(element)[0] > 64) {
    return std::nullopt;
  }
  const int64_t width = n.ints(element)[0];
  const bool is_unsigned = n.ints(element)[1] == static_cast<int64_t>(mlir::Signedness::kUnsigned);
  return IntegerForm{width, is_unsigned || width == 1};
}

int64_t Wrap(int64_t value, IntegerForm form) {
  const int unused = 64 - static_cast<int>(form.width);
  const auto shifted = static_cast<uint64_t>(value) << unused;
  return form.is_unsigned ? static_cast<int64_t>(shifted >> unused) : static_cast<int64_t>(shifted) >> unused;
}

// Returns the number of elements of a static type; nullopt for others, and beyond the limit.
std::optional<int64_t> CountOf(const NodeTable& n, NodeId type) {
  if (n.kind(type) != NodeKind::kTensorType) return 1;
  int64_t count = 1;
  for (int64_t size : n.ints(type)) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > kMaxFoldedElements) return std::nullopt;
  }
  return count;
}

class Folder {
 public:
  Folder(const NodeTable& nodes, const RefinedOp& op, const std::vector<RefinedValue>& values)
      : n_(nodes), op_(op), values_(values) {}

  Folded Run();

 private:
  NodeId type(uint32_t value) const { return values_[value].type; }
  NodeId Attribute(std::string_view name) const {
    for (const mlir::Attribute& a : op_.attributes) {
      if (n_.str(a.name) == name) return a.value;
    }
    return {};
  }
  const Ints& in(size_t i) const { return *values_[op_.operands[i]].constant; }
  absl::Span<const int64_t> sizes_in(size_t i) const { return n_.ints(type(op_.operands[i])); }
  // Returns true if all operands have constants of as many elements as their types.
  bool IsKnown() const {
    return std::all_of(op_.operands.begin(), op_.operands.end(),
                       [&](uint32_t value) { return HasElements(n_, values_[value]); });
  }
  bool IsTensor(uint32_t value) const { return n_.kind(type(value)) == NodeKind::kTensorType; }
  // Returns true if the operation has as many operands as its definition says, of tensors where it takes only those.
  bool IsWellFormed() const;
  Folded DimensionSize() const;
  Folded Iota() const;
  Folded BroadcastInDim() const;
  Folded Concatenate() const;
  Folded Slice() const;
  Folded Select() const;
  Folded Compare() const;
  Folded Unary() const;
  Folded Binary() const;
  std::optional<int64_t> Apply(int64_t a, int64_t b) const;

  const NodeTable& n_;
  const RefinedOp& op_;
  const std::vector<RefinedValue>& values_;
  IntegerForm form_;   // of the result
  int64_t count_ = 0;  // of its elements
};

bool Folder::IsWellFormed() const {
  if (!op_.definition->operand_counts.Contains(op_.operands.size())) return false;
  if (op_.kind() == OpKind::kShapeShapeOf || op_.kind() == OpKind::kTensorDim) return IsTensor(op_.operands[0]);
  if (op_.definition->dialect != "stablehlo") return true;
  return IsTensor(op_.results[0]) &&
         std::all_of(op_.operands.begin(), op_.operands.end(), [&](uint32_t value) { return IsTensor(value); });
}

Folded Folder::DimensionSize() const {
  const std::optional<int64_t> dimension = n_.IntegerValue(Attribute("dimension"));
  const NodeId array = type(op_.operands[0]);
  if (!dimension || *dimension < 0 || *dimension >= static_cast<int64_t>(n_.ints(array).size())) return std::nullopt;
  const int64_t size = n_.ints(array)[static_cast<size_t>(*dimension)];
  return size < 0 ? std::nullopt : Folded(Ints{size});
}

Folded Folder::Iota() const {
  const std::optional<int64_t> dimension = n_.IntegerValue(Attribute("iota_dimension"));
  const absl::Span<const int64_t> sizes = n_.ints(type(op_.results[0]));
  if (!dimension || *dimension < 0 || *dimension >= static_cast<int64_t>(sizes.size())) return std::nullopt;
  if (count_ == 0) return Ints();
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(*dimension) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  Ints made;
  for (int64_t i = 0; i < count_; ++i) made.push_back(i / inner % sizes[static_cast<size_t>(*dimension)]);
  return made;
}

Folded Folder::BroadcastInDim() const {
  const Folded dims = n_.Integers(Attribute("broadcast_dimensions"));
  const absl::Span<const int64_t> to = n_.ints(type(op_.results[0])), from = sizes_in(0);
  if (!dims || dims->size() != from.size()) return std::nullopt;
  Ints made;
  for (int64_t i = 0; i < count_; ++i) {
    Ints index(to.size());
    for (int64_t d = static_cast<int64_t>(to.size()) - 1, rest = i; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % to[static_cast<size_t>(d)];
      rest /= to[static_cast<size_t>(d)];
    }
    int64_t at = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t target = (*dims)[d];
      if (target < 0 || target >= static_cast<int64_t>(to.size())) return std::nullopt;
      at = at * from[d] + (from[d] == 1 ? 0 : index[static_cast<size_t>(target)]);
    }
    if (at >= static_cast<int64_t>(in(0).size())) return std::nullopt;
    made.push_back(in(0)[static_cast<size_t>(at)]);
  }
  return made;
}

Folded Folder::Concatenate() const {
  // Only along the outermost dimension of more than one element, where the elements follow one another.
  const std::optional<int64_t> dimension = n_.IntegerValue(Attribute("dimension"));
  const absl::Span<const int64_t> sizes = n_.ints(type(op_.results[0]));
  if (!dimension || *dimension < 0 || *dimension >= static_cast<int64_t>(sizes.size())) return std::nullopt;
  for (size_t d = 0; d < static_cast<size_t>(*dimension); ++d) {
    if (sizes[d] != 1) return std::nullopt;
  }
  Ints made;
  for (size_t i = 0; i < op_.operands.size(); ++i) made.insert(made.end(), in(i).begin(), in(i).end());
  return made;
}

Folded Folder::Slice() const {
  const Folded start = n_.Integers(Attribute("start_indices")), limit = n_.Integers(Attribute("limit_indices")),
               stride = n_.Integers(Attribute("strides"));
  if (!start || !limit || !stride || start->size() != 1 || limit->size() != 1 || stride->size() != 1) {
    return std::nullopt;
  }
  const auto size = static_cast<int64_t>(in(0).size());
  if ((*start)[0] < 0 || (*limit)[0] > size || (*stride)[0] < 1) return std::nullopt;
  Ints made;
  const int64_t step = std::min((*stride)[0], size + 1);
  for (int64_t i = (*start)[0]; i < (*limit)[0]; i += step) made.push_back(in(0)[static_cast<size_t>(i)]);
  return made;
}

Folded Folder::Select() const {
  Ints made;
  const bool scalar = in(0).size() == 1;
  if (in(1).size() != in(2).size() || (!scalar && in(0).size() != in(1).size())) return std::nullopt;
  for (size_t i = 0; i < in(1).size(); ++i) made.push_back(in(0)[scalar ? 0 : i] != 0 ? in(1)[i] : in(2)[i]);
  return made;
}

Folded Folder::Compare() const {
  const NodeId direction = Attribute("comparison_direction");
  const std::optional<IntegerForm> form = FormOf(n_, type(op_.operands[0]));
  if (!direction.valid() || n_.kind(direction) != NodeKind::kEnum || !form || in(0).size() != in(1).size()) {
    return std::nullopt;
  }
  const std::string_view name = n_.str(StringId(static_cast<uint32_t>(n_.ints(direction)[0])));
  Ints made;
  for (size_t i = 0; i < in(0).size(); ++i) {
    const int64_t a = in(0)[i], b = in(1)[i];
    const bool less = form->is_unsigned ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
    bool result = a == b;
    if (name == "NE") result = a != b;
    if (name == "LT") result = less;
    if (name == "LE") result = less || a == b;
    if (name == "GT") result = !less && a != b;
    if (name == "GE") result = !less;
    made.push_back(result ? 1 : 0);
  }
  return made;
}

Folded Folder::Unary() const {
  Ints made;
  for (int64_t x : in(0)) {
    const auto bits = static_cast<uint64_t>(x);
    int64_t y = x;
    if (op_.kind() == OpKind::kStablehloNegate) y = static_cast<int64_t>(0 - bits);
    if (op_.kind() == OpKind::kStablehloAbs && x < 0) y = static_cast<int64_t>(0 - bits);
    if (op_.kind() == OpKind::kStablehloSign) y = x > 0 ? 1 : x < 0 ? -1 : 0;
    if (op_.kind() == OpKind::kStablehloNot) y = form_.width == 1 ? 1 - x : ~x;
    if (op_.kind() == OpKind::kStablehloConvert && form_.width == 1) y = x != 0 ? 1 : 0;
    made.push_back(Wrap(y, form_));
  }
  return made;
}

// Returns nullopt where the operation has no value that all engines agree on.
std::optional<int64_t> Folder::Apply(int64_t a, int64_t b) const {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const bool less = form_.is_unsigned ? x < y : a < b;
  switch (op_.kind()) {
    case OpKind::kArithAddi:
      return static_cast<int64_t>(x + y);
    case OpKind::kStablehloAdd:
      return form_.width == 1 ? static_cast<int64_t>(x | y) : static_cast<int64_t>(x + y);
    case OpKind::kStablehloSubtract:
    case OpKind::kArithSubi:
      return static_cast<int64_t>(x - y);
    case OpKind::kStablehloMultiply:
    case OpKind::kArithMuli:
      return static_cast<int64_t>(x * y);
    case OpKind::kStablehloDivide:
    case OpKind::kStablehloRemainder: {
      if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1)) return std::nullopt;
      const bool divide = op_.kind() == OpKind::kStablehloDivide;
      if (form_.is_unsigned) return static_cast<int64_t>(divide ? x / y : x % y);
      return divide ? a / b : a % b;
    }
    case OpKind::kStablehloMaximum:
      return less ? b : a;
    case OpKind::kStablehloMinimum:
      return less ? a : b;
    case OpKind::kStablehloAnd:
      return a & b;
    case OpKind::kStablehloOr:
      return a | b;
    case OpKind::kStablehloXor:
      return a ^ b;
    case OpKind::kStablehloShiftLeft:
      return y >= static_cast<uint64_t>(form_.width) ? 0 : static_cast<int64_t>(x << y);
    case OpKind::kStablehloShiftRightLogical: {
      const uint64_t bits = form_.width == 64 ? x : x & ((uint64_t{1} << form_.width) - 1);
      return y >= static_cast<uint64_t>(form_.width) ? 0 : static_cast<int64_t>(bits >> y);
    }
    case OpKind::kStablehloPower: {
      if (b < 0) return std::nullopt;
      uint64_t power = 1, base = x;
      for (uint64_t e = y; e != 0; e >>= 1) {
        if ((e & 1) != 0) power *= base;
        base *= base;
      }
      return static_cast<int64_t>(power);
    }
    default:
      return std::nullopt;
  }
}

Folded Folder::Binary() const {
  if (in(0).size() != in(1).size()) return std::nullopt;
  Ints made;
  for (size_t i = 0; i < in(0).size(); ++i) {
    const std::optional<int64_t> value = Apply(in(0)[i], in(1)[i]);
    if (!value) return std::nullopt;
    made.push_back(Wrap(*value, form_));
  }
  return made;
}

Folded Folder::Run() {
  if (op_.results.size() != 1 || op_.definition == nullptr) return std::nullopt;
  const NodeId result = type(op_.results[0]);
  const std::optional<IntegerForm> form = FormOf(n_, result);
  const std::optional<int64_t> count = CountOf(n_, result);
  if (!form || !count || !IsWellFormed()) return std::nullopt;
  form_ = *form;
  count_ = *count;
  const OpKind kind = op_.kind();
  if (kind == OpKind::kStablehloGetDimensionSize) return DimensionSize();
  if (kind == OpKind::kShapeShapeOf) {
    const absl::Span<const int64_t> sizes = sizes_in(0);
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) return std::nullopt;
    return Ints(sizes.begin(), sizes.end());
  }
  if (kind == OpKind::kTensorDim) {
    const Folded& index = values_[op_.operands[1]].constant;
    const absl::Span<const int64_t> sizes = sizes_in(0);
    if (!index || index->size() != 1 || (*index)[0] < 0 || (*index)[0] >= static_cast<int64_t>(sizes.size()))
      return std::nullopt;
    const int64_t size = sizes[static_cast<size_t>((*index)[0])];
    return size < 0 ? std::nullopt : Folded(Ints{size});
  }
  if (!IsKnown()) return std::nullopt;
  Folded made;
  switch (kind) {
    case OpKind::kStablehloConstant:
    case OpKind::kArithConstant:
      return ElementsOf(n_, Attribute("value"), result);
    case OpKind::kStablehloIota:
    case OpKind::kStablehloDynamicIota:
      return Iota();
    case OpKind::kStablehloReshape:
    case OpKind::kStablehloDynamicReshape:
    case OpKind::kTensorCast:
    case OpKind::kShapeToExtentTensor:
      made = in(0);
      break;
    case OpKind::kShapeNumElements:
      made = Ints{std::accumulate(in(0).begin(), in(0).end(), int64_t{1}, [](int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      })};
      break;
    case OpKind::kTensorFromElements:
      made = Ints();
      for (size_t i = 0; i < op_.operands.size(); ++i) {
        if (in(i).size() != 1) return std::nullopt;
        made->push_back(in(i)[0]);
      }
      break;
    case OpKind::kTensorExtract: {
      const bool first = op_.operands.size() == 2 && in(1).size() == 1 && in(1)[0] >= 0 &&
                         in(1)[0] < static_cast<int64_t>(in(0).size());
      if (op_.operands.size() == 1) made = in(0);
      if (first) made = Ints{in(0)[static_cast<size_t>(in(1)[0])]};
      break;
    }
    case OpKind::kStablehloBroadcastInDim:
    case OpKind::kStablehloDynamicBroadcastInDim:
      made = BroadcastInDim();
      break;
    case OpKind::kStablehloConcatenate:
      made = Concatenate();
      break;
    case OpKind::kStablehloSlice:
      made = Slice();
      break;
    case OpKind::kStablehloSelect:
      made = Select();
      break;
    case OpKind::kStablehloClamp:
      if (in(0).size() == 1 && in(1).size() == 1 && in(2).size() == 1 && !form_.is_unsigned) {
        made = Ints{std::min(std::max(in(0)[0], in(1)[0]), in(2)[0])};
      }
      break;
    case OpKind::kStablehloCompare:
      made = Compare();
      break;
    case OpKind::kStablehloNegate:
    case OpKind::kStablehloAbs:
    case OpKind::kStablehloSign:
    case OpKind::kStablehloNot:
    case OpKind::kStablehloConvert:
    case OpKind::kArithIndexCast:
      made = Unary();
      break;
    default:
      if (op_.operands.size() == 2 && op_.regions.empty()) made = Binary();
      break;
  }
  if (made && static_cast<int64_t>(made->size()) != count_) return std::nullopt;
  return made;
}

}  // namespace

Folded ElementsOf(const NodeTable& nodes, NodeId attribute, NodeId type) {
  const std::optional<IntegerForm> form = FormOf(nodes, type);
  const std::optional<int64_t> count = CountOf(nodes, type);
  if (!form || !count || !attribute.valid()) return std::nullopt;
  if (const std::optional<int64_t> value = nodes.IntegerValue(attribute)) {
    return *count == 1 ? Folded(Ints{*value}) : std::nullopt;
  }
  Folded elements = nodes.Integers(attribute);
  if (elements && static_cast<int64_t>(elements->size()) != *count) return std::nullopt;
  return elements;
}

bool HasElements(const NodeTable& nodes, const RefinedValue& value) {
  if (!value.constant || !FormOf(nodes, value.type)) return false;
  const std::optional<int64_t> count = CountOf(nodes, value.type);
  return count && static_cast<int64_t>(value.constant->size()) == *count;
}

Folded Fold(const NodeTable& nodes, const RefinedOp& op, const std::vector<RefinedValue>& values) {
  return Folder(nodes, op, values).Run();
}

}  // namespace hlokit::stablehlo
