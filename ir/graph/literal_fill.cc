// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/literal_fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Output i is a function of the
// start and i alone.
uint64_t Random(uint64_t start, uint64_t i) {
  uint64_t z = start + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

template <typename T>
T RandomValue(uint64_t start, uint64_t i) {
  const uint64_t bits = Random(start, i);
  if constexpr (std::is_same_v<T, bool>) {
    return (bits & 1) != 0;
  } else if constexpr (AnyInteger<T>) {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
    return static_cast<T>(static_cast<int64_t>(bits % std::min<uint64_t>(16, kMax + (kMax < 16 ? 1 : 0))));
  } else if constexpr (std::is_same_v<T, F8E8M0FNU>) {
    return F8E8M0FNU::FromBits(static_cast<uint8_t>(127 - 4 + bits % 8));
  } else {
    // A multiple of the spacing of the numbers just below 1, so that no rounding yields 1 or prefers a value. For
    // f4e2m1fn these are subnormal already.
    constexpr int kDigits = std::is_same_v<T, F4E2M1FN> ? 1 : std::numeric_limits<T>::digits;
    constexpr int64_t kOne = int64_t{1} << kDigits;
    const int64_t step = static_cast<int64_t>(bits >> (64 - kDigits - 1)) - kOne;
    return static_cast<T>(static_cast<double>(step) / static_cast<double>(kOne));
  }
}

// Multiples of the spacing of the numbers just below 1.
template <typename T>
T PositiveValue(uint64_t start, uint64_t i) {
  if constexpr (std::is_same_v<T, F8E8M0FNU>) return RandomValue<T>(start, i);
  constexpr int kDigits = std::is_same_v<T, F4E2M1FN> ? 1 : std::numeric_limits<T>::digits;
  const auto step = static_cast<int64_t>(Random(start, i) >> (64 - kDigits)) + 1;
  return static_cast<T>(static_cast<double>(step) / static_cast<double>(int64_t{1} << kDigits));
}

template <typename T>
T IotaValue(uint64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return (i & 1) != 0;
  } else if constexpr (AnyInteger<T>) {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
    return static_cast<T>(static_cast<int64_t>(kMax == std::numeric_limits<uint64_t>::max() ? i : i % (kMax + 1)));
  } else if constexpr (std::is_same_v<T, F8E8M0FNU>) {
    return F8E8M0FNU::FromBits(static_cast<uint8_t>(127 + i % 8));
  } else {
    // All integers below 2^digits are exact, but the narrowest types end before that.
    constexpr uint64_t kExact = uint64_t{1} << std::numeric_limits<T>::digits;
    constexpr auto kMax = static_cast<double>(std::numeric_limits<T>::max());
    constexpr uint64_t kCount = kMax < static_cast<double>(kExact) ? static_cast<uint64_t>(kMax) + 1 : kExact;
    return static_cast<T>(static_cast<double>(i % kCount));
  }
}

template <typename T>
void FillIota(T* values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if constexpr (AnyComplex<T>) {
      values[i] = IotaValue<typename T::value_type>(i);
    } else {
      values[i] = IotaValue<T>(i);
    }
  }
}

// Elements [begin, end) of an array that starts at `values`.
template <typename T>
void FillRandom(T* values, uint64_t begin, uint64_t end, uint64_t start) {
  if constexpr (std::is_same_v<T, float>) {
    // RandomValue in arithmetic of floats, which is exact here, too.
    for (uint64_t i = begin; i < end; ++i) {
      const auto step = static_cast<int32_t>(Random(start, i) >> (64 - 25)) - (1 << 24);
      values[i] = static_cast<float>(step) * 0x1p-24f;
    }
  } else if constexpr (SoftFloat<T> && std::numeric_limits<T>::digits <= 11 && !std::is_same_v<T, F8E8M0FNU> &&
                       !std::is_same_v<T, F4E2M1FN>) {
    // Few values, which are converted once.
    constexpr int kBits = std::numeric_limits<T>::digits + 1;
    static const std::vector<T> table = [] {
      std::vector<T> table;
      for (int step = 0; step < 1 << kBits; ++step) {
        table.push_back(static_cast<T>(std::ldexp(static_cast<double>(step - (1 << (kBits - 1))), 1 - kBits)));
      }
      return table;
    }();
    for (uint64_t i = begin; i < end; ++i) values[i] = table[Random(start, i) >> (64 - kBits)];
  } else if constexpr (AnyComplex<T>) {
    using Part = typename T::value_type;
    for (uint64_t i = begin; i < end; ++i) {
      values[i] = T(RandomValue<Part>(start, 2 * i), RandomValue<Part>(start, 2 * i + 1));
    }
  } else {
    for (uint64_t i = begin; i < end; ++i) values[i] = RandomValue<T>(start, i);
  }
}

