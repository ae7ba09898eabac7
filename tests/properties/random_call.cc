// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random_call.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy {
namespace {

using random_test::Random;

constexpr int64_t kMaxLiteralElements = 512;

const std::vector<ElementType>& UsualTypes() {
  static const std::vector<ElementType> types = {ElementType::kF32, ElementType::kF32,  ElementType::kF32,
                                                 ElementType::kF64, ElementType::kBF16, ElementType::kF16,
                                                 ElementType::kS64, ElementType::kS32,  ElementType::kPred};
  return types;
}

const std::vector<ElementType>& AllTypes() {
  static const std::vector<ElementType> types = [] {
    std::vector<ElementType> found;
    for (size_t i = 0; i < kElementTypeCount; ++i) {
      if (IsArrayType(static_cast<ElementType>(i))) found.push_back(static_cast<ElementType>(i));
    }
    return found;
  }();
  return types;
}

// Ranks that names of arguments imply, without a constraint in the op table.
std::optional<int64_t> RankOf(std::string_view name) {
  static constexpr std::pair<std::string_view, int64_t> kRanks[] = {
      {"mat", 2}, {"mat2", 2}, {"batch1", 3}, {"batch2", 3}, {"vec", 1}, {"vec1", 1}, {"vec2", 1}};
  for (const auto& [known, rank] : kRanks) {
    if (known == name) return rank;
  }
  return std::nullopt;
}

int64_t OddInt(Random& random) {
  static const std::vector<int64_t> kOdd = {-1,
                                            0,
                                            -2,
                                            -7,
                                            9,
                                            64,
                                            65,
                                            1000,
                                            -100,
                                            int64_t{1} << 20,
                                            std::numeric_limits<int32_t>::max(),
                                            int64_t{1} << 31,
                                            int64_t{1} << 32,
                                            -(int64_t{1} << 31),
                                            int64_t{1} << 53,
                                            int64_t{1} << 62,
                                            std::numeric_limits<int64_t>::max(),
                                            std::numeric_limits<int64_t>::min()};
  return random.Of(kOdd);
}

double OddDouble(Random& random) {
  static const std::vector<double> kOdd = {std::numeric_limits<double>::quiet_NaN(),
                                           std::numeric_limits<double>::infinity(),
                                           -std::numeric_limits<double>::infinity(),
                                           -0.0,
                                           0.0,
                                           1e308,
                                           -1e308,
                                           1e-320,
                                           3e38,
                                           9.3e18,
                                           -1.0,
                                           2.0};
  return random.Of(kOdd);
}

std::string ToText(const IValue& value) {
  const auto scalar = [](Scalar s) {
    if (s.kind() == Scalar::Kind::kBool) return std::string(s.ToBool() ? "true" : "false");
    return s.is_float() ? FormatDouble(s.ToDouble(), 17) : StrCat(s.ToInt());
  };
  std::string out;
  switch (value.kind()) {
    case IValue::Kind::kNone:
      return "none";
    case IValue::Kind::kTensor:
      return ToString(value.get<Tensor>()->shape(), false);
    case IValue::Kind::kTensors:
      for (const Tensor& t : *value.get<Tensors>()) {
        StrAppend(&out, out.empty() ? "" : ", ", t.defined() ? ToString(t.shape(), false) : "none");
      }
      return StrCat("[", out, "]");
    case IValue::Kind::kScalar:
      return scalar(*value.get<Scalar>());
    case IValue::Kind::kInts:
      for (int64_t i : *value.get<IntList>()) StrAppend(&out, out.empty() ? "" : ", ", i);
      return StrCat("(", out, ")");
    case IValue::Kind::kFloats:
      for (double d : *value.get<std::vector<double>>()) StrAppend(&out, out.empty() ? "" : ", ", FormatDouble(d, 17));
      return StrCat("(", out, ")");
    case IValue::Kind::kString:
      return StrCat("\"", *value.get<std::string>(), "\"");
    case IValue::Kind::kType:
      return std::string(ToString(*value.get<ElementType>()));
  }
  return out;
}

}  // namespace

RandomCall::RandomCall(Tracer* tracer, Op op, uint64_t seed, int oddness)
    : tracer_(*tracer), op_(op), random_(seed * 1000003 + static_cast<uint64_t>(op)), oddness_(oddness) {
  const Schema& schema = SchemaOf(op);
  for (const ArgSpec& spec : schema.args) args_.push_back(Argument(spec));
  // Omitted arguments.
  while (!args_.empty() && schema.args[args_.size() - 1].has_default && random_.OneIn(4)) args_.pop_back();
}

