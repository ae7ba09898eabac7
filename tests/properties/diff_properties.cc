// SPDX-License-Identifier: Apache-2.0
// What the matching of two modules finds, measured on modules and the same ones after random edits:
//   insert   operations between instructions and their users
//   delete   operations, whose users read an operand instead
//   change   opcodes, constants and attributes
//   resize   a size, in all shapes that have it
// with all instructions renamed and reordered in half of the cases.
//
//   diff_properties [--seed=N] [--edits=N] [--verbose] FILE|DIR…
//
// The patch of each pair of modules, applied to the first, must give the second, byte for byte.
//
// A pair is right if it is the pair of the edit, or if nothing in the module tells the two apart. Prints precision
// (right pairs among those found) and recall (among the pairs of the edit) for each edit and in total; exit code 1 if
// they are below 99 % and 97 %.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/read_file.h"
#include "ir/core/hashing.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/diff/instruction_labels.h"
#include "passes/diff/matching.h"
#include "passes/diff/module_patch.h"
#include "tests/properties/hlo_files.h"
#include "tests/properties/module_edits.h"
#include "tests/random/random_module.h"

namespace hlokit {
namespace {

enum EditKind : int { kInsert, kDelete, kChange, kResize, kNothing, kEditKinds };
constexpr std::array<const char*, kEditKinds> kEditNames = {"insert", "delete", "change", "resize", "nothing"};

struct Counts {
  int64_t modules = 0, edits = 0, right = 0, found = 0, expected = 0, wrong_patches = 0;

  void Add(const Counts& other) {
    modules += other.modules;
    edits += other.edits;
    right += other.right;
    found += other.found;
    expected += other.expected;
    wrong_patches += other.wrong_patches;
  }
  double Precision() const { return found == 0 ? 1 : static_cast<double>(right) / static_cast<double>(found); }
  double Recall() const { return expected == 0 ? 1 : static_cast<double>(right) / static_cast<double>(expected); }
};

std::vector<Instruction> InstructionsOf(const Module& module) {
  std::vector<Instruction> all;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) all.push_back(i);
  }
  return all;
}

bool IsRealArray(Instruction i) { return i.shape().IsArray() && IsFloat(i.shape().element_type()); }

class Editor {
 public:
  Editor(Module* module, Random& random) : module_(*module), random_(random) {}

  // Makes up to `count` edits. Returns their number.
  int64_t Apply(EditKind kind, int64_t count) {
    const std::vector<Instruction> all = InstructionsOf(module_);
    if (kind == kResize) return Resize(all);
    int64_t made = 0;
    for (int64_t tries = 0; tries < 20 * count && made < count; ++tries) {
      const Instruction i = all[random_() % all.size()];
      if (!i.parent().valid()) continue;  // erased before
      made += kind == kInsert ? Insert(i) : kind == kDelete ? Delete(i) : kind == kChange ? Change(i) : 0;
    }
    return made;
  }

 private:
  bool Insert(Instruction i) {
    if (!IsRealArray(i) || !i.has_users()) return false;
    constexpr Opcode kOpcodes[] = {Opcode::kNegate, Opcode::kAbs, Opcode::kCopy, Opcode::kTanh};
    const InstructionId operand[] = {i.id()};
    const InstructionId added = module_.AddInstruction(i.parent().id(), kOpcodes[random_() % 4], i.shape(),
                                                       module_.UniqueInstructionName("inserted"), operand);
    const std::vector<Instruction> users = i.users();
    const Instruction user = users[random_() % users.size()];
    if (user.id() == added) return false;
    for (int64_t k = 0; k < user.operand_count(); ++k) {
      if (user.operand(k) == i) module_.ReplaceOperand(user.id(), k, added);
    }
    return true;
  }

  bool Delete(Instruction i) {
    if (i.operand_count() == 0 || i.is_root() || i.opcode() == Opcode::kParameter || !i.called_computations().empty() ||
        i.operand(0).shape() != i.shape() || !i.shape().IsArray() || !i.control_successors().empty()) {
      return false;
    }
    module_.ReplaceAllUses(i.id(), i.operand(0).id());
    module_.Erase(i.id());
    return true;
  }

  bool Change(Instruction i) {
    constexpr std::pair<Opcode, Opcode> kSwaps[] = {{Opcode::kAdd, Opcode::kMultiply},
                                                    {Opcode::kMultiply, Opcode::kSubtract},
                                                    {Opcode::kExp, Opcode::kTanh},
                                                    {Opcode::kMaximum, Opcode::kMinimum}};
    for (const auto& [from, to] : kSwaps) {
      if (i.opcode() != from) continue;
      module_.SetOpcode(i.id(), to);
      return true;
    }
    for (const AttrValue& value : i.attrs()) {
      if (value.attr == Attr::kDirection) {
        module_.SetAttr(i.id(), value.attr, (value.payload + 1) % 6);
        return true;
      }
      if (InfoOf(value.attr).type == AttrType::kInt64List && value.attr != Attr::kControlPredecessors) {
        const absl::Span<const int64_t> list = module_.context().list(ListId(value.payload));
        std::vector<int64_t> changed(list.begin(), list.end());
        if (changed.empty()) continue;
        changed.back() += 1;
        module_.SetAttr(i.id(), value.attr, module_.ListPayload(changed));
        return true;
      }
    }
    return false;
  }

