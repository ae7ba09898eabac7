// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_file.h"

#include <string.h>
#include <unistd.h>

#include "ir/core/str_cat.h"

namespace hlokit::cli {

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  if (path != "-") {
    absl::StatusOr<std::unique_ptr<runtime::AtomicFileWriter>> whole = runtime::AtomicFileWriter::Open(path);
    if (!whole.ok()) return whole.status();
    file->file_ = *std::move(whole);
  }
  file->writer_ = std::make_unique<TextWriter>([f = file.get()](std::string_view bytes) { f->Write(bytes); });
  return file;
}

void OutputFile::Write(std::string_view bytes) {
  if (given_up_) return;
  if (file_ != nullptr) {
    file_->Write(bytes);
  } else if (error_ == 0) {
    error_ = runtime::WriteAll(STDOUT_FILENO, bytes);
  }
}

absl::Status OutputFile::Commit() {
  writer_->Flush();
  if (file_ != nullptr) return file_->Commit();
  return error_ == 0 ? absl::OkStatus() : absl::UnavailableError(StrCat("<stdout>: ", strerror(error_)));
}

OutputFile::~OutputFile() {
  // An abandoned writer discards its unwritten output.
  given_up_ = file_ != nullptr;
  writer_.reset();
}

}  // namespace hlokit::cli
