// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/value_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "io/arrays/array_file.h"
#include "io/arrays/npy.h"
#include "io/files/atomic_file_writer.h"
#include "io/files/read_file.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {
namespace {

constexpr int64_t kMaxLeaves = int64_t{1} << 20;  // of one value
constexpr int64_t kMaxPlaces = int64_t{1} << 24;  // leaves of all executions together
constexpr std::string_view kModuleFile = "module.hlo", kIndexFile = "index.json";

absl::Status FileError(const std::string& path, const std::error_code& error) {
  return absl::UnavailableError(StrCat(path, ": ", error.message()));
}

absl::Status IndexError(const std::string& path, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(path, "/", kIndexFile, ": ", what));
}

bool IsFileCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

}  // namespace

bool ValueDirectoryWriter::HasFiles(Instruction instruction) {
  if (instruction.opcode() == Opcode::kTuple) return false;
  const std::vector<Shape> leaves = Leaves(instruction.shape());
  return std::any_of(leaves.begin(), leaves.end(), [](Shape leaf) { return leaf.IsArray(); });
}

absl::StatusOr<std::unique_ptr<ValueDirectoryWriter>> ValueDirectoryWriter::Create(
    const std::string& path, const Module& module, const ValueDirectoryOptions& options) {
  namespace fs = std::filesystem;
  std::string target = path;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(target, error));
  if (exists && (!fs::is_directory(target, error) || !fs::is_empty(target, error))) {
    return absl::FailedPreconditionError(StrCat(path, ": expected a new directory, or an empty one"));
  }
  error.clear();  // of a directory that does not exist yet
  const fs::path parent = fs::path(target).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) return FileError(path, error);
  std::unique_ptr<ValueDirectoryWriter> writer(new ValueDirectoryWriter(module, options));
  writer->path_ = target;
  const std::string temporary = StrCat(target, ".partial.", getpid());
  if (!fs::create_directory(temporary, error)) {
    if (!error) error = std::error_code(EEXIST, std::generic_category());
    return FileError(temporary, error);
  }
  writer->temporary_ = temporary;
  return writer;
}

ValueDirectoryWriter::~ValueDirectoryWriter() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

std::string ValueDirectoryWriter::FileName(Instruction instruction, int64_t execution, int64_t leaf, bool is_tuple) {
  constexpr size_t kMaxName = 180;
  std::string base(instruction.name().substr(0, kMaxName));
  std::replace_if(
      base.begin(), base.end(), [](char c) { return !IsFileCharacter(c); }, '_');
  if (base.starts_with('.')) base[0] = '_';
  if (execution > 1) StrAppend(&base, "#", execution);
  if (is_tuple) StrAppend(&base, ".", leaf);
  std::string name = StrCat(base, ".npy");
  for (int64_t k = 2; !names_.insert(name).second; ++k) name = StrCat(base, "~", k, ".npy");
  return name;
}

absl::Status ValueDirectoryWriter::WriteFile(const std::string& name, absl::Span<const std::string_view> parts) {
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(StrCat(temporary_, "/", name));
  if (!file.ok()) return file.status();
  for (const std::string_view part : parts) (*file)->Write(part);
  return (*file)->Commit();
}

absl::Status ValueDirectoryWriter::OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                                           absl::Span<const std::byte* const> /*operands*/) {
  const Instruction i = module_.instruction(id);
  if (id.value >= options_.instructions.size() || !options_.instructions[id.value] || !HasFiles(i)) {
    return absl::OkStatus();
  }
  const int64_t max = i.opcode() == Opcode::kConstant ? 1 : options_.max_executions;
  if (executions_[id.value] >= max) return absl::OkStatus();
  const int64_t execution = ++executions_[id.value];
  const std::vector<Shape> leaves = Leaves(i.shape());
  for (size_t k = 0; k < leaves.size(); ++k) {
    Shape leaf = leaves[k];
    while (leaf.IsBuffer()) leaf = leaf.element(0);
    if (!leaf.IsArray()) continue;
    const int64_t size = LiteralBytes(leaf);
    const std::string header = NpyHeader(leaf);
    if (__builtin_add_overflow(bytes_, size, &bytes_) || bytes_ > options_.max_bytes) {
      return absl::ResourceExhaustedError(
          StrCat("the recorded values exceed the limit of ", options_.max_bytes, " bytes (--dump-values-max-bytes)"));
    }
    std::string name = FileName(i, execution, static_cast<int64_t>(k), i.shape().IsTuple());
    const std::string_view parts[] = {header, {reinterpret_cast<const char*>(values[k]), static_cast<size_t>(size)}};
    if (absl::Status status = WriteFile(name, parts); !status.ok()) return status;
    entries_.push_back({id, execution, static_cast<int64_t>(k), std::move(name)});
  }
  return absl::OkStatus();
}

