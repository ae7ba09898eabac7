// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/ops.h"

#include "ir/core/diagnostic.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/ops/op_reference.h"

namespace hlokit::cli {
namespace {

struct OpsFlags {
  std::vector<std::string> opcodes;
  std::string output = "-";
  bool json = false;
  bool markdown = false;
};

void WriteJson(const std::vector<Opcode>& opcodes, JsonWriter* json) {
  json->BeginArray();
  for (Opcode opcode : opcodes) {
    const OpcodeInfo& info = InfoOf(opcode);
    json->BeginObject().Member("opcode", info.text).Member("meaning", MeaningOf(opcode));
    json->Member("min_operands", static_cast<int>(info.min_operands));
    json->Member("max_operands", static_cast<int>(info.max_operands));
    json->Member("result", DescribeShapeRule(info.shape_rule));
    json->Key("traits").BeginArray();
    for (std::string_view trait : TraitNames(opcode)) json->Value(trait);
    json->EndArray().Key("attributes").BeginArray();
    for (const AttrSpec& spec : info.attributes) {
      json->BeginObject().Member("name", ToString(spec.attr)).Member("required", spec.presence == AttrSpec::kRequired);
      const EnumType type = InfoOf(spec.attr).enum_type;
      if (type != EnumType::kNone) {
        json->Key("values").BeginArray();
        for (std::string_view value : EnumTexts(type)) json->Value(value);
        json->EndArray();
      }
      json->EndObject();
    }
    json->EndArray().EndObject();
  }
  json->EndArray();
}

int RunOps(const OpsFlags& flags) {
  DiagnosticReporter diagnostics(InputOptions{});
  std::vector<Opcode> opcodes;
  for (const std::string& text : flags.opcodes) {
    const std::optional<Opcode> opcode = OpcodeFromText(text);
    if (!opcode) {
      std::vector<std::string_view> known;
      for (size_t i = 0; i < kOpcodeCount; ++i) known.push_back(ToString(static_cast<Opcode>(i)));
      return UsageError("hlo-inspect", StrCat("unknown opcode `", text, "`", DidYouMeanSuffix(text, known)));
    }
    opcodes.push_back(*opcode);
  }
  const bool all = opcodes.empty();
  for (size_t i = 0; all && i < kOpcodeCount; ++i) opcodes.push_back(static_cast<Opcode>(i));
  InspectFlags output;
  output.output = flags.output;
  return WriteReport(output, &diagnostics, [&](TextWriter& out) {
    if (flags.json) {
      JsonWriter json(&out);
      WriteJson(opcodes, &json);
      out << '\n';
    } else if (flags.markdown && all) {
      WriteOpReference(out);
    } else if (flags.markdown || !all) {
      for (Opcode opcode : opcodes) WriteOpSection(out, opcode);
    } else {
      for (Opcode opcode : opcodes) out << ToString(opcode) << ": " << MeaningOf(opcode) << '\n';
    }
  });
}

}  // namespace

InspectCommand AddOpsCommand(CLI::App* app) {
  auto flags = std::make_shared<OpsFlags>();
  CLI::App* command = app->add_subcommand("ops", "list opcodes, or describe one with its operands and result");
  command->add_option("OPCODE", flags->opcodes, "opcodes to describe; without any, all are listed")
      ->type_name("OPCODE");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_flag("--markdown", flags->markdown, "print the whole reference (docs/ops.md)");
  command->add_option("-o,--output", flags->output, "output file; - is standard output")
      ->type_name("FILE")
      ->default_str("-");
  command->footer(
      "Examples:\n"
      "  hlo-inspect ops dot gather\n"
      "  hlo-inspect ops --json | jq '.[] | select(.traits | index(\"collective\")) | .opcode'");
  return {command, [flags] { return RunOps(*flags); }};
}

}  // namespace hlokit::cli
