// SPDX-License-Identifier: Apache-2.0
// Includes that most files of every library share, precompiled once per library (HlokitFastBuild.cmake). No file may
// rely on it: each includes what it uses, as the build without precompiled headers (HLOKIT_PCH=OFF) verifies.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"
