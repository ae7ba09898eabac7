// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/header_diff.h"

#include <string_view>

#include "absl/types/span.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/graph/module.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

std::string IndexToString(absl::Span<const int64_t> index) {
  std::string text = "{";
  for (size_t i = 0; i < index.size(); ++i) StrAppend(&text, i > 0 ? "," : "", index[i]);
  return text + "}";
}

std::string AliasesToString(const Module& module) {
  const Context& context = module.context();
  std::string text = "{";
  for (const InputOutputAlias& alias : module.header().input_output_alias) {
    StrAppend(&text, " ", IndexToString(context.list(alias.output_index)), ": (", alias.parameter, ", ",
              IndexToString(context.list(alias.parameter_index)), alias.must_alias ? ", must-alias)" : ", may-alias)");
  }
  return text + " }";
}

std::string DonorsToString(const Module& module) {
  std::string text = "{";
  for (const BufferDonor& donor : module.header().buffer_donor) {
    StrAppend(&text, " (", donor.parameter, ", ", IndexToString(module.context().list(donor.parameter_index)), ")");
  }
  return text + " }";
}

std::string UnknownAttributesToString(const Module& module) {
  std::string text;
  for (StringId s : module.header().unknown_attributes) StrAppend(&text, module.context().str(s), " ");
  return text;
}

std::string EntryLayoutToString(const Module& module) {
  if (!module.header().entry_layout.has_value()) return "none";
  std::string text = "(";
  for (Shape shape : module.header().entry_layout->parameters) {
    StrAppend(&text, text.size() > 1 ? ", " : "", ToString(shape));
  }
  text += ")->";
  const Shape result = module.header().entry_layout->result;
  return result.valid() ? text + ToString(result) : text;
}

std::string PropagationToString(const Module& module, ListId list) {
  return list.valid() ? IndexToString(module.context().list(list)) : "none";
}

std::string FrontendAttributesToString(const Module& module) {
  const ListId list = module.header().frontend_attributes;
  if (!list.valid()) return "none";
  std::string text;
  {
    TextWriter out(&text);
    PrintAttrValue(out, module, {Attr::kFrontendAttributes, list.value});
  }
  return text;
}

}  // namespace

std::vector<std::string> HeaderDifferences(const Module& ma, const Module& mb, const FingerprintOptions& options) {
  std::vector<std::string> differences;
  const auto report = [&](std::string_view field, std::string_view a, std::string_view b) {
    if (a != b) differences.push_back(StrCat(field, ": ", Versus(a, b)));
  };
  const ModuleHeader& a = ma.header();
  const ModuleHeader& b = mb.header();
  const auto flag = [](bool value) { return value ? std::string_view("true") : std::string_view("false"); };
  report("replica_count", StrCat(a.replica_count), StrCat(b.replica_count));
  report("num_partitions", StrCat(a.num_partitions), StrCat(b.num_partitions));
  report("alias_passthrough_params", flag(a.alias_passthrough_params), flag(b.alias_passthrough_params));
  report("input_output_alias", AliasesToString(ma), AliasesToString(mb));
  report("buffer_donor", DonorsToString(ma), DonorsToString(mb));
  report("unknown attributes", UnknownAttributesToString(ma), UnknownAttributesToString(mb));
  if (options.layout) report("entry_computation_layout", EntryLayoutToString(ma), EntryLayoutToString(mb));
  if (options.sharding) {
    report("allow_spmd_sharding_propagation_to_parameters",
           PropagationToString(ma, a.allow_spmd_sharding_propagation_to_parameters),
           PropagationToString(mb, b.allow_spmd_sharding_propagation_to_parameters));
    report("allow_spmd_sharding_propagation_to_output",
           PropagationToString(ma, a.allow_spmd_sharding_propagation_to_output),
           PropagationToString(mb, b.allow_spmd_sharding_propagation_to_output));
  }
  if (options.frontend_attributes)
    report("frontend_attributes", FrontendAttributesToString(ma), FrontendAttributesToString(mb));
  if (options.schedule) report("is_scheduled", flag(a.is_scheduled), flag(b.is_scheduled));
  return differences;
}

}  // namespace hlokit
