// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/print_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "ir/core/str_cat.h"
#include "ir/json/json_printer.h"
#include "ir/text/text_size.h"

namespace hlokit::cli {
namespace {

struct Toggle {
  const char* flag;
  bool PrintOptions::*member;
  const char* what;
  const char* alias = "";  // XLA's name in HloPrintOptions, if different
};

constexpr Toggle kToggles[] = {
    {"large-constants", &PrintOptions::print_large_constants, "constants of more than 10 elements in full"},
    {"operand-shapes", &PrintOptions::print_operand_shape, "the shape of each operand", "print-operand-shape"},
    {"layouts", &PrintOptions::include_layout_in_shapes, "layouts of instructions", "include-layout-in-shapes"},
    {"result-shapes", &PrintOptions::print_result_shape, "the shape of each instruction", "print-result-shape"},
    {"metadata", &PrintOptions::print_metadata, "metadata and stack frames"},
    {"op-name-only", &PrintOptions::print_metadata_only_op_name, "only op_name of metadata",
     "print-metadata-only-op-name"},
    {"stack-frames", &PrintOptions::print_stack_frames, "the stack-frame tables"},
    {"original-value", &PrintOptions::print_original_value, "original values (`origin` attributes)"},
    {"backend-config", &PrintOptions::print_backend_config, "backend_config attributes"},
    {"percent", &PrintOptions::print_percent, "% before names"},
    {"ids", &PrintOptions::print_ids, "the number after the dot of names"},
    {"control-dependencies", &PrintOptions::print_control_dependencies, "control-predecessors attributes"},
    {"program-shapes", &PrintOptions::print_program_shape, "parameters and result in a computation's header",
     "print-program-shape"},
    {"index-comments", &PrintOptions::print_operand_index_annotation_interval_set, "/*index=5*/ in operand lists"},
    {"extra-attributes", &PrintOptions::print_extra_attributes, "attributes in general"},
    {"frontend-attributes", &PrintOptions::print_frontend_attributes, "frontend_attributes"},
    {"sharding", &PrintOptions::print_sharding, "sharding attributes"},
    {"infeed-config", &PrintOptions::print_infeed_outfeed_config, "infeed_config and outfeed_config",
     "print-infeed-outfeed-config"},
    {"async-sugar", &PrintOptions::syntax_sugar_async_ops, "<opcode>-start for wrapped asynchronous operations",
     "syntax-sugar-async-ops"},
    {"compact-operands", &PrintOptions::compact_operands, "only the first operands of long lists"},
    {"canonical-names", &PrintOptions::canonicalize_instruction_names, "tmp_0, tmp_1, ... for names",
     "canonicalize-instruction-names"},
    {"header", &PrintOptions::print_header, "the HloModule line"},
    {"full-replica-groups", &PrintOptions::print_full_replica_groups, "replica groups as lists"},
    {"compact-gte", &PrintOptions::compact_tuple_elements, "%t#1 for operands that are get-tuple-elements"},
    {"listed-order", &PrintOptions::listed_order, "computations and instructions in the order of the input"},
    {"sorted-backend-config", &PrintOptions::sort_backend_config, "JSON of backend_config with its members in order"},
    {"comparison-order", &PrintOptions::print_comparison_order, "order=TOTAL of compares for type=TOTALORDER"},
};

}  // namespace

void PrintFlags::AddFlags(CLI::App* app) {
  app->add_option("--print", form_,
                  "format of the output; by default lossless, and to a terminal `default`, which is XLA's and elides "
                  "constants of more than 10 elements")
      ->check(CLI::IsMember({"default", "short", "canonical", "fingerprint", "dump", "lossless", "json", "none"}));
  toggles_.assign(std::size(kToggles), -1);
  for (size_t i = 0; i < std::size(kToggles); ++i) {
    const Toggle& t = kToggles[i];
    std::string names = StrCat("--print-", t.flag, "{1},--no-print-", t.flag, "{0}");
    if (*t.alias != '\0') StrAppend(&names, ",--", t.alias, "{1},--no-", t.alias, "{0}");
    app->add_flag_function(
           names, [this, i](int64_t value) { toggles_[i] = value > 0; },  // CLI11 counts the second form as -1
           StrCat("print ", t.what))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->group("Printing");
  }
  app->add_flag_function(
         "--print-subcomputations", [this](int64_t) { full_bodies_ = true; }, "print called computations in place")
      ->group("Printing");
}

bool IsTerminal(std::string_view path) { return path == "-" && isatty(STDOUT_FILENO) != 0; }

PrintOptions PrintOptionsFor(std::string_view path) {
  return IsTerminal(path) ? PrintOptions::Default() : PrintOptions::Lossless();
}

PrintOptions PrintFlags::Options() const {
  PrintOptions options;
  if (form_.empty()) options = PrintOptionsFor(output_);
  if (form_ == "short") options = PrintOptions::ShortParsable();
  if (form_ == "canonical") options = PrintOptions::Canonical();
  if (form_ == "fingerprint") options = PrintOptions::Fingerprint();
  if (form_ == "dump") options = PrintOptions::Dump();
  if (form_ == "lossless") options = PrintOptions::Lossless();
  for (size_t i = 0; i < toggles_.size(); ++i) {
    if (toggles_[i] >= 0) options.*kToggles[i].member = toggles_[i] != 0;
  }
  if (full_bodies_) options.subcomputations = PrintOptions::Subcomputations::kFullBodies;
  return options;
}

bool PrintFlags::KeepsInput() const {
  return form_ == "dump" || form_ == "lossless" || (form_.empty() && !IsTerminal(output_));
}

absl::Status PrintFlags::Check(const Module& module) const {
  return form_ == "none" || form_ == "json" ? absl::OkStatus() : CheckTextSize(module, Options());
}

void PrintFlags::Print(TextWriter& out, const Module& module) const {
  if (form_ == "none") return;
  if (form_ == "json") {
    PrintJson(out, module);
  } else {
    PrintModule(out, module, Options());
  }
}

int64_t PrintFlags::CountElided(const Module& module) const {
  if (form_ == "none" || form_ == "json") return 0;
  const PrintOptions options = Options();
  int64_t count = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      count += i.opcode() == Opcode::kConstant && IsElidedBy(options, i);
    }
  }
  return count;
}

}  // namespace hlokit::cli
