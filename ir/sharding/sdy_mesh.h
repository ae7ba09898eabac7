// SPDX-License-Identifier: Apache-2.0
// Meshes of Shardy as HLO text has them: #sdy.mesh<["a"=2, "b"=4], device_ids=[…]>
#ifndef HLOKIT_IR_SHARDING_SDY_MESH_H_
#define HLOKIT_IR_SHARDING_SDY_MESH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlokit {

inline constexpr std::string_view kSdyMesh = "#sdy.mesh<";

struct SdyMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  int64_t count = 1;
  std::vector<int64_t> devices;  // empty: in order

  bool maximal() const { return axes.empty() && devices.size() == 1; }
};

// Reads text of Shardy from the front. Each function returns false, or an empty name, for text of another form.
class SdyCursor {
 public:
  explicit SdyCursor(std::string_view text) : text_(text) {}

  bool Eat(std::string_view word);  // skips spaces in front
  bool Quoted(std::string* name);
  bool Number(int64_t* number);
  std::string_view Name();  // up to a space, a comma or `>`

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// Reads `["a"=2, "b"=4]>` or `["a"=2], device_ids=[1, 0]>`, what follows kSdyMesh. Devices that are listed are those of
// the mesh, each once; an order that counts becomes empty.
bool ReadSdyMesh(SdyCursor& in, SdyMesh* mesh);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_SDY_MESH_H_
