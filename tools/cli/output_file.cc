// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_file.h"

#include <string.h>
#include <unistd.h>

#include <system_error>

#include "io/stores/store_url.h"
#include "io/stores/write_all.h"
#include "ir/core/str_cat.h"

namespace hlokit::cli {

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  if (path != "-") {
    absl::StatusOr<std::unique_ptr<AtomicFileWriter>> whole = AtomicFileWriter::Open(path);
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
    error_ = WriteAll(STDOUT_FILENO, bytes);
  }
}

absl::Status OutputFile::Commit() {
  writer_->Flush();
  if (file_ != nullptr) return file_->Commit();
  return error_ == 0 ? absl::OkStatus() : absl::UnavailableError(StrCat("<stdout>: ", strerror(error_)));
}

bool WriteOutputFile(const std::string& path, DiagnosticReporter* diagnostics,
                     const std::function<void(TextWriter&)>& write) {
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path);
  absl::Status status = file.status();
  if (status.ok()) {
    write((*file)->writer());
    status = (*file)->Commit();
  }
  if (!status.ok()) diagnostics->ShowOutputError(status);
  return status.ok();
}

bool CreateDirectories(const std::filesystem::path& directory, DiagnosticReporter* diagnostics) {
  if (IsStoreUrl(directory.string())) return true;  // keys need no directories
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) diagnostics->ShowError(directory.string(), error.message(), kRejected);
  return !error;
}

OutputFile::~OutputFile() {
  // An abandoned writer discards its unwritten output.
  given_up_ = file_ != nullptr;
  writer_.reset();
}

}  // namespace hlokit::cli
