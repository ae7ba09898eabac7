// SPDX-License-Identifier: Apache-2.0
// Properties of every valid module:
//   text      parse(print(x)) prints the same in the default, the short and the lossless form, and has the same
//             fingerprint in the lossless form (constants in full, asynchronous operations without sugar)
//   json      likewise parse(json(x)), with all options of the fingerprint
//   proto     likewise XLA's protocol buffer, and writing what was read gives the same bytes
//   names     renaming and reordering of independent instructions preserve the fingerprint, also through text
//   verifier  diagnostics of x are those of parse(print(x))
//   edits     changing an attribute, an opcode, an operand or a constant changes the fingerprint, unless the table
//             marks the attribute as not semantic
//
//   module_properties [--seed=N] [--property=NAME] FILE|DIR…
//
// Files that do not parse are skipped. Prints each failure and, for each property, the number of modules checked; exit
// code 1 if one failed.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/traversal.h"
#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/proto/proto_file.h"
#include "tests/properties/hlo_files.h"
#include "tests/properties/module_edits.h"

namespace hlokit {
namespace {

struct Outcome {
  int64_t held = 0;
  int64_t failed = 0;
};

class Checker {
 public:
  Checker(uint64_t seed, std::string property) : random_(seed), only_(std::move(property)) {}

  void Check(const std::string& path) {
    path_ = path;
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(path);
    if (!source.ok()) {
      Fail("reading", std::string(source.status().message()));
      return;
    }
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = ParseModule(*source, {}, &sink);
    if (module == nullptr) {
      ++skipped_;
      return;
    }
    if (Wanted("text")) CheckText(*module);
    if (Wanted("json")) CheckJson(*module);
    if (Wanted("proto")) CheckProto(*module);
    if (Wanted("names")) CheckNames(*module);
    if (Wanted("verifier")) CheckVerifier(*module);
    if (Wanted("edits")) CheckEdits(module->Clone());
  }

  // Returns true if all properties held.
  bool Report() const {
    bool good = true;
    for (const auto& [property, outcome] : outcomes_) {
      std::printf("%s: %lld of %lld\n", property.c_str(), static_cast<long long>(outcome.held),
                  static_cast<long long>(outcome.held + outcome.failed));
      good = good && outcome.failed == 0;
    }
    std::printf("rejected by the reader: %lld\n", static_cast<long long>(skipped_));
    return good;
  }

 private:
  bool Wanted(std::string_view property) const { return only_.empty() || only_ == property; }
  void Fail(const std::string& property, const std::string& what) {
    ++outcomes_[property].failed;
    std::printf("%s: %s: %s\n", path_.c_str(), property.c_str(), what.c_str());
  }
  void Expect(bool held, const std::string& property, std::string_view what) {
    if (held) {
      ++outcomes_[property].held;
    } else {
      Fail(property, std::string(what));
    }
  }

  std::unique_ptr<Module> Reread(const std::string& text, const std::string& property) {
    auto source = std::make_shared<const SourceBuffer>("printed", text);
    DiagnosticSink sink;
    std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
    if (module == nullptr) Fail(property, StrCat("does not parse back:\n", RenderText(sink, *source)));
    return module;
  }

  void CheckText(const Module& module) {
    const std::pair<const char*, PrintOptions> forms[] = {{"text default", PrintOptions()},
                                                          {"text short", PrintOptions::ShortParsable()},
                                                          {"text lossless", PrintOptions::Lossless()}};
    // The short form omits control predecessors, but orders instructions by them.
    Module without_control = module.Clone();
    for (const Computation computation : without_control.computations()) {
      for (const Instruction instruction : computation.instructions()) {
        without_control.RemoveAttr(instruction.id(), Attr::kControlPredecessors);
      }
    }
    for (const auto& [property, options] : forms) {
      const Module& original = options.print_control_dependencies ? module : without_control;
      const std::string text = ToString(original, options);
      const std::unique_ptr<Module> again = Reread(text, property);
      if (again == nullptr) continue;
      // XLA's order of computations may change when its text is parsed.
      PrintOptions settled = options;
      settled.stable_computation_order = true;
      std::string first = ToString(original, settled);
      std::string second = ToString(*again, settled);
      if (first != second && !original.header().stack_frames.empty()) {
        // XLA numbers stack frames by first use in the text: stable from the first text on.
        const std::unique_ptr<Module> third = Reread(second, property);
        if (third == nullptr) continue;
        first = std::exchange(second, ToString(*third, settled));
      }
      Expect(first == second, property, "prints another text the second time");
      if (options.syntax_sugar_async_ops) continue;
      Expect(Fingerprint(*again, FingerprintOptions::All()) == Fingerprint(module, FingerprintOptions::All()), property,
             "has another fingerprint when read back");
    }
  }

