// Unique names, numbered as XLA numbers them: a name is a root and an optional number behind a dot ("add.5"). Asking
// for a taken name gives the root with the smallest number not yet given out.
#ifndef HLOKIT_IR_NAME_TABLE_H_
#define HLOKIT_IR_NAME_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace hlokit {

class UniqueNames {
 public:
  // Returns `name` if it is free, else root.N; either way the result is taken afterwards.
  std::string Take(std::string_view name);

 private:
  struct Numbers {
    absl::flat_hash_set<int64_t> used;
    int64_t next = 0;
  };
  absl::flat_hash_map<std::string, Numbers> roots_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_NAME_TABLE_H_
