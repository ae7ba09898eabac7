// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/identity.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ir/types/float_types.h"
#include "passes/rewrite/reducer.h"

namespace hlokit::spmd {
namespace {

template <typename T>
T Extreme(bool largest) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity) {
    return largest ? Limits::infinity() : static_cast<T>(-Limits::infinity());
  } else {
    return largest ? Limits::max() : Limits::lowest();
  }
}

template <typename T>
T IdentityOf(Opcode opcode, ElementType type) {
  const auto number = [](double value) {
    if constexpr (std::is_constructible_v<T, double>) {
      return static_cast<T>(value);
    } else {
      return T(static_cast<int64_t>(value));
    }
  };
  const IdentityElement identity = IdentityElementOf(opcode);
  switch (identity) {
    case IdentityElement::kNegativeZero:
    case IdentityElement::kZero:
      return IsFloat(type) ? number(-0.0) : T();
    case IdentityElement::kOne:
      return number(1);
    case IdentityElement::kAllOnes: {
      T ones;
      std::memset(static_cast<void*>(&ones), type == ElementType::kPred ? 1 : 0xff, sizeof(ones));
      return ones;
    }
    case IdentityElement::kLowest:
    case IdentityElement::kHighest:
      if constexpr (std::numeric_limits<T>::is_specialized) {
        return Extreme<T>(identity == IdentityElement::kHighest);
      }
      return T();
    case IdentityElement::kNone:
      break;
  }
  return T();
}

std::vector<std::byte> IdentityBytes(Opcode opcode, ElementType type) {
  std::vector<std::byte> bytes;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    const T value = IdentityOf<T>(opcode, type);
    bytes.resize(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
  });
  return bytes;
}

}  // namespace

bool HasIdentity(Opcode opcode, ElementType type) {
  const IdentityElement identity = IdentityElementOf(opcode);
  if (identity == IdentityElement::kNone) return false;
  const bool ordered = identity == IdentityElement::kLowest || identity == IdentityElement::kHighest;
  const bool bitwise = identity == IdentityElement::kAllOnes && BitsOf(type) < 8 && type != ElementType::kPred;
  return type != ElementType::kF8E8M0FNU && !(ordered && IsComplex(type)) && !bitwise;
}

InstructionId MakeIdentity(Emitter* emitter, Opcode opcode, ElementType type) {
  return emitter->builder().MakeScalar(type, IdentityBytes(opcode, type).data());
}

Opcode OpcodeOf(ReductionOp reduction, ElementType type) {
  switch (reduction) {
    case ReductionOp::kSum:
      return type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd;
    case ReductionOp::kMax:
      return Opcode::kMaximum;
    case ReductionOp::kMin:
      return Opcode::kMinimum;
  }
  return Opcode::kAdd;
}

std::optional<ReductionOp> ReductionOf(Opcode opcode, ElementType type) {
  for (const ReductionOp reduction : {ReductionOp::kSum, ReductionOp::kMax, ReductionOp::kMin}) {
    if (OpcodeOf(reduction, type) == opcode) return reduction;
  }
  return std::nullopt;
}

bool IsIdempotent(Opcode opcode) { return HasTrait(opcode, kIdempotent); }

bool IsIdentity(Instruction scalar, Opcode opcode) {
  if (scalar.opcode() != Opcode::kConstant || scalar.literal().elided || !scalar.shape().IsScalar()) return false;
  const ElementType type = scalar.shape().element_type();
  const std::byte* data = scalar.literal().data;
  const std::vector<std::byte> identity = IdentityBytes(opcode, type);
  if (std::equal(identity.begin(), identity.end(), data)) return true;
  const std::vector<std::byte> zero(identity.size());
  return opcode == Opcode::kAdd && std::equal(zero.begin(), zero.end(), data);
}

}  // namespace hlokit::spmd
