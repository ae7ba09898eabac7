// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/commands.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "io/files/atomic_file_writer.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "passes/query/extract.h"
#include "passes/simplify/dce.h"

namespace hlokit::lsp {
namespace {

constexpr std::string_view kToolCommands[] = {"hlo.simulate", "hlo.run",  "hlo.graph",
                                              "hlo.report",   "hlo.diff", "hlo.reduce"};

absl::Status WriteFile(const std::string& path, std::string_view text) {
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(path);
  if (!file.ok()) return file.status();
  (*file)->Write(text);
  return (*file)->Commit();
}

// Returns the opcode of the instruction, for the pattern of a reduction; "" if there is none of the name.
std::string OpcodeOfName(Document& document, std::string_view name) {
  for (const auto& module : document.analysis().modules()) {
    for (const Computation computation : module->computations()) {
      for (const Instruction i : computation.instructions()) {
        if (i.name() == name) return std::string(i.opcode_text());
      }
    }
  }
  return "";
}

// A path that no file has: "model.dot.7.hlo", then "model.dot.7-2.hlo".
std::string FreePath(const std::string& start, std::string_view suffix) {
  std::error_code error;
  std::string path = StrCat(start, suffix);
  for (int k = 2; std::filesystem::exists(path, error) && k < 1000; ++k) path = StrCat(start, "-", k, suffix);
  return path;
}

}  // namespace

std::vector<std::string_view> CommandNames() {
  std::vector<std::string_view> names(std::begin(kToolCommands), std::end(kToolCommands));
  names.push_back("hlo.extract");
  names.push_back("hlo.removeDead");
  return names;
}

bool RunsTool(std::string_view command) {
  return std::find(std::begin(kToolCommands), std::end(kToolCommands), command) != std::end(kToolCommands);
}

absl::StatusOr<StartedTool> StartTool(std::string_view command, const Document& document, const Json& options,
                                      const Settings& settings, ScratchFolder* scratch) {
  const absl::StatusOr<std::string> folder = scratch->NewFolder();
  if (!folder.ok()) return folder.status();
  // The text as it is in the editor, under the name of the file.
  std::string name = std::filesystem::path(document.path()).filename().string();
  if (name.empty() || name.size() > 200 || name[0] == '-') name = "module.hlo";
  const std::string file = StrCat(*folder, "/", name);
  if (absl::Status s = WriteFile(file, document.text().text()); !s.ok()) return s;
  std::string device = StringAt(options, {"device"}, settings.device);
  if (device.empty() || device[0] == '-') device = settings.device;
  std::vector<std::string> arguments;
  std::string output;
  int highest_ok = 0;
  if (command == "hlo.simulate") {
    arguments = {"hlo-run", file, StrCat("--device=", device), "--timing-only"};
  } else if (command == "hlo.run") {
    arguments = {"hlo-run", file, "--seed=0"};
  } else if (command == "hlo.graph") {
    output = StrCat(*folder, "/graph.html");
    arguments = {"hlo-view", file, "-o", output};
  } else if (command == "hlo.report") {
    output = StrCat(*folder, "/report/index.html");
    arguments = {"hlo-run", file, StrCat("--device=", device), "--timing-only",
                 StrCat("--report=", *folder, "/report")};
  } else if (command == "hlo.diff") {
    const std::string other = StringAt(options, {"other"});
    if (other.empty() || other[0] == '-') return absl::InvalidArgumentError("hlo.diff takes `other`, a path");
    output = StrCat(*folder, "/diff.html");
    arguments = {"hlo-diff", file, other, StrCat("--html=", output)};
    highest_ok = 1;  // they differ
  } else {
    const std::string target = StringAt(options, {"name"});
    // The name is in quotes of a condition.
    if (target.empty() || target.find_first_of("\"\\\n") != std::string::npos) {
      return absl::InvalidArgumentError("hlo.reduce takes `name`, that of an instruction");
    }
    const std::string opcode = OpcodeOfName(const_cast<Document&>(document), target);
    if (opcode.empty()) return absl::InvalidArgumentError(StrCat("there is no instruction `", target, "`"));
    output = StrCat(*folder, "/reduced.hlo");
    arguments = {"hlo-reduce",
                 file,
                 "-o",
                 output,
                 StrCat("--pattern=", opcode),
                 StrCat("--where=name==\"", target, "\""),
                 "--max-seconds=60",
                 "--no-progress"};
  }
  const std::string tool = arguments[0];
  absl::StatusOr<ToolRun> run = ToolRun::Start(std::move(arguments));
  if (!run.ok()) return run.status();
  return StartedTool{*std::move(run), tool, output, highest_ok};
}

absl::StatusOr<std::string> ExtractToFile(Document& document, std::string_view name, ScratchFolder* scratch) {
  for (const auto& module : document.analysis().modules()) {
    for (const Computation computation : module->computations()) {
      for (const Instruction i : computation.instructions()) {
        if (i.name() != name) continue;
        const absl::StatusOr<Module> part = query::Extract(*module, {i}, {});
        if (!part.ok()) return part.status();
        std::filesystem::path base = document.path();
        if (!base.is_absolute()) {
          const absl::StatusOr<std::string> folder = scratch->NewFolder();
          if (!folder.ok()) return folder.status();
          base = StrCat(*folder, "/module.hlo");
        }
        const std::string stem = (base.parent_path() / base.stem()).string();
        const std::string path = FreePath(StrCat(stem, ".", name.substr(0, 100)), ".hlo");
        if (absl::Status s = WriteFile(path, ToString(*part, PrintOptions::Lossless())); !s.ok()) return s;
        return path;
      }
    }
  }
  return absl::NotFoundError(StrCat("there is no instruction `", name, "` in a valid module"));
}

absl::StatusOr<std::vector<TextRange>> DeadRanges(Document& document) {
  if (document.language() != Language::kHlo || document.analysis().modules().size() != 1) {
    return absl::FailedPreconditionError("the document is not one valid module of HLO text");
  }
  const Module& module = *document.analysis().modules()[0];
  Module copy = module.Clone();
  const absl::StatusOr<bool> changed = Dce().Run(copy);
  if (!changed.ok()) return changed.status();
  // What the copy has left, by offset.
  absl::flat_hash_set<uint32_t> left;
  for (const Computation c : copy.computations()) {
    left.insert(c.record().source_offset);
    for (const Instruction i : c.instructions()) left.insert(i.record().source_offset);
  }
  absl::flat_hash_set<uint32_t> dead;
  for (const Computation c : module.computations()) {
    if (!left.contains(c.record().source_offset)) dead.insert(c.record().source_offset);
    for (const Instruction i : c.instructions()) {
      if (!left.contains(i.record().source_offset)) dead.insert(i.record().source_offset);
    }
  }
  std::vector<TextRange> ranges;
  const std::string_view text = document.text().text();
  uint32_t end = 0;  // of the last range: symbols in a removed computation are in its
  for (const Symbol& s : document.index().symbols()) {
    const bool is_dead = dead.contains(s.name.offset) ||
                         (s.name.offset > 0 && text[s.name.offset - 1] == '%' && dead.contains(s.name.offset - 1));
    if (!is_dead || s.begin < end || s.kind == SymbolKind::kModule) continue;
    TextRange range{s.begin, s.end};
    const uint32_t line = document.text().LineStart(document.text().LineOf(s.begin));
    const uint32_t next = document.text().LineStart(document.text().LineOf(s.end) + 1);
    const bool alone = text.substr(line, s.begin - line).find_first_not_of(" \t") == std::string_view::npos &&
                       text.substr(s.end, next - s.end).find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (alone) range = {line, next};
    ranges.push_back(range);
    end = range.end;
  }
  return ranges;
}

}  // namespace hlokit::lsp
