// SPDX-License-Identifier: Apache-2.0
#include "interp/program/file_host_io.h"

#include <cstring>
#include <memory>
#include <optional>

#include "io/arrays/arguments.h"
#include "io/files/atomic_file_writer.h"
#include "io/files/read_file.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"

namespace hlokit::interp {

std::string FileHostIo::PathOf(std::string_view queue, int64_t device) const {
  if (devices_ == 1) return StrCat(directory_, "/", queue, ".txt");
  return StrCat(directory_, "/", queue, ".", device, ".txt");
}

absl::Status FileHostIo::Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) {
  const std::string path = PathOf(queue, device);
  const auto [it, is_new] = inputs_.try_emplace(path);
  Input& input = it->second;
  if (is_new) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> file = ReadFile(path);
    if (!file.ok()) return file.status();
    input.text = std::string((*file)->text());
  }
  // One line for each leaf; empty lines and comments are skipped.
  const size_t begin = input.next;
  for (size_t lines = 0; lines < leaves.size() && input.next < input.text.size();) {
    size_t end = input.text.find('\n', input.next);
    if (end == std::string::npos) end = input.text.size();
    const std::string_view line = std::string_view(input.text).substr(input.next, end - input.next);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#' && !line.substr(first).starts_with("//")) ++lines;
    input.next = std::min(end + 1, input.text.size());
  }
  std::vector<Shape> shapes;
  for (const Literal& leaf : leaves) shapes.push_back(leaf.shape());
  const SourceBuffer part(path, input.text.substr(begin, input.next - begin));
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> values = ReadArguments(part, shapes, context_, &sink);
  if (!values) {
    const std::string reason = sink.diagnostics().empty() ? "" : sink.diagnostics()[0].message;
    return absl::InvalidArgumentError(StrCat(path, ": missing value for ", queue, ": ", reason));
  }
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = std::move((*values)[i]);
  return absl::OkStatus();
}

absl::Status FileHostIo::Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) {
  TextWriter writer(&outputs_[PathOf(queue, device)]);
  PrintLeaves(writer, leaves);
  return absl::OkStatus();
}

absl::Status FileHostIo::Finish() const {
  for (const auto& [path, text] : outputs_) {
    absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(path);
    if (!file.ok()) return file.status();
    (*file)->Write(text);
    if (const absl::Status status = (*file)->Commit(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hlokit::interp
