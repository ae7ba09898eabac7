// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/module_patch.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "ir/core/str_cat.h"
#include "ir/digest/digest.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

std::string TextOf(const Module& module) { return ToString(module, PrintOptions::Lossless()); }

// Lines without their newlines. The views are of `text`.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Returns true for a name of HLO text.
bool IsName(std::string_view name) {
  return !name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name[0])) == 0 && name[0] != '.' &&
         name[0] != '-' && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
         });
}

// Returns an error unless the module has everything that is renamed.
absl::Status CheckRenamed(const absl::flat_hash_map<std::string_view, std::string_view>& renamed,
                          const absl::flat_hash_set<std::string_view>& names, std::string_view noun) {
  std::string_view unknown;
  for (const auto& [from, to] : renamed) {
    if (!names.contains(from) && (unknown.empty() || from < unknown)) unknown = from;
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("patch: the module has no ", noun, " `", unknown, "` to rename"));
}

template <typename Names>
absl::Status ReadNames(const nlohmann::json& patch, const char* member, Names* names) {
  const auto found = patch.find(member);
  if (found == patch.end() || !found->is_object()) {
    return absl::InvalidArgumentError(StrCat("patch: expected an object `", member, "`"));
  }
  for (const auto& [from, to] : found->items()) {
    if (!to.is_string()) return absl::InvalidArgumentError(StrCat("patch: ", member, ": expected names"));
    for (const std::string& name : {from, to.template get<std::string>()}) {
      if (!IsName(name)) {
        return absl::InvalidArgumentError(StrCat("patch: ", member, ": `", absl::CEscape(name), "` is not a name"));
      }
    }
    names->emplace_back(from, to.template get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

ModulePatch MakePatch(const Module& a, const Module& b, const ModuleMatching& matching) {
  ModulePatch patch;
  patch.base_digest = ToString(DigestOf(TextOf(a)));
  Module renamed = a.Clone();
  // No line of b has the name of an instruction that b lacks.
  const StringId removed = renamed.context().strings.Intern("!");
  for (const Computation c : a.computations()) {
    const ComputationId counterpart = matching.computation_in_b[c.id().value];
    renamed.SetName(c.id(), counterpart.valid() ? b.record(counterpart).name : removed);
    if (counterpart.valid() && b.computation(counterpart).name() != c.name()) {
      patch.computations.emplace_back(c.name(), b.computation(counterpart).name());
    }
    for (const Instruction i : c.instructions()) {
      const InstructionId in_b = matching.in_b[i.id().value];
      renamed.SetName(i.id(), in_b.valid() ? b.record(in_b).name : removed);
      if (in_b.valid() && b.instruction(in_b).name() != i.name()) {
        patch.instructions.emplace_back(i.name(), b.instruction(in_b).name());
      }
    }
  }
  const std::string text_a = TextOf(renamed), text_b = TextOf(b);
  const std::vector<std::string_view> lines_a = LinesOf(text_a), lines_b = LinesOf(text_b);
  absl::flat_hash_map<std::string_view, size_t> at;  // the first line with this text
  for (size_t k = lines_a.size(); k-- > 0;) at[lines_a[k]] = k;
  for (const std::string_view line : lines_b) {
    auto* const lines = patch.text.empty() ? nullptr : std::get_if<ModulePatch::Lines>(&patch.text.back());
    if (lines != nullptr && lines->first + lines->count < lines_a.size() &&
        lines_a[lines->first + lines->count] == line) {
      ++lines->count;
      continue;
    }
    const auto found = at.find(line);
    if (found != at.end()) {
      patch.text.emplace_back(ModulePatch::Lines{found->second, 1});
    } else {
      patch.text.emplace_back(std::string(line));
    }
  }
  return patch;
}

void WriteJson(const ModulePatch& patch, JsonWriter* json) {
  json->Member("base", patch.base_digest);
  const auto write_names = [&](std::string_view member, const auto& names) {
    json->Key(member).BeginObject();
    for (const auto& [from, to] : names) json->Member(from, to);
    json->EndObject();
  };
  write_names("rename_instructions", patch.instructions);
  write_names("rename_computations", patch.computations);
  json->Key("text").BeginArray();
  for (const auto& part : patch.text) {
    if (const auto* lines = std::get_if<ModulePatch::Lines>(&part)) {
      json->BeginArray().Value(lines->first).Value(lines->count).EndArray();
    } else {
      json->Value(std::string_view(std::get<std::string>(part)));
    }
  }
  json->EndArray();
}

absl::StatusOr<ModulePatch> ReadPatch(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("patch: not JSON");
  const auto found = json.is_object() ? json.find("patch") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_object()) {
    return absl::InvalidArgumentError("patch: expected an object with a member `patch`, as hlo-diff --json prints it");
  }
  const nlohmann::json& object = *found;
  ModulePatch patch;
  const auto base = object.find("base");
  if (base == object.end() || !base->is_string()) return absl::InvalidArgumentError("patch: expected a text `base`");
  patch.base_digest = base->get<std::string>();
  if (absl::Status s = ReadNames(object, "rename_instructions", &patch.instructions); !s.ok()) return s;
  if (absl::Status s = ReadNames(object, "rename_computations", &patch.computations); !s.ok()) return s;
  const auto lines = object.find("text");
  if (lines == object.end() || !lines->is_array()) return absl::InvalidArgumentError("patch: expected an array `text`");
  for (const nlohmann::json& part : *lines) {
    if (part.is_string()) {
      patch.text.emplace_back(part.get<std::string>());
    } else if (part.is_array() && part.size() == 2 && part[0].is_number_unsigned() && part[1].is_number_unsigned()) {
      patch.text.emplace_back(ModulePatch::Lines{part[0].get<size_t>(), part[1].get<size_t>()});
    } else {
      return absl::InvalidArgumentError("patch: text: expected lines, or pairs of a line and a number");
    }
  }
  return patch;
}

absl::StatusOr<std::string> ApplyPatch(const Module& a, const ModulePatch& patch) {
  if (ToString(DigestOf(TextOf(a))) != patch.base_digest) {
    return absl::FailedPreconditionError(
        StrCat("the patch is of another module than ", a.name(), "; apply it to the first module of the comparison"));
  }
  Module renamed = a.Clone();
  StringPool& strings = renamed.context().strings;
  absl::flat_hash_map<std::string_view, std::string_view> instructions, computations;
  for (const auto& [from, to] : patch.instructions) instructions.emplace(from, to);
  for (const auto& [from, to] : patch.computations) computations.emplace(from, to);
  absl::flat_hash_set<std::string_view> instruction_names, computation_names;
  for (const Computation c : a.computations()) {
    computation_names.insert(c.name());
    for (const Instruction i : c.instructions()) instruction_names.insert(i.name());
  }
  if (absl::Status s = CheckRenamed(instructions, instruction_names, "instruction"); !s.ok()) return s;
  if (absl::Status s = CheckRenamed(computations, computation_names, "computation"); !s.ok()) return s;
  for (const Computation c : a.computations()) {
    if (const auto to = computations.find(c.name()); to != computations.end()) {
      renamed.SetName(c.id(), strings.Intern(to->second));
    }
    for (const Instruction i : c.instructions()) {
      if (const auto to = instructions.find(i.name()); to != instructions.end()) {
        renamed.SetName(i.id(), strings.Intern(to->second));
      }
    }
  }
  const std::string base = TextOf(renamed);
  const std::vector<std::string_view> lines = LinesOf(base);
  std::string text;
  size_t limit = base.size() + 1;  // what is kept is at most the base
  for (const auto& part : patch.text) {
    if (const auto* added = std::get_if<std::string>(&part)) {
      StrAppend(&text, *added, "\n");
      limit += added->size() + 1;
      continue;
    }
    const ModulePatch::Lines kept = std::get<ModulePatch::Lines>(part);
    if (kept.first > lines.size() || kept.count > lines.size() - kept.first) {
      return absl::InvalidArgumentError(StrCat("patch: text: lines ", kept.first, " to ", kept.first + kept.count,
                                               " of a text of ", lines.size(), " lines"));
    }
    for (size_t k = 0; k < kept.count; ++k) StrAppend(&text, lines[kept.first + k], "\n");
    if (text.size() > 16 * limit) return absl::InvalidArgumentError("patch: text: lines are repeated too often");
  }
  return text;
}

}  // namespace hlokit
