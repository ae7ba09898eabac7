// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "io/files/atomic_file_writer.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  std::string_view name;
  ElementType type;
};
// Wider types first, the order of files.
constexpr TypeName kTypes[] = {
    {"U64", ElementType::kU64},
    {"I64", ElementType::kS64},
    {"F64", ElementType::kF64},
    {"F32", ElementType::kF32},
    {"U32", ElementType::kU32},
    {"I32", ElementType::kS32},
    {"BF16", ElementType::kBF16},
    {"F16", ElementType::kF16},
    {"U16", ElementType::kU16},
    {"I16", ElementType::kS16},
    {"F8_E4M3", ElementType::kF8E4M3FN},
    {"F8_E5M2", ElementType::kF8E5M2},
    {"I8", ElementType::kS8},
    {"U8", ElementType::kU8},
    {"BOOL", ElementType::kPred},
};

// Returns the index in kTypes; -1: unsupported by the format.
int RankOf(ElementType type) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].type == type) return static_cast<int>(i);
  }
  return -1;
}

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(StrCat("not a safetensors file: ", what)); }

// An array of the header.
struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Reads the header event by event: an object of objects, whose members are text or lists of numbers. Rejects anything
// else, so nesting is bounded.
class SafetensorsHeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string error;

  bool null() override { return Fail("null in the header"); }
  bool boolean(bool) override { return Fail("a boolean in the header"); }
  bool number_integer(number_integer_t) override { return Fail("a negative number in the header"); }
  bool number_float(number_float_t, const string_t&) override { return Fail("a fraction in the header"); }
  bool binary(binary_t&) override { return Fail("binary data in the header"); }
  bool number_unsigned(number_unsigned_t v) override {
    if (list_ == nullptr) return Fail(StrCat("a number as `", key_, "`"));
    list_->push_back(v);
    return true;
  }
  bool string(string_t& v) override {
    if (depth_ != 2 || list_ != nullptr) return Fail("text where none belongs");
    if (in_metadata_) {
      metadata.emplace_back(key_, v);
      return true;
    }
    if (key_ != "dtype") return Fail(StrCat("text as `", key_, "` of ", entries.back().name));
    if (entries.back().dtype) return Fail(StrCat("two `dtype` of ", entries.back().name));
    entries.back().dtype = v;
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 2 || list_ != nullptr) return Fail("an object where none belongs");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      if (!names_.insert(name).second) return Fail(StrCat("two entries named ", name));
      in_metadata_ = name == kMetadata;
      if (!in_metadata_) entries.push_back({name, {}, {}, {}});
    }
    key_ = name;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || list_ != nullptr || in_metadata_) return Fail("a list where none belongs");
    std::optional<std::vector<uint64_t>>* const list = key_ == "shape"          ? &entries.back().shape
                                                       : key_ == "data_offsets" ? &entries.back().offsets
                                                                                : nullptr;
    if (list == nullptr || *list) return Fail(StrCat("a list as `", key_, "` of ", entries.back().name));
    list_ = &list->emplace();
    return true;
  }
  bool end_array() override {
    list_ = nullptr;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    return Fail(StrCat("expected JSON in the header at byte ", at + 8));
  }

 private:
  bool Fail(std::string message) {
    if (error.empty()) error = std::move(message);
    return false;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string key_;
  std::vector<uint64_t>* list_ = nullptr;
  absl::flat_hash_set<std::string> names_;
};

