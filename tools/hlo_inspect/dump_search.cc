// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/dump_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/text/shape_text.h"
#include "passes/dumps/dump_stages.h"

namespace hlokit::cli {
namespace {

using dump::DumpedModule;
using Outcome = StageValues::Outcome;

// Returns the first line that matches, and its number; "" and 0 if there is none.
std::pair<std::string_view, int64_t> FirstLine(std::string_view text,
                                               const std::function<bool(std::string_view)>& matches) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++number;
    if (matches(text.substr(begin, end - begin))) return {text.substr(begin, end - begin), number};
    begin = end + 1;
  }
  return {"", 0};
}

// Returns the module of the first form that can be read, or null. `context` may be null.
std::unique_ptr<Module> ReadStage(const std::vector<const DumpFile*>& forms, std::shared_ptr<Context> context,
                                  dump::DumpReader* reader) {
  for (const DumpFile* file : forms) {
    const std::shared_ptr<const SourceBuffer> source = reader->Read(file->path);
    std::unique_ptr<Module> module = source == nullptr ? nullptr : reader->Parse(source, context);
    if (module != nullptr && module->entry().valid()) return module;
  }
  return nullptr;
}

std::string TypesOf(const Module& module) {
  std::string text;
  {
    TextWriter out(&text);
    out << '(';
    for (int64_t k = 0; k < module.entry().parameter_count(); ++k) {
      if (k != 0) out << ", ";
      PrintShape(out, module.entry().parameter(k).shape(), /*with_layout=*/false);
    }
    out << ")->";
    PrintShape(out, module.entry().root().shape(), /*with_layout=*/false);
  }
  return text;
}

std::string_view ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFirst:
      return "first";
    case Outcome::kSame:
      return "same program";
    case Outcome::kEqual:
      return "equal";
    case Outcome::kDiffers:
      return "differs";
    case Outcome::kOtherForm:
      return "other parameters or results";
    case Outcome::kNotRun:
      return "not run";
  }
  return "";
}

}  // namespace

std::vector<ListedModule> ListStages(const std::vector<DumpedModule>& modules) {
  std::vector<ListedModule> listed;
  for (const DumpedModule& module : modules) {
    ListedModule& row = listed.emplace_back();
    row.module = &module;
    row.name = dump::CommonName(module.files);
    std::optional<int64_t> before;
    for (const std::vector<const DumpFile*>& forms : dump::StageFiles(module.files)) {
      ListedStage& stage = row.stages.emplace_back();
      stage.file = forms.front();
      int64_t written = forms.front()->written_us;
      for (const DumpFile* form : forms) {
        stage.bytes += form->bytes;
        written = std::min(written, form->written_us);
      }
      if (before) stage.since_us = std::max<int64_t>(0, written - *before);
      before = written;
    }
  }
  return listed;
}

std::vector<DumpMatch> FindFirst(const std::vector<DumpedModule>& modules,
                                 const std::function<bool(std::string_view)>& matches, dump::DumpReader* reader) {
  std::vector<DumpMatch> found;
  for (const DumpedModule& module : modules) {
    DumpMatch match;
    for (const std::vector<const DumpFile*>& forms : dump::StageFiles(module.files)) {
      const DumpFile* const file = forms.front();
      const std::shared_ptr<const SourceBuffer> source = reader->Read(file->path);
      if (source == nullptr) continue;
      std::string printed;
      if (file->is_proto) {
        const std::unique_ptr<Module> parsed = reader->Parse(source, nullptr);
        if (parsed == nullptr) continue;
        printed = hlokit::ToString(*parsed, PrintOptions::Dump());
      }
      const auto [line, number] = FirstLine(file->is_proto ? std::string_view(printed) : source->text(), matches);
      match.in_last_stage = number != 0;
      if (number == 0) continue;
      match.last = file;
      if (match.first != nullptr) continue;
      match.module = &module;
      match.first = file;
      match.line = std::string(line);
      match.line_number = file->is_proto ? 0 : number;
    }
    if (match.first != nullptr) found.push_back(std::move(match));
  }
  return found;
}

std::vector<StageValues> CompareStages(const DumpedModule& module, const interp::EquivalenceOptions& options,
                                       const interp::Tolerance& tolerance, dump::DumpReader* reader) {
  std::vector<StageValues> stages;
  std::shared_ptr<Context> context;  // of all stages: values refer to it
  std::optional<interp::ResultSets> before;
  std::string types;
  std::optional<Digest> digest;
  std::vector<std::vector<const DumpFile*>> files = dump::StageFiles(module.files);
  for (std::vector<const DumpFile*>& forms : files) {
    if (forms.front()->kind == DumpFile::Kind::kStablehlo) continue;
    // Texts elide large constants.
    std::stable_partition(forms.begin(), forms.end(), [](const DumpFile* form) { return form->is_proto; });
    StageValues& stage = stages.emplace_back();
    stage.file = forms.front();
    const std::unique_ptr<Module> read = ReadStage(forms, context, reader);
    if (read == nullptr) {
      stage.outcome = Outcome::kNotRun;
      stage.message = "it cannot be read";
      continue;
    }
    context = read->shared_context();
    const Digest now = Fingerprint(*read);
    if (digest && now == *digest) {
      stage.outcome = Outcome::kSame;
      continue;
    }
    absl::StatusOr<interp::ResultSets> results = interp::EvaluateOnFakeArguments(*read, options);
    if (!results.ok()) {
      stage.outcome = Outcome::kNotRun;
      stage.message = std::string(results.status().message());
      continue;
    }
    digest = now;
    std::string read_types = TypesOf(*read);
    if (before && read_types != types) {
      stage.outcome = Outcome::kOtherForm;
      stage.message = StrCat(types, " became ", read_types);
    } else if (before) {
      stage.outcome = Outcome::kEqual;
      for (size_t set = 0; set < results->size() && stage.message.empty(); ++set) {
        stage.message = interp::CompareResults((*before)[set], (*results)[set], tolerance);
      }
      if (!stage.message.empty()) stage.outcome = Outcome::kDiffers;
    }
    before = *std::move(results);
    types = std::move(read_types);
  }
  return stages;
}

