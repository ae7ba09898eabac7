// SPDX-License-Identifier: Apache-2.0
// Infeed and outfeed, send and recv. Transfers with the host go through the run's HostIo. Others carry messages between
// devices: along the frontend attribute _xla_send_recv_source_target_pairs, as in XLA's pipelines, or without it from a
// device to itself. A send never blocks; a recv-done waits for its message, and returns zeros on a device that is not a
// target.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/exact/builder/collective.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/devices/collective_groups.h"
#include "interp/exact/machine/run_context.h"
#include "interp/interface/host_io.h"
#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kPairsKey = "_xla_send_recv_source_target_pairs";

struct Endpoint {
  bool host = false;
  int64_t channel = 0;
  bool has_pairs = false;
  std::vector<std::pair<int64_t, int64_t>> pairs;  // devices
};

// Parses pairs as in {{0,1},{1,2}}; nullopt for any other text.
std::optional<std::vector<std::pair<int64_t, int64_t>>> ParsePairs(std::string_view text) {
  std::vector<int64_t> numbers;
  int64_t number = -1;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      number = (number < 0 ? 0 : number) * 10 + (c - '0');
      if (number > (int64_t{1} << 31)) return std::nullopt;
      continue;
    }
    if (std::string_view("{}, \"").find(c) == std::string_view::npos) return std::nullopt;
    if (number >= 0) numbers.push_back(number);
    number = -1;
  }
  if (number >= 0 || numbers.size() % 2 != 0) return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i < numbers.size(); i += 2) pairs.emplace_back(numbers[i], numbers[i + 1]);
  return pairs;
}

// Returns the channel of an instruction, or of the start that it completes.
std::optional<Endpoint> EndpointOf(CompiledComputationBuilder& b, Instruction instruction) {
  Endpoint endpoint;
  Instruction at = instruction;
  const Opcode opcode = instruction.opcode();
  if ((HasTrait(opcode, kTransfers) && HasTrait(opcode, kEndsAsync)) && !at.has(Attr::kChannelId) &&
      at.operand(0).has(Attr::kChannelId)) {
    at = at.operand(0);
  }
  endpoint.host = at.bool_attr(Attr::kIsHostTransfer);
  endpoint.channel = at.int_attr(Attr::kChannelId);
  for (Instruction from : {instruction, instruction.operand(0)}) {
    if (endpoint.has_pairs) continue;
    const Context& context = b.program().module().context();
    const StringId text = FindFrontendAttribute(from, kPairsKey);
    if (!text.valid()) continue;
    std::optional<std::vector<std::pair<int64_t, int64_t>>> pairs = ParsePairs(context.str(text));
    if (!pairs) {
      b.Fail(StrCat("expected a list of pairs in ", kPairsKey));
      return std::nullopt;
    }
    endpoint.has_pairs = true;
    endpoint.pairs = std::move(*pairs);
  }
  return endpoint;
}

int64_t DeviceOf(const RunContext& context) {
  return context.device.replica * context.num_partitions + context.device.partition;
}

struct TransferParams : ThunkParams {
  std::string queue;
  std::vector<Shape> leaves;  // arrays only
  Endpoint endpoint;
};

bool HasHost(const TransferParams& p, RunContext& context) {
  if (context.host_io == nullptr) context.Fail(StrCat("the run has no host queue \"", p.queue, "\""));
  return context.host_io != nullptr;
}

void RunReceiveFromHost(const TransferParams& p, const std::byte* const*, std::byte* const* out, RunContext& context) {
  if (!HasHost(p, context)) return;
  std::vector<Literal> leaves;
  for (Shape s : p.leaves) leaves.push_back(Literal::Zeros(s));
  const absl::Status status = context.host_io->Receive(p.queue, DeviceOf(context), absl::MakeSpan(leaves));
  if (!status.ok()) return context.Fail(std::string(status.message()));
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].size_bytes() != 0) std::memcpy(out[i], leaves[i].data(), leaves[i].size_bytes());
  }
}

void RunSendToHost(const TransferParams& p, const std::byte* const* in, std::byte* const*, RunContext& context) {
  if (!HasHost(p, context)) return;
  std::vector<Literal> leaves;
  for (size_t i = 0; i < p.leaves.size(); ++i) {
    leaves.push_back(Literal::Zeros(p.leaves[i]));
    if (leaves[i].size_bytes() != 0) std::memcpy(leaves[i].data(), in[i], leaves[i].size_bytes());
  }
  const absl::Status status = context.host_io->Send(p.queue, DeviceOf(context), leaves);
  if (!status.ok()) context.Fail(std::string(status.message()));
}

// Sends one message with the bytes of all leaves.
void RunSendToDevice(const TransferParams& p, const std::byte* const* in, std::byte* const*, RunContext& context) {
  std::string message;
  for (size_t i = 0; i < p.leaves.size(); ++i) {
    message.append(reinterpret_cast<const char*>(in[i]),
                   static_cast<size_t>(p.leaves[i].element_count() * BytesOf(p.leaves[i].element_type())));
  }
  const int64_t device = DeviceOf(context);
  if (!p.endpoint.has_pairs) {
    context.messages[{p.endpoint.channel, device}].push_back(std::move(message));
    return;
  }
  for (const auto& [source, target] : p.endpoint.pairs) {
    if (source != device || (context.send_away && context.send_away(p.endpoint.channel, target, message))) continue;
    context.messages[{p.endpoint.channel, target}].push_back(message);
  }
}