// Checks an entry. Returns its array, whose data begin at data_begin plus its first offset.
absl::StatusOr<StoredArray> ArrayOf(const Entry& entry, uint64_t data_begin) {
  if (!entry.dtype || !entry.shape || !entry.offsets) {
    return Bad(StrCat(entry.name, " needs dtype, shape and data_offsets"));
  }
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.name == *entry.dtype; });
  if (type == std::end(kTypes)) return Bad(StrCat(entry.name, " has the unknown type ", *entry.dtype));
  if (entry.shape->size() > 64) return Bad(StrCat(entry.name, " has too many dimensions"));
  if (entry.offsets->size() != 2) return Bad(StrCat("data_offsets of ", entry.name, " are not two numbers"));
  StoredArray array;
  array.type_name = *entry.dtype;
  array.type = type->type;
  array.element_bytes = BytesOf(type->type);
  array.strict_bools = true;
  uint64_t size = static_cast<uint64_t>(array.element_bytes);
  for (uint64_t dim : *entry.shape) {
    if (__builtin_mul_overflow(size, dim, &size) || dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Bad(StrCat(entry.name, " is larger than any memory"));
    }
    array.dims.push_back(static_cast<int64_t>(dim));
  }
  const uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
  if (begin > end || end - begin != size) {
    return Bad(StrCat(entry.name, " takes ", size, " bytes, its data_offsets say otherwise"));
  }
  array.begin = data_begin + begin;
  array.bytes = size;
  return array;
}

absl::StatusOr<SafetensorsIndex> DecodeHeader(std::string_view text, uint64_t data_begin, uint64_t data_bytes) {
  if (text.empty() || text[0] != '{') return Bad("the header does not start with {");
  SafetensorsHeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) return Bad(reader.error);
  const auto begin_of = [](const Entry& e) {
    return e.offsets && e.offsets->size() == 2 ? std::pair((*e.offsets)[0], (*e.offsets)[1])
                                               : std::pair<uint64_t, uint64_t>();
  };
  std::stable_sort(reader.entries.begin(), reader.entries.end(),
                   [&](const Entry& a, const Entry& b) { return begin_of(a) < begin_of(b); });
  SafetensorsIndex index;
  index.metadata = std::move(reader.metadata);
  uint64_t at = 0;
  for (const Entry& entry : reader.entries) {
    absl::StatusOr<StoredArray> array = ArrayOf(entry, data_begin);
    if (!array.ok()) return array.status();
    if ((*entry.offsets)[0] != at) return Bad(StrCat("the data of ", entry.name, " does not follow what is before it"));
    at = (*entry.offsets)[1];
    if (at > data_bytes) return Bad(StrCat("the data of ", entry.name, " ends beyond the file"));
    index.tensors.emplace_back(entry.name, *std::move(array));
  }
  if (at != data_bytes) return Bad(StrCat(data_bytes - at, " bytes at the end belong to no tensor"));
  return index;
}

