// SPDX-License-Identifier: Apache-2.0
// Expresses collectives by simpler ones: all-to-alls of arrays by those of tuples, collective-permutes in loops by send
// and recv, whose halves other passes can move to other iterations.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/sharding/collective_groups.h"
#include "ir/sharding/replica_groups.h"
#include "ir/text/frontend_attributes.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collective_rules.h"
#include "passes/collective/collectives.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

constexpr int64_t kMaxPieces = 1 << 12;
constexpr int64_t kMaxRank = 64;

// Returns the number of devices that exchange data in an all-to-all, or nullopt if it is not known.
std::optional<int64_t> MembersOf(Instruction all_to_all) {
  const ReplicaGroupCounts named =
      CountReplicaGroups(all_to_all.module().context(), AttrReader(all_to_all).list_id(Attr::kReplicaGroups));
  if (!named.uniform) return std::nullopt;
  const ModuleHeader& header = all_to_all.module().header();
  const bool replicas = GetCollectiveOpGroupMode(all_to_all) == CollectiveOpGroupMode::kCrossReplica;
  const int64_t members = named.groups != 0 ? named.group_size
                          : replicas        ? header.replica_count
                                            : header.num_partitions;
  return members > 1 && members <= kMaxPieces ? std::optional<int64_t>(members) : std::nullopt;
}

// An all-to-all of an array, which it splits into `members` pieces along `dimension`.
struct SplitExchange {
  int64_t dimension, members;
};

std::optional<SplitExchange> MatchSplit(Instruction exchange) {
  if (exchange.operand_count() != 1 || !exchange.shape().IsArray() || !CollectiveKey(exchange)) return std::nullopt;
  const std::optional<int64_t> dimension = AttrReader(exchange).only(Attr::kDimensions);
  const std::optional<int64_t> members = MembersOf(exchange);
  const Shape whole = exchange.operand(0).shape();
  if (!dimension || !members || whole != exchange.shape() || whole.dim(*dimension) % *members != 0) return std::nullopt;
  return SplitExchange{*dimension, *members};
}

// Splits the dimension in two, pieces and their size, and adds dimensions of size 1 at the end up to the minimum rank.
bool RaiseRank(PatternRewriter& rewriter, Instruction exchange) {
  const std::optional<SplitExchange> split = MatchSplit(exchange);
  const Shape whole = exchange.shape();
  const int64_t min_rank = rewriter.options().Int("min-array-rank");
  if (!split || whole.rank() >= std::min(min_rank, kMaxRank)) return false;
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (d == split->dimension) sizes.push_back(split->members);
    sizes.push_back(d == split->dimension ? whole.dim(d) / split->members : whole.dim(d));
  }
  sizes.resize(std::max(sizes.size(), static_cast<size_t>(std::min(min_rank, kMaxRank))), 1);
  const Shape higher = rewriter.shapes().Array(whole.element_type(), sizes);
  std::vector<AttrValue> attrs;
  for (AttrValue attr : exchange.attrs()) {
    if (!IsCommon(attr.attr)) attrs.push_back(attr);
  }
  const InstructionId pieces = rewriter.MakeReshape(exchange.operand(0).id(), higher);
  return rewriter.ReplaceEffect(exchange,
                                rewriter.MakeReshape(rewriter.Make(Opcode::kAllToAll, higher, {pieces}, attrs), whole));
}

// all-to-all(x), dimensions={d} becomes concatenate(all-to-all(slice(x), ...), ...).
bool DecomposeAllToAll(PatternRewriter& rewriter, Instruction exchange) {
  const std::optional<SplitExchange> split = MatchSplit(exchange);
  if (!split || rewriter.options().Int("min-array-rank") > 0) return false;
  const Instruction x = exchange.operand(0);
  const Shape whole = x.shape();
  const int64_t rank = whole.rank(), dimension = split->dimension, members = split->members;
  const int64_t size = whole.dim(dimension) / members;
  std::vector<int64_t> sizes(whole.dims().begin(), whole.dims().end());
  sizes[static_cast<size_t>(dimension)] = size;
  const Shape part = rewriter.shapes().Array(whole.element_type(), sizes);
  std::vector<InstructionId> sent, received;
  for (int64_t n = 0; n < members; ++n) {
    std::vector<int64_t> ranges;  // start, limit, stride
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t start = d == dimension ? n * size : 0;
      ranges.insert(ranges.end(), {start, start + sizes[static_cast<size_t>(d)], 1});
    }
    sent.push_back(rewriter.Make(Opcode::kSlice, part, {x.id()}, {rewriter.List(Attr::kSlice, ranges)}));
  }
  std::vector<AttrValue> attrs;
  for (AttrValue attr : exchange.attrs()) {
    if (attr.attr != Attr::kDimensions && !IsCommon(attr.attr)) attrs.push_back(attr);
  }
  const std::vector<Shape> parts(static_cast<size_t>(members), part);
  const InstructionId all = rewriter.Make(Opcode::kAllToAll, rewriter.shapes().Tuple(parts), sent, attrs);
  for (int64_t n = 0; n < members; ++n) received.push_back(rewriter.MakeElement(all, n));
  return rewriter.ReplaceEffect(
      exchange, rewriter.Make(Opcode::kConcatenate, whole, received, {rewriter.List(Attr::kDimensions, {dimension})}));
}

