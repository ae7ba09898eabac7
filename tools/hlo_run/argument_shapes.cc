// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/argument_shapes.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/statusor.h"
#include "io/arrays/array_file.h"
#include "io/arrays/stored_array.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "parser/formats/foreign_format.h"
#include "parser/formats/stablehlo_program.h"

namespace hlokit::run {
namespace {

constexpr uint64_t kMaxInflatedBytes = uint64_t{1} << 32;

bool IsNumbered(std::string_view name) {
  return name.starts_with("arg") && name.size() > 3 &&
         name.substr(3).find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> ShapesOfArrays(const std::string& path) {
  std::vector<std::string> shapes;
  const absl::StatusOr<interp::ArrayFile> file = interp::ArrayFile::Open(path);
  if (!file.ok()) return shapes;
  const std::vector<std::string>& names = file->names();
  const bool numbered = std::all_of(names.begin(), names.end(), IsNumbered);
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::StatusOr<interp::StoredArray> array = file->Array(i, kMaxInflatedBytes);
    if (!array.ok()) return {};
    shapes.push_back(StrCat(numbered ? names[i] : StrCat("arg", i), "=", interp::DimsToString(array->dims)));
  }
  return shapes;
}

// The lines of arguments as text.
std::vector<std::string> ShapesOfText(const std::string& path) {
  std::vector<std::string> shapes;
  if (path == "-") return shapes;  // read once
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(path, kMaxInflatedBytes);
  if (!source.ok()) return shapes;
  const std::string_view text = (*source)->text();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
    if (line.empty() || line.starts_with('#') || line.starts_with("//")) continue;
    const size_t open = line.find('['), close = line.find(']');
    const bool array = open != std::string_view::npos && close != std::string_view::npos && open < close;
    shapes.push_back(StrCat("arg", shapes.size(), "=", array ? line.substr(open, close + 1 - open) : "[]"));
  }
  return shapes;
}

}  // namespace

bool MayHaveOpenSizes(std::string_view text) {
  if (!LooksLikeStablehlo(text)) return false;
  return !LooksLikeMlir(text) || text.find("<?") != std::string_view::npos || text.find("x?") != std::string_view::npos;
}

std::vector<std::string> ArgumentShapes(const std::string& file, const std::string& directory) {
  std::vector<std::string> shapes;
  if (!file.empty()) return interp::ArrayFormatOf(file) ? ShapesOfArrays(file) : ShapesOfText(file);
  for (size_t i = 0; !directory.empty(); ++i) {
    const std::string path = StrCat(directory, "/arg", i, ".npy");
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) break;
    const std::vector<std::string> one = ShapesOfArrays(path);
    if (one.size() != 1) return {};
    shapes.push_back(StrCat("arg", i, one[0].substr(one[0].find('='))));
  }
  return shapes;
}

}  // namespace hlokit::run
