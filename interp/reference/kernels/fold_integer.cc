#include <type_traits>

#include "interp/reference/kernels/fold.h"
#include "interp/reference/kernels/fold_loops.h"

namespace hlokit::interp {
namespace {

struct Sum {
  template <typename A>
  static A Apply(A a, A b) {
    return static_cast<A>(a + b);
  }
};
struct Times {
  template <typename A>
  static A Apply(A a, A b) {
    return static_cast<A>(1u * a * b);  // unsigned even where A is narrower than int
  }
};
struct And {
  template <typename A>
  static A Apply(A a, A b) {
    return static_cast<A>(a & b);
  }
};
struct Or {
  template <typename A>
  static A Apply(A a, A b) {
    return static_cast<A>(a | b);
  }
};
struct Xor {
  template <typename A>
  static A Apply(A a, A b) {
    return static_cast<A>(a ^ b);
  }
};

using Known = ScalarFunction::Known;

// What does not depend on the sign is instantiated for unsigned types only.
template <typename Unsigned>
FoldFns OfWidth(Known known, bool is_signed) {
  using Signed = std::make_signed_t<Unsigned>;
  switch (known) {
    case Known::kAdd:
      return MakeFoldFns<Sum, Unsigned>();
    case Known::kMultiply:
      return MakeFoldFns<Times, Unsigned>();
    case Known::kMinimum:
      return is_signed ? MakeFoldFns<FoldMin, Signed>() : MakeFoldFns<FoldMin, Unsigned>();
    case Known::kMaximum:
      return is_signed ? MakeFoldFns<FoldMax, Signed>() : MakeFoldFns<FoldMax, Unsigned>();
    case Known::kAnd:
      return MakeFoldFns<And, Unsigned>();
    case Known::kOr:
      return MakeFoldFns<Or, Unsigned>();
    case Known::kXor:
      return MakeFoldFns<Xor, Unsigned>();
    case Known::kNone:
    case Known::kFirst:
    case Known::kSecond:
      break;
  }
  return {};
}

}  // namespace

FoldFns IntegerFoldFns(Known known, ElementType type) {
  switch (BytesOf(type)) {
    case 1:
      return OfWidth<uint8_t>(known, IsSigned(type));
    case 2:
      return OfWidth<uint16_t>(known, IsSigned(type));
    case 4:
      return OfWidth<uint32_t>(known, IsSigned(type));
    case 8:
      return OfWidth<uint64_t>(known, IsSigned(type));
    default:
      return {};
  }
}

}  // namespace hlokit::interp