struct ReceiveParams : CollectiveParams {
  std::vector<Shape> leaves;
  Endpoint endpoint;

  bool Expects(int64_t device) const {
    if (!endpoint.has_pairs) return true;
    for (const auto& [source, target] : endpoint.pairs) {
      if (target == device) return true;
    }
    return false;
  }
  bool Ready(int64_t device, const RunContext& context) const override {
    const auto it = context.messages.find({endpoint.channel, device});
    return !Expects(device) || (it != context.messages.end() && !it->second.empty());
  }
  std::string WaitsFor() const override { return StrCat("a message on channel ", endpoint.channel); }

  void Run(absl::Span<const CollectiveMember> members, RunContext& context) const override {
    const CollectiveMember& m = members[0];
    std::string message;
    if (Expects(m.device)) {
      auto& queue = context.messages[{endpoint.channel, m.device}];
      message = std::move(queue.front());
      queue.pop_front();
    }
    size_t at = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const size_t bytes = static_cast<size_t>(leaves[i].element_count() * BytesOf(leaves[i].element_type()));
      if (message.empty()) {
        std::memset(m.results[i], 0, bytes);
      } else if (at + bytes <= message.size()) {
        std::memcpy(m.results[i], message.data() + at, bytes);
      } else {
        return context.Fail(StrCat("the message on channel ", endpoint.channel, " has ", message.size(), " bytes"));
      }
      at += bytes;
    }
  }
};

// Returns the leaves of a value without its tokens, which come last.
std::vector<Shape> ArrayLeaves(Shape shape) {
  std::vector<Shape> leaves;
  AppendLeaves(shape, &leaves);
  std::erase_if(leaves, [](Shape s) { return !s.IsArray(); });
  return leaves;
}

void SetWithToken(CompiledComputationBuilder& b, absl::Span<const View> arrays) {
  std::vector<Shape> all;
  AppendLeaves(b.shape(), &all);
  size_t next = 0;
  std::vector<View> views;
  for (Shape leaf : all) views.push_back(leaf.IsArray() && next < arrays.size() ? arrays[next++] : b.Zeros(leaf));
  b.SetResults(views);
}

std::vector<View> DenseArrays(CompiledComputationBuilder& b, Instruction operand) {
  const std::vector<View> leaves(b.leaves(operand).begin(), b.leaves(operand).end());
  std::vector<View> views;
  for (const View& v : leaves) {
    if (v.shape.IsArray()) views.push_back(b.MakeDense(v));
  }
  return views;
}

std::unique_ptr<TransferParams> ParamsFor(std::string queue, std::vector<Shape> leaves) {
  auto params = std::make_unique<TransferParams>();
  params->queue = std::move(queue);
  params->leaves = std::move(leaves);
  return params;
}

}  // namespace

void PrepareInfeed(CompiledComputationBuilder& b) {
  const std::vector<Shape> leaves = ArrayLeaves(b.shape());
  SetWithToken(b, b.EmitTo(kKernel<RunReceiveFromHost>, ParamsFor("infeed", leaves), {}, leaves));
}

void PrepareOutfeed(CompiledComputationBuilder& b) {
  const std::vector<View> views = DenseArrays(b, b.instruction().operand(0));
  std::vector<Shape> leaves;
  for (const View& v : views) leaves.push_back(v.shape);
  b.Emit(kKernel<RunSendToHost>, ParamsFor("outfeed", leaves), views);
}

// Sets the result (data, context, token).
void PrepareSend(CompiledComputationBuilder& b) {
  std::optional<Endpoint> endpoint = EndpointOf(b, b.instruction());
  if (!endpoint) return;
  const std::vector<View> views = DenseArrays(b, b.instruction().operand(0));
  std::vector<Shape> leaves;
  for (const View& v : views) leaves.push_back(v.shape);
  std::unique_ptr<TransferParams> params = ParamsFor(StrCat("send.", endpoint->channel), leaves);
  params->endpoint = *endpoint;
  b.EmitTo(endpoint->host ? kKernel<RunSendToHost> : kKernel<RunSendToDevice>, std::move(params), views, {});
  SetWithToken(b, views);
}

void PrepareSendDone(CompiledComputationBuilder& b) { PrepareToken(b); }

// Sets a result without data: the recv-done produces the data.
void PrepareRecv(CompiledComputationBuilder& b) { SetWithToken(b, {}); }

void PrepareRecvDone(CompiledComputationBuilder& b) {
  std::optional<Endpoint> endpoint = EndpointOf(b, b.instruction());
  if (!endpoint) return;
  const std::vector<Shape> leaves = ArrayLeaves(b.shape());
  if (endpoint->host) {
    SetWithToken(
        b, b.EmitTo(kKernel<RunReceiveFromHost>, ParamsFor(StrCat("recv.", endpoint->channel), leaves), {}, leaves));
    return;
  }
  auto params = std::make_unique<ReceiveParams>();
  const PrepareOptions& options = b.program().options();
  SetGroupsOfOne(options.num_replicas * options.num_partitions, params.get());
  params->leaves = leaves;
  params->receives = true;
  params->endpoint = std::move(*endpoint);
  SetWithToken(b, b.EmitCollective(std::move(params), {}, leaves));
}

}  // namespace hlokit::interp
