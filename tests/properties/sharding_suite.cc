// SPDX-License-Identifier: Apache-2.0
// Checks recorded expectations of sharding passes, instruction by instruction.
//
//   sharding_suite DIR [--exceptions=FILE] [--print]
//
// DIR has modules NAME.hlo and what must hold of them in NAME.expect: `run: PASS option=value …` runs a pass on the
// module, after those of `before:` lines, and the lines behind it are facts about the result (a README in DIR has the
// format). Lines of FILE are `NAME: the fact, as in the file: why it does not hold`; a fact that fails and is not there
// fails the test, and so does one that is there and holds. Prints `N passed, N failed`, by facts.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/text/metadata_text.h"
#include "parser/formats/parser.h"
#include "parser/hlo/sharding_parser.h"
#include "parser/text/text_cursor.h"
#include "passes/core/pipeline.h"

namespace hlokit {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the text before the first space, and removes it.
std::string TakeWord(std::string* text) {
  const size_t end = std::min(text->find(' '), text->size());
  std::string word = text->substr(0, end);
  text->erase(0, std::min(end + 1, text->size()));
  return word;
}

// The pass of a `run:` line with its options, as a pipeline.
std::string PipelineOf(std::string run) {
  const std::map<std::string, std::string> names = {
      {"propagation", "sharding-propagation"}, {"shardy", "shardy-propagation"}, {"remover", "sharding-remover"}};
  const std::string pass = TakeWord(&run);
  const auto name = names.find(pass);
  std::string options;
  while (!run.empty()) StrAppend(&options, options.empty() ? "" : ",", TakeWord(&run));
  std::string text = name == names.end() ? pass : name->second;
  if (!options.empty()) StrAppend(&text, "{", options, "}");
  return text;
}

class Checker {
 public:
  explicit Checker(std::string base) : base_(std::move(base)) {}

  // Calls fact(line, holds, found) for each fact of the case.
  template <typename Fact>
  void Run(const Fact& fact) {
    const std::string text = ReadText(base_ + ".hlo");
    std::ifstream expect(base_ + ".expect");
    std::string line, before;
    while (std::getline(expect, line)) {
      const size_t colon = line.find(": ");
      if (colon == line.npos) continue;
      const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
      if (key == "source" || key == "test") continue;
      found_.clear();
      if (key == "before") {
        StrAppend(&before, before.empty() ? "" : ",", value);
      } else if (key == "run") {
        Start(text, before, PipelineOf(value));
      } else if (key == "after") {
        RunPasses(value);
      } else {
        const bool holds = Holds(key, value);
        fact(line, holds, found_.empty() ? error_ : found_);
      }
    }
  }

 private:
  void Start(const std::string& text, const std::string& before, const std::string& pass) {
    changed_ = false;
    error_.clear();
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    module_ = module.ok() ? *std::move(module) : nullptr;
    if (module_ == nullptr) {
      error_ = "the module does not parse";
      return;
    }
    if (!before.empty()) RunPasses(before);
    changed_ = RunPasses(pass);
  }

  bool RunPasses(const std::string& text) {
    if (module_ == nullptr) return false;
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
    if (!pipeline.ok()) {
      error_ = std::string(pipeline.status().message());
      module_ = nullptr;
      return false;
    }
    const absl::StatusOr<Pipeline::Result> result = pipeline->Run(*module_);
    if (!result.ok()) {
      error_ = std::string(result.status().message());
      module_ = nullptr;
      return false;
    }
    return result->changed;
  }

  // The instruction of `NAME`, `NAME[LEAF]` or `NAME/OPERAND`.
  Instruction Find(std::string name, std::optional<size_t>* leaf) const {
    std::vector<int64_t> path;
    for (size_t slash = name.rfind('/'); slash != name.npos; slash = name.rfind('/')) {
      path.push_back(std::stoll(name.substr(slash + 1)));
      name.erase(slash);
    }
    if (name.ends_with(']')) {
      const size_t bracket = name.find('[');
      *leaf = static_cast<size_t>(std::stoll(name.substr(bracket + 1)));
      name.erase(bracket);
    }
    for (Computation c : module_->computations()) {
      for (Instruction i : c.instructions()) {
        if (i.name() != name) continue;
        for (size_t k = path.size(); k-- > 0;) {
          if (path[k] >= i.operand_count()) return Instruction();
          i = i.operand(path[k]);
        }
        return i;
      }
    }
    return Instruction();
  }

