// SPDX-License-Identifier: Apache-2.0
#include "tracer/ops/layer_arguments.h"

#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/ops/host_values.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {

std::string_view TypeName(ElementType type) {
  static constexpr std::pair<ElementType, std::string_view> kNames[] = {
      {ElementType::kPred, "Bool"},  {ElementType::kU8, "Byte"},          {ElementType::kS8, "Char"},
      {ElementType::kS16, "Short"},  {ElementType::kS32, "Int"},          {ElementType::kS64, "Long"},
      {ElementType::kF16, "Half"},   {ElementType::kBF16, "BFloat16"},    {ElementType::kF32, "Float"},
      {ElementType::kF64, "Double"}, {ElementType::kC64, "ComplexFloat"}, {ElementType::kC128, "ComplexDouble"},
  };
  for (const auto& [named, name] : kNames) {
    if (named == type) return name;
  }
  return ToString(type);
}

std::string_view NameOf(OpKernelContext& c) {
  const std::string_view name = SchemaOf(c.op()).name;
  return name.substr(name.rfind(':') + 1);
}

bool RequireFloat(OpKernelContext& c, size_t i) {
  if (IsFloat(c.tensor(i).dtype())) return true;
  c.Fail(StrCat("\"", NameOf(c), "\" not implemented for '", TypeName(c.tensor(i).dtype()), "'"));
  return false;
}

bool RequireRank(OpKernelContext& c, size_t i, int64_t low, int64_t high) {
  const Tensor& t = c.tensor(i);
  if (t.dim() >= low && t.dim() <= high) return true;
  c.Fail(StrCat("Expected ", low, "D", high == low ? "" : StrCat(" or ", high, "D"), " `",
                SchemaOf(c.op()).args[i].name, "` to ", NameOf(c), ", but got ", t.dim(), "D of size ",
                ListToString(t.sizes())));
  return false;
}

bool RequireSameSizes(OpKernelContext& c, size_t a, size_t b) {
  if (c.tensor(a).sizes() == c.tensor(b).sizes()) return true;
  c.Fail(StrCat("`", SchemaOf(c.op()).args[a].name, "` and `", SchemaOf(c.op()).args[b].name,
                "` must have the same size, but got ", ListToString(c.tensor(a).sizes()), " and ",
                ListToString(c.tensor(b).sizes())));
  return false;
}

bool ReadExtents(OpKernelContext& c, size_t i, int64_t count, int64_t least, Dims absent, IntList* out) {
  Dims given = c.ints(i);
  if (given.empty()) given = absent;
  const std::string& name = SchemaOf(c.op()).args[i].name;
  if (given.size() != 1 && static_cast<int64_t>(given.size()) != count) {
    c.Fail(StrCat("expected ", name, " to be a single integer value or a list of ", count,
                  " values to match the spatial dimensions, but got ", name, "=", ListToString(given)));
    return false;
  }
  for (int64_t value : given) {
    if (value >= least && value <= kMaxExtent) continue;
    c.Fail(StrCat(name, " should be ", least > 0 ? "greater than zero" : "non-negative", " and at most ", kMaxExtent,
                  ", but got ", ListToString(given)));
    return false;
  }
  out->assign(given.begin(), given.end());
  if (given.size() == 1) out->assign(static_cast<size_t>(count), int64_t{given[0]});
  return true;
}

Tensor ConstantTensor(OpKernelContext& c, Dims sizes, std::vector<double> values, ElementType type) {
  return lazy::Record(c.device(), Op::tensor_constant, {sizes, std::move(values), type})[0];
}

Tensor SelectPlaces(OpKernelContext& c, const Tensor& t, int64_t dim, const std::vector<double>& places) {
  const IntList sizes = {static_cast<int64_t>(places.size())};
  return lazy::IndexSelect(t, dim, ConstantTensor(c, sizes, places, ElementType::kS64));
}

Tensor IotaAlong(OpKernelContext& c, int64_t size, int64_t dim, int64_t rank) {
  IntList sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(dim)] = size;
  return lazy::Reshape(lazy::Record(c.device(), Op::iota, {size, Scalar(0), Scalar(1), ElementType::kS64})[0], sizes);
}

std::optional<std::vector<int64_t>> FetchIntegers(OpKernelContext& c, size_t i) {
  const std::optional<Literal> value = FetchOnHost(c, c.tensor(i));
  if (!value) return std::nullopt;
  const ElementType type = value->shape().element_type();
  const size_t width = static_cast<size_t>(BytesOf(type));
  std::vector<int64_t> numbers;
  for (int64_t k = 0; k < value->element_count(); ++k) {
    numbers.push_back(LoadScalar(type, value->data() + static_cast<size_t>(k) * width).ToInt());
  }
  return numbers;
}

Tensor Reduced(OpKernelContext& c, const Tensor& loss, int64_t reduction) {
  if (reduction < 0 || reduction > 2) {
    c.Fail(StrCat("`reduction` is 0 (none), 1 (mean) or 2 (sum), not ", reduction));
    return Tensor();
  }
  return reduction == 0 ? loss : reduction == 1 ? lazy::Mean(loss) : lazy::Sum(loss);
}

}  // namespace hlokit::lazy::kernel
