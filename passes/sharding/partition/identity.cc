// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/identity.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ir/types/float_types.h"

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
  if (opcode == Opcode::kAdd || opcode == Opcode::kOr || opcode == Opcode::kXor) {
    return IsFloat(type) ? number(-0.0) : T();
  }
  if (opcode == Opcode::kMultiply) return number(1);
  if (opcode == Opcode::kAnd) {
    T ones;
    std::memset(static_cast<void*>(&ones), type == ElementType::kPred ? 1 : 0xff, sizeof(ones));
    return ones;
  }
  if constexpr (std::numeric_limits<T>::is_specialized) {
    return Extreme<T>(opcode == Opcode::kMinimum);
  } else {
    return T();
  }
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
  constexpr Opcode kKnown[] = {Opcode::kAdd, Opcode::kMultiply, Opcode::kMinimum, Opcode::kMaximum,
                               Opcode::kAnd, Opcode::kOr,       Opcode::kXor};
  if (std::find(std::begin(kKnown), std::end(kKnown), opcode) == std::end(kKnown)) return false;
  const bool ordered = opcode == Opcode::kMinimum || opcode == Opcode::kMaximum;
  const bool bitwise = opcode == Opcode::kAnd && BitsOf(type) < 8 && type != ElementType::kPred;
  return type != ElementType::kF8E8M0FNU && !(ordered && IsComplex(type)) && !bitwise;
}

InstructionId MakeIdentity(Emitter* emitter, Opcode opcode, ElementType type) {
  return emitter->builder().MakeScalar(type, IdentityBytes(opcode, type).data());
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
