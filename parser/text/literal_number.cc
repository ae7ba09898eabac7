// SPDX-License-Identifier: Apache-2.0
#include "parser/text/literal_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "parser/text/text_cursor.h"

namespace hlokit {
namespace {

// Returns true if `number`, decimal digits with optional point and exponent, underflows to 0, and false if it
// overflows. Requires: one of the two holds.
bool Underflows(std::string_view number) {
  int64_t exponent = 0;
  const size_t e = number.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view digits = number.substr(e + 1);
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc()) return negative;
    if (negative) exponent = -exponent;
    number = number.substr(0, e);
  }
  // The number is 0.ddd * 10^(exponent + place), where the first d is the first significant digit.
  const size_t point = std::min(number.find('.'), number.size());
  const size_t first = std::min(number.find_first_of("123456789"), number.size());
  const int64_t place = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  return exponent < -place;
}

NumberStatus ReadDigits(const char* p, const char* end, LiteralNumber* number) {
  // Up to 15 digits without point and exponent are exact.
  const char* q = p;
  int64_t integer = 0;
  while (char_class::IsDigit(*q) && q - p < 15) integer = integer * 10 + (*q++ - '0');
  number->end = q;
  if (!char_class::IsName(*q)) {
    number->value = static_cast<double>(integer);
    return NumberStatus::kOk;
  }
  const auto [stop, error] = std::from_chars(p, end, number->value);
  number->end = stop;
  if (char_class::IsName(*stop)) {
    while (char_class::IsName(*number->end)) ++number->end;
    return NumberStatus::kMalformed;
  }
  if (error == std::errc::result_out_of_range || std::isinf(number->value)) {
    if (!Underflows({p, static_cast<size_t>(stop - p)})) return NumberStatus::kTooLarge;
    number->value = 0;
  }
  return NumberStatus::kOk;
}

// Parses `(0x7f)` at number->end.
NumberStatus ReadPayload(const char* end, LiteralNumber* number) {
  const char* p = number->end + 1;
  const bool prefixed = p[0] == '0' && p[1] == 'x';
  if (prefixed) p += 2;
  const auto [stop, error] = std::from_chars(p, end, number->nan_payload, 16);
  number->end = stop;
  if (!prefixed || stop == p || *stop != ')') return NumberStatus::kMalformedPayload;
  ++number->end;
  const bool fits = error == std::errc() && number->nan_payload >> LiteralNumber::kPayloadBits == 0;
  return fits && number->nan_payload != 0 ? NumberStatus::kOk : NumberStatus::kPayloadOutOfRange;
}

NumberStatus ReadWord(const char* p, const char* end, LiteralNumber* number) {
  number->end = p;
  while (char_class::IsName(*number->end)) ++number->end;
  const std::string_view word(p, static_cast<size_t>(number->end - p));
  if (word == "inf") {
    number->value = std::numeric_limits<double>::infinity();
    return NumberStatus::kOk;
  }
  if (word != "nan") return NumberStatus::kNotANumber;
  number->value = std::numeric_limits<double>::quiet_NaN();
  return *number->end == '(' ? ReadPayload(end, number) : NumberStatus::kOk;
}

}  // namespace

NumberStatus ReadLiteralNumber(const char* p, const char* end, LiteralNumber* number) {
  const bool negative = *p == '-';
  if (negative) ++p;
  const bool digits = char_class::IsDigit(*p) || (*p == '.' && char_class::IsDigit(p[1]));
  const NumberStatus status = digits ? ReadDigits(p, end, number) : ReadWord(p, end, number);
  if (negative) number->value = -number->value;
  return status;
}

}  // namespace hlokit