// The special values of a type.
template <typename T>
std::vector<T> SpecialValues() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {Limits::max(), Limits::lowest()};
  if constexpr (AnyInteger<T>) {
    values.push_back(static_cast<T>(0));
    if constexpr (Limits::is_signed) values.push_back(static_cast<T>(-1));
  } else {
    values.push_back(Limits::min());
    values.push_back(Limits::epsilon());
    if constexpr (Limits::has_quiet_NaN) values.push_back(Limits::quiet_NaN());
    if constexpr (Limits::has_infinity) values.push_back(Limits::infinity());
    if constexpr (Limits::has_infinity) values.push_back(static_cast<T>(-static_cast<double>(Limits::infinity())));
    if constexpr (!std::is_same_v<T, F8E8M0FNU>) {
      values.push_back(static_cast<T>(0.0));
      values.push_back(static_cast<T>(-0.0));
      values.push_back(Limits::denorm_min());
      values.push_back(static_cast<T>(-static_cast<double>(Limits::denorm_min())));
    }
  }
  return values;
}

template <typename T>
void MixSpecial(T* values, uint64_t count, uint64_t seed, const std::function<bool()>& stop) {
  constexpr uint64_t kPolled = uint64_t{1} << 22;
  const std::vector<T> special = SpecialValues<T>();
  for (uint64_t i = 0; i < count; ++i) {
    if (i % kPolled == 0 && stop != nullptr && stop()) return;
    const uint64_t bits = Random(seed, i);
    if ((bits & 1) != 0) values[i] = special[(bits >> 1) % special.size()];
  }
}

// Returns the advance of XLA's counter for an array.
uint64_t XlaCounts(size_t bytes) { return bytes / 4 + bytes % 4; }

void FillAsXla(ElementType type, std::byte* data, size_t bytes, uint32_t counter) {
  const int bits = type == ElementType::kPred ? 1 : std::min(BitsOf(type), 8);
  const auto mask = static_cast<uint8_t>(0xff >> (8 - bits));
  const auto sign = static_cast<uint8_t>(ClassOf(type) == ElementClass::kSigned ? 1 << (bits - 1) : 0);
  const size_t words = bytes / 4;
  for (size_t i = 0; i < bytes; ++i) {
    const uint32_t value = i < words * 4 ? (counter + static_cast<uint32_t>(i / 4)) >> (8 * (i % 4))
                                         : counter + static_cast<uint32_t>(words + i - words * 4);
    const uint8_t low = value & mask;
    data[i] = static_cast<std::byte>((low & sign) != 0 ? low | ~mask : low);  // narrow signed types are sign-extended
  }
}

}  // namespace

Literal FillElided(Shape shape, FillKind kind, uint64_t seed) {
  Literal literal = Literal::Zeros(shape);
  if (kind == FillKind::kZeros) return literal;
  uint64_t arrays = 0;
  std::vector<Literal*> stack = {&literal};
  while (!stack.empty()) {
    Literal& next = *stack.back();
    stack.pop_back();
    for (auto e = next.elements().rbegin(); e != next.elements().rend(); ++e) stack.push_back(&*e);
    if (!next.shape().IsArray()) continue;
    if (kind == FillKind::kXla) {
      FillAsXla(next.shape().element_type(), next.data(), next.size_bytes(), static_cast<uint32_t>(seed));
      seed += XlaCounts(next.size_bytes());
      continue;
    }
    VisitType(next.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
      const auto values = next.values<T>();
      if (kind == FillKind::kIota) {
        FillIota(values.data(), values.size());
      } else {
        FillRandom(values.data(), 0, values.size(), seed + (arrays << 32));
      }
    });
    ++arrays;
  }
  return literal;
}

