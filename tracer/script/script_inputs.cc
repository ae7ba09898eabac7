// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script_inputs.h"

#include <filesystem>
#include <utility>

#include "io/arrays/stored_array.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit::lazy::script {

absl::StatusOr<std::unique_ptr<const ScriptInputs>> ScriptInputs::Open(absl::Span<const std::string> paths) {
  std::unique_ptr<ScriptInputs> inputs(new ScriptInputs());
  for (const std::string& path : paths) {
    absl::StatusOr<interp::ArrayFile> file = interp::ArrayFile::Open(path);
    if (!file.ok()) return file.status();
    for (size_t i = 0; i < file->names().size(); ++i) {
      std::string name = file->names()[i];
      if (name.empty()) name = std::filesystem::path(path).stem().string();
      if (!inputs->arrays_.emplace(name, Place{inputs->files_.size(), i}).second) {
        return absl::InvalidArgumentError(StrCat(path, ": two arrays are named ", name));
      }
    }
    inputs->files_.push_back(*std::move(file));
  }
  return inputs;
}

absl::StatusOr<Literal> ScriptInputs::Read(std::string_view name, int64_t first, std::optional<int64_t> count,
                                           int64_t max_bytes, Context* context) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) {
    std::vector<std::string_view> names;
    for (const auto& entry : arrays_) names.push_back(entry.first);
    return absl::NotFoundError(StrCat("there is no input `", name, "`", DidYouMeanSuffix(name, names)));
  }
  absl::StatusOr<interp::StoredArray> array =
      files_[found->second.file].Array(found->second.array, static_cast<uint64_t>(max_bytes));
  if (!array.ok()) return array.status();
  constexpr size_t kMaxRank = 64;
  if (array->dims.size() > kMaxRank) return absl::InvalidArgumentError("the array has too many dimensions");
  // Raw elements of two bytes are those of bf16.
  const ElementType type = array->type.value_or(array->element_bytes == 2 ? ElementType::kBF16 : ElementType::kU8);
  if (!interp::CanReadAs(*array, type)) {
    return absl::InvalidArgumentError(StrCat("the type `", array->type_name, "` is not supported"));
  }
  const std::optional<uint64_t> stored = interp::BytesOfDims(array->dims, array->element_bytes);
  if (!stored || *stored != array->bytes) {
    return absl::InvalidArgumentError("the elements are cut off, or followed by something else");
  }
  std::vector<int64_t> dims = array->dims;
  const bool rows = first != 0 || count;
  if (rows) {
    if (dims.empty()) return absl::InvalidArgumentError("an array without dimensions has no indices");
    if (first < 0 || first > dims[0]) {
      return absl::OutOfRangeError(StrCat("index ", first, " is beyond the first dimension, ", dims[0]));
    }
    const int64_t last = count.value_or(dims[0] - first);
    if (last < 0 || last > dims[0] - first) {
      return absl::OutOfRangeError(
          StrCat("indices ", first, " to ", first, " + ", last, " are beyond the first dimension, ", dims[0]));
    }
    dims[0] = last;
    if (array->fortran_order && dims.size() > 1) {
      return absl::InvalidArgumentError("the array is in Fortran order; parts are read from C order");
    }
  }
  if (interp::BytesOfDims(dims, array->element_bytes).value_or(UINT64_MAX) > static_cast<uint64_t>(max_bytes)) {
    return absl::ResourceExhaustedError(StrCat("the array has more than ", max_bytes, " bytes"));
  }
  const Shape shape = context->shapes.Array(type, dims);
  if (!rows) return interp::ReadArray(*array, shape);
  Literal part = Literal::Zeros(shape);
  if (absl::Status s = interp::ReadRows(*array, first, &part); !s.ok()) return s;
  return part;
}

}  // namespace hlokit::lazy::script
