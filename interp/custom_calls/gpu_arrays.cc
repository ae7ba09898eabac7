// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/gpu_arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "interp/custom_calls/call_arrays.h"
#include "interp/custom_calls/custom_call_device.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

namespace {

constexpr int64_t kChunk = 64;  // the elements after which loops ask whether the run goes on

// The values of an integer type that are also those of int64_t.
template <typename T>
std::pair<double, double> RangeOf() {
  constexpr double kWide = 9.2e18;
  if constexpr (requires { T::kMin; }) {
    return {T::kMin, T::kMax};
  } else {
    return {std::max(static_cast<double>(std::numeric_limits<T>::min()), -kWide),
            std::min(static_cast<double>(std::numeric_limits<T>::max()), kWide)};
  }
}

}  // namespace

NumberArray ReadArray(const CustomCallOperand& operand) {
  NumberArray array;
  const Shape shape = operand.shape;
  array.dims.assign(shape.dims().begin(), shape.dims().end());
  array.values.resize(static_cast<size_t>(shape.element_count()));
  VisitType(shape.element_type(), [&]<typename T>(std::type_identity<T>) {
    const T* const x = reinterpret_cast<const T*>(operand.data);
    for (size_t i = 0; i < array.values.size(); ++i) {
      if (i % kChunk == 0 && ShouldStopAfter(kChunk)) return;
      if constexpr (AnyComplex<T>) {
        array.values[i] = Complex(x[i]);
      } else {
        array.values[i] = static_cast<double>(x[i]);
      }
    }
  });
  return array;
}

void WriteArray(const std::vector<Complex>& values, const CustomCallResult& result, bool saturate) {
  if (static_cast<int64_t>(values.size()) != result.shape.element_count()) return WriteZeros(result);
  VisitType(result.shape.element_type(), [&]<typename T>(std::type_identity<T>) {
    T* const x = reinterpret_cast<T*>(result.data);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % kChunk == 0 && ShouldStopAfter(kChunk)) return;
      if constexpr (AnyComplex<T>) {
        x[i] = T(values[i]);
      } else if constexpr (AnyFloat<T>) {
        double value = values[i].real();
        if (saturate && sizeof(T) == 1 && !std::isnan(value)) {
          value = std::clamp(value, static_cast<double>(std::numeric_limits<T>::lowest()),
                             static_cast<double>(std::numeric_limits<T>::max()));
        }
        x[i] = static_cast<T>(value);
      } else if constexpr (std::is_same_v<T, bool>) {
        x[i] = values[i].real() != 0;
      } else {
        // Integers: the nearest, as far as the type goes.
        const auto [low, high] = RangeOf<T>();
        const double rounded = std::isnan(values[i].real()) ? 0 : std::nearbyint(values[i].real());
        x[i] = T(static_cast<int64_t>(std::min(std::max(rounded, low), high)));
      }
    }
  });
}

void WriteZeros(const CustomCallResult& result) {
  const int64_t bytes =
      result.shape.IsArray() ? result.shape.element_count() * BytesOf(result.shape.element_type()) : 0;
  if (bytes > 0) std::memset(result.data, 0, static_cast<size_t>(bytes));
}

namespace {

std::vector<int64_t> Integers(const nlohmann::json& object, const char* name) {
  std::vector<int64_t> list;
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_array()) return list;
  for (const nlohmann::json& item : *found) {
    if (item.is_number_integer()) list.push_back(item.get<int64_t>());
    if (item.is_string()) list.push_back(std::strtoll(item.get<std::string>().c_str(), nullptr, 10));
  }
  return list;
}

// Returns true if the lists name dimensions of an array, none twice.
bool AreDistinct(const std::vector<int64_t>& a, const std::vector<int64_t>& b, size_t rank) {
  std::vector<uint8_t> named(rank);
  for (const std::vector<int64_t>* list : {&a, &b}) {
    for (int64_t d : *list) {
      if (d < 0 || d >= static_cast<int64_t>(rank) || named[static_cast<size_t>(d)] != 0) return false;
      named[static_cast<size_t>(d)] = 1;
    }
  }
  return true;
}

