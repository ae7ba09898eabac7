// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/array_values.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/context.h"
#include "ir/text/printer.h"

namespace hlokit::interp {
namespace {

// Appends "NAME.1.0" for each leaf of a tuple, in depth-first order; the name alone for an array.
void AppendLeafNames(Shape shape, const std::string& name, std::vector<std::string>* names) {
  std::vector<std::pair<Shape, std::string>> open = {{shape, name}};
  while (!open.empty()) {
    const auto [at, path] = std::move(open.back());
    open.pop_back();
    if (!at.IsTuple()) {
      names->push_back(path);
      continue;
    }
    for (int64_t i = at.tuple_size(); i-- > 0;) open.emplace_back(at.element(i), StrCat(path, ".", i));
  }
}

// Returns the path of a leaf of a JAX tree, params['layer'][0]['w'], as weights are named: params.layer.0.w.
std::string PathOf(std::string_view name) {
  std::string path;
  for (const char c : name) {
    if (c == '[') {
      path.push_back('.');
    } else if (c != ']' && c != '\'' && c != '"') {
      path.push_back(c);
    }
  }
  return path;
}

void AddFileError(const absl::Status& status, const std::string& path, std::vector<FileIssue>* issues) {
  std::string message(status.message());
  if (message.starts_with(path + ": ")) message.erase(0, path.size() + 2);
  const bool unreadable = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  issues->push_back({unreadable ? FileIssue::Kind::kUnreadable : FileIssue::Kind::kRejected, path, message});
}

absl::StatusOr<StoredArray> ArrayOf(const ArrayFile& file, size_t number, Shape shape) {
  // With its header. Elements of the file may be larger than those that they are converted to.
  constexpr int64_t kMaxHeader = int64_t{1} << 20, kMaxElementBytes = 16;
  const int64_t most = SaturatingAdd(SaturatingMultiply(shape.element_count(), kMaxElementBytes), kMaxHeader);
  return file.Array(number, static_cast<uint64_t>(most));
}

absl::StatusOr<Literal> ReadFrom(const ArrayFile& file, size_t number, Shape shape, ShapeTable* table) {
  absl::StatusOr<StoredArray> array = ArrayOf(file, number, shape);
  if (!array.ok()) return array.status();
  return ReadSizedArray(*array, shape, table);
}

// Reads the part that a device has of the array of a leaf.
absl::StatusOr<Literal> ReadPart(const StoredArray& array, const Division& division, size_t leaf,
                                 const std::optional<TileBounds>& elements) {
  const ShardedArrays& arrays = division.arrays.parameters;
  if (!elements) return arrays.EmptyPart(leaf, division.padding);
  Literal box = Literal::Zeros(arrays.BoxShape(leaf, *elements));
  absl::Status read = ReadBox(array, arrays.leaves()[leaf].whole, elements->offset, &box);
  if (!read.ok()) return read;
  return arrays.PartOf(leaf, std::move(box), division.padding);
}

// Calls array(n) for the array of each leaf of which a device of the range has a part, and returns the parts, those of
// each device in turn. `fail` adds an error of a leaf.
template <typename Array, typename Fail>
std::optional<std::vector<Literal>> ReadParts(const Division& division, const DeviceRange& devices, const Array& array,
                                              const Fail& fail) {
  const std::vector<ShardedArrays::Leaf>& leaves = division.arrays.parameters.leaves();
  std::vector<Literal> parts(leaves.size() * static_cast<size_t>(devices.count), Literal());
  for (size_t n = 0; n < leaves.size(); ++n) {
    std::optional<StoredArray> stored;
    std::optional<TileBounds> before;
    for (int64_t d = 0; d < devices.count; ++d) {
      Literal& part = parts[static_cast<size_t>(d) * leaves.size() + n];
      if (!leaves[n].whole.IsArray()) {
        part = Literal::Zeros(leaves[n].whole);
        continue;
      }
      const std::optional<TileBounds> elements = division.arrays.parameters.ElementsOf(n, devices.first + d);
      // Devices share an array.
      if (d > 0 && elements && before && elements->offset == before->offset && elements->limit == before->limit) {
        part = parts[static_cast<size_t>(d - 1) * leaves.size() + n];
        continue;
      }
      before = elements;
      if (!stored) {
        absl::StatusOr<StoredArray> opened = array(n);
        if (!opened.ok()) {
          fail(opened.status(), n);
          return std::nullopt;
        }
        stored = *std::move(opened);
      }
      absl::StatusOr<Literal> read = ReadPart(*stored, division, n, elements);
      if (!read.ok()) {
        fail(read.status(), n);
        return std::nullopt;
      }
      part = *std::move(read);
    }
  }
  return parts;
}

// Returns true if names say an order: one word with different numbers, such as arr_0, arr_1; `deviceN.` may be before
// it.
bool AreNumbered(absl::Span<const std::string> names) {
  constexpr std::string_view kDigits = "0123456789", kDevice = "device";
  std::string_view first;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string_view name = names[i];
    if (name.starts_with(kDevice)) {
      const size_t dot = name.find_first_not_of(kDigits, kDevice.size());
      if (dot != std::string_view::npos && dot > kDevice.size() && name[dot] == '.') name.remove_prefix(dot + 1);
    }
    const size_t end = name.find_last_not_of(kDigits) + 1;  // 0 if all are digits
    if (end == name.size()) return false;
    name = name.substr(0, end);
    if (i == 0) first = name;
    if (name != first) return false;
  }
  return true;
}

// Returns the number of the array of each leaf of all devices; leaves without elements have 0. `by_order`: no name of a
// leaf is in the file.
absl::StatusOr<std::vector<size_t>> ArraysOfLeaves(const ArrayFile& file, absl::Span<const LeafNames> names,
                                                   absl::Span<const Shape> shapes, int64_t devices,
                                                   std::string_view noun, bool* by_order) {
  *by_order = false;
  std::vector<size_t> arrays;
  std::optional<size_t> missing;
  std::vector<bool> used(file.names().size(), false);
  bool any = false;
  for (int64_t d = 0; d < devices; ++d) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::optional<size_t> found;
      for (const std::string& name : names[i]) {
        if (!found && devices > 1) found = file.Find(StrCat("device", d, ".", name));
        if (!found) found = file.Find(name);
      }
      if (!found && shapes[i].IsArray() && !missing) missing = i;
      any |= found.has_value();
      if (found) used[*found] = true;
      arrays.push_back(found.value_or(0));
    }
  }
  if (!missing) return arrays;
  if (any) {
    std::string wanted, hint;
    std::vector<std::string_view> unused;
    for (size_t k = 0; k < file.names().size(); ++k) {
      if (!used[k]) unused.push_back(file.names()[k]);
    }
    for (const std::string& name : names[*missing]) {
      StrAppend(&wanted, wanted.empty() ? "" : " or ", "`", name, "`");
      if (const std::string_view near = FindNearest(name, unused); hint.empty() && !near.empty()) {
        hint = StrCat("; did you mean `", near, "`?");
      }
    }
    return absl::InvalidArgumentError(StrCat("there is no array ", wanted, " for ", noun, " ", *missing, ", ",
                                             ToString(shapes[*missing], /*with_layout=*/false),
                                             "; others are found by their names", hint));
  }
  const auto each = static_cast<size_t>(
      std::count_if(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.IsArray(); }));
  const size_t all = each * static_cast<size_t>(devices), count = file.names().size();
  if (count != each && count != all) {
    return absl::InvalidArgumentError(StrCat("the file has ", Counted(count, "array"),
                                             ", none with the name of a leaf, such as `", names[*missing][0],
                                             "`; the program has ", each, " ", noun, "s"));
  }
  *by_order = each > 1 && !AreNumbered(file.names());
  if (*by_order && !file.is_ordered()) {
    // The wrong one of two arrays would not be noticed.
    std::vector<std::pair<std::string, size_t>> kinds;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].IsArray()) kinds.emplace_back(ToString(shapes[i], /*with_layout=*/false), i);
    }
    std::sort(kinds.begin(), kinds.end());
    for (size_t i = 1; i < kinds.size(); ++i) {
      if (kinds[i].first != kinds[i - 1].first) continue;
      const size_t a = kinds[i - 1].second, b = kinds[i].second;
      return absl::InvalidArgumentError(StrCat("no array has the name of a leaf, such as `", names[a][0], "` or `",
                                               names[a].back(), "`, and the file has no order: which one is ", noun,
                                               " ", a, " and which ", b, ", both ", kinds[i].first, "?"));
    }
  }
  size_t next = 0;
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (shapes[k % shapes.size()].IsArray()) arrays[k] = next++ % count;
  }
  return arrays;
}

