// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/why.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "passes/query/flow.h"
#include "passes/query/named.h"
#include "passes/remarks/remark.h"
#include "passes/remarks/remark_text.h"
#include "tools/cli/text/regex.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

struct WhyFlags : InspectFlags {
  std::string first, second;  // of instructions; the second may be ""
  std::string passes = "fusion";
  bool scheduled = false;
};

struct Answer {
  std::vector<Remark> remarks;
  // What became of the instructions, and what the passes did not consider; sentences.
  std::vector<std::string> notes;
};

// Returns the fusion that computes the instruction of this name, after the passes; "" if none does.
std::string FusionOf(const Module& module, std::string_view name) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kFusion) continue;
      bool inside = false;
      i.ForEachCallee([&](Computation body) {
        for (Instruction member : body.instructions()) inside |= member.name() == name;
      });
      if (inside) return std::string(i.name());
    }
  }
  return "";
}

// Returns the members of the fusion of this name, after the passes; none if there is no such fusion.
std::vector<std::string> MembersOf(const Module& module, std::string_view name) {
  std::vector<std::string> members;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kFusion || i.name() != name) continue;
      i.ForEachCallee([&](Computation body) {
        for (Instruction member : body.instructions()) {
          if (member.opcode() != Opcode::kParameter) members.emplace_back(member.name());
        }
      });
    }
  }
  return members;
}

bool IsThere(const Module& module, std::string_view name) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.name() == name) return true;
    }
  }
  return false;
}

std::string PlaceText(const Module& module, std::string_view name) {
  if (const std::vector<std::string> members = MembersOf(module, name); !members.empty()) {
    return StrCat("`", name, "` is a fusion of ", Counted(members.size(), "instruction"));
  }
  if (const std::string fusion = FusionOf(module, name); !fusion.empty()) {
    return StrCat("`", name, "` is in the fusion `", fusion, "`");
  }
  return IsThere(module, name) ? StrCat("`", name, "` is in no fusion")
                               : StrCat("`", name, "` is not there under this name after the passes");
}

// Says how two instructions are connected, of which no pass said anything.
std::string ConnectionText(const Module& module, Instruction a, Instruction b) {
  const query::ValueFlow flow(module);
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const std::vector<Instruction> path = flow.Path(from, to);
    if (path.size() < 2) continue;
    if (path.size() == 2) return StrCat("`", to.name(), "` reads `", from.name(), "`, and no pass considered the pair");
    std::string text = StrCat("`", to.name(), "` reads `", from.name(), "` through ");
    constexpr size_t kMaxNamed = 6;
    for (size_t k = 1; k + 1 < path.size() && k <= kMaxNamed; ++k) {
      StrAppend(&text, k == 1 ? "`" : ", `", path[k].name(), "`");
    }
    return StrCat(text, path.size() - 2 > kMaxNamed ? ", ..." : "", ": ask about these in pairs");
  }
  for (Instruction operand : a.operands()) {
    for (Instruction other : b.operands()) {
      if (operand == other) return StrCat("both read `", operand.name(), "`, and no pass considered the pair");
    }
  }
  return "neither reads the other, and they read no common operand: passes consider neighbors only";
}

bool Names(const Remark& remark, std::string_view name) {
  if (remark.instruction == name) return true;
  return std::any_of(remark.args.begin(), remark.args.end(),
                     [&](const RemarkArg& arg) { return arg.kind == RemarkArg::Kind::kName && arg.text == name; });
}

