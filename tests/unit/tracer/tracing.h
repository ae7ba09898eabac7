// SPDX-License-Identifier: Apache-2.0
// Fixture of the tracer tests: a session on one device, and conversions between tensors and numbers.
#ifndef HLOKIT_TESTS_UNIT_TRACER_TRACING_H_
#define HLOKIT_TESTS_UNIT_TRACER_TRACING_H_

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

class TracingTest : public ::testing::Test {
 protected:
  explicit TracingTest(const TracerOptions& options = SmallOptions()) : tracer(options), guard(tracer.device()) {}

  static TracerOptions SmallOptions() {
    TracerOptions options;
    options.client.evaluator.num_threads = 1;
    return options;
  }

  Tensor F32(Dims dims, const std::vector<float>& values) {
    Literal literal = Literal::Zeros(tracer.device()->ArrayShape(ElementType::kF32, dims));
    EXPECT_EQ(literal.size_bytes(), values.size() * sizeof(float));
    std::memcpy(literal.data(), values.data(), literal.size_bytes());
    return tracer.FromLiteral(std::move(literal));
  }
  Tensor Vector(const std::vector<float>& values) { return F32({static_cast<int64_t>(values.size())}, values); }

  std::vector<double> Values(const Tensor& t) {
    std::vector<double> out;
    absl::StatusOr<Literal> literal = t.ToLiteral();
    EXPECT_TRUE(literal.ok()) << literal.status().message() << " " << tracer.status().message();
    if (!literal.ok()) return out;
    // From the literal: another thread may be writing the tensor.
    const ElementType type = literal->shape().element_type();
    const size_t width = static_cast<size_t>(BytesOf(type));
    for (int64_t i = 0; i < literal->element_count(); ++i) {
      out.push_back(LoadScalar(type, literal->data() + static_cast<size_t>(i) * width).ToDouble());
    }
    return out;
  }
  int64_t Counter(std::string_view name) {
    tracer.PublishCounters();
    return tracer.metrics().counter(name).value_or(0);
  }
  int64_t Samples(std::string_view name) {
    const std::optional<runtime::MetricData> m = tracer.metrics().metric(name);
    return m ? m->total_samples : 0;
  }

  Tracer tracer;
  DeviceGuard guard;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TESTS_UNIT_TRACER_TRACING_H_