// A file, and the number of the array of each leaf of all devices.
struct MappedFile {
  ArrayFile file;
  std::vector<size_t> arrays;
};

// Returns nullopt after an error, which is the last issue.
std::optional<MappedFile> OpenMapped(const std::string& path, absl::Span<const LeafNames> names,
                                     absl::Span<const Shape> shapes, int64_t devices, std::string_view noun,
                                     std::vector<FileIssue>* issues) {
  absl::StatusOr<ArrayFile> file = ArrayFile::Open(path);
  if (!file.ok()) {
    AddFileError(file.status(), path, issues);
    return std::nullopt;
  }
  bool by_order = false;
  absl::StatusOr<std::vector<size_t>> arrays = ArraysOfLeaves(*file, names, shapes, devices, noun, &by_order);
  if (!arrays.ok()) {
    AddFileError(arrays.status(), path, issues);
    return std::nullopt;
  }
  if (by_order) {
    std::string order;
    constexpr size_t kShown = 4;
    for (size_t i = 0; i < file->names().size() && i < kShown; ++i) {
      StrAppend(&order, i == 0 ? "`" : ", `", file->names()[i], "`");
    }
    if (file->names().size() > kShown) order += ", ...";
    issues->push_back({FileIssue::Kind::kWarning, path,
                       StrCat("no array has the name of a leaf, such as `", names[0][0], "` or `", names[0].back(),
                              "`: they are taken in the order ", order)});
  }
  return MappedFile{*std::move(file), *std::move(arrays)};
}

