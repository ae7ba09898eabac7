// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/query.h"

#include <utility>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "passes/query/named.h"
#include "tools/cli/text/regex.h"

namespace hlokit::cli {

std::optional<query::Query> ParseQuery(const std::string& pattern, const std::string& where,
                                       DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  std::string_view wrong;
  std::optional<query::Query> query = query::Query::Parse(pattern, where, CompileRegex, &sink, &wrong);
  if (query) return query;
  const bool in_pattern = wrong == query::Query::kMatch;
  diagnostics->Show(sink, SourceBuffer(in_pattern ? "PATTERN" : "--where", in_pattern ? pattern : where));
  diagnostics->Fail(kUsage);
  return std::nullopt;
}

void AddQueryFlags(CLI::App* command, std::string* pattern, std::string* where) {
  command
      ->add_option("PATTERN", *pattern,
                   "an instruction and those that make its operands: dot(transpose(%x), _); opcodes with * and |")
      ->type_name("PATTERN")
      ->required();
  command
      ->add_option("--where", *where,
                   "a condition on fields of the match, or of a variable: bytes>1e6 && scope~\"attention\" && "
                   "%x.opcode==\"parameter\"")
      ->type_name("CONDITION");
}

Instruction FindNamed(const Module& module, const InputPart& part, std::string_view name,
                      DiagnosticReporter* diagnostics) {
  const absl::StatusOr<Instruction> found = query::FindNamed(module, name);
  if (found.ok()) return *found;
  diagnostics->ShowError(part.label(), std::string(found.status().message()), kRejected);
  return Instruction();
}

std::string LineOf(const TextLines& lines, Instruction instruction) {
  constexpr size_t kMaxSize = 300;
  PrintOptions options;
  options.print_metadata_only_op_name = true;
  std::string text = ToString(instruction, options);
  if (text.size() > kMaxSize) {
    text = StrCat(text.substr(0, kMaxSize / 2), " ... ", text.substr(text.size() - kMaxSize / 2));
  }
  const int64_t line = lines.Of(instruction);
  return StrCat(line == 0 ? "" : StrCat(line, ": "), instruction.is_root() ? "ROOT " : "", text);
}

std::string LineOf(const InputPart& part, const TextLines& lines, Instruction instruction) {
  return StrCat(part.label(), lines.Of(instruction) == 0 ? ": " : ":", LineOf(lines, instruction));
}

void WriteMembers(const TextLines& lines, Instruction instruction, JsonWriter* json) {
  json->Member("name", instruction.name()).Member("computation", instruction.parent().name());
  json->Member("opcode", instruction.opcode_text()).Member("shape", ToString(instruction.shape()));
  json->Member("line", lines.Of(instruction)).Member("text", ToString(instruction));
}

void BeginModule(const InputPart& part, const Module& module, JsonWriter* json) {
  json->BeginObject().Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", module.name());
}

}  // namespace hlokit::cli
