// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/sdy_mesh.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace hlokit {
namespace {

// Returns true if the devices are those of the mesh, each once; an order that counts becomes empty.
bool CheckDeviceIds(SdyMesh* mesh) {
  if (mesh->devices.empty()) return true;
  if (mesh->axes.empty()) return mesh->devices.size() == 1;
  if (static_cast<int64_t>(mesh->devices.size()) != mesh->count) return false;
  std::vector<int64_t> sorted = mesh->devices;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  if (mesh->devices == sorted) mesh->devices.clear();
  return true;
}

}  // namespace

bool SdyCursor::Eat(std::string_view word) {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
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
  const char* end = text_.data() + text_.size();
  const auto [next, error] = std::from_chars(text_.data() + at_, end, *number);
  if (error != std::errc()) return false;
  at_ = static_cast<size_t>(next - text_.data());
  return true;
}

std::string_view SdyCursor::Name() {
  const size_t end = text_.find_first_of(" ,>", at_);
  const std::string_view name = text_.substr(at_, end == text_.npos ? end : end - at_);
  at_ += name.size();
  return name;
}

bool ReadSdyMesh(SdyCursor& in, SdyMesh* mesh) {
  if (!in.Eat("[")) return false;
  while (!in.Eat("]")) {
    auto& [name, size] = mesh->axes.emplace_back();
    if (!in.Quoted(&name) || !in.Eat("=") || !in.Number(&size) || size < 1) return false;
    if (__builtin_mul_overflow(mesh->count, size, &mesh->count)) return false;
    in.Eat(",");
  }
  if (in.Eat(",")) {
    if (!in.Eat("device_ids=[")) return false;
    while (!in.Eat("]")) {
      in.Eat("");  // skips spaces
      if (!in.Number(&mesh->devices.emplace_back()) || mesh->devices.back() < 0) return false;
      in.Eat(",");
    }
  }
  return in.Eat(">") && CheckDeviceIds(mesh);
}

}  // namespace hlokit