  std::vector<Tiling> Leaves(ListId id) const {
    std::vector<Tiling> leaves;
    for (const Sharding::Run& run : DecodeSharding(module_->context(), id).runs) {
      for (int64_t n = 0; n < run.count; ++n) {
        leaves.push_back(TilingOf(run.leaf, run.leaf.data_rank()).value_or(Tiling()));
      }
    }
    return leaves;
  }
  std::optional<std::vector<Tiling>> LeavesOf(const std::string& name) {
    std::optional<size_t> leaf;
    const Instruction i = Find(name, &leaf);
    if (!i.valid() || !i.has(Attr::kSharding)) return std::nullopt;
    {
      TextWriter out(&found_);
      PrintSharding(out, module_->context(), ListId(*i.payload(Attr::kSharding)));
    }
    std::vector<Tiling> leaves = Leaves(ListId(*i.payload(Attr::kSharding)));
    if (leaf && *leaf < leaves.size()) leaves = {leaves[*leaf]};
    return leaves;
  }
  std::vector<Tiling> Expected(std::string text) {
    if (!text.starts_with('{')) text = StrCat("{", text, "}");
    texts_.push_back(std::move(text));
    DiagnosticSink sink;
    TextCursor in(texts_.back(), &sink);
    ListId id;
    if (!ParseSharding(in, &module_->context(), &id)) return {};
    return Leaves(id);
  }
  // A single expected leaf holds for every leaf.
  static bool Same(const std::vector<Tiling>& found, const std::vector<Tiling>& expected) {
    if (expected.size() == 1) {
      return std::all_of(found.begin(), found.end(), [&](const Tiling& t) { return t == expected[0]; });
    }
    return found == expected;
  }

  bool Holds(const std::string& key, std::string value) {
    if (key == "error") return error_.find(value) != error_.npos;
    if (key == "changed") {
      if (module_ != nullptr) found_ = changed_ ? "true" : "false";
      return module_ != nullptr && changed_ == (value == "true");
    }
    if (module_ == nullptr) return false;
    const std::string name = TakeWord(&value);
    std::optional<size_t> leaf;
    const Instruction i = Find(name, &leaf);
    if (!i.valid()) return false;
    const std::optional<std::vector<Tiling>> leaves = LeavesOf(name);
    if (key == "no-sharding") return !leaves;
    if (key == "has-sharding") return leaves.has_value();
    if (key == "sharding") return leaves && Same(*leaves, Expected(value));
    if (key == "is") return leaves && Same(*leaves, Expected(value));
    if (key == "is-not") return !leaves || !Same(*leaves, Expected(value));
    if (key == "same") return leaves == LeavesOf(value);
    if (key == "different") return !(leaves == LeavesOf(value));
    if (key == "opcode") return i.opcode_text() == value;
    if (key == "shape") {
      found_ = ToString(i.shape(), value.find('{') != value.npos);
      return found_ == value;
    }
    if (key == "metadata") return HasMetadata(*leaves, value);
    if (key == "tree") return Tree(i) == value;
    return false;
  }

  bool HasMetadata(const std::vector<Tiling>& leaves, const std::string& expected) {
    std::string text;
    {
      TextWriter out(&text);
      for (MetadataId id : leaves[0].metadata) PrintMetadata(out, module_->context(), id);
    }
    return text == expected;
  }

  // "reshape(parameter)": the opcodes of an instruction and its operands.
  static std::string Tree(Instruction i) {
    std::string text = StrCat(i.opcode_text(), "(");
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      StrAppend(&text, k == 0 ? "" : ", ", i.operand(k).opcode_text());
    }
    return text + ")";
  }

  std::string base_;
  std::unique_ptr<Module> module_;
  std::deque<std::string> texts_;
  std::string error_, found_;
  bool changed_ = false;
};

int Run(int argc, char** argv) {
  std::string folder, exceptions;
  bool print = false;
  for (int k = 1; k < argc; ++k) {
    const std::string_view flag = argv[k];
    constexpr std::string_view kExceptions = "--exceptions=";
    if (flag.starts_with(kExceptions)) {
      exceptions = flag.substr(kExceptions.size());
    } else if (flag == "--print") {
      print = true;
    } else {
      folder = flag;
    }
  }
  std::vector<std::string> bases;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".expect") bases.push_back(std::filesystem::path(entry.path()).replace_extension());
  }
  if (error || bases.empty()) {
    std::fprintf(stderr, "usage: sharding_suite DIR [--exceptions=FILE] [--print]\n");
    return 2;
  }
  std::sort(bases.begin(), bases.end());
  std::set<std::string> explained;
  std::ifstream file(exceptions);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    explained.insert(line.substr(0, line.find('\t')) + "\t" +
                     line.substr(line.find('\t') + 1, line.rfind('\t') - line.find('\t') - 1));
  }
  int held = 0, excused = 0, failed = 0;
  for (const std::string& base : bases) {
    const std::string name = std::filesystem::path(base).filename();
    Checker(base).Run([&](const std::string& line, bool holds, const std::string& found) {
      const bool known = explained.erase(StrCat(name, "\t", line)) > 0;
      if (holds && !known) {
        ++held;
      } else if (!holds && known) {
        ++excused;
      } else {
        ++failed;
        std::printf("FAILED: %s\t%s%s\n", name.c_str(), line.c_str(),
                    holds ? "  holds, but is listed as an exception" : ("  found " + found).c_str());
      }
      if (print && !holds) std::printf("%s\t%s\tfound %s\n", name.c_str(), line.c_str(), found.c_str());
    });
  }
  for (const std::string& line : explained) {
    ++failed;
    std::printf("FAILED: the exceptions have a line that is no fact: %s\n", line.c_str());
  }
  std::printf("%d facts hold, %d do not for a reason\n%d passed, %d failed\n", held, excused, held + excused, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
