// SPDX-License-Identifier: Apache-2.0
// Infeed, outfeed, send and recv: with the host through the run's HostIo, or from device to device along the frontend
// attribute _xla_send_recv_source_target_pairs, without it to the device itself. A send never blocks.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/reference/ops.h"
#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"

namespace hlokit::reference {
namespace {

// Channel of an instruction, or of the start that it completes.
struct Channel {
  bool host = false;
  int64_t number = 0;
  std::optional<std::vector<int64_t>> pairs;  // source, target, source, target, ...
};

std::vector<int64_t> NumbersIn(std::string_view text) {
  std::vector<int64_t> numbers;
  bool in_number = false;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) numbers.push_back(0);
    if (digit) numbers.back() = std::min<int64_t>(numbers.back() * 10 + (c - '0'), int64_t{1} << 40);
    in_number = digit;
  }
  return numbers;
}

Channel ChannelOf(Instruction instruction) {
  constexpr std::string_view kPairsKey = "_xla_send_recv_source_target_pairs";
  Channel channel;
  const Opcode opcode = instruction.opcode();
  const bool done = HasTrait(opcode, kTransfers) && HasTrait(opcode, kEndsAsync);
  const bool from_start = done && !instruction.has(Attr::kChannelId) && instruction.operand(0).has(Attr::kChannelId);
  const Instruction at = from_start ? instruction.operand(0) : instruction;
  channel.host = at.bool_attr(Attr::kIsHostTransfer);
  channel.number = at.int_attr(Attr::kChannelId);
  for (Instruction from : {instruction, instruction.operand(0)}) {
    if (channel.pairs) continue;
    const Context& context = instruction.module().context();
    const StringId text = FindFrontendAttribute(from, kPairsKey);
    if (text.valid()) channel.pairs = NumbersIn(context.str(text));
  }
  return channel;
}

SlotValue ArraysOf(const SlotValue& value) {
  SlotValue arrays = value;
  std::erase_if(arrays, [](const Leaf& leaf) { return !leaf->shape().IsArray(); });
  return arrays;
}

// Returns a value of these arrays, with zeros for all other leaves. Empty after an error.
SlotValue WithArrays(Run& run, Shape shape, const SlotValue& arrays) {
  SlotValue value;
  size_t next = 0;
  for (Shape leaf : LeafShapes(shape)) {
    value.push_back(leaf.IsArray() && next < arrays.size() ? arrays[next++] : run.Allocate(leaf));
    if (value.back() == nullptr) return {};
  }
  return value;
}

// Returns the next value of a host queue as arrays of these shapes. Empty after an error.
SlotValue FromHost(Run& run, const std::string& queue, Shape shape) {
  std::vector<Literal> leaves;
  for (Shape leaf : LeafShapes(shape)) {
    if (leaf.IsArray() && run.Allocate(leaf) != nullptr) leaves.push_back(Literal::Zeros(leaf));
  }
  if (run.failed()) return {};
  if (run.options.host_io == nullptr) {
    run.Fail(StrCat("the run has no host queue \"", queue, "\""));
    return {};
  }
  const absl::Status status = run.options.host_io->Receive(queue, run.DeviceNumber(), absl::MakeSpan(leaves));
  if (!status.ok()) run.Fail(std::string(status.message()));
  SlotValue value;
  for (const Literal& literal : leaves) {
    const std::shared_ptr<Array> array = run.Allocate(literal.shape());
    if (array == nullptr || run.failed()) return {};
    array->CopyBytes(Array(literal.shape(), literal.data()));
    value.push_back(array);
  }
  return value;
}

void ToHost(Run& run, const std::string& queue, const SlotValue& arrays) {
  if (run.options.host_io == nullptr) return run.Fail(StrCat("the run has no host queue \"", queue, "\""));
  std::vector<Literal> leaves;
  for (const Leaf& leaf : arrays) {
    leaves.push_back(Literal::Zeros(leaf->shape()));
    if (leaf->bytes() > 0) std::copy_n(leaf->data(), leaf->bytes(), leaves.back().data());
  }
  const absl::Status status = run.options.host_io->Send(queue, run.DeviceNumber(), leaves);
  if (!status.ok()) run.Fail(std::string(status.message()));
}

bool ExpectsMessage(const Channel& channel, int64_t device) {
  bool expects = !channel.pairs;
  for (size_t i = 1; channel.pairs && i < channel.pairs->size(); i += 2) expects |= (*channel.pairs)[i] == device;
  return expects;
}

}  // namespace

bool IsReady(Run& run, Instruction collective, int64_t device) {
  if (!HasTrait(collective.opcode(), kTransfers)) return true;
  const Channel channel = ChannelOf(collective);
  if (channel.host || !ExpectsMessage(channel, device)) return true;
  const auto queue = run.messages.find({channel.number, device});
  return queue != run.messages.end() && !queue->second.empty();
}

namespace ops {

// `infeed`: data and a token.
SlotValue Infeed(Op& op) {
  const SlotValue arrays = FromHost(op.run, "infeed", op.instruction.shape());
  return op.run.failed() ? SlotValue() : WithArrays(op.run, op.instruction.shape(), arrays);
}

// `outfeed`
SlotValue Outfeed(Op& op) {
  ToHost(op.run, "outfeed", ArraysOf(op.operands[0]));
  return Token(op);
}

// `send`: the value is data, context and token.
SlotValue Send(Op& op) {
  const Channel channel = ChannelOf(op.instruction);
  const SlotValue arrays = ArraysOf(op.operands[0]);
  if (channel.host) {
    ToHost(op.run, StrCat("send.", channel.number), arrays);
  } else if (!channel.pairs) {
    op.run.messages[{channel.number, op.run.DeviceNumber()}].push_back(arrays);
  } else {
    for (size_t i = 0; i + 1 < channel.pairs->size(); i += 2) {
      if ((*channel.pairs)[i] != op.run.DeviceNumber()) continue;
      op.run.messages[{channel.number, (*channel.pairs)[i + 1]}].push_back(arrays);
    }
  }
  return WithArrays(op.run, op.instruction.shape(), arrays);
}
SlotValue SendDone(Op& op) { return Token(op); }

// `recv`: the data is produced by the recv-done.
SlotValue Recv(Op& op) { return WithArrays(op.run, op.instruction.shape(), {}); }

// `recv-done`: zeros for a device that is not a target.
void RecvDone(Group& group) {
  Run& run = group.run;
  const Channel channel = ChannelOf(group.instruction);
  const Shape shape = group.instruction.shape();
  SlotValue arrays;
  if (channel.host) {
    arrays = FromHost(run, StrCat("recv.", channel.number), shape);
  } else if (ExpectsMessage(channel, group.devices[0])) {
    std::deque<SlotValue>& queue = run.messages[{channel.number, group.devices[0]}];
    arrays = std::move(queue.front());
    queue.pop_front();
  }
  group.results.emplace_back();
  size_t next = 0;
  for (Shape leaf : LeafShapes(shape)) {
    group.results[0].push_back(run.Allocate(leaf));
    if (run.failed()) return;
    if (!leaf.IsArray() || arrays.empty()) continue;
    if (next == arrays.size() || arrays[next]->bytes() != group.results[0].back()->bytes()) {
      return run.Fail(StrCat("the message on channel ", channel.number, " has another shape"));
    }
    group.results[0].back()->CopyBytes(*arrays[next++]);
  }
}

}  // namespace ops
}  // namespace hlokit::reference
