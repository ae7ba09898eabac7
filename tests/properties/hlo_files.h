// SPDX-License-Identifier: Apache-2.0
// Input modules of property tests: files named on the command line, and directories of them.
#ifndef HLOKIT_TESTS_PROPERTIES_HLO_FILES_H_
#define HLOKIT_TESTS_PROPERTIES_HLO_FILES_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace hlokit {

// Returns the files among `paths` and the .hlo files below the directories among them, sorted.
inline std::vector<std::string> HloFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.path().extension() == ".hlo") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_PROPERTIES_HLO_FILES_H_
