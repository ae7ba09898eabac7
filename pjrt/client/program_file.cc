// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/program_file.h"

#include <memory>

#include "absl/status/statusor.h"
#include "io/files/atomic_file_writer.h"
#include "ir/core/str_cat.h"

namespace hlokit::pjrt {

std::string ProgramFileStem(int64_t number, const Module& module) {
  constexpr size_t kDigits = 4, kMaxName = 100;
  const std::string digits = StrCat(number);
  std::string stem(digits.size() < kDigits ? kDigits - digits.size() : 0, '0');
  StrAppend(&stem, digits, ".", module.name().substr(0, kMaxName));
  for (char& c : stem) {
    if (c == '/' || c == '\0') c = '_';
  }
  return stem;
}

absl::Status WriteProgramFile(const std::string& path, std::string_view text) {
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(path);
  if (!file.ok()) return file.status();
  (*file)->Write(text);
  return (*file)->Commit();
}

}  // namespace hlokit::pjrt