std::string RandomCall::text() const {
  const Schema& schema = SchemaOf(op_);
  std::string out = StrCat(schema.full_name(), "(");
  for (size_t i = 0; i < args_.size(); ++i) {
    const bool tensor = args_[i].get<Tensor>() != nullptr;
    StrAppend(&out, i == 0 ? "" : ", ", tensor ? "" : StrCat(schema.args[i].name, "="), ToText(args_[i]));
  }
  return out + ")";
}

IValue RandomCall::Argument(const ArgSpec& spec) {
  if (spec.optional ? random_.OneIn(3) : (oddness_ > 0 && random_.OneIn(100))) return IValue();
  switch (spec.type) {
    case ArgType::kTensor:
      return RandomTensor(spec);
    case ArgType::kTensorList: {
      Tensors list;
      const int64_t count = Odd() ? random_.In(0, 6) : random_.In(1, 3);
      for (int64_t i = 0; i < count; ++i) {
        const bool none = (spec.optional_items || Odd()) && random_.OneIn(4);
        list.push_back(none ? Tensor() : RandomTensor(spec));
      }
      return list;
    }
    case ArgType::kScalar:
    case ArgType::kInt:
    case ArgType::kFloat:
    case ArgType::kBool:
      return Number(spec);
    case ArgType::kIntList:
      return Ints(spec);
    case ArgType::kFloatList: {
      std::vector<double> list(static_cast<size_t>(random_.In(0, Odd() ? 5 : 2)));
      for (double& d : list) d = Odd() ? OddDouble(random_) : static_cast<double>(random_.In(1, 4)) / 2;
      return list;
    }
    case ArgType::kString: {
      static const std::vector<std::string> kWords = {
          "none",         "tanh",  "floor", "trunc",  "reduced",   "complete", "add",   "multiply",  "sum",
          "mean",         "amax",  "amin",  "prod",   "ij,jk->ik", "ij->ji",   "ii->i", "i,i->",     "i,j",
          "bij,bjk->bik", "...ij", "->",    "a,,b->", "i i",       "gesvd",    "",      "\xff\x00x", "r"};
      return spec.name == "reduce" && !Odd() ? kWords[random_.OneIn(2) ? 6 : 7] : random_.Of(kWords);
    }
    case ArgType::kDtype:
      return Type(spec);
  }
  return IValue();
}

ElementType RandomCall::Type(const ArgSpec& spec) {
  if (Odd()) return random_.Of(random_.OneIn(2) ? AllTypes() : UsualTypes());
  if (spec.constraint.integer || spec.name.find("ind") == 0 || spec.name == "target") return ElementType::kS64;
  if (spec.name.find("mask") != std::string::npos || spec.name == "condition") return ElementType::kPred;
  if (spec.constraint.type_of_first || has_first_) return first_type_;
  return random_.Of(UsualTypes());
}

std::vector<int64_t> RandomCall::Sizes(const ArgSpec& spec) {
  std::vector<int64_t> dims;
  if (Odd()) {
    const int64_t rank = random_.In(0, 6);
    for (int64_t i = 0; i < rank; ++i) {
      dims.push_back(random_.OneIn(4) ? 0 : random_.OneIn(3) ? random_.In(1, 2) : random_.In(1, 5));
    }
    if (random_.OneIn(12)) {
      for (int64_t& d : dims) d = random_.OneIn(2) ? d : int64_t{1} << random_.In(8, 40);
    }
    return dims;
  }
  // As the first tensor, or without some of its leading dimensions, or of size 1.
  ArgConstraint wanted = spec.constraint;
  if (const std::optional<int64_t> rank = RankOf(spec.name)) {
    wanted.min_rank = wanted.max_rank = static_cast<int>(*rank);
  }
  if (has_first_ && random_.In(0, 3) != 0) {
    dims = first_dims_;
    if (random_.OneIn(6) && !dims.empty()) dims.erase(dims.begin());
    if (random_.OneIn(6) && !dims.empty()) random_.OneIn(2) ? (dims[0] = 1) : (dims.back() = 1);
    if (static_cast<int>(dims.size()) >= wanted.min_rank && static_cast<int>(dims.size()) <= wanted.max_rank) {
      return dims;
    }
    dims.clear();
  }
  const int64_t lowest = wanted.min_rank == 0 ? random_.In(0, std::min(wanted.max_rank, 2)) : wanted.min_rank;
  const int64_t rank = random_.In(lowest, std::min<int64_t>(wanted.max_rank, std::max<int64_t>(lowest, 4)));
  for (int64_t i = 0; i < rank; ++i) dims.push_back(random_.In(2, 4));
  if (random_.OneIn(2)) std::fill(dims.begin(), dims.end(), 3);
  return dims;
}

