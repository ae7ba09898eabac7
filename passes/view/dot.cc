// SPDX-License-Identifier: Apache-2.0
#include "passes/view/dot.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "passes/analysis/trip_count.h"
#include "passes/view/opcode_family.h"
#include "passes/view/shape_summary.h"

namespace hlokit {
namespace {

constexpr size_t kMaxLabel = 60;  // bytes of a line

// Prints the text in quotes; cuts it between characters.
void PrintDotString(TextWriter& out, std::string_view text) {
  if (text.size() > kMaxLabel) {
    size_t end = kMaxLabel;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end);
  }
  for (const char c : text) {
    if (c == '"' || c == '\\') out << '\\';
    if (static_cast<unsigned char>(c) < ' ') continue;
    out << c;
  }
}

void PrintNode(TextWriter& out, Instruction i, int64_t number, int64_t outside, bool center) {
  const OpcodeFamily family = FamilyOf(i);
  out << "    n" << number << " [label=\"";
  PrintDotString(out, i.name());
  out << "\\n";
  if (i.opcode() == Opcode::kParameter) {
    out << "parameter " << i.parameter_number();
  } else if (i.opcode() == Opcode::kConstant) {
    LiteralTextOptions options;
    options.max_elements = 8;
    PrintDotString(out, ToString(i.module().context(), i.literal_id(), options));
  } else {
    PrintDotString(out, i.opcode_text());
  }
  out << "\\n";
  PrintDotString(out, ShapeSummary(i.shape()));
  if (i.opcode() == Opcode::kWhile) {
    if (const std::optional<int64_t> trips = TripCount(i)) out << "\\n" << *trips << " iterations";
  }
  if (outside > 0) out << "\\n+ " << Counted(outside, "operand");
  out << "\", fillcolor=\"" << LightColorOf(family) << '"';
  if (i.is_root()) out << ", peripheries=2";
  if (center) out << ", penwidth=3";
  out << "];\n";
}

}  // namespace

void PrintDot(TextWriter& out, const Subgraph& subgraph) {
  absl::flat_hash_map<uint32_t, int64_t> numbers;
  for (const Instruction i : subgraph.instructions) numbers.emplace(i.id().value, static_cast<int64_t>(numbers.size()));
  out << "digraph hlo {\n  label=\"";
  PrintDotString(out, subgraph.title);
  out << "\";\n  labelloc=t;\n  fontname=\"sans-serif\";\n"
         "  node [shape=box, style=\"filled,rounded\", color=\"#566274\", fontname=\"sans-serif\", fontsize=11];\n"
         "  edge [color=\"#566274\", fontname=\"sans-serif\", fontsize=9];\n";
  Computation open;
  int64_t clusters = 0;
  for (const Instruction i : subgraph.instructions) {
    if (!open.valid() || !(i.parent() == open)) {
      if (open.valid()) out << "  }\n";
      open = i.parent();
      out << "  subgraph cluster_" << clusters++ << " {\n    label=\"";
      PrintDotString(out, open.name());
      out << "\";\n    color=\"#c5ccd6\";\n";
    }
    int64_t outside = 0;
    for (const Instruction operand : i.operands()) outside += numbers.contains(operand.id().value) ? 0 : 1;
    PrintNode(out, i, numbers.at(i.id().value), outside, i == subgraph.center);
  }
  if (open.valid()) out << "  }\n";
  for (const Instruction i : subgraph.instructions) {
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const auto found = numbers.find(i.operand(k).id().value);
      if (found == numbers.end()) continue;
      out << "  n" << found->second << " -> n" << numbers.at(i.id().value);
      if (i.operand_count() > 1) out << " [label=\"" << k << "\"]";
      out << ";\n";
    }
  }
  out << "}\n";
}

}  // namespace hlokit
