// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/sdy_mesh.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

absl::Status Malformed() { return absl::InvalidArgumentError("has a malformed mesh"); }

}  // namespace

void SdyCursor::SkipSpaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
}

bool SdyCursor::Eat(std::string_view word) {
  SkipSpaces();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool SdyCursor::Quoted(std::string* name) {
  // Within an attribute the quotes are escaped once more.
  const bool escaped = Eat("\\\"");
  if (!escaped && !Eat("\"")) return false;
  const size_t end = text_.find('"', at_);
  if (end == text_.npos) return false;
  *name = std::string(text_.substr(at_, end - at_));
  if (escaped && name->ends_with('\\')) name->pop_back();
  at_ = end + 1;
  return true;
}

bool SdyCursor::Number(int64_t* number) {
  SkipSpaces();
  const char* end = text_.data() + text_.size();
  const auto [next, error] = std::from_chars(text_.data() + at_, end, *number);
  if (error != std::errc()) return false;
  at_ = static_cast<size_t>(next - text_.data());
  return true;
}

std::string_view SdyCursor::Name() {
  SkipSpaces();
  const char quote = at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') ? text_[at_] : '\0';
  if (quote != '\0') {
    const size_t close = text_.find(quote, at_ + 1);
    if (close == text_.npos) return {};
    const std::string_view name = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return name;
  }
  const size_t end = std::min(text_.find_first_of(" ,=>}", at_), text_.size());
  const std::string_view name = text_.substr(at_, end - at_);
  at_ = end;
  return name;
}

bool SdyCursor::SkipTo(char c) {
  const size_t found = text_.find(c, at_);
  if (found == text_.npos) return false;
  at_ = found;
  return true;
}

absl::Status CheckSdyMesh(SdyMesh* mesh) {
  constexpr int64_t kMaxDevices = 1 << 20;
  constexpr size_t kMaxAxes = 256;
  if (mesh->axes.size() > kMaxAxes) return absl::InvalidArgumentError("has a mesh of too many axes");
  mesh->count = 1;
  for (const auto& [name, size] : mesh->axes) {
    if (size < 1) return Malformed();
    if (__builtin_mul_overflow(mesh->count, size, &mesh->count) || mesh->count > kMaxDevices) {
      return absl::InvalidArgumentError("has a mesh of too many devices");
    }
  }
  if (mesh->devices.empty()) return absl::OkStatus();
  std::vector<int64_t> sorted = mesh->devices;
  std::sort(sorted.begin(), sorted.end());
  bool good = static_cast<int64_t>(sorted.size()) == mesh->count && sorted[0] >= 0;
  for (size_t i = 0; i < sorted.size() && !mesh->axes.empty(); ++i) {
    good = good && sorted[i] == static_cast<int64_t>(i);
  }
  if (!good) {
    return absl::InvalidArgumentError(
        StrCat("has a mesh whose device_ids are not each of 0 to ", mesh->count - 1, " once"));
  }
  if (!mesh->axes.empty() && mesh->devices == sorted) mesh->devices.clear();
  return absl::OkStatus();
}

absl::Status ReadSdyMesh(SdyCursor& in, SdyMesh* mesh) {
  if (!in.Eat("[")) return Malformed();
  if (!in.Eat("]")) {
    do {
      auto& [name, size] = mesh->axes.emplace_back();
      if (!in.Quoted(&name) || !in.Eat("=") || !in.Number(&size)) return Malformed();
    } while (in.Eat(","));
    if (!in.Eat("]")) return Malformed();
  }
  if (in.Eat(",")) {
    if (!in.Eat("device_ids") || !in.Eat("=") || !in.Eat("[")) return Malformed();
    do {
      if (!in.Number(&mesh->devices.emplace_back())) return Malformed();
    } while (in.Eat(","));
    if (!in.Eat("]")) return Malformed();
  }
  if (!in.Eat(">")) return Malformed();
  return CheckSdyMesh(mesh);
}

absl::StatusOr<SdyMeshes> ReadSdyMeshes(std::string_view text) {
  SdyMeshes meshes;
  SdyCursor in(text);
  if (!in.Eat("{")) return Malformed();
  if (in.Eat("}")) return meshes;
  do {
    in.Eat("");
    const std::string name(in.Name());
    SdyMesh mesh;
    if (name.empty() || !in.Eat("=") || !in.Eat(kSdyMesh)) return Malformed();
    if (absl::Status status = ReadSdyMesh(in, &mesh); !status.ok()) return status;
    meshes.insert_or_assign(name, std::move(mesh));
  } while (in.Eat(","));
  return in.Eat("}") ? absl::StatusOr<SdyMeshes>(std::move(meshes)) : Malformed();
}

}  // namespace hlokit