  // Doubles one size.
  int64_t Resize(const std::vector<Instruction>& all) {
    int64_t size = 0;
    for (int tries = 0; tries < 50 && size < 2; ++tries) {
      const Shape shape = all[random_() % all.size()].shape();
      if (shape.IsArray() && shape.rank() > 0) size = shape.dim(static_cast<int64_t>(random_() % shape.rank()));
    }
    if (size < 2) return 0;
    ShapeTable& shapes = module_.context().shapes;
    for (const Instruction i : all) {
      const Shape shape = i.shape();
      if (!shape.IsArray() || i.opcode() == Opcode::kConstant) continue;
      std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      for (int64_t& d : dims) d *= d == size ? 2 : 1;
      module_.SetShape(i.id(), shapes.Array(shape.element_type(), dims));
    }
    return 1;
  }

  Module& module_;
  Random& random_;
};

// Numbers that nothing but names and positions tells apart.
std::vector<uint64_t> Identities(const Module& module) {
  const InstructionLabels labels = LabelInstructions(module);
  std::vector<uint64_t> identities(module.instruction_id_bound());
  for (const Instruction i : InstructionsOf(module)) {
    const uint32_t id = i.id().value;
    identities[id] =
        MixHash(MixHash(labels.upstream[id], labels.downstream[id]), labels.computations[i.parent().id().value]);
  }
  return identities;
}

Counts Measure(const Module& a, EditKind kind, int64_t edits, Random& random, bool verbose) {
  Module b = a.Clone();  // with the same ids
  Counts counts;
  counts.modules = 1;
  counts.edits = Editor(&b, random).Apply(kind, edits);
  if (kind != kNothing && counts.edits == 0) return {};
  if (random() % 2 == 0) {
    RenameAll(&b);
    Shuffle(&b, random);
  }
  const ModuleMatching matching = MatchModules(a, b);
  const absl::StatusOr<std::string> patched = ApplyPatch(a, MakePatch(a, b, matching));
  counts.wrong_patches = !patched.ok() || *patched != ToString(b, PrintOptions::Lossless());
  const std::vector<uint64_t> identities = Identities(a);
  for (const Instruction i : InstructionsOf(a)) {
    const bool remains = b.record(i.id()).parent.valid();
    const InstructionId found = matching.in_b[i.id().value];
    counts.expected += remains;
    counts.found += found.valid();
    const bool right = found.valid() && found.value < a.instruction_id_bound() &&
                       (found == i.id() || identities[found.value] == identities[i.id().value]);
    counts.right += right;
    if (verbose && !right && (found.valid() || remains)) {
      std::printf("  %s: %s\n    found %s\n    is    %s\n", kEditNames[kind], ToString(i).c_str(),
                  found.valid() ? ToString(b.instruction(found)).c_str() : "nothing",
                  remains ? ToString(b.instruction(i.id())).c_str() : "nothing");
    }
  }
  return counts;
}

int Run(int argc, char** argv) {
  int64_t edits = 2000;
  uint64_t seed = 1;
  bool verbose = false;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--seed=")) {
      seed = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (argument.starts_with("--edits=")) {
      edits = std::atoll(argv[i] + 8);
    } else if (argument == "--verbose") {
      verbose = true;
    } else {
      paths.emplace_back(argument);
    }
  }
  std::vector<std::unique_ptr<Module>> modules;
  const auto add = [&](std::unique_ptr<Module> module) {
    if (module != nullptr && module->entry().valid() && module->instruction_count() >= 6)
      modules.push_back(std::move(module));
  };
  for (const std::string& path : HloFiles(paths)) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(path);
    if (!source.ok()) continue;
    const SplitInput split = SplitInputFile(**source);
    for (const std::string_view chunk : split.chunks) {
      DiagnosticSink sink;
      add(ParseModulePart(split.source, chunk, {}, &sink));
    }
  }
  for (uint64_t k = 0; k < 20; ++k) {
    random_test::RandomModuleOptions options;
    options.seed = seed * 100 + k;
    options.instructions = 60;
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(random_test::RandomModule(options));
    if (module.ok()) add(*std::move(module));
  }
  if (modules.empty()) {
    std::printf("no modules\n");
    return 2;
  }
  Random random(seed);
  std::array<Counts, kEditKinds> counts = {};
  int64_t made = 0;
  for (int64_t tries = 0; made < edits && tries < 50 * edits; ++tries) {
    const Module& module = *modules[random() % modules.size()];
    const EditKind kind = static_cast<EditKind>(random() % kEditKinds);
    // Up to one edit for ten instructions.
    const int64_t most = 1 + static_cast<int64_t>(module.instruction_count()) / 10;
    const int64_t count = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(std::min<int64_t>(most, 8)));
    const Counts one = Measure(module, kind, count, random, verbose);
    made += one.edits;
    counts[kind].Add(one);
  }
  Counts total;
  const auto print = [](const char* name, const Counts& c) {
    std::printf("%-8s %6lld modules %7lld edits %10lld pairs   precision %.4f   recall %.4f\n", name,
                static_cast<long long>(c.modules), static_cast<long long>(c.edits), static_cast<long long>(c.expected),
                c.Precision(), c.Recall());
  };
  for (int kind = 0; kind < kEditKinds; ++kind) {
    print(kEditNames[static_cast<size_t>(kind)], counts[static_cast<size_t>(kind)]);
    total.Add(counts[static_cast<size_t>(kind)]);
  }
  print("total", total);
  std::printf("patches that give another module: %lld\n", static_cast<long long>(total.wrong_patches));
  return total.wrong_patches == 0 && total.Precision() >= 0.99 && total.Recall() >= 0.97 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
