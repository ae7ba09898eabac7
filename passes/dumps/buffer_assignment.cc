// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/buffer_assignment.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "parser/proto/proto_file.h"

namespace hlokit::dump {
namespace {

std::string KindOf(const xla::BufferAllocationProto& block) {
  if (block.is_thread_local()) return "thread-local";
  if (block.is_entry_computation_parameter()) return StrCat("parameter ", block.parameter_number());
  if (block.is_constant()) return "constant";
  return block.maybe_live_out() ? "result" : "temporary";
}

std::string ValueName(std::string_view instruction, absl::Span<const int64_t> index) {
  std::string name(instruction);
  if (index.empty()) return name;
  name += " {";
  for (size_t k = 0; k < index.size(); ++k) StrAppend(&name, k == 0 ? "" : ",", index[k]);
  return name + "}";
}

// Returns the index of a leaf of a shape by its number in depth-first order.
std::vector<int64_t> LeafIndex(Shape shape, int64_t leaf) {
  std::vector<int64_t> index;
  while (shape.IsTuple()) {
    int64_t k = 0;
    while (k + 1 < shape.tuple_size() && leaf >= std::max<int64_t>(shape.element(k).leaf_count(), 1)) {
      leaf -= std::max<int64_t>(shape.element(k++).leaf_count(), 1);
    }
    index.push_back(k);
    if (k >= shape.tuple_size()) break;
    shape = shape.element(k);
  }
  return index;
}

// Replays the events of a heap: the most bytes that are alive at once.
int64_t PeakOf(const xla::HeapSimulatorTrace& trace, const absl::flat_hash_map<int64_t, int64_t>& size_of) {
  absl::flat_hash_map<int64_t, int64_t> alive;
  int64_t bytes = 0, peak = 0;
  for (const xla::HeapSimulatorTrace::Event& event : trace.events()) {
    const auto size = size_of.find(event.buffer_id());
    if (size == size_of.end()) continue;
    if (event.kind() == xla::HeapSimulatorTrace::Event::ALLOC) {
      if (alive.insert({event.buffer_id(), size->second}).second) bytes = SaturatingAdd(bytes, size->second);
    } else if (event.kind() == xla::HeapSimulatorTrace::Event::FREE) {
      const auto found = alive.find(event.buffer_id());
      if (found == alive.end()) continue;
      bytes -= found->second;
      alive.erase(found);
    }
    peak = std::max(peak, bytes);
  }
  return peak;
}

// Returns the bytes alive at once in each block of which that is known: by the list of values at its peak, else by the
// trace of the heap that the values are in. The number of the block in a trace is of no use, since blocks are merged
// and numbered again after it.
absl::flat_hash_map<int64_t, int64_t> PeaksOf(const xla::BufferAssignmentProto& proto) {
  absl::flat_hash_map<int64_t, int64_t> size_of, block_of, peak_of;
  for (const xla::LogicalBufferProto& buffer : proto.logical_buffers()) size_of.insert({buffer.id(), buffer.size()});
  for (const xla::BufferAllocationProto& block : proto.buffer_allocations()) {
    for (const xla::BufferAllocationProto::Assigned& value : block.assigned()) {
      block_of.insert({value.logical_buffer_id(), block.index()});
    }
  }
  for (const xla::BufferAssignmentProto::PeakBuffers& peak : proto.peak_buffers()) {
    int64_t bytes = 0;
    for (const int64_t id : peak.logical_buffer_ids()) {
      const auto size = size_of.find(id);
      if (size != size_of.end()) bytes = SaturatingAdd(bytes, std::max<int64_t>(size->second, 0));
    }
    peak_of.insert({peak.index(), bytes});
  }
  absl::flat_hash_map<int64_t, int64_t> traced;
  for (const xla::HeapSimulatorTrace& trace : proto.heap_simulator_traces()) {
    if (trace.events().empty()) continue;
    const auto block = block_of.find(trace.events(0).buffer_id());
    if (block == block_of.end()) continue;
    int64_t& peak = traced[block->second];
    peak = std::max(peak, PeakOf(trace, size_of));
  }
  for (const auto& [block, peak] : traced) peak_of.insert({block, peak});  // unless it is known
  return peak_of;
}

// Adds a block to the sums, but for temporary_peak_bytes.
void AddToSums(const AssignedBlock& block, AssignmentSummary* summary) {
  if (block.kind == "thread-local") return;
  const auto add = [&block](int64_t* total) { *total = SaturatingAdd(*total, block.bytes); };
  add(&summary->total_bytes);
  if (block.kind.starts_with("parameter")) {
    add(&summary->parameter_bytes);
  } else if (block.kind == "constant") {
    add(&summary->constant_bytes);
  } else if (block.kind == "result") {
    add(&summary->result_bytes);
  } else {
    add(&summary->temporary_bytes);
  }
}

void SortBlocks(AssignmentSummary* summary) {
  std::stable_sort(summary->blocks.begin(), summary->blocks.end(),
                   [](const AssignedBlock& a, const AssignedBlock& b) { return a.bytes > b.bytes; });
}

// Removes the number after `before` from the front of the text after it. Returns false if there is none.
bool TakeNumber(std::string_view before, std::string_view* text, int64_t* number) {
  const size_t at = text->find(before);
  if (at == std::string_view::npos) return false;
  const char* const begin = text->data() + at + before.size();
  const auto [end, error] = std::from_chars(begin, text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

// Adds values that only one of the two has, or with another size; thread-local ones are left out.
void AddDifferences(const xla::BufferAssignmentProto& proto, const xla::HloModuleProto& module_proto,
                    const Module& module, const MemoryAnalysis& memory, AssignmentSummary* summary) {
  absl::flat_hash_map<int64_t, std::string_view> name_of;
  for (const xla::HloComputationProto& computation : module_proto.computations()) {
    for (const xla::HloInstructionProto& i : computation.instructions()) name_of.insert({i.id(), i.name()});
  }
  absl::flat_hash_set<int64_t> thread_local_values;
  for (const xla::BufferAllocationProto& block : proto.buffer_allocations()) {
    if (!block.is_thread_local()) continue;
    for (const auto& value : block.assigned()) thread_local_values.insert(value.logical_buffer_id());
  }
  std::map<std::string, AssignmentSummary::Difference> values;
  const auto add = [&](std::string_view name, absl::Span<const int64_t> index) -> AssignmentSummary::Difference& {
    AssignmentSummary::Difference& value = values[ValueName(name, index)];
    if (value.value.empty()) value.value = ValueName(name, index);
    return value;
  };
  for (const xla::LogicalBufferProto& buffer : proto.logical_buffers()) {
    if (thread_local_values.contains(buffer.id())) continue;
    std::string_view name = buffer.defined_at().instruction_name();
    if (const auto found = name_of.find(buffer.defined_at().instruction_id()); name.empty() && found != name_of.end()) {
      name = found->second;
    }
    const auto& index = buffer.defined_at().shape_index();
    add(name, {index.data(), static_cast<size_t>(index.size())}).assigned_bytes = std::max<int64_t>(buffer.size(), 0);
  }
  for (Computation c : module.computations()) {
    for (const LiveBuffer& buffer : memory.Of(c).buffers) {
      const Instruction i = module.instruction(buffer.defining_instruction);
      add(i.name(), LeafIndex(i.shape(), buffer.leaf)).estimated_bytes = buffer.bytes;
    }
  }
  for (auto& [name, value] : values) {
    if (value.assigned_bytes != value.estimated_bytes) summary->differences.push_back(std::move(value));
  }
  const auto magnitude = [](const AssignmentSummary::Difference& d) {
    return std::abs(std::max<int64_t>(d.assigned_bytes, 0) - std::max<int64_t>(d.estimated_bytes, 0));
  };
  std::stable_sort(summary->differences.begin(), summary->differences.end(),
                   [&](const auto& a, const auto& b) { return magnitude(a) > magnitude(b); });
}

}  // namespace

AssignmentSummary SummarizeAssignment(const xla::BufferAssignmentProto& proto) {
  AssignmentSummary summary;
  const absl::flat_hash_map<int64_t, int64_t> peak_of = PeaksOf(proto);
  for (const xla::BufferAllocationProto& from : proto.buffer_allocations()) {
    AssignedBlock& block = summary.blocks.emplace_back();
    block.index = from.index();
    block.bytes = std::max<int64_t>(from.size(), 0);
    block.color = from.color();
    block.kind = KindOf(from);
    block.values = from.assigned_size();
    for (const xla::BufferAllocationProto::Assigned& value : from.assigned()) {
      block.value_bytes = SaturatingAdd(block.value_bytes, std::max<int64_t>(value.size(), 0));
    }
    if (const auto peak = peak_of.find(from.index()); peak != peak_of.end()) block.peak_bytes = peak->second;
    AddToSums(block, &summary);
    if (block.kind != "temporary") continue;
    const int64_t used = block.peak_bytes >= 0 ? block.peak_bytes : std::min(block.bytes, block.value_bytes);
    summary.temporary_peak_bytes = SaturatingAdd(summary.temporary_peak_bytes, used);
  }
  SortBlocks(&summary);
  return summary;
}

AssignmentSummary SummarizeAssignmentText(std::string_view text) {
  AssignmentSummary summary;
  summary.temporary_peak_bytes = -1;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const auto has = [&line](std::string_view word) { return line.find(word) != std::string_view::npos; };
    int64_t number;
    if (line.starts_with("allocation ")) {
      AssignedBlock block;
      if (!TakeNumber("allocation ", &line, &block.index) || !TakeNumber(": size ", &line, &block.bytes)) continue;
      block.bytes = std::max<int64_t>(block.bytes, 0);
      if (std::string_view rest = line; TakeNumber(", color ", &rest, &number)) block.color = number;
      std::string_view rest = line;
      block.kind = has(", thread-local")                        ? "thread-local"
                   : TakeNumber(", parameter ", &rest, &number) ? StrCat("parameter ", number)
                   : has(", constant")                          ? "constant"
                   : has(", maybe-live-out")                    ? "result"
                                                                : "temporary";
      AddToSums(block, &summary);
      summary.blocks.push_back(std::move(block));
    } else if (line.starts_with(" value: ") && !summary.blocks.empty() && TakeNumber("(size=", &line, &number)) {
      AssignedBlock& block = summary.blocks.back();
      ++block.values;
      block.value_bytes = SaturatingAdd(block.value_bytes, std::max<int64_t>(number, 0));
    } else if (!line.starts_with(' ')) {
      if (!line.empty() && !summary.blocks.empty()) break;  // lists of values follow
    }
  }
  SortBlocks(&summary);
  return summary;
}

std::optional<AssignmentSummary> ReadAssignment(const SourceBuffer& source, std::string_view text, const Module& module,
                                                const MemoryAnalysis& memory, DiagnosticSink* sink) {
  const std::optional<ProtoForm> form = DetectProto(text);
  if (!form) return std::nullopt;
  const std::unique_ptr<ProtoFile> file = ProtoFile::Read(source, text, *form, sink);
  if (file == nullptr || file->buffer_assignment() == nullptr) return std::nullopt;
  AssignmentSummary summary = SummarizeAssignment(*file->buffer_assignment());
  AddDifferences(*file->buffer_assignment(), *file->module(), module, memory, &summary);
  return summary;
}

}  // namespace hlokit::dump
