// SPDX-License-Identifier: Apache-2.0
#include "passes/target/attention_cost.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "ir/graph/attribute_views.h"
#include "ir/text/frontend_attributes.h"
#include "passes/target/matrix_cost.h"

namespace hlokit::tpu {

namespace {

// Blocks of Pallas' kernels if nothing else is stated: flash_attention, and splash attention (also MaxText's default).
constexpr double kFlashBlock = 128;
constexpr double kSplashBlock = 512;
constexpr double kLaneDepth = 128;  // of heads whose operands are matrices [tokens, heads * depth]
constexpr double kMaxDepth = 1024;
constexpr double kMaxSize = 1e9;
// Queries of a block between which the units overlap: as the scores of some are multiplied, those of others pass
// through the vector unit.
constexpr double kOverlapRows = 128;
// Vector operations for each score, besides the exponential. Forward: running maximum, subtraction of it, scaling to
// powers of two, sum, conversion to the operand type. Backward: subtraction and scaling to recompute the probability,
// subtraction of the row's inner product, multiplication, conversion of both.
constexpr double kForwardOperations = 5;
constexpr double kBackwardOperations = 6;
// Operations on each output element for each block of keys: it is rescaled as the maximum of its row changes.
constexpr double kRescaleOperations = 2;
// Pallas' flash_attention besides masks every block, also those below the diagonal: it scales the scores, compares the
// positions of queries and keys (two counters, a comparison, a selection) and adds the mask. It divides by the sum of
// the row for each block of keys instead of at the end.
constexpr double kFlashMaskOperations = 6;
constexpr double kFlashRescaleOperations = 4;

double SizeAlong(Shape shape, int64_t i) {
  return shape.is_unbounded(i) ? 1 : std::max(static_cast<double>(shape.dim(i)), 1.0);
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool SameDims(Shape a, Shape b) { return a.IsArray() && b.IsArray() && a.rank() == b.rank() && a.dims() == b.dims(); }

// Returns the number that follows `key` in JSON-like text, with anything but digits and letters between, or 0.
double NumberAfter(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    size_t begin = at + key.size();
    // A longer key, as block_q_dkv, is another one.
    if (begin < text.size() && (text[begin] == '_' || (text[begin] >= 'a' && text[begin] <= 'z'))) continue;
    while (begin < text.size() && (text[begin] == '"' || text[begin] == '\'' || text[begin] == '\\' ||
                                   text[begin] == ':' || text[begin] == '=' || text[begin] == ' ')) {
      ++begin;
    }
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
    if (error == std::errc() && value > 0 && value <= (1 << 20)) return static_cast<double>(value);
  }
  return 0;
}

// Everything that names a call.
struct Names {
  std::string_view target, op_name, metadata;