void AddArrayError(const absl::Status& status, const MappedFile& mapped, size_t number, const std::string& path,
                   std::vector<FileIssue>* issues) {
  const std::string& name = mapped.file.names()[number];
  AddFileError(status, name.empty() ? path : StrCat(path, ": ", name), issues);
}

// Reads the array of a .npy file; `shape` is of `table`. Returns nullopt after an error.
std::optional<Literal> ReadNpyFile(const std::string& path, Shape shape, ShapeTable* table,
                                   std::vector<FileIssue>* issues) {
  absl::StatusOr<Literal> value = absl::NotFoundError("");
  if (absl::StatusOr<ArrayFile> file = ArrayFile::Open(path); file.ok()) {
    value = ReadFrom(*file, 0, shape, table);
  } else {
    value = file.status();
  }
  if (value.ok()) return *std::move(value);
  AddFileError(value.status(), path, issues);
  return std::nullopt;
}

}  // namespace

std::vector<LeafNames> ArgumentNames(const Module& module) {
  std::vector<LeafNames> leaves;
  const Computation entry = module.entry();
  for (int64_t p = 0; p < entry.parameter_count(); ++p) {
    const Instruction parameter = entry.parameter(p);
    std::vector<std::string> names, scopes;
    AppendLeafNames(parameter.shape(), std::string(parameter.name()), &names);
    const std::string_view scope = module.context().str(parameter.metadata().op_name);
    if (!scope.empty()) AppendLeafNames(parameter.shape(), std::string(scope), &scopes);
    for (size_t i = 0; i < names.size(); ++i) {
      LeafNames leaf = {std::move(names[i])};
      if (!scopes.empty()) {
        std::string path = PathOf(scopes[i]);
        const bool is_path = path != scopes[i];
        leaf.push_back(std::move(scopes[i]));
        if (is_path) leaf.push_back(std::move(path));
      }
      leaf.push_back(StrCat("arg", leaves.size()));
      leaves.push_back(std::move(leaf));
    }
  }
  return leaves;
}

std::vector<LeafNames> ResultNames(size_t count) {
  std::vector<LeafNames> leaves;
  for (size_t i = 0; i < count; ++i) leaves.push_back({StrCat("result", i)});
  return leaves;
}

