// SPDX-License-Identifier: Apache-2.0
// Writes a module of HLO text in every format, reads it back, and prints the text that comes of it: a line `== format`
// and the text for each. The program of add_attribute.py, which adds attributes to the tables first.
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "ir/text/printer.h"
#include "parser/formats/module_formats.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

int Run(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text.str());
  if (!module.ok()) {
    std::cerr << module.status().message() << '\n';
    return 1;
  }
  for (const ModuleFormat& format : ModuleFormats()) {
    DiagnosticSink sink;
    const std::optional<std::string> written = format.write(**module, nullptr, &sink);
    if (!written || sink.has_errors()) {
      std::cerr << format.name << ": not written\n";
      return 1;
    }
    const absl::StatusOr<std::unique_ptr<Module>> read = ParseModuleText(*written);
    if (!read.ok()) {
      std::cerr << format.name << ": " << read.status().message() << '\n';
      return 1;
    }
    std::cout << "== " << format.name << '\n' << ToString(**read);
  }
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return argc == 2 ? hlokit::Run(argv[1]) : 2; }
