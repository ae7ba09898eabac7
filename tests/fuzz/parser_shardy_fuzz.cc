// SPDX-License-Identifier: Apache-2.0
// Reads lines of text as the forms of Shardy: `{mesh = #sdy.mesh<...>}`, the meshes of a module as a frontend attribute
// has them; any other line as a sharding over them. A mesh has as many devices as its axes say, and is the same in the
// text of an operation; the sharding of HLO that stands for one of Shardy is read by the parser of HLO.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/sharding/sdy_mesh.h"
#include "parser/hlo/sharding_parser.h"
#include "parser/stablehlo/sdy_sharding.h"
#include "parser/text/text_cursor.h"

namespace {

using namespace hlokit;

[[noreturn]] void Fail(std::string_view what, std::string_view text) {
  std::cerr << what << ": " << text << "\n";
  std::abort();
}

void CheckMesh(const std::string& name, const SdyMesh& mesh) {
  int64_t count = 1;
  std::string text = "<[";
  for (const auto& [axis, size] : mesh.axes) {
    if (size < 1 || __builtin_mul_overflow(count, size, &count)) Fail("a mesh with a bad axis", name);
    StrAppend(&text, text.size() == 2 ? "" : ", ", "\"", axis, "\"=", size);
  }
  if (count != mesh.count) Fail("a mesh with another number of devices", name);
  text += "]";
  for (size_t i = 0; i < mesh.devices.size(); ++i) StrAppend(&text, i == 0 ? ", device_ids=[" : ", ", mesh.devices[i]);
  text += mesh.devices.empty() ? ">" : "]>";
  if (text.find('\\') != std::string::npos) return;  // names that would be escaped
  const absl::StatusOr<SdyMesh> again = stablehlo::ReadSdyMeshText(text);
  if (!again.ok() || again->axes != mesh.axes || again->devices != mesh.devices) {
    Fail("a mesh that is another one when read again", text);
  }
}

void CheckSharding(std::string_view line, const SdyMeshes& meshes) {
  int64_t budget = 1 << 16;
  const absl::StatusOr<std::string> sharding = stablehlo::HloShardingOf(line, meshes, &budget);
  if (!sharding.ok()) {
    if (sharding.status().message().empty()) Fail("an error without a message", line);
    return;
  }
  Context context;
  const std::string_view stored = context.str(context.strings.Intern(*sharding + '\0'));
  DiagnosticSink sink;
  TextCursor in(stored.substr(0, stored.size() - 1), &sink);
  ListId id;
  if (*sharding != "{}" && (!ParseSharding(in, &context, &id) || !in.AtEnd())) {
    Fail("a sharding that HLO does not read", StrCat(line, " as ", *sharding));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 14) return 0;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  SdyMeshes meshes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with('{')) {
      CheckSharding(line, meshes);
      continue;
    }
    absl::StatusOr<SdyMeshes> read = ReadSdyMeshes(line);
    if (!read.ok()) continue;
    for (const auto& [name, mesh] : *read) CheckMesh(name, mesh);
    meshes = *std::move(read);
  }
  return 0;
}
