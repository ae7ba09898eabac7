// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/overlap_remarks.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/async.h"
#include "ir/graph/module.h"
#include "passes/analysis/call_graph.h"

namespace hlokit {
namespace {

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(std::llround(std::min(seconds * 1e9, 9e15))); }

class OverlapRemarks {
 public:
  OverlapRemarks(absl::Span<const Latency> latencies, RemarkCollector* collector)
      : latencies_(latencies), collector_(*collector) {}

  void Visit(Computation c);

 private:
  double SecondsOf(Instruction i) const {
    return i.id().value < latencies_.size() ? latencies_[i.id().value].seconds : 0;
  }
  void AddPair(Instruction start, Instruction done, double between, Instruction longest);

  const absl::Span<const Latency> latencies_;
  RemarkCollector& collector_;
  AsyncStarts starts_;
};

void OverlapRemarks::AddPair(Instruction start, Instruction done, double between, Instruction longest) {
  const double needed = SecondsOf(start);
  const bool hidden = between >= needed;
  Remark remark(hidden ? RemarkRule::kOverlapped : RemarkRule::kNotHidden, start);
  remark.Text(" takes ").Number("Nanoseconds", Nanoseconds(needed)).Text(" ns; the instructions until ");
  remark.Name("Done", done).Text(" take ").Number("BetweenNanoseconds", Nanoseconds(between)).Text(" ns");
  if (!hidden) remark.Text(": exposed for ").Number("ExposedNanoseconds", Nanoseconds(needed - between)).Text(" ns");
  if (longest.valid()) remark.Text("; the longest is ").Name("Longest", longest);
  // What the next operation that needs the result is.
  for (Instruction user : done.users()) {
    remark.Text("; read by ").Name("User", user);
    break;
  }
  collector_.Add(std::move(remark));
}

void OverlapRemarks::Visit(Computation c) {
  struct Open {
    double begin;  // seconds of core work before the start
    size_t position;
  };
  absl::flat_hash_map<uint32_t, Open> open;
  double elapsed = 0;
  std::vector<Instruction> order;
  for (Instruction i : c.instructions()) {
    const size_t position = order.size();
    order.push_back(i);
    if (HasTrait(i.opcode(), kStartsAsync)) {
      open[i.id().value] = {elapsed, position};
      continue;
    }
    if (HasTrait(i.opcode(), kEndsAsync)) {
      Instruction start = i.operand_count() > 0 ? i.operand(0) : Instruction();
      if (start.valid() && !HasTrait(start.opcode(), kStartsAsync)) start = starts_.Find(i);
      const auto found = start.valid() ? open.find(start.id().value) : open.end();
      if (found == open.end()) continue;
      Instruction longest;
      for (size_t k = found->second.position + 1; k < position; ++k) {
        const bool other = HasTrait(order[k].opcode(), kStartsAsync) || HasTrait(order[k].opcode(), kEndsAsync);
        if (!other && (!longest.valid() || SecondsOf(order[k]) > SecondsOf(longest))) longest = order[k];
      }
      AddPair(start, i, elapsed - found->second.begin, longest);
      continue;
    }
    if (HasTrait(i.opcode(), kCollective) && SecondsOf(i) > 0) {
      Remark remark(RemarkRule::kNotAsynchronous, i);
      remark.Text(" is synchronous: the core waits ").Number("Nanoseconds", Nanoseconds(SecondsOf(i))).Text(" ns");
      collector_.Add(std::move(remark));
    }
    elapsed += SecondsOf(i);
  }
}

}  // namespace

void AddOverlapRemarks(const Module& module, absl::Span<const Latency> latencies, RemarkCollector* collector) {
  const CallGraph calls(module);
  OverlapRemarks remarks(latencies, collector);
  for (Computation c : module.computations()) {
    if (calls.IsSequential(c) && calls.IsLive(c)) remarks.Visit(c);
  }
}

}  // namespace hlokit