  explicit Names(Instruction call)
      : target(call.string_attr(Attr::kCustomCallTarget)),
        op_name(call.metadata().op_name ? call.module().context().str(call.metadata().op_name) : "") {
    const StringId kernel = FindFrontendAttribute(call, "kernel_metadata");
    if (kernel.valid()) metadata = call.module().context().str(kernel);
  }
  bool Contain(std::string_view part) const {
    return Contains(target, part) || Contains(op_name, part) || Contains(metadata, part);
  }
};

}  // namespace

double AttentionFlops(Instruction call, bool causal, bool backward) {
  if (call.operand_count() < 3) return 0;
  const Shape q = call.operand(0).shape();
  const Shape k = call.operand(1).shape();
  if (!q.IsArray() || !k.IsArray() || q.rank() != 4 || k.rank() != 4) return 0;
  // Two matmuls over all positions; the backward pass recomputes the scores and has four more.
  const double full = 2 * 2 * SizeAlong(q, 0) * SizeAlong(q, 2) * SizeAlong(q, 1) * SizeAlong(k, 1) * SizeAlong(q, 3);
  return full * (causal ? 0.5 : 1) * (backward ? 2.5 : 1);
}

std::optional<AttentionShape> AttentionShapeOf(Instruction call, double flops, double exponentials) {
  if (call.operand_count() < 3 || flops <= 0) return std::nullopt;
  const Shape q = call.operand(0).shape(), k = call.operand(1).shape();
  if (!q.IsArray() || !k.IsArray() || q.rank() < 2 || q.rank() != k.rank()) return std::nullopt;
  const Names names(call);
  const bool named = names.Contain("attention") || names.Contain("attn") || names.Contain("splash") ||
                     names.Contain("flash") || names.Contain("mha") || names.Contain("mqa");
  const Shape result =
      call.shape().IsTuple() && call.shape().element_count() > 0 ? call.shape().element(0) : call.shape();
  if (!named && !(SameDims(k, call.operand(2).shape()) && SameDims(q, result))) return std::nullopt;

  AttentionShape shape;
  shape.backward = names.Contain("dkv") || names.Contain("bwd") || names.Contain("backward");
  const double per_score = shape.backward ? 10 : 4;
  double rows = 0;  // queries of all heads
  double full = 0;  // scores without a mask
  if (q.rank() == 2) {
    shape.depth = exponentials > 0 ? flops / (per_score * exponentials) : kLaneDepth;
    shape.depth = std::clamp(shape.depth, 8.0, std::min(kMaxDepth, SizeAlong(q, 1)));
    rows = SizeAlong(q, 0) * SizeAlong(q, 1) / shape.depth;
    // The sequences are not stated: those of a causal mask have twice the keys that a query sees in the mean.
    shape.causal = true;
    shape.keys = std::clamp(2 * flops / (per_score * shape.depth) / rows, 1.0, SizeAlong(q, 0));
    shape.queries = shape.keys;
  } else {
    // [..., sequence, depth] or [batch, sequence, heads, depth].
    const int64_t last = q.rank() - 1;
    const int64_t sequence = q.rank() == 4 && SizeAlong(q, 1) > SizeAlong(q, 2) ? 1 : last - 1;
    shape.depth = std::clamp(SizeAlong(q, last), 1.0, kMaxDepth);
    shape.queries = SizeAlong(q, sequence);
    shape.keys = SizeAlong(k, sequence);
    rows = 1;
    for (int64_t d = 0; d < last; ++d) rows = std::min(rows * SizeAlong(q, d), kMaxSize * kMaxSize);
    full = rows * shape.keys;
    shape.causal = flops < 0.75 * per_score * full * shape.depth;
  }
  shape.heads = std::max(rows / shape.queries, 1.0);
  shape.masks_all_blocks = names.Contain("flash_attention");
  const double block = shape.masks_all_blocks ? kFlashBlock : kSplashBlock;
  const double query_block = NumberAfter(names.metadata, "block_q"),
               key_block = NumberAfter(names.metadata, "block_kv");
  shape.query_block = query_block > 0 ? query_block : block;
  shape.key_block = key_block > 0 ? key_block : block;
  return shape;
}

AttentionTime TimeOf(const DeviceDescription& machine, const AttentionShape& shape) {
  AttentionTime time;
  const double cores = static_cast<double>(machine.cores_per_device());
  const double query_block = std::min(shape.query_block, shape.queries);
  const double key_block = std::min(shape.key_block, shape.keys);
  const double rows = std::ceil(shape.queries / query_block), columns = std::ceil(shape.keys / key_block);
  // Blocks on the diagonal of a causal mask are computed whole.
  const double share = shape.causal ? std::min(1.0, 0.5 + 0.5 / std::max(std::min(rows, columns), 1.0)) : 1;
  const double blocks = shape.heads * rows * columns * share;
  const double scores = blocks * query_block * key_block;

  // Scores, probabilities and their gradients are products over the depth of a head or with a result of its width.
  const double over_depth =
      MatmulCycles(machine, {.batch = blocks, .m = query_block, .n = key_block, .k = shape.depth}).total;
  const double into_depth =
      MatmulCycles(machine, {.batch = blocks, .m = query_block, .n = shape.depth, .k = key_block}).total;
  const double cycles = shape.backward ? 2 * over_depth + 3 * into_depth : over_depth + into_depth;
  time.matrix = cycles / machine.clock / machine.mxu_efficiency;

  const double positions = machine.lanes * machine.sublanes * cores;
  const double rescale = shape.masks_all_blocks ? kFlashRescaleOperations : kRescaleOperations;
  const double operations = (shape.backward ? kBackwardOperations : kForwardOperations) +
                            (shape.masks_all_blocks ? kFlashMaskOperations : 0) +
                            rescale * (shape.backward ? 0 : shape.depth / key_block);
  time.vector = scores * operations / (positions * machine.vpu_alus * machine.attention_efficiency * machine.clock);
  time.transcendental = scores / (positions * machine.transcendental_rate * machine.clock);

  const double vector = std::max(time.vector, time.transcendental);
  const double larger = std::max(time.matrix, vector), p = machine.overlap_exponent;
  const double together =
      larger > 0 ? larger * std::pow(std::pow(time.matrix / larger, p) + std::pow(vector / larger, p), 1 / p) : 0;
  const double serial = std::min(1.0, kOverlapRows / query_block);
  time.total = (1 - serial) * together + serial * (time.matrix + vector);

  // The first block of queries reads keys and values once, as the operands of the call count.
  const double block_bytes = 2 * key_block * shape.depth * 2;
  time.blocks = blocks;
  time.refetched_bytes = std::max(blocks - shape.heads * columns, 0.0) * block_bytes;
  return time;
}

}  // namespace hlokit::tpu