void WriteListing(const std::vector<ListedModule>& modules, bool json, TextWriter* out) {
  if (!json) {
    for (const ListedModule& module : modules) {
      *out << module.module->id() << " " << module.name << "\n";
      if (!module.stages.empty()) *out << "         bytes    +ms  stage\n";
      for (const ListedStage& stage : module.stages) {
        const std::string since =
            stage.since_us < 0 ? "" : absl::StrFormat("%.1f", static_cast<double>(stage.since_us) * 1e-3);
        *out << absl::StrFormat("  %12d %6s  %s\n", stage.bytes, since, dump::StageName(*stage.file));
      }
    }
    return;
  }
  JsonWriter writer(out);
  writer.BeginArray();
  for (const ListedModule& module : modules) {
    writer.BeginObject().Member("id", module.module->id()).Member("name", module.name).Key("stages").BeginArray();
    for (const ListedStage& stage : module.stages) {
      writer.BeginObject().Member("name", dump::StageName(*stage.file)).Member("path", stage.file->path);
      writer.Member("bytes", stage.bytes);
      if (stage.since_us >= 0) writer.Member("since_us", stage.since_us);
      writer.EndObject();
    }
    writer.EndArray().EndObject();
  }
  writer.EndArray();
}

void WriteMatches(const std::vector<DumpMatch>& matches, size_t modules, bool json, TextWriter* out) {
  if (!json) {
    for (const DumpMatch& match : matches) {
      *out << match.module->id() << " " << dump::CommonName(match.module->files) << ": first at "
           << dump::StageName(*match.first);
      if (match.in_last_stage) {
        *out << ", and to the end";
      } else {
        *out << ", last at " << dump::StageName(*match.last);
      }
      *out << "\n  " << match.first->path;
      if (match.line_number > 0) *out << ":" << match.line_number;
      const size_t begin = std::min(match.line.find_first_not_of(' '), match.line.size());
      *out << ": " << std::string_view(match.line).substr(begin) << "\n";
    }
    const auto without = static_cast<int64_t>(modules - matches.size());
    if (without > 0) *out << without << (without == 1 ? " module has" : " modules have") << " no match\n";
    return;
  }
  JsonWriter writer(out);
  writer.BeginArray();
  for (const DumpMatch& match : matches) {
    writer.BeginObject().Member("id", match.module->id()).Member("name", dump::CommonName(match.module->files));
    writer.Member("first", dump::StageName(*match.first)).Member("last", dump::StageName(*match.last));
    writer.Member("to_the_end", match.in_last_stage).Member("path", match.first->path);
    if (match.line_number > 0) writer.Member("line", match.line_number);
    writer.Member("text", match.line).EndObject();
  }
  writer.EndArray();
}

void WriteValues(const std::vector<ModuleValues>& modules, bool json, TextWriter* out) {
  if (!json) {
    for (const ModuleValues& values : modules) {
      *out << values.module->id() << " " << dump::CommonName(values.module->files) << "\n";
      int64_t same = 0;
      for (const StageValues& stage : values.stages) {
        same += stage.outcome == Outcome::kSame;
        if (stage.outcome == Outcome::kSame) continue;
        *out << "  " << dump::StageName(*stage.file) << ": " << ToString(stage.outcome);
        if (!stage.message.empty()) *out << ": " << stage.message;
        *out << "\n";
      }
      if (same > 0) *out << "  and " << same << " that are the same program as the stage before\n";
    }
    return;
  }
  JsonWriter writer(out);
  writer.BeginArray();
  for (const ModuleValues& values : modules) {
    writer.BeginObject().Member("id", values.module->id()).Member("name", dump::CommonName(values.module->files));
    writer.Key("stages").BeginArray();
    for (const StageValues& stage : values.stages) {
      writer.BeginObject().Member("name", dump::StageName(*stage.file)).Member("path", stage.file->path);
      writer.Member("values", ToString(stage.outcome));
      if (!stage.message.empty()) writer.Member("message", stage.message);
      writer.EndObject();
    }
    writer.EndArray().EndObject();
  }
  writer.EndArray();
}

}  // namespace hlokit::cli