std::optional<std::vector<Literal>> ReadArrayValues(const std::string& path, absl::Span<const LeafNames> names,
                                                    absl::Span<const Shape> shapes, ShapeTable* table,
                                                    const DeviceRange& devices, std::string_view noun,
                                                    std::vector<FileIssue>* issues) {
  const std::optional<MappedFile> mapped = OpenMapped(path, names, shapes, devices.all, noun, issues);
  if (!mapped) return std::nullopt;
  const std::vector<size_t>& arrays = mapped->arrays;
  std::vector<Literal> values;
  const size_t first = static_cast<size_t>(devices.first) * shapes.size();
  for (size_t k = first; k < first + static_cast<size_t>(devices.count) * shapes.size(); ++k) {
    const size_t leaf = k % shapes.size();
    if (!shapes[leaf].IsArray()) {
      values.push_back(Literal::Zeros(shapes[leaf]));
      continue;
    }
    // Devices share an array.
    const size_t before = k - shapes.size();
    if (k >= first + shapes.size() && arrays[k] == arrays[before]) {
      values.push_back(Literal(values[before - first]));
      continue;
    }
    absl::StatusOr<Literal> value = ReadFrom(mapped->file, arrays[k], shapes[leaf], table);
    if (!value.ok()) {
      AddArrayError(value.status(), *mapped, arrays[k], path, issues);
      return std::nullopt;
    }
    values.push_back(*std::move(value));
  }
  return values;
}

std::optional<std::vector<Literal>> ReadArrayParts(const std::string& path, absl::Span<const LeafNames> names,
                                                   const Division& division, const DeviceRange& devices,
                                                   std::string_view noun, std::vector<FileIssue>* issues) {
  const std::vector<Shape>& shapes = division.argument_shapes;
  const std::optional<MappedFile> mapped = OpenMapped(path, names, shapes, 1, noun, issues);
  if (!mapped) return std::nullopt;
  return ReadParts(
      division, devices, [&](size_t n) { return ArrayOf(mapped->file, mapped->arrays[n], shapes[n]); },
      [&](const absl::Status& status, size_t n) { AddArrayError(status, *mapped, mapped->arrays[n], path, issues); });
}

std::optional<std::vector<Literal>> ReadNpyParts(const std::string& directory, const Division& division,
                                                 const DeviceRange& devices, std::vector<FileIssue>* issues) {
  const auto path_of = [&](size_t n) { return StrCat(directory, "/arg", n, ".npy"); };
  return ReadParts(
      division, devices,
      [&](size_t n) -> absl::StatusOr<StoredArray> {
        const absl::StatusOr<ArrayFile> file = ArrayFile::Open(path_of(n));
        if (!file.ok()) return file.status();
        return ArrayOf(*file, 0, division.argument_shapes[n]);
      },
      [&](const absl::Status& status, size_t n) { AddFileError(status, path_of(n), issues); });
}

std::optional<std::vector<Literal>> ReadNpyValues(const std::string& directory, absl::Span<const Shape> shapes,
                                                  ShapeTable* table, const DeviceRange& devices,
                                                  std::vector<FileIssue>* issues) {
  std::vector<Literal> all;
  for (int64_t d = devices.first; d < devices.first + devices.count; ++d) {
    const std::string own = StrCat(directory, "/device", d);
    std::error_code error;
    const std::string& from = std::filesystem::is_directory(own, error) ? own : directory;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (!shapes[i].IsArray()) {
        all.push_back(Literal::Zeros(shapes[i]));
        continue;
      }
      std::optional<Literal> value = ReadNpyFile(StrCat(from, "/arg", i, ".npy"), shapes[i], table, issues);
      if (!value) return std::nullopt;
      all.push_back(*std::move(value));
    }
  }
  return all;
}

absl::Status WriteArrayValues(const std::string& path, absl::Span<const Literal> results, int64_t devices) {
  const size_t each = results.size() / static_cast<size_t>(devices);
  const std::vector<LeafNames> names = ResultNames(each);
  std::vector<NamedValue> arrays;
  for (size_t k = 0; k < results.size(); ++k) {
    if (!results[k].shape().IsArray()) continue;
    const std::string& name = names[k % each][0];
    arrays.push_back({devices > 1 ? StrCat("device", k / each, ".", name) : name, results[k]});
  }
  return WriteArrayFile(path, arrays);
}

}  // namespace hlokit::interp
