// SPDX-License-Identifier: Apache-2.0
// Verifies the header of the module against its entry computation.
#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/inference/shape_inference.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

// Finds duplicate entries of a list of pairs by sorting.
uint64_t KeyOf(int64_t number, ListId index) { return static_cast<uint64_t>(number) << 32 | index.value; }

class HeaderCheck {
 public:
  explicit HeaderCheck(VerifierContext& v) : v_(v), header_(v.module.header()), entry_(v.module.entry()) {}

  void Run() {
    if (header_.replica_count < 1) {
      v_.ReportHeader(DiagnosticKind::kBadHeader,
                      StrCat("expected a positive replica_count, found ", header_.replica_count));
    }
    if (header_.num_partitions < 1) {
      v_.ReportHeader(DiagnosticKind::kBadHeader,
                      StrCat("expected a positive num_partitions, found ", header_.num_partitions));
    }
    CheckEntryLayout();
    CheckAliases();
    CheckDonors();
  }

 private:
  absl::Span<const int64_t> Index(ListId id) const { return v_.module.context().list(id); }

  // Compares without tiles and memory spaces, which the entry layout gets later than the instructions, if at all.
  bool SameEntryShapes(Shape a, Shape b) const {
    if (!CompatibleIgnoringDynamism(a, b)) return false;
    if (!v_.options.layout_sensitive) return true;
    std::vector<std::pair<Shape, Shape>> stack = {{a, b}};
    while (!stack.empty()) {
      const auto [p, q] = stack.back();
      stack.pop_back();
      if (p == q) continue;
      if (--v_.search_budget < 0) return true;
      for (int64_t n = 0; n < p.tuple_size(); ++n) stack.push_back({p.element(n), q.element(n)});
      if (!p.IsArray() || !p.has_layout() || !q.has_layout()) continue;
      if (p.layout()->minor_to_major != q.layout()->minor_to_major) return false;
    }
    return true;
  }

  void CheckEntryLayout() {
    if (!header_.entry_layout) return;
    const EntryLayout& layout = *header_.entry_layout;
    const bool layouts = v_.options.layout_sensitive;
    const Shape result = entry_.root().shape();
    if (layout.result.valid() && !SameEntryShapes(result, layout.result)) {
      v_.ReportHeader(DiagnosticKind::kBadHeader,
                      StrCat("entry_computation_layout returns ", ShapeText(layout.result, layouts), "; entry root `",
                             entry_.root().name(), "` is ", ShapeText(result, layouts)));
    }
    if (static_cast<int64_t>(layout.parameters.size()) != entry_.parameter_count()) {
      v_.ReportHeader(DiagnosticKind::kBadHeader, StrCat("entry_computation_layout has ", layout.parameters.size(),
                                                         " parameters; the entry has ", entry_.parameter_count()));
      return;
    }
    for (int64_t n = 0; n < entry_.parameter_count(); ++n) {
      const Shape parameter = entry_.parameter(n).shape();
      if (SameEntryShapes(parameter, layout.parameters[n])) continue;
      v_.ReportHeader(DiagnosticKind::kBadHeader, StrCat("parameter ", n, " in entry_computation_layout is ",
                                                         ShapeText(layout.parameters[n], layouts),
                                                         "; in the entry it is ", ShapeText(parameter, layouts)));
    }
  }

  // Returns the array at `index` of entry parameter `number`; reports an error and returns nullopt if there is none.
  std::optional<Shape> ParameterPart(std::string_view what, int64_t number, ListId index) {
    if (number < 0 || number >= entry_.parameter_count()) {
      v_.ReportHeader(DiagnosticKind::kAliasing,
                      StrCat("parameter ", number, " in ", what, " is out of range: the entry has ",
                             entry_.parameter_count(), " parameters"));
      return std::nullopt;
    }
    const Shape parameter = entry_.parameter(number).shape();
    const std::optional<Shape> part = SubshapeAt(parameter, Index(index));
    if (!part || !part->IsArray()) {
      v_.ReportHeader(DiagnosticKind::kAliasing,
                      StrCat("index ", IndexText(Index(index)), " of parameter ", number, " in ", what, " is ",
                             part ? "not an array" : "out of range", " in ", ShapeText(parameter)));
      return std::nullopt;
    }
    return part;
  }

