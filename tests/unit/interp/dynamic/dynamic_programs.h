// SPDX-License-Identifier: Apache-2.0
// Programs with dynamic dimensions, and the same programs with static dimensions of a size.
#ifndef HLOKIT_TESTS_UNIT_INTERP_DYNAMIC_DYNAMIC_PROGRAMS_H_
#define HLOKIT_TESTS_UNIT_INTERP_DYNAMIC_DYNAMIC_PROGRAMS_H_

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {

struct Program {
  std::string_view name;
  // Dynamic dimensions are written with their bounds. A line that sets sizes ends in `//= ` and its replacement for
  // true sizes: N is the size for the bound 8, TRIPLE is three times that, DOUBLE twice, HALF the half,
  // rounded up. The last parameter is the size.
  std::string_view text;
  // Sizes of bounds other than 8, as functions of the size of that one.
  std::map<int64_t, std::function<int64_t(int64_t)>> sizes = {};
  int64_t least = 0;  // smallest valid size
  int64_t most = 8;
};

inline std::unique_ptr<Module> Read(const std::string& text) {
  DiagnosticSink sink;
  std::unique_ptr<Module> module = ParseModule(std::make_shared<const SourceBuffer>("test.hlo", text), {}, &sink);
  if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
  for (const Diagnostic& d : sink.diagnostics()) ADD_FAILURE() << d.message << "\n" << text;
  return module;
}

inline std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size()) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Returns the program with the sizes of its dynamic results as further results.
inline std::string WithSizes(const Program& program) {
  std::string text(program.text);
  const size_t entry = text.find("ENTRY");
  std::smatch root;
  const std::string body = text.substr(entry);
  if (!std::regex_search(body, root, std::regex(R"(ROOT r = \((.*)\) tuple\((.*)\))"))) return text;
  const std::vector<std::string> shapes = Split(root[1], ", "), results = Split(root[2], ", ");
  std::string reads, types = root[1], elements = root[2];
  for (size_t k = 0; k < shapes.size(); ++k) {
    const std::vector<std::string> dims = Split(shapes[k].substr(shapes[k].find('[') + 1), ",");
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].starts_with("<=")) continue;
      const std::string name = "size_" + std::to_string(k) + "_" + std::to_string(d);
      reads += name + " = s32[] get-dimension-size(" + results[k] + "), dimensions={" + std::to_string(d) + "}\n  ";
      types += ", s32[]";
      elements += ", " + name;
    }
  }
  return text.substr(0, entry) + std::string(root.prefix()) + reads + "ROOT r = (" + types + ") tuple(" + elements +
         ")" + std::string(root.suffix());
}

// Returns the program for the size `n`.
inline std::string TrueSizes(const Program& program, int64_t n) {
  std::string text = WithSizes(program);
  text = std::regex_replace(text, std::regex(R"((= \S+) .*//= )"), "$1 ");
  text = std::regex_replace(text, std::regex(R"(\bN\b)"), std::to_string(n));
  text = std::regex_replace(text, std::regex(R"(\bTRIPLE\b)"), std::to_string(3 * n));
  text = std::regex_replace(text, std::regex(R"(\bDOUBLE\b)"), std::to_string(2 * n));
  text = std::regex_replace(text, std::regex(R"(\bHALF\b)"), std::to_string((n + 1) / 2));
  text = std::regex_replace(text, std::regex(R"(<=8\b)"), std::to_string(n));
  for (const auto& [bound, size] : program.sizes) {
    text = std::regex_replace(text, std::regex("<=" + std::to_string(bound) + "\\b"), std::to_string(size(n)));
  }
  return text;
}

// Programs of the operations that are there for data movement and reduction, and of others.
absl::Span<const Program> DynamicPrograms();
absl::Span<const Program> MoreDynamicPrograms();

}  // namespace hlokit::interp

#endif  // HLOKIT_TESTS_UNIT_INTERP_DYNAMIC_DYNAMIC_PROGRAMS_H_
