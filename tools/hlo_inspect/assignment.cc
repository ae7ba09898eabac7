// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/assignment.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/module_statistics.h"

namespace hlokit::cli {
namespace {

void Cell(std::string_view text, size_t width, TextWriter* out) {
  for (size_t n = text.size(); n < width; ++n) *out << ' ';
  *out << text << "  ";
}

std::string Bytes(int64_t bytes) { return bytes < 0 ? "-" : std::to_string(bytes); }

}  // namespace

void WriteAssignmentText(const dump::AssignmentSummary& summary, const MemoryUse& estimate, size_t top,
                         TextWriter* out) {
  *out << "\n";
  for (std::string_view head : {"assigned", "estimate"}) Cell(head, 14, out);
  *out << "\n";
  const auto row = [out](std::string_view what, int64_t assigned, int64_t estimated) {
    Cell(Bytes(assigned), 14, out);
    Cell(Bytes(estimated), 14, out);
    *out << what << "\n";
  };
  row("parameters", summary.parameter_bytes, estimate.argument_bytes);
  row("results", summary.result_bytes, estimate.result_bytes);
  row("constants", summary.constant_bytes, estimate.constant_bytes);
  row("temporary blocks", summary.temporary_bytes, -1);
  row("temporary values at the peak", summary.temporary_peak_bytes,
      std::max<int64_t>(estimate.peak_bytes_beyond_arguments - estimate.result_bytes, 0));
  row("peak, without constants", summary.total_bytes - summary.constant_bytes, estimate.peak_bytes);
  const int64_t lost = summary.temporary_bytes - summary.temporary_peak_bytes;
  *out << "fragmentation  " << HumanBytes(lost);
  if (summary.temporary_bytes > 0) {
    const int64_t tenths =
        static_cast<int64_t>(static_cast<double>(lost) * 1000 / static_cast<double>(summary.temporary_bytes) + 0.5);
    *out << "  " << tenths / 10 << "." << tenths % 10 << " % of the temporary blocks";
  }
  *out << "\n\n";
  for (std::string_view head : {"block bytes", "alive at once"}) Cell(head, 14, out);
  Cell("values", 7, out);
  Cell("space", 5, out);
  *out << "block\n";
  for (size_t k = 0; k < std::min(summary.blocks.size(), top); ++k) {
    const dump::AssignedBlock& block = summary.blocks[k];
    Cell(Bytes(block.bytes), 14, out);
    Cell(Bytes(block.peak_bytes), 14, out);
    Cell(std::to_string(block.values), 7, out);
    Cell(std::to_string(block.color), 5, out);
    *out << block.index << "  " << block.kind << "\n";
  }
  if (summary.blocks.size() > top) *out << "... " << static_cast<int64_t>(summary.blocks.size() - top) << " more\n";
  const int64_t differences = static_cast<int64_t>(summary.differences.size());
  *out << "\n" << differences << (differences == 1 ? " value differs" : " values differ") << " (-: none)\n";
  if (summary.differences.empty()) return;
  for (std::string_view head : {"assigned", "estimate"}) Cell(head, 14, out);
  *out << "value\n";
  for (size_t k = 0; k < std::min(summary.differences.size(), top); ++k) {
    row(summary.differences[k].value, summary.differences[k].assigned_bytes, summary.differences[k].estimated_bytes);
  }
  if (summary.differences.size() > top) {
    *out << "... " << static_cast<int64_t>(summary.differences.size() - top) << " more\n";
  }
}

void WriteAssignmentJson(const dump::AssignmentSummary& summary, JsonWriter* json) {
  json->Key("assignment").BeginObject();
  json->Member("total_bytes", summary.total_bytes).Member("parameter_bytes", summary.parameter_bytes);
  json->Member("result_bytes", summary.result_bytes).Member("constant_bytes", summary.constant_bytes);
  json->Member("temporary_bytes", summary.temporary_bytes);
  json->Member("temporary_peak_bytes", summary.temporary_peak_bytes);
  json->Key("blocks").BeginArray();
  for (const dump::AssignedBlock& block : summary.blocks) {
    json->BeginObject().Member("index", block.index).Member("bytes", block.bytes).Member("kind", block.kind);
    json->Member("memory_space", block.color).Member("values", block.values);
    json->Member("value_bytes", block.value_bytes).Member("peak_bytes", block.peak_bytes).EndObject();
  }
  json->EndArray().Key("differences").BeginArray();
  for (const dump::AssignmentSummary::Difference& d : summary.differences) {
    json->BeginObject().Member("value", d.value).Member("assigned_bytes", d.assigned_bytes);
    json->Member("estimated_bytes", d.estimated_bytes).EndObject();
  }
  json->EndArray().EndObject();
}

}  // namespace hlokit::cli
