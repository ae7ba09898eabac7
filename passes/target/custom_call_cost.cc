// SPDX-License-Identifier: Apache-2.0
#include "passes/target/custom_call_cost.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "ir/graph/attribute_views.h"
#include "passes/target/attention_cost.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

// Reads the number at a key into `number`: 0 if there is none. Compilers print 64-bit integers as strings, as JSON of
// protocol buffers has them. Returns false if the value is no finite number.
bool ReadNumber(const nlohmann::json& object, const char* key, double* number) {
  *number = 0;
  const auto found = object.find(key);
  if (found == object.end()) return true;
  double value = 0;
  if (found->is_number()) {
    value = found->get<double>();
  } else if (!found->is_string() || !absl::SimpleAtod(found->get_ref<const std::string&>(), &value)) {
    return false;
  }
  if (!std::isfinite(value)) return false;
  *number = std::max(value, 0.0);
  return true;
}

// Returns the "cost_estimate" of a backend_config or of the "custom_call_config" in it, or null.
const nlohmann::json* FindEstimate(const nlohmann::json& config) {
  if (!config.is_object()) return nullptr;
  if (const auto found = config.find("cost_estimate"); found != config.end() && found->is_object()) return &*found;
  if (const auto inner = config.find("custom_call_config"); inner != config.end() && inner->is_object()) {
    if (const auto found = inner->find("cost_estimate"); found != inner->end() && found->is_object()) return &*found;
  }
  return nullptr;
}

// Operations for each element of a kernel's arrays below which it has no matmuls worth the matrix unit.
constexpr double kMaxVectorIntensity = 64;
// Queries and keys that a paged attention kernel processes at a time. Names of kernels in traces of vLLM state the
// block of keys: RPAm-p_256-bq_..-bkv_2048_512.
constexpr double kQueryBlock = 128;
constexpr double kKeyBlock = 512;
constexpr double kMaxBlocks = 1e6;

double Dim(Shape shape, int64_t i) { return shape.is_unbounded(i) ? 1 : static_cast<double>(shape.dim(i)); }

// Returns the elements of the operands and results of a call.
double ElementsOfCall(Instruction call) {
  double elements = 0;
  for (Instruction operand : call.operands()) {
    if (operand.shape().IsArray()) elements += static_cast<double>(ElementsOf(operand.shape()));
  }
  for (Shape leaf : Leaves(call.shape())) {
    if (leaf.IsArray()) elements += static_cast<double>(ElementsOf(leaf));
  }
  return elements;
}

// Returns the keys that the blocks of queries of a sequence see, summed: those of the last `tokens` positions of
// `length`, in whole blocks of keys.
double KeysOfBlocks(double tokens, double length) {
  const double blocks = std::min(std::ceil(tokens / kQueryBlock), kMaxBlocks);
  double keys = 0;
  for (double b = 1; b <= blocks; ++b) {
    const double last = length - tokens + std::min(b * kQueryBlock, tokens);
    keys += std::min(std::ceil(last / kKeyBlock) * kKeyBlock, length);
  }
  return keys;
}

void AddAttention(const DeviceDescription& machine, const AttentionShape& shape, CustomCallWork* work) {
  const AttentionTime time = TimeOf(machine, shape);
  work->matrix_seconds = time.matrix;
  work->vector_seconds = time.vector;
  work->compute_seconds = time.total;
  work->grid_steps = time.blocks;
  work->refetched_bytes = time.refetched_bytes;
  work->own_pipeline = true;
}

}  // namespace

CustomCallWork WorkOfCustomCall(const DeviceDescription& machine, Instruction call) {
  CustomCallWork work;
  const std::string_view target = call.string_attr(Attr::kCustomCallTarget);
  const std::string_view config = call.string_attr(Attr::kBackendConfig);
  if (config.size() < (size_t{1} << 24) && config.find("cost_estimate") != std::string_view::npos) {
    const nlohmann::json parsed = nlohmann::json::parse(config, nullptr, false);
    if (const nlohmann::json* estimate = FindEstimate(parsed); estimate != nullptr) {
      const bool has_flops = ReadNumber(*estimate, "flops", &work.flops);
      work.known = ReadNumber(*estimate, "transcendentals", &work.transcendentals) && has_flops;
      if (const auto shape = AttentionShapeOf(call, work.flops, work.transcendentals)) {
        AddAttention(machine, *shape, &work);
      } else if (work.flops > kMaxVectorIntensity * ElementsOfCall(call)) {
        work.matrix_seconds = work.flops / (machine.PeakFlops() * machine.mxu_efficiency);
      } else {
        work.vector_operations = work.flops;
      }
      return work;
    }
  }
  if (target.find("fused_attn_forward") != std::string_view::npos ||
      target.find("fused_attn_backward") != std::string_view::npos) {
    const bool backward = target.find("backward") != std::string_view::npos;
    // Kernels for training skip the blocks that a causal mask hides.
    work.flops = AttentionFlops(call, /*causal=*/true, backward);
    work.known = work.flops > 0;
    if (const auto shape = AttentionShapeOf(call, work.flops, 0)) AddAttention(machine, *shape, &work);
    return work;
  }
  if (target.find("ragged_paged_attention") != std::string_view::npos && call.operand_count() > 0 &&
      call.operand(0).shape().rank() > 0) {
    work.known = true;
    work.own_pipeline = true;
    // q is [tokens, heads * depth], keys are [sequences, heads, length, depth]. One token of each sequence, or all.
    const Shape q = call.operand(0).shape();
    double sequences = Dim(q, 0);
    if (call.operand_count() > 1 && call.operand(1).shape().IsArray() && call.operand(1).shape().rank() == 4) {
      const Shape k = call.operand(1).shape();
      const double tokens = sequences;
      sequences = std::clamp(Dim(k, 0), 1.0, std::max(tokens, 1.0));
      const double length = Dim(k, 2);
      const double width = q.rank() > 1 ? Dim(q, 1) : 1;
      // Average context of a token: the preceding tokens in prefill, the whole length in decoding.
      const double seen = std::max(length - (tokens / sequences - 1) / 2, 1.0);
      work.flops = 2 * 2 * tokens * width * seen;
      if (tokens > sequences) {
        const double each = tokens / sequences;
        work.matrix_seconds = 2 * 2 * sequences * KeysOfBlocks(each, length) * std::min(kQueryBlock, each) * width /
                              (machine.PeakFlops() * machine.attention_paged_efficiency);
        sequences *= std::ceil(each / kQueryBlock);
      }
    }
    work.launch_seconds = machine.attention_launch_overhead;
    work.sequence_seconds = sequences * machine.attention_block_overhead;
    return work;
  }
  // Transfers between memories, and calls of negligible cost.
  for (std::string_view free :
       {"MoveToDevice", "MoveToHost", "AllocateBuffer", "annotate_device_placement", "Pin", "Unpin"}) {
    if (target == free) work.known = true;
  }
  return work;
}

}  // namespace hlokit::tpu