// Runs the passes on a copy of the module. Returns nullopt after an error, which is printed.
std::optional<Answer> AnswerFor(const WhyFlags& flags, const InputPart& part, const Module& module,
                                DiagnosticReporter* diagnostics) {
  // An instruction that a pass makes, as a collective, is not in the module.
  const absl::StatusOr<Instruction> first = query::FindNamed(module, flags.first);
  const absl::StatusOr<Instruction> second = query::FindNamed(module, flags.second);
  const std::string name = first.ok() ? std::string(first->name()) : flags.first;
  const std::string other = second.ok() ? std::string(second->name()) : flags.second;
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(flags.passes);
  if (!pipeline.ok()) {
    diagnostics->ShowError("--passes", std::string(pipeline.status().message()), kUsage);
    return std::nullopt;
  }
  Answer answer;
  Module changed = module.Clone();
  RemarkFilter filter;
  filter.categories = (uint32_t{1} << kRemarkCategoryCount) - 1;
  RemarkCollector collector(std::move(filter));
  PipelineOptions options;
  options.context = interp::EvaluatingContext();
  options.context.compile_regex = CompileRegex;
  absl::Status status;
  if (changed.header().is_scheduled && !flags.scheduled) {
    // Passes before the schedule leave scheduled modules as they are.
    absl::StatusOr<Pipeline> before = Pipeline::Parse("hlo-descheduler,control-dep-remover");
    status = before.ok() ? before->Run(changed, options).status() : before.status();
    answer.notes.push_back("the schedule of the module is removed first (--scheduled: it is not)");
  }
  options.context.remarks = &collector;
  if (status.ok()) status = pipeline->Run(changed, options).status();
  if (!status.ok()) {
    diagnostics->ShowError(part.label(), std::string(status.message()), kRejected);
    return std::nullopt;
  }
  // Of a fusion, what is said of its members.
  const std::vector<std::string> members = MembersOf(changed, name);
  const auto is_asked = [&](const Remark& remark) {
    return Names(remark, name) || absl::c_linear_search(members, remark.instruction);
  };
  for (const Remark& remark : collector.remarks()) {
    if (is_asked(remark) && (other.empty() || Names(remark, other))) answer.remarks.push_back(remark);
  }
  for (const auto& [found, given] : {std::pair(&first, &name), {&second, &other}}) {
    if (given->empty() || found->ok() || IsThere(changed, *given)) continue;
    diagnostics->ShowError(part.label(), std::string(found->status().message()), kRejected);
    return std::nullopt;
  }
  if (!other.empty() && answer.remarks.empty() && first.ok() && second.ok()) {
    answer.notes.push_back(ConnectionText(module, *first, *second));
  }
  answer.notes.push_back(PlaceText(changed, name));
  if (!other.empty()) answer.notes.push_back(PlaceText(changed, other));
  return answer;
}

int Run(const WhyFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const std::optional<Answer> answer = AnswerFor(flags, part, module, &diagnostics);
      if (!answer) return;
      if (!flags.json) {
        WriteRemarksText(answer->remarks, &out);
        for (const std::string& note : answer->notes) out << "note: " << note << "\n";
        return;
      }
      BeginModule(part, module, &json);
      json.Member("passes", flags.passes).Key("remarks");
      WriteRemarksJson(answer->remarks, &json);
      json.Key("notes").BeginArray();
      for (const std::string& note : answer->notes) json.Value(note);
      json.EndArray().EndObject();
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddWhyCommand(CLI::App* app) {
  auto flags = std::make_shared<WhyFlags>();
  CLI::App* command =
      app->add_subcommand("why", "say what passes do with an instruction and why, or why two are not fused");
  command->add_option("NAME", flags->first, "an instruction, NAME or COMPUTATION/NAME")->type_name("NAME")->required();
  command->add_option("--with", flags->second, "only what is about this instruction too")->type_name("NAME");
  flags->AddTo(command);
  command
      ->add_option(
          "--passes", flags->passes,
          "the passes to ask, as of hlo-opt; they run on a copy of the module. tpu{device=v5e}: those of a TPU")
      ->type_name("PIPELINE")
      ->capture_default_str();
  command->add_flag("--scheduled", flags->scheduled,
                    "keep the schedule, for passes that run after it, as rematerialization");
  command->footer(
      "Notes:\n"
      "  The answers are the remarks of the passes (docs/remarks.md), those of earlier\n"
      "  passes first, and where the instructions are after all of them.\n\n"
      "Examples:\n"
      "  hlo-inspect why exp.1 module.hlo                     all about one instruction\n"
      "  hlo-inspect why exp.1 --with=dot.2 module.hlo        why are these two not fused?\n"
      "  hlo-inspect why all-gather.1 --passes=spmd x.hlo     which shardings need it?\n"
      "  hlo-inspect why fusion.3 --passes='tpu{device=v5e}' module.hlo");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