// ---- collective-permute ----

// A list of 2, source, target for each pair; every device is at most once a source and once a target.
bool HasCycle(absl::Span<const int64_t> pairs) {
  std::vector<std::pair<int64_t, int64_t>> targets;
  for (size_t k = 0; k + 2 < pairs.size(); k += 3) targets.push_back({pairs[k + 1], pairs[k + 2]});
  std::sort(targets.begin(), targets.end());
  std::vector<uint8_t> visited(targets.size(), 0);
  for (size_t first = 0; first < targets.size(); ++first) {
    size_t at = first;
    while (visited[at] == 0) {
      visited[at] = 1;
      const auto next =
          std::lower_bound(targets.begin(), targets.end(), std::make_pair(targets[at].second, int64_t{-1}));
      if (next == targets.end() || next->first != targets[at].second) break;
      at = static_cast<size_t>(next - targets.begin());
      if (at == first) return true;
    }
  }
  return false;
}

std::string PairsText(absl::Span<const int64_t> pairs) {
  std::string text = "{";
  for (size_t k = 0; k + 2 < pairs.size(); k += 3) {
    StrAppend(&text, k == 0 ? "{" : ",{", pairs[k + 1], ",", pairs[k + 2], "}");
  }
  StrAppend(&text, "}");
  return text;
}

// Returns true if numbers of devices mean the same to the permute and to send and recv.
bool NumbersDevices(Instruction permute) {
  const ModuleHeader& header = permute.module().header();
  return permute.has(Attr::kChannelId) ? header.replica_count == 1 : header.num_partitions == 1;
}

bool ShouldDecompose(Instruction i, int64_t min_bytes) {
  return i.opcode() == Opcode::kCollectivePermute && i.operand_count() == 1 && i.shape().IsArray() &&
         !i.has(Attr::kPermuteSliceSizes) && CollectiveKey(i) && NumbersDevices(i) &&
         BufferBytes(i.shape()) >= min_bytes && !HasCycle(i.list_attr(Attr::kSourceTargetPairs));
}

struct Transfer {
  InstructionId recv, send, recv_done, send_done;
};

void AddControlEdge(Module& module, InstructionId before, InstructionId after) {
  const absl::Span<const int64_t> known = module.instruction(after).list_attr(Attr::kControlPredecessors);
  std::vector<int64_t> all(known.begin(), known.end());
  all.push_back(before.value);
  module.SetAttr(after, Attr::kControlPredecessors, module.ListPayload(all));
}

Transfer Decompose(Module& module, InstructionId id, int64_t* next_channel) {
  const Instruction i = module.instruction(id);
  const Instruction data = i.operand(0);
  const std::string name(i.name());
  Builder builder(&module, id);
  const MetadataScope scope(&builder, i.metadata_id());
  Context& context = module.context();
  const ListId known = i.has(Attr::kFrontendAttributes) ? ListId(*i.payload(Attr::kFrontendAttributes)) : ListId();
  const std::string pairs = PairsText(i.list_attr(Attr::kSourceTargetPairs));
  std::vector<AttrValue> attrs = {
      {Attr::kFrontendAttributes,
       WithFrontendAttribute(&context, known, "_xla_send_recv_source_target_pairs", pairs).value}};
  std::vector<AttrValue> done_attrs;
  // Without a channel the numbers are those of replicas.
  if (i.has(Attr::kChannelId)) {
    attrs.push_back(builder.Int(Attr::kChannelId, *next_channel));
    done_attrs.push_back(builder.Int(Attr::kChannelId, (*next_channel)++));
  }
  ShapeTable& shapes = context.shapes;
  const Shape started[] = {i.shape(), shapes.Scalar(ElementType::kU32), shapes.Token()};
  const Shape done[] = {i.shape(), shapes.Token()};
  Transfer t;
  const InstructionId token = builder.WithName(StrCat(name, "-after-all")).Make(Opcode::kAfterAll, shapes.Token(), {});
  t.recv = builder.WithName(StrCat(name, "-recv")).Make(Opcode::kRecv, shapes.Tuple(started), {token}, attrs);
  t.send =
      builder.WithName(StrCat(name, "-send")).Make(Opcode::kSend, shapes.Tuple(started), {data.id(), token}, attrs);
  t.recv_done =
      builder.WithName(StrCat(name, "-recv-done")).Make(Opcode::kRecvDone, shapes.Tuple(done), {t.recv}, done_attrs);
  t.send_done =
      builder.WithName(StrCat(name, "-send-done")).Make(Opcode::kSendDone, shapes.Token(), {t.send}, done_attrs);
  const InstructionId received = builder.WithName(StrCat(name, "-recv-data")).MakeElement(t.recv_done, 0);
  // A device that is a target and no source must not wait for its own send.
  AddControlEdge(module, t.recv, t.send);
  AddControlEdge(module, t.send, t.recv_done);
  Replace(module, id, received);
  return t;
}

}  // namespace

void AddAllToAllDecomposerRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kAllToAll}, "all-to-alls decomposed", DecomposeAllToAll);
  rules->Add({Opcode::kAllToAll}, "all-to-alls given more dimensions", RaiseRank);
}

absl::StatusOr<int64_t> DecomposeCollectivePermutes(Module& module, int64_t min_bytes) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const CallGraph calls(module);
  int64_t next_channel = 1;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) next_channel = std::max(next_channel, i.int_attr(Attr::kChannelId) + 1);
  }
  int64_t decomposed = 0;
  for (Computation c : module.computations()) {
    const absl::Span<const CallSite> callers = calls.caller_callsites(c);
    if (callers.size() != 1 || !calls.IsLive(c)) continue;
    const Instruction loop = module.instruction(callers[0].caller);
    if (loop.opcode() != Opcode::kWhile || loop.computation_attr(Attr::kBody) != c) continue;
    std::optional<Transfer> previous;
    for (InstructionId id : PostOrder(c)) {
      if (!ShouldDecompose(module.instruction(id), min_bytes)) continue;
      const Transfer transfer = Decompose(module, id, &next_channel);
      if (previous) {
        // In one order on all devices, lest some only receive.
        AddControlEdge(module, previous->send, transfer.recv);
        AddControlEdge(module, previous->send_done, transfer.recv_done);
      }
      previous = transfer;
      ++decomposed;
    }
  }
  return decomposed;
}

namespace {

class PermuteDecomposer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = DecomposeCollectivePermutes(module, options().Int("min-bytes"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collective-permutes decomposed", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(CollectivePermuteDecomposer) {
  return {.name = "collective-permute-decomposer",
          .category = "collective",
          .summary = "replace collective-permutes in loops by send and recv",
          .doc =
              "A collective-permute of one array in a loop body, whose pairs have no cycle, becomes recv, send "
              "and their done instructions, ordered by control edges. XLA also marks one or two of them for "
              "its pipeliner.",
          .example = R"(HloModule stages, num_partitions=2

body {
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(state), index=1
  from_before = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}
  ROOT r = (s32[], f32[8]) tuple(next, from_before)
}

condition {
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(2)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  ROOT loop = (s32[], f32[8]) while(init), condition=condition, body=body
})",
          .options = {{.name = "min-bytes",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "0",
                       .doc = "minimum bytes of the array"}},
          .preconditions = kNoSchedule,
          .create = MakePass<PermuteDecomposer>};
}

HLOKIT_PASS(AllToAllDecomposer) {
  return {.name = "all-to-all-decomposer",
          .category = "collective",
          .summary = "exchange slices instead of an array",
          .doc =
              "An all-to-all that splits an array becomes an all-to-all of its slices and a concatenation of "
              "what is received; or, with min-array-rank, one of an array with more dimensions. As XLA's, "
              "which also reshapes ragged-all-to-alls, and puts the added dimensions after the pieces.",
          .example = R"(HloModule exchange, replica_count=2

ENTRY main {
  x = f32[4,3] parameter(0)
  ROOT y = f32[4,3] all-to-all(x), replica_groups={{0,1}}, dimensions={0}
})",
          .options = {{.name = "min-array-rank",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "0",
                       .doc = "split the dimension in two, and add dimensions of size 1 up to this rank; 0: "
                              "exchange slices"}},
          .preconditions = kNoSchedule,
          .create = MakePass<CollectiveRules<AddAllToAllDecomposerRules>>};
}

}  // namespace hlokit
