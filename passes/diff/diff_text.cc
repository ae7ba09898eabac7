// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/diff_text.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

constexpr std::string_view kRed = "\x1b[31m", kGreen = "\x1b[32m", kBold = "\x1b[1m", kFaint = "\x1b[2m",
                           kReset = "\x1b[0m";

std::string QuantityText(double value, bool is_bytes) {
  if (is_bytes && std::abs(value) < 0x1p62) return HumanBytes(static_cast<int64_t>(value));
  // A time may be below a microsecond.
  const bool whole = std::abs(value) < 1e6 && value == std::floor(value);
  return whole ? StrCat(static_cast<int64_t>(value)) : absl::StrFormat("%.4g", value);
}

// Returns "12 -> 15 (+25.0 %)".
std::string ChangeText(double before, double after, bool is_bytes) {
  const std::string text_before = QuantityText(before, is_bytes);
  if (before == after) return text_before;
  std::string text = StrCat(text_before, " -> ", QuantityText(after, is_bytes));
  if (before != 0) StrAppend(&text, absl::StrFormat(" (%+.1f %%)", 100 * (after - before) / before));
  return text;
}

// A line of the listing.
struct Entry {
  enum class Kind : uint8_t { kRemoved, kAdded, kChanged };
  Kind kind;
  Instruction a, b;
  const ChangedInstruction* change = nullptr;
};

class Lister {
 public:
  Lister(TextWriter& out, const Module& a, const Module& b, const ModuleDiff& diff, const DiffTextOptions& options)
      : out_(out), a_(a), b_(b), diff_(diff), options_(options), shown_(b.instruction_id_bound()) {
    for (const ChangedInstruction& c : diff.changed) changes_[c.b.id().value] = &c;
    print_.print_metadata_only_op_name = true;
  }

  void Run() {
    for (const Computation c : b_.computations()) {
      const ComputationId in_a = diff_.matching.computation_in_a[c.id().value];
      List(in_a.valid() ? a_.computation(in_a) : Computation(), c);
    }
    for (const Computation c : diff_.removed_computations) List(c, Computation());
    if (omitted_ > 0) out_ << StrCat("... ", omitted_, " more (--max-instructions)\n");
  }

 private:
  // Returns the entries of two counterparts, or of one computation, in the order of the second's text; what was removed
  // comes after the instruction that it followed.
  std::vector<Entry> EntriesOf(Computation a, Computation b) const {
    absl::flat_hash_map<uint32_t, std::vector<Instruction>> removed_after;
    std::vector<Entry> entries;
    uint32_t anchor = InstructionId().value;
    if (a.valid()) {
      for (const Instruction i : a.instructions()) {
        const InstructionId in_b = diff_.matching.in_b[i.id().value];
        if (in_b.valid()) {
          if (b.valid() && b_.record(in_b).parent == b.id()) anchor = in_b.value;
        } else {
          removed_after[anchor].push_back(i);
        }
      }
    }
    const auto take_removed = [&](uint32_t after) {
      const auto found = removed_after.find(after);
      if (found == removed_after.end()) return;
      for (const Instruction i : found->second) entries.push_back({Entry::Kind::kRemoved, i, {}, nullptr});
    };
    take_removed(InstructionId().value);
    if (!b.valid()) return entries;
    for (const Instruction i : b.instructions()) {
      if (!diff_.matching.in_a[i.id().value].valid()) {
        entries.push_back({Entry::Kind::kAdded, {}, i, nullptr});
      } else if (const auto found = changes_.find(i.id().value); found != changes_.end()) {
        entries.push_back({Entry::Kind::kChanged, found->second->a, i, found->second});
      }
      take_removed(i.id().value);
    }
    return entries;
  }

  void List(Computation a, Computation b) {
    const std::vector<Entry> entries = EntriesOf(a, b);
    if (entries.empty()) return;
    if (listed_ >= options_.max_instructions) {
      omitted_ += entries.size();
      return;
    }
    const Computation named = b.valid() ? b : a;
    Colored(kBold, StrCat("@@ ", named.is_entry() ? "ENTRY " : "", named.name(),
                          !a.valid()             ? ", added"
                          : !b.valid()           ? ", removed"
                          : a.name() != b.name() ? StrCat(", was ", a.name())
                                                 : "",
                          " @@"));
    for (const Entry& entry : entries) {
      if (listed_ >= options_.max_instructions) {
        ++omitted_;
        continue;
      }
      ++listed_;
      switch (entry.kind) {
        case Entry::Kind::kRemoved:
          Colored(kRed, StrCat("- ", LineOf(entry.a)));
          break;
        case Entry::Kind::kAdded:
          ShowOperands(entry.b);
          Colored(kGreen, StrCat("+ ", LineOf(entry.b)));
          break;
        case Entry::Kind::kChanged:
          if (OnlyMoved(entry.change->aspects)) {
            Colored(kFaint, StrCat("> ", LineOf(entry.b), "  (from ", entry.a.parent().name(), ")"));
            break;
          }
          ShowOperands(entry.b);
          Colored(kRed, StrCat("- ", LineOf(entry.a)));
          Colored(kGreen, StrCat("+ ", LineOf(entry.b)));
          for (const std::string& text : entry.change->differences) Colored(kFaint, StrCat("    ", text));
          break;
      }
      if (entry.b.valid()) shown_[entry.b.id().value] = true;
    }
  }

