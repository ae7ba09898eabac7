// SPDX-License-Identifier: Apache-2.0
// Meshes of Shardy as text has them: #sdy.mesh<["a"=2, "b"=4], device_ids=[…]>
#ifndef HLOKIT_IR_SHARDING_SDY_MESH_H_
#define HLOKIT_IR_SHARDING_SDY_MESH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit {

inline constexpr std::string_view kSdyMesh = "#sdy.mesh<";

struct SdyMesh {
  std::vector<std::pair<std::string, int64_t>> axes;  // names and sizes, major to minor
  int64_t count = 1;
  std::vector<int64_t> devices;  // empty: in order

  bool maximal() const { return axes.empty() && devices.size() == 1; }
};
using SdyMeshes = absl::flat_hash_map<std::string, SdyMesh>;

// Reads text of Shardy from the front. Each function skips spaces in front, and returns false, or an empty name, for
// text of another form.
class SdyCursor {
 public:
  explicit SdyCursor(std::string_view text) : text_(text) {}

  bool Eat(std::string_view word);
  bool Quoted(std::string* name);
  bool Number(int64_t* number);
  std::string_view Name();  // in quotes, or up to a space, a comma, `=` or `>`
  bool SkipTo(char c);      // drops what stands before the first `c`
  std::string_view rest() const { return text_.substr(at_); }

 private:
  void SkipSpaces();

  std::string_view text_;
  size_t at_ = 0;
};

// Sets the number of devices. Those that are listed must be the devices of the mesh, each once, or one of any number if
// there are no axes; an order that counts becomes empty. Messages follow the name of an operation.
absl::Status CheckSdyMesh(SdyMesh* mesh);
// Reads `["a"=2, "b"=4]>` or `["a"=2], device_ids=[1, 0]>`, what follows kSdyMesh.
absl::Status ReadSdyMesh(SdyCursor& in, SdyMesh* mesh);
// Reads the meshes of a module as a frontend attribute of the header has them: {mesh = #sdy.mesh<["a"=2]>, ...}.
absl::StatusOr<SdyMeshes> ReadSdyMeshes(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_SDY_MESH_H_