// The places of all index combinations of some dimensions of an array.
std::vector<int64_t> Offsets(const NumberArray& array, const std::vector<int64_t>& dims) {
  if (std::find(array.dims.begin(), array.dims.end(), 0) != array.dims.end()) return {};
  std::vector<int64_t> strides(array.dims.size(), 1);
  for (size_t d = array.dims.size(); d-- > 1;) strides[d - 1] = strides[d] * array.dims[d];
  std::vector<int64_t> offsets = {0};
  for (int64_t d : dims) {
    std::vector<int64_t> next;
    for (int64_t base : offsets) {
      for (int64_t i = 0; i < array.dim(d); ++i) next.push_back(base + i * strides[static_cast<size_t>(d)]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

std::vector<int64_t> Others(size_t rank, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> others;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
    const bool named = std::find(a.begin(), a.end(), d) != a.end() || std::find(b.begin(), b.end(), d) != b.end();
    if (!named) others.push_back(d);
  }
  return others;
}

}  // namespace

ProductDims ReadProductDims(const nlohmann::json& numbers, const NumberArray& lhs, const NumberArray& rhs) {
  ProductDims dims = {Integers(numbers, "lhs_batch_dimensions"), Integers(numbers, "rhs_batch_dimensions"),
                      Integers(numbers, "lhs_contracting_dimensions"), Integers(numbers, "rhs_contracting_dimensions")};
  if (!numbers.is_object() && lhs.dims.size() >= 2 && rhs.dims.size() >= 2) {
    dims.lhs_contracting = {static_cast<int64_t>(lhs.dims.size()) - 1};
    dims.rhs_contracting = {static_cast<int64_t>(rhs.dims.size()) - 2};
    for (int64_t d = 0; d + 2 < static_cast<int64_t>(lhs.dims.size()); ++d) {
      dims.lhs_batch.push_back(d);
      dims.rhs_batch.push_back(d);
    }
  }
  return dims;
}

absl::Status Multiply(const ProductDims& d, const NumberArray& lhs, const NumberArray& rhs,
                      const std::vector<int64_t>* wanted, NumberArray* product) {
  bool fits = AreDistinct(d.lhs_batch, d.lhs_contracting, lhs.dims.size()) &&
              AreDistinct(d.rhs_batch, d.rhs_contracting, rhs.dims.size()) &&
              d.lhs_batch.size() == d.rhs_batch.size() && d.lhs_contracting.size() == d.rhs_contracting.size();
  for (size_t i = 0; fits && i < d.lhs_batch.size(); ++i) fits = lhs.dim(d.lhs_batch[i]) == rhs.dim(d.rhs_batch[i]);
  for (size_t i = 0; fits && i < d.lhs_contracting.size(); ++i) {
    fits = lhs.dim(d.lhs_contracting[i]) == rhs.dim(d.rhs_contracting[i]);
  }
  if (!fits) return MissingForm("for dimensions that do not fit");
  const std::vector<int64_t> lhs_free = Others(lhs.dims.size(), d.lhs_batch, d.lhs_contracting);
  const std::vector<int64_t> rhs_free = Others(rhs.dims.size(), d.rhs_batch, d.rhs_contracting);
  product->dims.clear();
  for (int64_t b : d.lhs_batch) product->dims.push_back(lhs.dim(b));
  for (int64_t f : lhs_free) product->dims.push_back(lhs.dim(f));
  for (int64_t f : rhs_free) product->dims.push_back(rhs.dim(f));
  if (wanted != nullptr && product->dims != *wanted) return MissingForm("for a result of another size");
  int64_t elements = 1;
  for (int64_t size : product->dims) {
    if (size > 0 && elements > kMaxCopiedElements / size) return CopiesTooLarge();
    elements *= size;
  }
  const std::vector<int64_t> lb = Offsets(lhs, d.lhs_batch), lf = Offsets(lhs, lhs_free),
                             lc = Offsets(lhs, d.lhs_contracting), rb = Offsets(rhs, d.rhs_batch),
                             rf = Offsets(rhs, rhs_free), rc = Offsets(rhs, d.rhs_contracting);
  product->values.assign(static_cast<size_t>(elements), Complex(0));
  auto next = product->values.begin();
  for (size_t b = 0; b < lb.size(); ++b) {
    for (int64_t l : lf) {
      for (int64_t r : rf) {
        if (ShouldStopAfter(1)) return absl::OkStatus();
        Complex sum = 0;
        for (size_t c = 0; c < lc.size(); ++c) {
          if (c % kChunk == 0 && ShouldStopAfter(kChunk)) return absl::OkStatus();
          sum +=
              lhs.values[static_cast<size_t>(lb[b] + l + lc[c])] * rhs.values[static_cast<size_t>(rb[b] + r + rc[c])];
        }
        *next++ = sum;
      }
    }
  }
  return absl::OkStatus();
}

nlohmann::json ConfigOf(std::string_view backend_config, const char* name) {
  nlohmann::json config = nlohmann::json::parse(backend_config, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return {};
  const auto found = config.find(name);
  return found == config.end() ? config : *found;
}

double NumberOf(const nlohmann::json& object, const char* name, double absent) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) return absent;
  if (found->is_number()) return found->get<double>();
  return found->is_string() ? std::strtod(found->get<std::string>().c_str(), nullptr) : absent;
}

std::string TextOf(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

absl::Status MissingForm(std::string_view what) {
  return absl::UnimplementedError(StrCat("the custom call has no function ", what));
}

}  // namespace hlokit::interp
