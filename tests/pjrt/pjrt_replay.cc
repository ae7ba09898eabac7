// SPDX-License-Identifier: Apache-2.0
// Makes the calls of a record again, which HLOKIT_PJRT_TRACE made, and compares what they return.
//
//   pjrt_replay TRACE [--plugin=FILE]
//
// Exit status: 0 if all is the same, 1 if something differs, 2 after an error.
#include <dlfcn.h>

#include <fstream>
#include <iostream>
#include <string>

#include "tests/pjrt/replay.h"

int main(int argc, char** argv) {
  std::string trace, plugin = HLOKIT_PJRT_PLUGIN;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--plugin=")) {
      plugin = argument.substr(9);
    } else if (trace.empty() && !argument.starts_with("-")) {
      trace = argument;
    } else {
      std::cerr << "usage: pjrt_replay TRACE [--plugin=FILE]\n";
      return 2;
    }
  }
  void* const library = dlopen(plugin.c_str(), RTLD_NOW);
  auto* const get =
      library == nullptr ? nullptr : reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get == nullptr) {
    std::cerr << "error: " << dlerror() << "\n";
    return 2;
  }
  hlokit::pjrt_test::Replay replay(get());
  std::ifstream file(trace);
  if (!file) {
    std::cerr << "error: cannot open " << trace << "\n";
    return 2;
  }
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line[0] != '#' && !replay.Line(line)) {
      std::cerr << "error: " << trace << ":" << number << ": not a line of a record of calls\n";
      return 2;
    }
  }
  replay.Finish();
  for (const std::string& difference : replay.differences()) std::cout << difference << "\n";
  for (const auto& [name, count] : replay.skipped()) std::cout << "left out: " << count << " of " << name << "\n";
  std::cout << replay.calls() << " calls, " << replay.arrays() << " arrays compared, " << replay.differences().size()
            << " differences\n";
  if (replay.calls() == 0) {
    std::cerr << "error: " << trace << " has no call that can be made again\n";
    return 2;
  }
  return replay.differences().empty() ? 0 : 1;
}