  void CheckJson(const Module& module) {
    const std::string json = ToJson(module);
    const std::unique_ptr<Module> again = Reread(json, "json");
    if (again == nullptr) return;
    Expect(ToJson(*again) == json, "json", "prints other JSON the second time");
    Expect(ToString(*again, PrintOptions::Lossless()) == ToString(module, PrintOptions::Lossless()), "json",
           "has another text");
    Expect(Fingerprint(*again, FingerprintOptions::All()) == Fingerprint(module, FingerprintOptions::All()), "json",
           "has another fingerprint");
  }

  void CheckProto(const Module& original) {
    // In a message channel 0 is none.
    Module module = original.Clone();
    for (const Computation c : module.computations()) {
      for (const Instruction i : c.instructions()) {
        if (i.int_attr(Attr::kChannelId, -1) == 0) module.RemoveAttr(i.id(), Attr::kChannelId);
      }
    }
    const ProtoForm form = {MessageFor(module, nullptr), ProtoEncoding::kBinary};
    const absl::StatusOr<std::string> bytes = WriteModuleAs(module, form);
    if (!bytes.ok()) return Fail("proto", std::string(bytes.status().message()));
    auto source = std::make_shared<const SourceBuffer>("written", *bytes);
    DiagnosticSink sink;
    std::unique_ptr<const ForeignParts> parts;
    const std::unique_ptr<Module> again = ParseModuleAndParts(source, source->text(), {}, &sink, &parts);
    if (again == nullptr) return Fail("proto", StrCat("does not read back:\n", RenderText(sink, *source)));
    const auto* proto = dynamic_cast<const ProtoFileParts*>(parts.get());
    Expect(proto != nullptr && WriteModuleAs(*again, form, proto).value_or("") == *bytes, "proto",
           "is written otherwise the second time");
    Expect(ToString(*again, PrintOptions::Lossless()) == ToString(module, PrintOptions::Lossless()), "proto",
           "has another text");
    Expect(Fingerprint(*again, FingerprintOptions::All()) == Fingerprint(module, FingerprintOptions::All()), "proto",
           "has another fingerprint");
  }

  void CheckVerifier(const Module& module) {
    const auto kinds = [](const Module& m) {
      DiagnosticSink sink;
      VerifyModule(m, VerifierOptions(), &sink);
      std::vector<std::string> messages;
      for (const Diagnostic& d : sink.diagnostics()) messages.push_back(std::string(d.message));
      std::sort(messages.begin(), messages.end());
      return messages;
    };
    const std::unique_ptr<Module> again = Reread(ToString(module, PrintOptions::Lossless()), "verifier");
    if (again != nullptr) Expect(kinds(module) == kinds(*again), "verifier", "another verdict when read back");
  }

  void CheckNames(const Module& module) {
    Module other = module.Clone();
    other.header().is_scheduled = false;
    const Digest before = Fingerprint(other);
    RenameAll(&other);
    Expect(Fingerprint(other) == before, "names", "renaming changes the fingerprint");
    Shuffle(&other, random_);
    Expect(Fingerprint(other) == before, "names", "reordering changes the fingerprint");
  }

  // Returns another value of that type, if one can be derived from this one alone.
  std::optional<uint32_t> OtherValue(const Module& module, Attr attr, uint32_t payload, Context& context) {
    const AttrInfo& info = InfoOf(attr);
    const auto list = [&] {
      const absl::Span<const int64_t> values = context.list(ListId(payload));
      return std::vector<int64_t>(values.begin(), values.end());
    };
    const auto last_plus_one = [&]() -> std::optional<uint32_t> {
      std::vector<int64_t> values = list();
      if (values.empty()) return std::nullopt;
      ++values.back();
      return context.lists.Intern(values).value;
    };
    switch (info.type) {
      case AttrType::kBool:
        return payload ^ 1;
      case AttrType::kEnum:
        return (payload + 1) % static_cast<uint32_t>(EnumTexts(info.enum_type).size());
      case AttrType::kInt64:
        return const_cast<Module&>(module).EncodeInt64(module.DecodeInt64(payload) + 1);
      case AttrType::kFloat:
        return payload ^ 1;
      case AttrType::kString:
      case AttrType::kStringOrJson:
      case AttrType::kIdentifier:
        return context.strings.Intern(StrCat(context.str(StringId(payload)), "x")).value;
      case AttrType::kInt64List: {
        std::vector<int64_t> values = list();
        values.push_back(1);
        return context.lists.Intern(values).value;
      }
      case AttrType::kBoolList:
      case AttrType::kPrecisionList: {
        std::vector<int64_t> values = list();
        if (values.empty()) return std::nullopt;
        values.back() ^= 1;
        return context.lists.Intern(values).value;
      }
      case AttrType::kSliceRanges:
      case AttrType::kPadding:
      case AttrType::kWindow:
      case AttrType::kConvolutionDims:
        return last_plus_one();
      case AttrType::kSparsity:
      case AttrType::kComputation:
      case AttrType::kShape:
      case AttrType::kLiteral:
      case AttrType::kMetadata:
      case AttrType::kInt64ListList:
      case AttrType::kComputationList:
      case AttrType::kInstructionList:
      case AttrType::kShapeList:
      case AttrType::kFrontendAttributes:
      case AttrType::kOperandAliasing:
      case AttrType::kReplicaGroups:
      case AttrType::kSharding:
      case AttrType::kDomain:
      case AttrType::kResultAccuracy:
      case AttrType::kStatistics:
      case AttrType::kOrigin:
      case AttrType::kUnknown:
        return std::nullopt;  // removed instead
    }
    return std::nullopt;
  }

