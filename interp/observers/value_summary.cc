// SPDX-License-Identifier: Apache-2.0
#include "interp/observers/value_summary.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/text/literal_text.h"
#include "ir/types/float_types.h"
#include "ir/types/literal.h"

namespace hlokit::interp {
namespace {

void AddNumber(double v, ValueSummary* s, double* sum) {
  ++s->elements;
  if (std::isnan(v)) {
    ++s->nans;
  } else if (std::isinf(v)) {
    ++s->infinities;
  } else {
    if (v == 0) ++s->zeros;
    const bool first = s->finite() == 1;
    if (first || v < s->min) s->min = v;
    if (first || v > s->max) s->max = v;
    *sum += v;
  }
}

}  // namespace

ValueSummary Summarize(Shape array, const std::byte* data) {
  ValueSummary summary;
  double sum = 0;
  VisitType(array.element_type(), [&]<typename T>(std::type_identity<T>) {
    const T* values = reinterpret_cast<const T*>(data);
    for (int64_t i = 0; i < array.element_count(); ++i) {
      if constexpr (AnyComplex<T>) {
        AddNumber(static_cast<double>(values[i].real()), &summary, &sum);
        AddNumber(static_cast<double>(values[i].imag()), &summary, &sum);
      } else {
        AddNumber(static_cast<double>(values[i]), &summary, &sum);
      }
    }
  });
  if (summary.finite() != 0) summary.mean = sum / static_cast<double>(summary.finite());
  return summary;
}

std::string ToString(const ValueSummary& s) {
  std::string text;
  if (s.finite() != 0) {
    text = StrCat("min ", FormatDouble(s.min, 6), " max ", FormatDouble(s.max, 6), " mean ", FormatDouble(s.mean, 6));
  }
  const auto add = [&](int64_t count, const char* what) {
    if (count != 0) StrAppend(&text, text.empty() ? "" : ", ", count, " ", what);
  };
  add(s.nans, "NaN");
  add(s.infinities, "infinite");
  add(s.zeros, "zero");
  return StrCat(text, " of ", s.elements);
}

std::string ValueToString(Shape leaf, const std::byte* data, int64_t max_elements) {
  if (!leaf.IsArray()) return "";
  if (leaf.element_count() > max_elements) return ToString(Summarize(leaf, data));
  Literal literal = Literal::Zeros(leaf);
  if (literal.size_bytes() != 0) std::memcpy(literal.data(), data, literal.size_bytes());
  return ToString(literal);
}

std::string IndexToString(Shape array, int64_t element) {
  std::vector<int64_t> index(static_cast<size_t>(array.rank()));
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = element % array.dim(static_cast<int64_t>(d));
    element /= array.dim(static_cast<int64_t>(d));
  }
  std::string text = "{";
  for (size_t d = 0; d < index.size(); ++d) StrAppend(&text, d == 0 ? "" : ", ", index[d]);
  return text + "}";
}

std::string ElementToString(Shape array, const std::byte* data, int64_t element) {
  std::string text;
  {
    TextWriter writer(&text);
    AppendScalar(writer, array.element_type(), data + element * BytesOf(array.element_type()));
  }
  return text;
}

}  // namespace hlokit::interp