Tensor RandomCall::RandomTensor(const ArgSpec& spec) {
  const ElementType type = Type(spec);
  const std::vector<int64_t> dims = Sizes(spec);
  if (!has_first_) {
    has_first_ = true;
    first_dims_ = dims;
    first_type_ = type;
  }
  int64_t elements = 1;
  for (int64_t d : dims) elements = std::min<int64_t>(elements * std::min<int64_t>(d, 1 << 20), 1 << 20);
  // Large values without memory.
  if (elements > kMaxLiteralElements) return InvokeOp(Op::full, dims, Scalar(1), type);
  Literal value = Literal::Zeros(tracer_.device()->ArrayShape(type, dims));
  const auto width = static_cast<size_t>(BytesOf(type));
  const bool indices = IsInteger(type) && !Odd();
  for (int64_t i = 0; i < value.element_count(); ++i) {
    Scalar number = indices ? Scalar(random_.In(0, 2)) : Scalar(static_cast<double>(random_.In(-12, 12)) / 4);
    if (oddness_ > 0 && random_.OneIn(16)) number = Odd() ? Scalar(OddInt(random_)) : Scalar(OddDouble(random_));
    StoreScalar(type, number, value.data() + static_cast<size_t>(i) * width);
  }
  Tensor tensor = tracer_.FromLiteral(std::move(value));
  if (spec.written || !random_.OneIn(3)) return tensor;
  // Neither a leaf nor device data.
  return IsFloat(type) && random_.OneIn(2) ? tensor.set_requires_grad(true) : InvokeOp(Op::clone, tensor);
}

Scalar RandomCall::Number(const ArgSpec& spec) {
  if (spec.type == ArgType::kBool) return random_.OneIn(2);
  if (spec.type == ArgType::kInt) {
    if (Odd()) return OddInt(random_);
    if (spec.name == "groups" || spec.name == "group") return 1;
    if (spec.name == "N" && !first_dims_.empty()) return first_dims_[0];
    if (spec.name == "C" && first_dims_.size() > 1) return first_dims_[1];
    if (spec.name == "HxW" && random_.OneIn(2)) return first_dims_.size() > 2 ? first_dims_[2] : 1;
    if (spec.name == "reduction") return random_.In(0, 2);
    const int64_t rank = static_cast<int64_t>(first_dims_.size());
    return spec.name.find("dim") == 0 ? random_.In(-rank, std::max<int64_t>(rank - 1, 0)) : random_.In(0, 4);
  }
  if (Odd()) return random_.OneIn(2) && spec.type == ArgType::kScalar ? Scalar(OddInt(random_)) : OddDouble(random_);
  if (spec.type == ArgType::kScalar && random_.OneIn(2)) return random_.In(-1, 3);
  return static_cast<double>(random_.In(0, 8)) / 8;
}

IValue RandomCall::Ints(const ArgSpec& spec) {
  IntList list;
  if (Odd()) {
    const int64_t count = random_.In(0, 6);
    for (int64_t i = 0; i < count; ++i) list.push_back(random_.OneIn(3) ? OddInt(random_) : random_.In(-1, 4));
    return list;
  }
  const auto rank = static_cast<int64_t>(first_dims_.size());
  if (spec.name.find("dim") == 0) {
    for (int64_t i = 0; i < rank; ++i) {
      if (spec.name == "dims" || random_.OneIn(2)) list.push_back(random_.OneIn(3) ? i - rank : i);
    }
    return list;
  }
  if ((spec.name.find("size") == 0 || spec.name.find("shape") != std::string::npos) && spec.list_size == 0 &&
      random_.OneIn(2)) {
    return IntList(first_dims_.begin(), first_dims_.end());
  }
  const bool zero = spec.name.find("padding") != std::string::npos || spec.name == "pad";
  const int64_t count = spec.list_size > 0 ? spec.list_size : random_.OneIn(2) ? 1 : random_.In(0, 4);
  const bool least = random_.OneIn(2);
  for (int64_t i = 0; i < count; ++i) list.push_back((least ? 0 : random_.In(0, zero ? 1 : 2)) + (zero ? 0 : 1));
  return list;
}

}  // namespace hlokit::lazy