  // Returns true for an instruction that does what it did, in another computation and of its operands there.
  static bool OnlyMoved(Aspects aspects) {
    if (!aspects.Contains(Aspect::kMoved)) return false;
    aspects.Remove(Aspect::kMoved);
    aspects.Remove(Aspect::kOperands);
    aspects.Remove(Aspect::kName);
    return aspects.empty();
  }

  // Prints the unchanged operands that were not printed before.
  void ShowOperands(Instruction i) {
    constexpr int64_t kMaxOperands = 4;
    for (int64_t k = 0; k < std::min(i.operand_count(), kMaxOperands); ++k) {
      const Instruction operand = i.operand(k);
      const uint32_t id = operand.id().value;
      if (shown_[id] || !diff_.matching.in_a[id].valid() || changes_.contains(id)) continue;
      shown_[id] = true;
      out_ << "  " << LineOf(operand) << "\n";
    }
  }

  std::string LineOf(Instruction i) const {
    std::string line = ToString(i, print_);
    if (line.size() <= options_.max_line) return line;
    const size_t half = options_.max_line / 2;
    return StrCat(std::string_view(line).substr(0, half), " ... ", std::string_view(line).substr(line.size() - half));
  }

  void Colored(std::string_view color, const std::string& line) {
    if (options_.color) {
      out_ << color << line << kReset << "\n";
    } else {
      out_ << line << "\n";
    }
  }

  TextWriter& out_;
  const Module &a_, &b_;
  const ModuleDiff& diff_;
  const DiffTextOptions& options_;
  PrintOptions print_;
  absl::flat_hash_map<uint32_t, const ChangedInstruction*> changes_;  // by id in b
  std::vector<bool> shown_;                                           // by id in b
  size_t listed_ = 0, omitted_ = 0;
};

void PrintTable(TextWriter& out, std::string_view title, const std::vector<DiffSummary::Row>& rows, size_t max_rows) {
  if (rows.empty()) return;
  out << "\n"
      << absl::StrFormat("%7s %7s %7s  %-34s  %-34s  %s\n", "added", "removed", "changed", "bytes", "flops", title);
  for (size_t k = 0; k < rows.size() && k < max_rows; ++k) {
    const DiffSummary::Row& row = rows[k];
    out << absl::StrFormat(
        "%7d %7d %7d  %-34s  %-34s  %s\n", row.added, row.removed, row.changed,
        ChangeText(static_cast<double>(row.bytes_before), static_cast<double>(row.bytes_after), true),
        ChangeText(static_cast<double>(row.flops_before), static_cast<double>(row.flops_after), false), row.key);
  }
  if (rows.size() > max_rows) out << StrCat("        ... ", rows.size() - max_rows, " more rows\n");
}

void PrintCauses(TextWriter& out, const std::vector<DiffCause>& causes, size_t max_rows) {
  if (causes.empty()) return;
  out << "what changed:\n";
  for (size_t k = 0; k < causes.size() && k < max_rows; ++k) {
    out << absl::StrFormat("  %6d %-5s  %s: %s\n", causes[k].pairs, causes[k].pairs == 1 ? "pair" : "pairs",
                           causes[k].what, causes[k].change);
  }
  if (causes.size() > max_rows) out << StrCat("         ... ", causes.size() - max_rows, " more (--top)\n");
}

}  // namespace

void PrintDiff(TextWriter& out, const Module& a, const Module& b, const ModuleDiff& diff, const DiffSummary& summary,
               const DiffTextOptions& options) {
  out << "--- " << options.label_a << "  " << a.name() << "\n+++ " << options.label_b << "  " << b.name() << "\n";
  out << StrCat(diff.unchanged, " instructions unchanged, ", diff.changed.size(), " changed, ", diff.added.size(),
                " added, ", diff.removed.size(), " removed\n");
  std::string aspects;
  for (size_t k = 0; k < kAspects; ++k) {
    if (diff.count_by_aspect[k] == 0) continue;
    StrAppend(&aspects, aspects.empty() ? "" : ", ", ToString(static_cast<Aspect>(k)), " ", diff.count_by_aspect[k]);
  }
  if (!aspects.empty()) out << "pairs that differ: " << aspects << "\n";
  if (diff.same()) return;
  for (const std::string& line : diff.header) out << "header: " << line << "\n";
  PrintCauses(out, summary.causes, options.max_rows);
  for (const DiffQuantity& q : summary.totals) {
    if (q.before != q.after) out << absl::StrFormat("%-24s%s\n", q.name, ChangeText(q.before, q.after, q.is_bytes));
  }
  PrintTable(out, "scope", summary.by_scope, options.max_rows);
  PrintTable(out, "opcode", summary.by_opcode, options.max_rows);
  out << "\n";
  Lister(out, a, b, diff, options).Run();
}

}  // namespace hlokit
