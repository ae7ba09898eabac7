// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/array_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "io/arrays/npy.h"
#include "io/files/atomic_file_writer.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kNpySuffix = ".npy";
constexpr std::pair<std::string_view, ArrayFormat> kSuffixes[] = {
    {kNpySuffix, ArrayFormat::kNpy}, {".npz", ArrayFormat::kNpz}, {".safetensors", ArrayFormat::kSafetensors}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Compares texts with numbers in them by the numbers: x2 before x10.
bool CountsBefore(std::string_view a, std::string_view b) {
  const std::string_view all_a = a, all_b = b;
  while (!a.empty() && !b.empty()) {
    if (!IsDigit(a[0]) || !IsDigit(b[0])) {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto take = [](std::string_view* text) {
      size_t end = 0;
      while (end < text->size() && IsDigit((*text)[end])) ++end;
      std::string_view digits = text->substr(0, end);
      text->remove_prefix(end);
      digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
      return digits;
    };
    const std::string_view x = take(&a), y = take(&b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (a.empty() != b.empty()) return a.empty();
  return all_a < all_b;
}

std::string_view ElementsOf(const Literal& value) {
  return {reinterpret_cast<const char*>(value.data()), value.size_bytes()};
}

}  // namespace

std::optional<ArrayFormat> ArrayFormatOf(std::string_view path) {
  for (const auto& [suffix, format] : kSuffixes) {
    if (path.ends_with(suffix)) return format;
  }
  return std::nullopt;
}

absl::StatusOr<ArrayFile> ArrayFile::Open(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return source.status();
  const std::optional<ArrayFormat> format = ArrayFormatOf(path);
  if (!format) return absl::InvalidArgumentError(StrCat(path, ": expected a .npy, .npz or .safetensors file"));
  absl::StatusOr<ArrayFile> file = OpenSource(*std::move(source), *format);
  if (!file.ok()) return absl::Status(file.status().code(), StrCat(path, ": ", std::string(file.status().message())));
  return file;
}

absl::StatusOr<ArrayFile> ArrayFile::OpenSource(std::shared_ptr<const ByteSource> source, ArrayFormat format) {
  ArrayFile file;
  switch (format) {
    case ArrayFormat::kNpy: {
      const uint64_t bytes = source->size();
      absl::StatusOr<StoredArray> array = OpenNpy(std::move(source), 0, bytes);
      if (!array.ok()) return array.status();
      file.names_.emplace_back();
      file.arrays_.push_back(*std::move(array));
      file.Index();
      return file;
    }
    case ArrayFormat::kSafetensors: {
      absl::StatusOr<SafetensorsIndex> index = OpenSafetensors(std::move(source));
      if (!index.ok()) return index.status();
      file.is_ordered_ = false;
      std::sort(index->tensors.begin(), index->tensors.end(),
                [](const auto& a, const auto& b) { return CountsBefore(a.first, b.first); });
      for (auto& [name, array] : index->tensors) {
        file.names_.push_back(std::move(name));
        file.arrays_.push_back(std::move(array));
      }
      file.Index();
      return file;
    }
    case ArrayFormat::kNpz:
      break;
  }
  absl::StatusOr<ZipArchive> archive = ZipArchive::Open(std::move(source));
  if (!archive.ok()) return archive.status();
  for (size_t i = 0; i < archive->members().size(); ++i) {
    const std::string& name = archive->members()[i].name;
    if (!name.ends_with(kNpySuffix)) continue;  // as numpy.load, which has only bytes for these
    file.names_.push_back(name.substr(0, name.size() - kNpySuffix.size()));
    file.members_.push_back(i);
  }
  file.archive_ = *std::move(archive);
  file.Index();
  return file;
}

void ArrayFile::Index() {
  for (size_t i = 0; i < names_.size(); ++i) by_name_.emplace(names_[i], i);
}

std::optional<size_t> ArrayFile::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<StoredArray> ArrayFile::Array(size_t number, uint64_t max_inflated_bytes) const {
  if (!archive_) return arrays_[number];
  absl::StatusOr<ZipContents> contents = archive_->Contents(members_[number], max_inflated_bytes);
  if (!contents.ok()) return contents.status();
  return OpenNpy(std::move(contents->source), contents->begin, contents->bytes);
}

absl::Status WriteArrayFile(const std::string& path, absl::Span<const NamedValue> arrays) {
  const ArrayFormat format = ArrayFormatOf(path).value();
  if (format == ArrayFormat::kSafetensors) return WriteSafetensors(path, arrays);
  if (format == ArrayFormat::kNpy && arrays.size() != 1) {
    return absl::InvalidArgumentError(
        StrCat(path, ": a .npy file has one array, not ", arrays.size(), "; .npz and .safetensors files have several"));
  }
  std::set<std::string_view> names;
  for (const NamedValue& array : arrays) {
    if (!names.insert(array.name).second) return absl::InvalidArgumentError(StrCat("two arrays named ", array.name));
    if (array.name.size() > 1000) return absl::InvalidArgumentError("the name of an array is too long");
  }
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(path);
  if (!file.ok()) return file.status();
  if (format == ArrayFormat::kNpy) {
    (*file)->Write(NpyHeader(arrays[0].value.shape()));
    (*file)->Write(ElementsOf(arrays[0].value));
    return (*file)->Commit();
  }
  ZipWriter archive(file->get());
  for (const NamedValue& array : arrays) {
    archive.Add(StrCat(array.name, kNpySuffix), NpyHeader(array.value.shape()), ElementsOf(array.value));
  }
  archive.Finish();
  return (*file)->Commit();
}

}  // namespace hlokit::interp
