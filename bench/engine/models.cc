// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/models.h"

#include <utility>

#include "ir/graph/attribute_views.h"
#include "tracer/autograd/node.h"
#include "tracer/models/training.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/step/tracer.h"

namespace hlokit::bench {

absl::StatusOr<TrainingProgram> TraceTrainingStep(const lazy::models::ModelConfig& config) {
  lazy::TracerOptions tracing;
  tracing.client.engine = interp::EngineKind::kFast;
  lazy::Tracer tracer(tracing);
  const lazy::DeviceGuard guard(tracer.device());
  absl::StatusOr<lazy::models::ModelConfig> complete = lazy::models::Complete(config);
  if (!complete.ok()) return complete.status();
  lazy::nn::ParameterRegistry registry(&tracer, complete->type,
                                       lazy::nn::PatternInitializer(lazy::InitPattern::kHash, 3));
  const std::unique_ptr<lazy::models::Model> model = lazy::models::MakeModel(*complete, &registry);
  const lazy::models::Batch batch = model->MakeBatch(tracer);
  lazy::models::TrainingOptions options;
  options.momentum = 0;
  const std::unique_ptr<lazy::nn::Optimizer> optimizer = lazy::models::MakeOptimizer(options, registry);
  optimizer->ZeroGrad();
  const lazy::Tensor loss = model->Loss(model->Logits(batch, true), batch);
  if (!loss.defined()) return absl::InternalError("no loss");
  if (absl::Status s = loss.Backward(); !s.ok()) return s;
  optimizer->Step();
  optimizer->ZeroGrad();  // gradients are not results

  lazy::DeviceState& device = *tracer.device();
  const std::vector<lazy::TensorData*> pending = lazy::PendingTensors(device);
  const lazy::PendingSubgraph slice = lazy::CollectSubgraph(device, pending, {true, true});
  absl::StatusOr<std::unique_ptr<Module>> module = lazy::LowerSubgraph(device, slice, "training_step");
  if (!module.ok()) return module.status();
  TrainingProgram program;
  program.module = *std::move(module);
  if (absl::Status s = tracer.client().Optimize(*program.module); !s.ok()) return s;
  Context& context = program.module->context();
  for (const std::shared_ptr<runtime::DeviceBuffer>& input : slice.inputs) {
    if (absl::Status s = input->Wait(); !s.ok()) return s;
    const Literal& value = input->literal();
    Literal copy = Literal::Zeros(context.shapes.Array(value.shape().element_type(), value.shape().dims()));
    std::copy_n(value.data(), value.size_bytes(), copy.data());
    program.arguments.push_back(std::move(copy));
  }
  for (const lazy::TensorData* data : pending) {
    const bool replaces = data->overwritten != nullptr &&
                          std::find(slice.inputs.begin(), slice.inputs.end(), data->overwritten) != slice.inputs.end();
    program.replaced.push_back(replaces ? static_cast<int64_t>(data->overwritten->parameter_number) : -1);
  }
  return program;
}

std::vector<ProductSizes> ProductsOf(const Module& module) {
  std::vector<ProductSizes> products;
  for (const Computation computation : module.computations()) {
    for (const Instruction instruction : computation.instructions()) {
      if (instruction.opcode() != Opcode::kDot) continue;
      const DotDims dims = DotDims::Of(AttrReader(instruction));
      const Shape lhs = instruction.operand(0).shape(), rhs = instruction.operand(1).shape();
      ProductSizes sizes;
      for (const int64_t d : dims.lhs_batch) sizes.batch *= lhs.dims()[static_cast<size_t>(d)];
      for (const int64_t d : dims.lhs_contracting) sizes.depth *= lhs.dims()[static_cast<size_t>(d)];
      sizes.rows = lhs.element_count() / (sizes.batch * sizes.depth);
      sizes.columns = rhs.element_count() / (sizes.batch * sizes.depth);
      products.push_back(sizes);
    }
  }
  return products;
}

}  // namespace hlokit::bench