absl::Status ValueDirectoryWriter::Commit() {
  std::string index;
  {
    TextWriter out(&index);
    JsonWriter json(&out);
    json.BeginObject().Member("module", module_.name());
    json.Key("values").BeginArray();
    for (const Entry& entry : entries_) {
      const Instruction i = module_.instruction(entry.instruction);
      json.BeginObject()
          .Member("instruction", i.name())
          .Member("computation", i.parent().name())
          .Member("opcode", i.opcode_text())
          .Member("execution", entry.execution)
          .Member("leaf", entry.leaf)
          .Member("shape", ToString(Leaves(i.shape())[static_cast<size_t>(entry.leaf)], /*with_layout=*/false))
          .Member("file", entry.file)
          .EndObject();
    }
    json.EndArray().EndObject();
  }
  const std::string text = ToString(module_, PrintOptions::Lossless());
  const std::string_view index_parts[] = {index}, text_parts[] = {text};
  if (absl::Status status = WriteFile(std::string(kIndexFile), index_parts); !status.ok()) return status;
  if (absl::Status status = WriteFile(std::string(kModuleFile), text_parts); !status.ok()) return status;
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) return FileError(path_, error);
  temporary_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ValueDirectory>> ValueDirectory::Open(const std::string& path,
                                                                     std::shared_ptr<Context> context) {
  const auto source = ReadFile(StrCat(path, "/", kModuleFile));
  if (!source.ok()) return source.status();
  std::unique_ptr<ValueDirectory> directory(new ValueDirectory);
  directory->path_ = path;
  DiagnosticSink sink;
  directory->module_ = ParseModule(*source, {}, &sink, std::move(context));
  if (directory->module_ == nullptr) return sink.ToStatus(**source);
  absl::flat_hash_map<std::string_view, InstructionId> ids;
  for (const Computation c : directory->module_->computations()) {
    for (const Instruction i : c.instructions()) ids.emplace(i.name(), i.id());
  }
  const auto index_text = ReadFile(StrCat(path, "/", kIndexFile));
  if (!index_text.ok()) return index_text.status();
  const std::string_view text = (*index_text)->text();
  const nlohmann::json index = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const auto values = index.is_object() ? index.find("values") : index.end();
  if (values == index.end() || !values->is_array()) return IndexError(path, "expected an object with a list `values`");
  int64_t places = 0;
  for (const nlohmann::json& entry : *values) {
    const auto member = [&](const char* key) {
      return entry.is_object() && entry.contains(key) ? &entry[key] : nullptr;
    };
    const nlohmann::json *name = member("instruction"), *execution = member("execution"), *leaf = member("leaf"),
                         *file = member("file");
    if (name == nullptr || execution == nullptr || leaf == nullptr || file == nullptr || !name->is_string() ||
        !file->is_string() || !execution->is_number_integer() || !leaf->is_number_integer()) {
      return IndexError(path, "expected `instruction`, `execution`, `leaf` and `file` of each value");
    }
    const std::string& file_name = file->get_ref<const std::string&>();
    const auto id = ids.find(name->get_ref<const std::string&>());
    if (id == ids.end()) {
      return IndexError(path, StrCat(kModuleFile, " has no instruction `", name->get_ref<const std::string&>(), "`"));
    }
    const int64_t leaves = directory->module_->instruction(id->second).shape().leaf_count();
    std::vector<std::vector<std::string>>& executions = directory->files_[id->second.value];
    const int64_t number = execution->get<int64_t>(), place = leaf->get<int64_t>();
    // They are in the order in which they ran.
    const auto have = static_cast<int64_t>(executions.size());
    if (leaves > kMaxLeaves || number < 1 || number > have + 1 || place < 0 || place >= leaves ||
        file_name.find('/') != std::string::npos) {
      return IndexError(path, StrCat("`", file_name, "` is not a file of the next execution of `", id->first, "`"));
    }
    if (number > have) {
      places += leaves;
      if (places > kMaxPlaces) {
        return IndexError(path, StrCat("more than ", kMaxPlaces, " leaves in the executions that it names"));
      }
      executions.emplace_back(static_cast<size_t>(leaves));
    }
    executions[static_cast<size_t>(number - 1)][static_cast<size_t>(place)] = file_name;
  }
  return directory;
}

int64_t ValueDirectory::Executions(InstructionId instruction) const {
  const auto found = files_.find(instruction.value);
  return found == files_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

absl::StatusOr<std::vector<Literal>> ValueDirectory::Value(InstructionId instruction, int64_t execution) const {
  const std::vector<std::string>& files = files_.at(instruction.value)[static_cast<size_t>(execution - 1)];
  const std::vector<Shape> leaves = Leaves(module_->instruction(instruction).shape());
  std::vector<Literal> values;
  for (size_t k = 0; k < leaves.size(); ++k) {
    Shape leaf = leaves[k];
    while (leaf.IsBuffer()) leaf = leaf.element(0);
    if (!leaf.IsArray()) {
      values.push_back(Literal::Zeros(leaf));
      continue;
    }
    if (files[k].empty()) return IndexError(path_, StrCat("leaf ", k, " of a value has no file"));
    const std::string file = StrCat(path_, "/", files[k]);
    const absl::StatusOr<ArrayFile> opened = ArrayFile::Open(file);
    if (!opened.ok()) return opened.status();
    const absl::StatusOr<StoredArray> array = opened->Array(0, 0);
    if (!array.ok()) return array.status();
    absl::StatusOr<Literal> value = ReadArray(*array, leaf);
    if (!value.ok()) return absl::InvalidArgumentError(StrCat(file, ": ", std::string(value.status().message())));
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace hlokit::interp