absl::Status FillElidedConstants(FillKind kind, int64_t max_bytes, uint64_t* seed, Module* module) {
  const Context& context = module->context();
  std::vector<Instruction> elided;
  int64_t total = 0;
  for (Computation computation : module->computations()) {
    for (Instruction i : computation.instructions()) {
      if (i.opcode() != Opcode::kConstant || !i.literal().elided) continue;
      for (const Shape leaf : Leaves(i.literal().shape)) {
        const int64_t bytes = leaf.IsArray() ? LiteralBytes(leaf) : 0;
        if (bytes < 0 || bytes > max_bytes - total) {
          return absl::ResourceExhaustedError(
              StrCat("elided constants up to ", i.name(), " exceed the limit of ", max_bytes, " bytes"));
        }
        total += bytes;
      }
      elided.push_back(i);
    }
  }
  std::stable_sort(elided.begin(), elided.end(),
                   [](Instruction a, Instruction b) { return a.record().source_offset < b.record().source_offset; });
  for (Instruction i : elided) {
    const LiteralId id = i.literal_id();
    const Literal literal =
        FillElided(context.literals[id].shape, kind, kind == FillKind::kXla ? *seed : *seed + id.value);
    if (kind == FillKind::kXla) *seed += XlaCounts(literal.size_bytes());
    module->SetPayload(i.id(), module->context().literals.Add(literal).value);
  }
  return absl::OkStatus();
}

void FillRange(const RandomFill& fill, int64_t begin, int64_t end, Literal* array) {
  const auto first = static_cast<uint64_t>(begin), last = static_cast<uint64_t>(end);
  VisitType(array->shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    T* const to = array->values<T>().data();
    switch (fill.kind) {
      case RandomFill::Kind::kElements:
        FillRandom(to, first, last, fill.seed);
        break;
      case RandomFill::Kind::kPositive:
        if constexpr (AnyFloat<T>) {
          for (uint64_t i = first; i < last; ++i) to[i] = PositiveValue<T>(fill.seed, i);
        }
        break;
      case RandomFill::Kind::kIndices:
        if constexpr (AnyInteger<T>) {
          constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
          const uint64_t values = std::min(static_cast<uint64_t>(fill.bound), kMax == ~uint64_t{0} ? kMax : kMax + 1);
          for (uint64_t i = first; i < last; ++i) {
            to[i] = static_cast<T>(static_cast<int64_t>(Random(fill.seed, i) % values));
          }
        }
        break;
    }
  });
}

Literal FillPositive(Shape shape, uint64_t seed) {
  Literal literal = Literal::Zeros(shape);
  FillRange({RandomFill::Kind::kPositive, 0, seed}, 0, literal.element_count(), &literal);
  return literal;
}

Literal FillIndices(Shape shape, int64_t bound, uint64_t seed) {
  Literal literal = Literal::Zeros(shape);
  FillRange({RandomFill::Kind::kIndices, bound, seed}, 0, literal.element_count(), &literal);
  return literal;
}

void FillSpecial(uint64_t seed, Literal* literal, const std::function<bool()>& stop) {
  if (!literal->shape().IsArray()) return;
  VisitType(literal->shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    const auto values = literal->values<T>();
    if constexpr (AnyComplex<T>) {
      using Part = typename T::value_type;
      MixSpecial(reinterpret_cast<Part*>(values.data()), values.size() * 2, seed, stop);
    } else if constexpr (!std::is_same_v<T, bool>) {
      MixSpecial(values.data(), values.size(), seed, stop);
    }
  });
}

}  // namespace hlokit
