// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on saved inputs, so that any compiler can replay the findings of a fuzzer.
//
//   NAME_replay PATH...    each PATH a file, or a directory whose files run in order of name
//
// A file NAME.inputs has an input on each line, as corpus.py writes them. Prints the name of each input before it runs:
// the last one printed is the one that crashed.
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

void Run(const std::string& name, const std::string& input) {
  std::cout << name << std::endl;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Replaces \\xNN by the byte NN.
std::string Unescape(const std::string& line) {
  std::string input;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool escaped = line[i] == '\\' && i + 3 < line.size();
    input += escaped ? static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16)) : line[i];
    i += escaped ? 3 : 0;
  }
  return input;
}

// Returns the number of inputs, or -1 if the file cannot be read.
int Replay(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    std::cerr << file.string() << ": cannot be read\n";
    return -1;
  }
  if (file.extension() != ".inputs") {
    Run(file.string(), {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()});
    return 1;
  }
  int count = 0;
  for (std::string line; std::getline(stream, line);) {
    Run(file.string() + ":" + std::to_string(++count), Unescape(line));
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " PATH...\n";
    return 2;
  }
  int64_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : FilesAt(argv[i])) {
      const int inputs = Replay(file);
      if (inputs < 0) return 1;
      count += inputs;
    }
  }
  std::cout << "replayed " << count << " inputs\n";
  return count > 0 ? 0 : 1;
}