  void CheckAliases() {
    const Shape result = entry_.root().shape();
    std::vector<uint32_t> outputs;
    for (const InputOutputAlias& alias : header_.input_output_alias) {
      const std::optional<Shape> part = ParameterPart("input_output_alias", alias.parameter, alias.parameter_index);
      const std::optional<Shape> output = SubshapeAt(result, Index(alias.output_index));
      if (!output || !output->IsArray()) {
        v_.ReportHeader(DiagnosticKind::kAliasing,
                        StrCat("output ", IndexText(Index(alias.output_index)), " in input_output_alias is ",
                               output ? "not an array" : "out of range", " in ", ShapeText(result)));
        continue;
      }
      outputs.push_back(alias.output_index.value);
      if (!part) continue;
      aliased_.push_back(KeyOf(alias.parameter, alias.parameter_index));
      if (alias.must_alias) CheckMustAlias(alias);
    }
    std::sort(outputs.begin(), outputs.end());
    if (const auto twice = std::adjacent_find(outputs.begin(), outputs.end()); twice != outputs.end()) {
      v_.ReportHeader(DiagnosticKind::kAliasing,
                      StrCat("duplicate output ", IndexText(Index(ListId(*twice))), " in input_output_alias"));
    }
    std::sort(aliased_.begin(), aliased_.end());
    ReportTwice(aliased_, "input_output_alias");
  }

  void ReportTwice(const std::vector<uint64_t>& keys, std::string_view what) {
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return;
    v_.ReportHeader(DiagnosticKind::kAliasing,
                    StrCat("duplicate index ", IndexText(Index(ListId(*twice & 0xffffffffu))), " of parameter ",
                           *twice >> 32, " in ", what));
  }

  // Checks must-alias entries: the two must have the same storage, including layout and memory space.
  void CheckMustAlias(const InputOutputAlias& alias) {
    if (!header_.entry_layout || !header_.entry_layout->result.valid()) return;
    const EntryLayout& layout = *header_.entry_layout;
    if (alias.parameter >= static_cast<int64_t>(layout.parameters.size())) return;
    const std::optional<Shape> output = SubshapeAt(layout.result, Index(alias.output_index));
    const std::optional<Shape> part = SubshapeAt(layout.parameters[alias.parameter], Index(alias.parameter_index));
    if (!output || !part || *output == *part) return;
    v_.ReportHeader(DiagnosticKind::kAliasing,
                    StrCat("output ", IndexText(Index(alias.output_index)), " must alias index ",
                           IndexText(Index(alias.parameter_index)), " of parameter ", alias.parameter,
                           ", but they are ", ShapeText(*output, true), " and ", ShapeText(*part, true)));
  }

  void CheckDonors() {
    std::vector<uint64_t> donors;
    for (const BufferDonor& donor : header_.buffer_donor) {
      if (!ParameterPart("buffer_donor", donor.parameter, donor.parameter_index)) continue;
      donors.push_back(KeyOf(donor.parameter, donor.parameter_index));
      if (std::binary_search(aliased_.begin(), aliased_.end(), donors.back())) {
        v_.ReportHeader(DiagnosticKind::kAliasing,
                        StrCat("index ", IndexText(Index(donor.parameter_index)), " of parameter ", donor.parameter,
                               " is both in buffer_donor and in input_output_alias"));
      }
    }
    std::sort(donors.begin(), donors.end());
    ReportTwice(donors, "buffer_donor");
  }

  VerifierContext& v_;
  const ModuleHeader& header_;
  Computation entry_;
  std::vector<uint64_t> aliased_;
};

}  // namespace

void CheckHeader(VerifierContext& v) { HeaderCheck(v).Run(); }

}  // namespace hlokit::verify_internal