uint64_t LoadLength(const char* bytes) {
  uint64_t length = 0;
  for (int i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

// Returns the header for these tensors, and the order of their data.
absl::StatusOr<std::string> EncodeHeader(absl::Span<const NamedValue> tensors,
                                         absl::Span<const std::pair<std::string, std::string>> metadata,
                                         std::vector<const NamedValue*>* order) {
  for (const NamedValue& tensor : tensors) {
    if (RankOf(tensor.value.shape().element_type()) < 0) {
      return absl::InvalidArgumentError(
          StrCat(tensor.name, ": safetensors files have no type ", ToString(tensor.value.shape(), false)));
    }
    if (tensor.name == kMetadata) return absl::InvalidArgumentError(StrCat("a tensor cannot be named ", kMetadata));
    order->push_back(&tensor);
  }
  std::sort(order->begin(), order->end(), [](const NamedValue* a, const NamedValue* b) {
    const int x = RankOf(a->value.shape().element_type()), y = RankOf(b->value.shape().element_type());
    return x != y ? x < y : a->name < b->name;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) header[std::string(kMetadata)][key] = value;
  uint64_t at = 0;
  for (const NamedValue* tensor : *order) {
    if (header.contains(tensor->name)) return absl::InvalidArgumentError(StrCat("two tensors named ", tensor->name));
    const Shape shape = tensor->value.shape();
    const uint64_t end = at + tensor->value.size_bytes();
    header[tensor->name] = {{"dtype", std::string(kTypes[RankOf(shape.element_type())].name)},
                            {"shape", std::vector<int64_t>(shape.dims().begin(), shape.dims().end())},
                            {"data_offsets", {at, end}}};
    at = end;
  }
  // Invalid UTF-8 in names is replaced.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string prefix;
  for (int i = 0; i < 8; ++i) prefix.push_back(static_cast<char>(text.size() >> (8 * i)));
  return prefix + text;
}

// Reads all arrays of a file.
absl::StatusOr<SafetensorsFile> ReadAll(std::shared_ptr<const ByteSource> source, Context* context) {
  absl::StatusOr<SafetensorsIndex> index = OpenSafetensors(std::move(source));
  if (!index.ok()) return index.status();
  SafetensorsFile file;
  file.metadata = std::move(index->metadata);
  for (auto& [name, array] : index->tensors) {
    absl::StatusOr<Literal> value = ReadArray(array, context->shapes.Array(*array.type, array.dims));
    if (!value.ok()) return Bad(StrCat(name, ": ", std::string(value.status().message())));
    file.tensors.push_back({std::move(name), *std::move(value)});
  }
  return file;
}

std::string_view BytesOfValue(const Literal& value) {
  return {reinterpret_cast<const char*>(value.data()), value.size_bytes()};
}

}  // namespace

absl::StatusOr<SafetensorsIndex> OpenSafetensors(std::shared_ptr<const ByteSource> source) {
  char prefix[8];
  if (source->size() < sizeof(prefix)) return Bad("it is shorter than 8 bytes");
  if (absl::Status s = source->Read(0, prefix, sizeof(prefix)); !s.ok()) return s;
  const uint64_t length = LoadLength(prefix);
  if (length > kMaxSafetensorsHeader || length > source->size() - sizeof(prefix)) {
    return Bad("the length of the header is beyond the file");
  }
  std::string text(length, '\0');
  if (absl::Status s = source->Read(sizeof(prefix), text.data(), length); !s.ok()) return s;
  const uint64_t begin = sizeof(prefix) + length;
  absl::StatusOr<SafetensorsIndex> index = DecodeHeader(text, begin, source->size() - begin);
  if (!index.ok()) return index;
  for (auto& tensor : index->tensors) tensor.second.source = source;
  return index;
}

absl::StatusOr<std::string> EncodeSafetensors(absl::Span<const NamedValue> tensors,
                                              absl::Span<const std::pair<std::string, std::string>> metadata) {
  std::vector<const NamedValue*> order;
  absl::StatusOr<std::string> bytes = EncodeHeader(tensors, metadata, &order);
  if (!bytes.ok()) return bytes.status();
  for (const NamedValue* tensor : order) bytes->append(BytesOfValue(tensor->value));
  return bytes;
}

absl::StatusOr<SafetensorsFile> DecodeSafetensors(std::string_view bytes, Context* context) {
  return ReadAll(ByteSource::OfMemory(std::string(bytes)), context);
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedValue> tensors,
                              absl::Span<const std::pair<std::string, std::string>> metadata) {
  std::vector<const NamedValue*> order;
  absl::StatusOr<std::string> header = EncodeHeader(tensors, metadata, &order);
  if (!header.ok()) return header.status();
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(path);
  if (!file.ok()) return file.status();
  (*file)->Write(*header);
  for (const NamedValue* tensor : order) (*file)->Write(BytesOfValue(tensor->value));
  return (*file)->Commit();
}

absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path, Context* context) {
  absl::StatusOr<std::shared_ptr<const ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return source.status();
  absl::StatusOr<SafetensorsFile> file = ReadAll(*std::move(source), context);
  if (!file.ok()) return absl::Status(file.status().code(), StrCat(path, ": ", std::string(file.status().message())));
  return file;
}

}  // namespace hlokit::interp