  void CheckEdits(Module module) {
    const FingerprintTable table(module);
    const Digest before = table.module();
    const auto describe = [](Instruction instruction, std::string_view what) {
      return StrCat("%", instruction.name(), " (", instruction.opcode_text(), "): ", what);
    };
    const std::vector<uint8_t> wrapped = RolesOf(module).async;
    for (const Computation computation : module.computations()) {
      for (const Instruction instruction : computation.instructions()) {
        const std::vector<AttrValue> attrs(instruction.attrs().begin(), instruction.attrs().end());
        for (const AttrValue& value : attrs) {
          // Limit the edits of each kind, since there are many modules.
          if (++edits_[{instruction.opcode(), value.attr}] > 4) continue;
          // The default text of a wrapped operation has the attributes of its async-start.
          if (IsCommon(value.attr) && wrapped[computation.id().value] && instruction.is_root()) continue;
          const std::optional<uint32_t> other = OtherValue(module, value.attr, value.payload, module.context());
          if (other.has_value()) {
            module.SetAttr(instruction.id(), value.attr, *other);
          } else {
            module.RemoveAttr(instruction.id(), value.attr);
          }
          const bool counts = InfoOf(value.attr).category == AttrCategory::kSemantic;
          Expect((Fingerprint(module) != before) == counts, "edits",
                 describe(instruction, StrCat(ToString(value.attr), counts ? " does not count" : " counts")));
          module.SetAttrs(instruction.id(), attrs);
        }
        CheckOpcode(module, instruction, before);
        CheckOperand(module, table, instruction, before);
      }
    }
    Expect(Fingerprint(module) == before, "edits", "taking the edits back leaves another fingerprint");
  }

  void CheckOpcode(Module& module, Instruction instruction, Digest before) {
    static constexpr std::pair<Opcode, Opcode> kSwaps[] = {
        {Opcode::kAdd, Opcode::kMultiply}, {Opcode::kMultiply, Opcode::kAdd},    {Opcode::kNegate, Opcode::kAbs},
        {Opcode::kExp, Opcode::kExpm1},    {Opcode::kMaximum, Opcode::kMinimum}, {Opcode::kSubtract, Opcode::kDivide},
    };
    for (const auto& [from, to] : kSwaps) {
      if (instruction.opcode() != from || ++swaps_[from] > 40) continue;
      module.SetOpcode(instruction.id(), to);
      Expect(Fingerprint(module) != before, "edits", "another opcode does not count");
      module.SetOpcode(instruction.id(), from);
    }
  }

  void CheckOperand(Module& module, const FingerprintTable& table, Instruction instruction, Digest before) {
    if (instruction.operand_count() < 2) return;
    const Instruction a = instruction.operand(0), b = instruction.operand(1);
    if (table.of(a.id()) == table.of(b.id()) || ++operands_[instruction.opcode()] > 6) return;
    module.ReplaceOperand(instruction.id(), 0, b.id());
    module.ReplaceOperand(instruction.id(), 1, a.id());
    Expect(Fingerprint(module) != before, "edits",
           StrCat("%", instruction.name(), ": operands changed places unnoticed"));
    module.ReplaceOperand(instruction.id(), 0, a.id());
    module.ReplaceOperand(instruction.id(), 1, b.id());
  }

  Random random_;
  std::string only_;
  std::string path_;
  int64_t skipped_ = 0;
  std::map<std::string, Outcome> outcomes_;
  std::map<std::pair<Opcode, Attr>, int> edits_;
  std::map<Opcode, int> swaps_, operands_;
};

int Run(int argc, char** argv) {
  uint64_t seed = 1;
  std::string property;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--seed=")) {
      seed = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (argument.starts_with("--property=")) {
      property = argument.substr(11);
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: %s [--seed=N] [--property=NAME] FILE|FOLDER...\n", argv[0]);
    return 2;
  }
  Checker checker(seed, property);
  for (const std::string& file : HloFiles(paths)) checker.Check(file);
  return checker.Report() ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
