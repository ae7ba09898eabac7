// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on saved inputs, so that any compiler can replay the findings of a fuzzer.
//
//   NAME_replay PATH...    each PATH a file, or a directory whose files run in order of name
//
// Prints each file's name before it runs: the last one printed is the one that crashed.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesAt(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool Replay(const fs::path& file) {
  std::cout << file.string() << std::endl;
  std::ifstream stream(file, std::ios::binary);
  const std::string input{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream) {
    std::cerr << file.string() << ": cannot be read\n";
    return false;
  }
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " PATH...\n";
    return 2;
  }
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : FilesAt(argv[i])) {
      if (!Replay(file)) return 1;
      ++count;
    }
  }
  std::cout << "replayed " << count << " inputs\n";
  return 0;
}
