// SPDX-License-Identifier: Apache-2.0
// Collectives that JAX writes as two custom calls: all-gather-start, with the attributes of the operation as JSON in
// the frontend attribute async_collective_config, and all-gather-done. They become the collective and its value: the
// passes that make collectives asynchronous decide when it starts and ends.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/sharding/replica_groups.h"
#include "parser/json/json_cursor.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

namespace {

constexpr std::string_view kConfig = "async_collective_config";

struct AsyncCall {
  std::string_view name;  // of the target, without -start or -done
  Opcode opcode;
  std::string_view dimension;  // its key in the configuration
  bool reduces = false;
};

constexpr AsyncCall kAsyncCalls[] = {
    {"all-gather", Opcode::kAllGather, "all_gather_dimension"},
    {"all-reduce", Opcode::kAllReduce, "", true},
    {"all-to-all", Opcode::kAllToAll, "split_dimension"},
    {"collective-permute", Opcode::kCollectivePermute, ""},
    {"reduce-scatter", Opcode::kReduceScatter, "scatter_dimension", true},
};

const AsyncCall* AsyncCallOf(std::string_view target, std::string_view suffix) {
  if (!target.ends_with(suffix)) return nullptr;
  target.remove_suffix(suffix.size());
  for (const AsyncCall& call : kAsyncCalls) {
    if (call.name == target) return &call;
  }
  return nullptr;
}

struct AsyncConfig {
  std::vector<std::vector<int64_t>> groups, pairs;
  int64_t dimension = -1, concat_dimension = 0, split_count = 1, channel = 0;
  bool use_global_device_ids = false, has_pairs = false;
};

bool ReadLists(JsonCursor* in, std::vector<std::vector<int64_t>>* lists) {
  JsonArray outer(*in, "a list of lists");
  while (outer.Next()) {
    std::vector<int64_t>& list = lists->emplace_back();
    JsonArray inner(*in, "a list of devices");
    while (inner.Next()) {
      if (!in->Int(&list.emplace_back(), "a device")) return false;
    }
    if (!inner.ok()) return false;
  }
  return outer.ok();
}

bool ReadConfig(const std::string& text, std::string_view dimension, AsyncConfig* config) {
  DiagnosticSink sink;
  JsonCursor in(text, &sink, 0, /*max_nesting=*/8);
  JsonObject object(in, "an object");
  JsonString key;
  while (object.Next(&key)) {
    bool good;
    if (key.value == "replica_groups") {
      good = ReadLists(&in, &config->groups);
    } else if (key.value == "permutation") {
      good = ReadLists(&in, &config->pairs);
      config->has_pairs = true;
    } else if (key.value == dimension) {
      good = in.Int(&config->dimension, "a dimension");
    } else if (key.value == "concat_dimension") {
      good = in.Int(&config->concat_dimension, "a dimension");
    } else if (key.value == "split_count") {
      good = in.Int(&config->split_count, "a number of parts");
    } else if (key.value == "channel_id") {
      good = in.Int(&config->channel, "a channel");
    } else if (key.value == "use_global_device_ids") {
      good = in.Bool(&config->use_global_device_ids, "true or false");
    } else {
      good = in.Skip();
    }
    if (!good) return false;
  }
  return object.ok();
}

}  // namespace

absl::StatusOr<std::vector<ComputationId>> Converter::CalledComputations(const Op& op) const {
  std::vector<ComputationId> ids;
  const NodeId called = Attribute(op, "called_computations");
  if (!called.valid() || nodes().kind(called) != NodeKind::kArray) return ids;
  for (NodeId symbol : nodes().children(called)) {
    const auto found = functions_.find(std::string(nodes().text(symbol)));
    if (found == functions_.end() || !computations_.contains(found->second.value)) {
      return Error(op, StrCat("calls @", nodes().text(symbol), ", which is not converted"));
    }
    ids.push_back(computations_.at(found->second.value));
  }
  return ids;
}

std::optional<absl::Status> Converter::ConvertAsyncCall(const Op& op) {
  if (options_.as_xla || op.operand_count != 1 || op.result_count != 1) return std::nullopt;
  const std::string_view target = StringOf(op, "call_target_name");
  const auto config_of = [&](const Op& start) {
    const NodeId frontend = Attribute(start, "mhlo.frontend_attributes");
    if (!frontend.valid() || nodes().kind(frontend) != NodeKind::kDictionary) return NodeId();
    const NodeId config = nodes().Entry(frontend, kConfig);
    return config.valid() && nodes().kind(config) == NodeKind::kString ? config : NodeId();
  };
  if (const AsyncCall* const done = AsyncCallOf(target, "-done")) {
    const mlir::OperationId id = program_.values[program_.operands_of(op)[0].value].definition;
    const bool started = id.valid() && StringOf(program_.op(id), "call_target_name") == StrCat(done->name, "-start") &&
                         config_of(program_.op(id)).valid();
    if (!started) return std::nullopt;
    return SetResult(op, operand(op, 0));
  }
  const AsyncCall* const start = AsyncCallOf(target, "-start");
  if (start == nullptr) return std::nullopt;
  const NodeId text = config_of(op);
  if (!text.valid()) return std::nullopt;
  AsyncConfig config;
  if (!ReadConfig(std::string(nodes().text(text)), start->dimension, &config)) {
    return Error(op, StrCat("has a malformed ", kConfig));
  }
  Attrs attrs;
  if (config.channel > 0) attrs.push_back(Int(Attr::kChannelId, config.channel));
  if (start->opcode == Opcode::kCollectivePermute) {
    if (!config.has_pairs) return Error(op, "has no permutation");
    Ints list;
    for (const std::vector<int64_t>& pair : config.pairs) {
      if (pair.size() != 2) return Error(op, "has a permutation that is no list of pairs");
      list.insert(list.end(), {2, pair[0], pair[1]});
    }
    attrs.push_back(List(Attr::kSourceTargetPairs, list));
    return Emit(op, start->opcode, operands(op), attrs);
  }
  if (!start->dimension.empty() && config.dimension < 0) return Error(op, StrCat("has no ", start->dimension));
  attrs.push_back({Attr::kReplicaGroups, EncodeReplicaGroups(&context(), ReplicaGroups::List(config.groups)).value});
  if (start->opcode == Opcode::kAllToAll) {
    return EmitAllToAll(op, std::move(attrs), config.dimension, config.concat_dimension, config.split_count);
  }
  attrs.push_back({Attr::kUseGlobalDeviceIds, config.use_global_device_ids});
  const int64_t dimension[] = {config.dimension};
  if (!start->dimension.empty()) attrs.push_back(List(Attr::kDimensions, dimension));
  if (start->reduces) {
    const absl::StatusOr<std::vector<ComputationId>> called = CalledComputations(op);
    if (!called.ok()) return called.status();
    if (called->size() != 1) return Error(op, "has not one computation that reduces");
    attrs.push_back(Builder::Calls(Attr::kToApply, (*called)[0]));
  }
  return Emit(op, start->opcode, operands(op), attrs);
}

}  // namespace hlokit::stablehlo
