// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "io/arrays/array_file.h"
#include "ir/core/str_cat.h"
#include "ir/types/element_type.h"
#include "tracer/graph/literal_scalar.h"

namespace hlokit::lazy::models {
namespace {

constexpr int64_t kIgnoredLabel = -100;  // of losses

bool CanConvert(ElementType from, ElementType to) {
  if (from == to) return true;
  const bool integer = IsInteger(from) || from == ElementType::kPred;
  return IsFloat(to) ? IsFloat(from) || integer : IsInteger(to) && integer;
}

absl::Status Error(std::string_view label, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(label, ": ", what));
}

std::string NamesOf(absl::Span<const BatchArray> arrays) {
  std::string names;
  for (const BatchArray& array : arrays) StrAppend(&names, names.empty() ? "" : ", ", array.name);
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> Dataset::Open(absl::Span<const std::string> paths,
                                                             absl::Span<const BatchArray> arrays, int64_t max_bytes) {
  const std::shared_ptr<Dataset> dataset(new Dataset());
  std::vector<interp::ArrayFile> files;
  size_t single = 0;
  for (const std::string& path : paths) {
    absl::StatusOr<interp::ArrayFile> file = interp::ArrayFile::Open(path);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
    single += interp::ArrayFormatOf(path) == interp::ArrayFormat::kNpy ? 1 : 0;
  }
  if (single > 0 && (single < files.size() || files.size() != arrays.size())) {
    return absl::InvalidArgumentError(StrCat("expected ", arrays.size(), " .npy files, of ", NamesOf(arrays),
                                             ", or files with arrays of these names"));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::optional<size_t> found, number;
    for (size_t f = 0; f < files.size() && !found; ++f) {
      number = single > 0 ? f == i ? std::optional<size_t>(0) : std::nullopt : files[f].Find(arrays[i].name);
      if (number) found = f;
    }
    if (!found) {
      return absl::InvalidArgumentError(
          StrCat(paths[0], ": there is no array `", arrays[i].name, "`; the model has ", NamesOf(arrays)));
    }
    const std::string label = single > 0 ? paths[*found] : StrCat(paths[*found], ": ", arrays[i].name);
    absl::StatusOr<interp::StoredArray> array = files[*found].Array(*number, static_cast<uint64_t>(max_bytes));
    if (!array.ok()) return Error(label, std::string(array.status().message()));
    const bool labels = i + 1 == arrays.size();
    if (absl::Status s = dataset->Add(label, *std::move(array), arrays[i], labels); !s.ok()) return s;
  }
  return dataset;
}

absl::Status Dataset::Add(std::string label, interp::StoredArray array, const BatchArray& batch, bool labels) {
  const absl::Span<const int64_t> model = batch.shape.dims();
  if (array.dims.size() != model.size() || !std::equal(model.begin() + 1, model.end(), array.dims.begin() + 1)) {
    return Error(label, StrCat("the array has dimensions ", interp::DimsToString(array.dims), ", expected examples of ",
                               interp::DimsToString(model.subspan(1))));
  }
  // Raw elements are those of a type that NumPy lacks.
  const ElementType type =
      array.type.value_or(array.element_bytes == 2 ? ElementType::kBF16 : batch.shape.element_type());
  if (!interp::CanReadAs(array, type) || !CanConvert(type, batch.shape.element_type())) {
    return Error(label, StrCat("the array has type `", array.type_name, "`, which is not converted to ",
                               ToString(batch.shape.element_type())));
  }
  if (array.fortran_order && array.dims.size() > 1) {
    return Error(label, "the array is in Fortran order; batches are read from C order");
  }
  if (interp::BytesOfDims(array.dims, array.element_bytes) != array.bytes) {
    return Error(label, "the elements are cut off, or followed by something else");
  }
  const int64_t examples = array.dims[0];
  if (examples < model[0]) {
    return Error(label, StrCat("the array has ", examples, " examples, fewer than a batch, ", model[0]));
  }
  if (!columns_.empty() && examples != size_) {
    return Error(label, StrCat("the array has ", examples, " examples, ", columns_[0].label, " has ", size_));
  }
  size_ = examples;
  Column column;
  column.label = std::move(label);
  column.array = std::move(array);
  column.stored_batch = context_.shapes.Array(type, model);
  column.limit = batch.limit;
  column.labels = labels;
  columns_.push_back(std::move(column));
  return absl::OkStatus();
}

absl::Status Dataset::Read(size_t number, int64_t first, Literal* out) const {
  const Column& column = columns_[number];
  Literal rows = Literal::Zeros(column.stored_batch);
  const int64_t batch = column.stored_batch.dims()[0];
  const int64_t begin = first % size_, before_end = std::min(batch, size_ - begin);
  absl::Status read;
  if (before_end == batch) {
    read = interp::ReadRows(column.array, begin, &rows);
  } else {
    // The examples start again.
    const size_t row = rows.size_bytes() / static_cast<size_t>(batch);
    int64_t done = 0;
    for (const auto& [from, count] : {std::pair(begin, before_end), {int64_t{0}, batch - before_end}}) {
      std::vector<int64_t> dims(column.stored_batch.dims().begin(), column.stored_batch.dims().end());
      dims[0] = count;
      Context context;
      Literal part = Literal::Zeros(context.shapes.Array(column.stored_batch.element_type(), dims));
      if (read = interp::ReadRows(column.array, from, &part); !read.ok()) break;
      std::copy_n(part.data(), part.size_bytes(), rows.data() + static_cast<size_t>(done) * row);
      done += count;
    }
  }
  if (!read.ok()) return Error(column.label, std::string(read.message()));
  if (rows.shape().element_type() == out->shape().element_type()) {
    std::copy_n(rows.data(), rows.size_bytes(), out->data());
  } else {
    *out = Converted(rows, out->shape());
  }
  if (column.limit == 0 || out->shape().element_type() != ElementType::kS64) return absl::OkStatus();
  const absl::Span<const int64_t> values = std::as_const(*out).values<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    if ((values[i] >= 0 && values[i] < column.limit) || (column.labels && values[i] == kIgnoredLabel)) continue;
    const int64_t example = (first + static_cast<int64_t>(i) / (out->element_count() / batch)) % size_;
    return Error(column.label, StrCat("example ", example, " has the number ", values[i], ", expected one from 0 to ",
                                      column.limit - 1));
  }
  return absl::OkStatus();
}

}  // namespace hlokit::lazy::models
