// SPDX-License-Identifier: Apache-2.0
#include "tracer/ops/host_values.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tracer/graph/schema.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

std::optional<Literal> FetchOnHost(OpKernelContext& c, const Tensor& t) {
  absl::StatusOr<Literal> value = t.ToLiteral();
  if (value.ok()) return *std::move(value);
  c.Fail(std::string(value.status().message()));
  return std::nullopt;
}

void CountFallback(OpKernelContext& c) { c.device()->tracer()->metrics().Add(SchemaOf(c.op()).full_name()); }

Tensor Upload(OpKernelContext& c, Literal value) {
  const DeviceGuard guard(c.device());
  return c.device()->tracer()->FromLiteral(std::move(value));
}

Tensor UploadS64(OpKernelContext& c, Dims dims, absl::Span<const int64_t> values) {
  Literal literal = Literal::Zeros(c.device()->ArrayShape(ElementType::kS64, dims));
  std::copy(values.begin(), values.end(), literal.values<int64_t>().begin());
  return Upload(c, std::move(literal));
}

}  // namespace hlokit::lazy
