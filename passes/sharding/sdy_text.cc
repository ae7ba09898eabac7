// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/sdy_text.h"

#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::sharding {
namespace {

struct SdyMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  int64_t count = 1;
};

class SdyCursor {
 public:
  explicit SdyCursor(std::string_view text) : text_(text) {}

  bool Eat(std::string_view word) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool Quoted(std::string* name) {
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
  bool Number(int64_t* number) {
    const char* end = text_.data() + text_.size();
    const auto [next, error] = std::from_chars(text_.data() + at_, end, *number);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(next - text_.data());
    return true;
  }
  std::string_view Name() {
    const size_t end = text_.find_first_of(" ,>", at_);
    const std::string_view name = text_.substr(at_, end == text_.npos ? end : end - at_);
    at_ += name.size();
    return name;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// Parses `["a"=2, "b"=4]>` after `mesh<`.
bool ParseMeshAxes(SdyCursor& in, SdyMesh* mesh) {
  if (!in.Eat("[")) return false;
  while (!in.Eat("]")) {
    auto& [name, size] = mesh->axes.emplace_back();
    if (!in.Quoted(&name) || !in.Eat("=") || !in.Number(&size) || size < 1) return false;
    if (__builtin_mul_overflow(mesh->count, size, &mesh->count)) return false;
    in.Eat(",");
  }
  return in.Eat(">");
}

bool FindMesh(std::string_view meshes, std::string_view name, SdyMesh* mesh) {
  for (const std::string_view quote : {"", "\"", "'"}) {
    const std::string key = StrCat(quote, name, quote, " = #sdy.mesh<");
    if (const size_t at = meshes.find(key); at != meshes.npos) {
      SdyCursor in(meshes.substr(at + key.size()));
      return ParseMeshAxes(in, mesh);
    }
  }
  return false;
}

// Parses `{"a", "b":(1)2, ?}` after the brace.
bool ParseAxes(SdyCursor& in, const SdyMesh& mesh, AxisList* axes, bool* open) {
  while (!in.Eat("}")) {
    if (in.Eat("?")) {
      *open = true;
      continue;
    }
    std::string name;
    if (!in.Quoted(&name)) return false;
    int64_t minor = mesh.count;
    bool found = false;
    for (const auto& [axis, size] : mesh.axes) {
      minor /= size;
      if (axis != name) continue;
      found = true;
      int64_t pre = 1, part = size;
      if (in.Eat(":(") && (!in.Number(&pre) || !in.Eat(")") || !in.Number(&part))) return false;
      if (pre < 1 || part < 1 || part > size || pre > size / part || size % (pre * part) != 0) return false;
      AppendAxis(axes, {minor * (size / (pre * part)), part});
      break;
    }
    if (!found) return false;
    in.Eat(",");
  }
  return true;
}

bool ParseOne(SdyCursor& in, std::string_view meshes, Shape shape, SdySharding* sharding) {
  SdyMesh mesh;
  if (in.Eat("@")) {
    if (!FindMesh(meshes, in.Name(), &mesh)) return false;
  } else if (!in.Eat("mesh<") || !ParseMeshAxes(in, &mesh)) {
    return false;
  }
  Tiling& tiling = sharding->tiling;
  tiling.kind = ShardingKind::kTiled;
  tiling.device_count = mesh.count;
  if (!in.Eat(",") || !in.Eat("[")) return false;
  while (!in.Eat("]")) {
    bool open = false;
    if (!in.Eat("{") || !ParseAxes(in, mesh, &tiling.dims.emplace_back(), &open)) return false;
    sharding->open.push_back(open);
    int64_t priority;
    if (in.Eat("p") && !in.Number(&priority)) return false;
    in.Eat(",");
  }
  bool ignored = false;
  while (in.Eat(",")) {
    AxisList* list = in.Eat("replicated={") ? &tiling.replicated : in.Eat("unreduced={") ? &tiling.unreduced : nullptr;
    if (list == nullptr || !ParseAxes(in, mesh, list, &ignored)) return false;
  }
  if (!in.Eat(">") || tiling.rank() != shape.rank()) return false;
  // The axes must belong to one factorization, each used once.
  std::vector<const AxisList*> lists = {&tiling.unreduced, &tiling.replicated};
  for (const AxisList& dim : tiling.dims) lists.push_back(&dim);
  return Complement(lists, tiling.device_count).has_value();
}

}  // namespace

std::optional<std::vector<SdySharding>> ParseSdyShardings(std::string_view text, std::string_view meshes,
                                                          absl::Span<const Shape> shapes) {
  SdyCursor in(text);
  std::vector<SdySharding> shardings;
  if (in.Eat("#sdy.sharding<")) {
    if (shapes.size() != 1 || !ParseOne(in, meshes, shapes[0], &shardings.emplace_back())) return std::nullopt;
    return shardings;
  }
  if (!in.Eat("#sdy.sharding_per_value<[")) return std::nullopt;
  while (!in.Eat("]")) {
    if (shardings.size() == shapes.size() || !in.Eat("<")) return std::nullopt;
    const Shape shape = shapes[shardings.size()];
    if (!ParseOne(in, meshes, shape, &shardings.emplace_back())) return std::nullopt;
    in.Eat(",");
  }
  if (shardings.size() != shapes.size()) return std::nullopt;
  return shardings;
}

size_t CountSdyAxes(std::string_view text) {
  size_t quotes = 0;
  for (const char c : text) quotes += c == '"' ? 1 : 0;
  return quotes / 2;
}

}  // namespace hlokit::sharding
