// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

std::unique_ptr<Module> Parse(std::string_view text, std::shared_ptr<Context> context = nullptr) {
  DiagnosticSink sink;
  auto source = std::make_shared<const SourceBuffer>("test.hlo", std::string(text));
  std::unique_ptr<Module> module = ParseModule(source, {}, &sink, std::move(context));
  EXPECT_NE(module, nullptr) << RenderText(sink, *source);
  return module;
}

Digest Hash(std::string_view text, const FingerprintOptions& options = {}) {
  const std::unique_ptr<Module> module = Parse(text);
  return module == nullptr ? Digest{} : Fingerprint(*module, options);
}

// Returns an entry computation with two parameters and the given lines.
std::string Entry(std::string_view lines) {
  return StrCat("HloModule m\n\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n",
                "mul { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] multiply(a, b) }\n",
                "ENTRY e {\n  p = f32[8]{0} parameter(0)\n  q = f32[8]{0} parameter(1)\n", lines, "\n}\n");
}

// A program with calls, loops, side effects, constants of several kinds, control edges and dead code.
constexpr std::string_view kProgram =
    R"(HloModule program, replica_count=2, input_output_alias={ {0}: (0, {}, may-alias) }

%region_0.4 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.7 = f32[] add(%a, %b)
}

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %v = f32[4]{0} get-tuple-element(%s), index=1
  %w = f32[4]{0} multiply(%v, %v)
  ROOT %t = (s32[], f32[4]{0}) tuple(%next, %w)
}

%condition (s.1: (s32[], f32[4])) -> pred[] {
  %s.1 = (s32[], f32[4]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %limit = s32[] constant(10)
  ROOT %less = pred[] compare(%i.1, %limit), direction=LT
}

ENTRY %main (x: f32[4], y: f32[2,4]) -> (f32[4], f32[2]) {
  %x = f32[4]{0} parameter(0)
  %y = f32[2,4]{1,0} parameter(1), metadata={op_name="y"}
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]{0}) tuple(%zero, %x)
  %loop = (s32[], f32[4]{0}) while(%init), condition=%condition, body=%body
  %result = f32[4]{0} get-tuple-element(%loop), index=1
  %low = f32[] constant(0)
  %sums = f32[2]{0} reduce(%y, %low), dimensions={1}, to_apply=%region_0.4
  %weights = f32[2]{0} constant({1.5, nan})
  %scaled = f32[2]{0} multiply(%sums, %weights), control-predecessors={%result}
  %token = token[] after-all()
  %dead = f32[2]{0} negate(%weights)
  %out = token[] outfeed(%scaled, %token), outfeed_shape=f32[2]{0}
  ROOT %tuple = (f32[4]{0}, f32[2]{0}) tuple(%result, %scaled)
}
)";

// ---- ignored differences ----

TEST(Fingerprint, SurvivesTheRoundTrip) {
  const std::unique_ptr<Module> module = Parse(kProgram);
  PrintOptions print;
  print.print_large_constants = true;
  EXPECT_EQ(Fingerprint(*module), Hash(ToString(*module, print)));
  EXPECT_EQ(Fingerprint(*module, FingerprintOptions::All()), Hash(ToString(*module, print), FingerprintOptions::All()));
}

TEST(Fingerprint, DoesNotDependOnTheContext) {
  auto context = std::make_shared<Context>();
  for (int i = 0; i < 100; ++i) {
    context->strings.Intern(StrCat("string ", i));
    context->shapes.Array(ElementType::kF32, {i, 3});
    context->lists.Intern({i});
  }
  EXPECT_EQ(Fingerprint(*Parse(kProgram, context)), Hash(kProgram));
}

TEST(Fingerprint, IsBlindToNames) {
  const std::unique_ptr<Module> module = Parse(kProgram);
  const Digest before = Fingerprint(*module);
  for (Computation c : module->computations()) {
    module->SetName(c.id(), module->UniqueComputationName("renamed"));
    for (Instruction i : c.instructions()) module->SetName(i.id(), module->UniqueInstructionName("other"));
  }
  module->header().name = module->context().strings.Intern("another");
  EXPECT_EQ(Fingerprint(*module), before);
  EXPECT_EQ(Hash(ToString(*module)), before);
}

// Shuffles the instructions of each computation, keeping definitions before uses.
void Shuffle(Module* module, std::mt19937* random) {
  for (Computation c : module->computations()) {
    std::vector<InstructionId> rest, placed;
    for (Instruction i : c.instructions()) rest.push_back(i.id());
    while (!rest.empty()) {
      std::vector<size_t> ready;
      for (size_t k = 0; k < rest.size(); ++k) {
        const Instruction i = module->instruction(rest[k]);
        const auto waiting = [&](Instruction d) { return std::find(rest.begin(), rest.end(), d.id()) != rest.end(); };
        bool blocked = false;
        for (Instruction operand : i.operands()) blocked = blocked || waiting(operand);
        for (Instruction predecessor : i.control_predecessors()) blocked = blocked || waiting(predecessor);
        if (!blocked) ready.push_back(k);
      }
      const size_t k = ready[(*random)() % ready.size()];
      placed.push_back(rest[k]);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
    }
    for (InstructionId id : placed) module->MoveBefore(id, InstructionId());
  }
}

TEST(Fingerprint, IsBlindToTheOrderOfInstructions) {
  const std::unique_ptr<Module> module = Parse(kProgram);
  const Digest before = Fingerprint(*module);
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    Shuffle(module.get(), &random);
    EXPECT_EQ(Fingerprint(*module), before);
  }
  EXPECT_EQ(Hash(ToString(*module)), before);
}

TEST(Fingerprint, DigestsInstructionsThatStandBeforeTheirOperands) {
  const std::unique_ptr<Module> module = Parse(kProgram);
  const Digest before = Fingerprint(*module);
  for (Computation c : module->computations()) {
    std::vector<InstructionId> ids;
    for (Instruction i : c.instructions()) ids.push_back(i.id());
    std::reverse(ids.begin(), ids.end());
    for (InstructionId id : ids) module->MoveBefore(id, InstructionId());
  }
  EXPECT_EQ(Fingerprint(*module), before);
}

TEST(Fingerprint, IsBlindToTheOrderOfComputations) {
  const std::unique_ptr<Module> module = Parse(kProgram);
  const Digest before = Fingerprint(*module);
  std::vector<ComputationId> order;
  for (Computation c : module->computations()) order.push_back(c.id());
  std::reverse(order.begin(), order.end());
  module->SetComputationOrder(order);
  EXPECT_EQ(Fingerprint(*module), before);
}

TEST(Fingerprint, IsBlindToMetadataAndComments) {
  const std::string plain = Entry("  ROOT r = f32[8]{0} add(p, q)");
  EXPECT_EQ(Hash(plain), Hash(Entry("  /* a comment */ ROOT r = f32[8]{0} add(p, q), metadata={op_name=\"r\"}")));
  EXPECT_NE(Hash(plain, {.metadata = true}),
            Hash(Entry("  ROOT r = f32[8]{0} add(p, q), metadata={op_name=\"r\"}"), {.metadata = true}));
}

// ---- options ----

TEST(Fingerprint, CountsLayoutsOnRequest) {
  const std::string a = "HloModule m\nENTRY e { ROOT p = f32[2,3]{1,0} parameter(0) }";
  const std::string b = "HloModule m\nENTRY e { ROOT p = f32[2,3]{0,1} parameter(0) }";
  const std::string c = "HloModule m\nENTRY e { ROOT p = f32[2,3]{1,0:T(8,128)} parameter(0) }";
  EXPECT_EQ(Hash(a), Hash(b));
  EXPECT_EQ(Hash(a), Hash(c));
  EXPECT_NE(Hash(a, {.layout = true}), Hash(b, {.layout = true}));
  EXPECT_NE(Hash(a, {.layout = true}), Hash(c, {.layout = true}));
}

TEST(Fingerprint, CountsTheScheduleOnRequest) {
  const auto text = [](std::string_view header, std::string_view first, std::string_view second) {
    return StrCat("HloModule m", header, "\nENTRY e {\n p = f32[] parameter(0)\n", first, second,
                  " ROOT r = f32[] add(a, b)\n}");
  };
  constexpr std::string_view kA = " a = f32[] negate(p)\n", kB = " b = f32[] abs(p)\n";
  const std::string ab = text(", is_scheduled=true", kA, kB), ba = text(", is_scheduled=true", kB, kA);
  EXPECT_EQ(Hash(ab), Hash(ba));
  EXPECT_EQ(Hash(ab), Hash(text("", kA, kB)));
  EXPECT_NE(Hash(ab, {.schedule = true}), Hash(ba, {.schedule = true}));
  EXPECT_NE(Hash(ab, {.schedule = true}), Hash(text("", kA, kB), {.schedule = true}));
  // Without a schedule the order is irrelevant.
  EXPECT_EQ(Hash(text("", kA, kB), {.schedule = true}), Hash(text("", kB, kA), {.schedule = true}));
}

TEST(Fingerprint, OfOtherOptionsIsAnother) {
  const std::string text = Entry("  ROOT r = f32[8]{0} add(p, q)");
  std::vector<Digest> digests = {Hash(text),
                                 Hash(text, {.layout = true}),
                                 Hash(text, {.sharding = true}),
                                 Hash(text, {.metadata = true}),
                                 Hash(text, {.frontend_attributes = true}),
                                 Hash(text, {.schedule = true}),
                                 Hash(text, FingerprintOptions::All())};
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

// ---- every attribute ----

// Parses the payload of `attr` from an instruction that has it as `text`.
uint32_t PayloadFromText(Attr attr, std::string_view line, const std::shared_ptr<Context>& context) {
  const std::unique_ptr<Module> module = Parse(Entry(line), context);
  if (module == nullptr) return 0;
  const std::optional<uint32_t> payload = module->entry().root().payload(attr);
  EXPECT_TRUE(payload.has_value()) << line;
  return payload.value_or(0);
}

// Returns two different values of an attribute, in the context of `module`, which has the computations `add` and `mul`.
std::pair<uint32_t, uint32_t> TwoValues(Attr attr, Module* module) {
  Context& context = module->context();
  const auto lists = [&](absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
    return std::pair(module->ListPayload(a), module->ListPayload(b));
  };
  const auto string = [&](std::string_view s) { return context.strings.Intern(s).value; };
  const auto shape = [&](int64_t n) { return context.shapes.Array(ElementType::kF32, {n}).id().value; };
  const auto literal = [&](float value) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(value);
    return context.literals.AddArray(context.shapes.Scalar(ElementType::kF32), bytes.data(), 4).value;
  };
  const auto text = [&](std::string_view a, std::string_view b) {
    const auto payload = [&](std::string_view value) {
      const std::string_view op = attr == Attr::kReplicaGroups ? "all-reduce(p), to_apply=add"
                                  : attr == Attr::kDomain      ? "domain(p)"
                                                               : "negate(p)";
      return PayloadFromText(attr, StrCat("ROOT r = f32[8]{0} ", op, ", ", ToString(attr), "=", value),
                             module->shared_context());
    };
    return std::pair(payload(a), payload(b));
  };
  const uint32_t add = module->computations()[0].id().value, mul = module->computations()[1].id().value;
  switch (InfoOf(attr).type) {
    case AttrType::kBool:
    case AttrType::kEnum:
      return {0, 1};
    case AttrType::kInt64:
      return {module->EncodeInt64(3), module->EncodeInt64(-(int64_t{1} << 40))};
    case AttrType::kFloat:
      return {std::bit_cast<uint32_t>(1.0f), std::bit_cast<uint32_t>(1.5f)};
    case AttrType::kString:
    case AttrType::kIdentifier:
      return {string("one"), string("other")};
    case AttrType::kStringOrJson:
      return {string("{\"a\":1}"), string("{\"a\":2}")};
    case AttrType::kSparsity:
      return {string("{L.0@2:4}"), string("{L.1@2:4}")};
    case AttrType::kComputation:
      return {add, mul};
    case AttrType::kShape:
      return {shape(3), shape(4)};
    case AttrType::kLiteral:
      return {literal(1), literal(2)};
    case AttrType::kMetadata: {
      Metadata a, b;
      a.op_name = StringId(string("a"));
      b.op_name = StringId(string("b"));
      return {context.metadata.Intern(a).value, context.metadata.Intern(b).value};
    }
    case AttrType::kInt64List:
      return lists({0}, {1});
    case AttrType::kInt64ListList:
      return lists({1, 0, 1, 1}, {2, 0, 1});
    case AttrType::kBoolList:
      return lists({0, 1}, {1, 0});
    case AttrType::kPrecisionList:
      return lists({1, 0}, {0, 1});
    case AttrType::kComputationList:
      return lists({add, mul}, {mul, add});
    case AttrType::kInstructionList: {
      const Computation entry = module->entry();
      return lists({entry.parameter(0).id().value}, {entry.parameter(1).id().value});
    }
    case AttrType::kShapeList:
      return lists({shape(3)}, {shape(4)});
    case AttrType::kSliceRanges:
      return lists({0, 4, 1}, {0, 4, 2});
    case AttrType::kPadding:
      return lists({0, 1, 0}, {1, 0, 0});
    case AttrType::kWindow:
      return lists({3, 1, 0, 0, 1, 1, 0}, {3, 1, 0, 0, 1, 1, 1});
    case AttrType::kConvolutionDims:
      return lists({0, 0, 1, 0, 1, 0, 1}, {0, 1, 0, 0, 1, 0, 1});
    case AttrType::kFrontendAttributes:
      return lists({string("key"), string("a")}, {string("key"), string("b")});
    case AttrType::kOperandAliasing:
      return lists({0, 0, 0}, {0, 1, 0});
    case AttrType::kReplicaGroups:
      return text("{{0,1},{2,3}}", "{{0,2},{1,3}}");
    case AttrType::kSharding:
      return text("{devices=[2]<=[2]}", "{replicated}");
    case AttrType::kDomain:
      return text("{kind=\"sharding\", entry={maximal device=0}, exit={maximal device=1}}",
                  "{kind=\"sharding\", entry={maximal device=0}, exit={maximal device=2}}");
    case AttrType::kResultAccuracy:
      return lists({1, 0, 0, 0}, {2, 0, 0, 5});
    case AttrType::kStatistics:
      return lists({0, string("loss"), std::bit_cast<int64_t>(1.0)}, {0, string("loss"), std::bit_cast<int64_t>(2.0)});
    case AttrType::kOrigin:
      return text("{{\"one\"}}", "{{\"other\"}}");
    case AttrType::kUnknown:
      return lists({string("name"), string("{1}")}, {string("name"), string("{2}")});
  }
  return {};
}

// Returns an opcode that takes `attr`; negate for the common ones.
Opcode OpcodeWith(Attr attr) {
  for (size_t i = 0; i < kOpcodeCount && !IsCommon(attr); ++i) {
    const AttrSpec* spec = FindAttrSpec(static_cast<Opcode>(i), attr);
    if (spec != nullptr && spec->presence != AttrSpec::kLegacy) return static_cast<Opcode>(i);
  }
  return Opcode::kNegate;
}

class EveryAttribute : public testing::TestWithParam<size_t> {};

TEST_P(EveryAttribute, CountsAsTheTableSays) {
  const Attr attr = static_cast<Attr>(GetParam());
  const std::unique_ptr<Module> module = Parse(Entry("  ROOT r = f32[8]{0} negate(p)"));
  ASSERT_NE(module, nullptr);
  const Computation entry = module->entry();
  const Opcode opcode = OpcodeWith(attr);
  const InstructionId id =
      module->AddInstruction(entry.id(), opcode, entry.root().shape(), module->UniqueInstructionName("edited"),
                             {entry.root().id()}, {}, opcode == Opcode::kParameter ? 2 : 0);
  module->SetRoot(entry.id(), id);
  const std::pair<uint32_t, uint32_t> values = TwoValues(attr, module.get());
  ASSERT_NE(values.first, values.second);
  const auto set = [&](uint32_t payload) {
    if (attr == Attr::kMetadata) {
      module->SetMetadata(id, MetadataId(payload));
    } else {
      module->SetAttr(id, attr, payload);
    }
  };
  const auto digests_with = [&](const FingerprintOptions& options) {
    std::vector<Digest> digests;
    if (attr == Attr::kMetadata) {
      module->SetMetadata(id, MetadataId());
    } else {
      module->RemoveAttr(id, attr);
    }
    digests.push_back(Fingerprint(*module, options));
    set(values.first);
    digests.push_back(Fingerprint(*module, options));
    set(values.second);
    digests.push_back(Fingerprint(*module, options));
    return digests;
  };
  for (const FingerprintOptions& options :
       {FingerprintOptions{}, FingerprintOptions::All(), FingerprintOptions{.sharding = true},
        FingerprintOptions{.metadata = true}, FingerprintOptions{.frontend_attributes = true}}) {
    const std::vector<Digest> digests = digests_with(options);
    if (options.Includes(InfoOf(attr).category)) {
      EXPECT_NE(digests[0], digests[1]);
      EXPECT_NE(digests[0], digests[2]);
      EXPECT_NE(digests[1], digests[2]);
    } else {
      EXPECT_EQ(digests[0], digests[1]);
      EXPECT_EQ(digests[0], digests[2]);
    }
  }
}

std::string RowName(const testing::TestParamInfo<size_t>& info) {
  static constexpr std::string_view kNames[] = {
#define ATTRIBUTE(name, ...) #name,
#include "ir/ops/attributes.def"
  };
  return std::string(kNames[info.param]);
}
INSTANTIATE_TEST_SUITE_P(Table, EveryAttribute, testing::Range(size_t{0}, kAttrCount), RowName);

TEST(Fingerprint, EveryOpcodeIsAnother) {
  const std::unique_ptr<Module> module = Parse(Entry("  ROOT r = f32[8]{0} negate(p)\n  c = f32[] constant(0)"));
  std::vector<Digest> digests;
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    module->SetOpcode(module->entry().root().id(), static_cast<Opcode>(i));
    digests.push_back(Fingerprint(*module));
  }
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

// ---- other edits ----

TEST(Fingerprint, EachEditCounts) {
  // Each line computes something different.
  const std::vector<std::string> lines = {
      "  ROOT r = f32[8]{0} subtract(p, q)",
      "  ROOT r = f32[8]{0} subtract(q, p)",
      "  ROOT r = f32[8]{0} subtract(p, p)",
      "  n = f32[8]{0} negate(p)\n  ROOT r = f32[8]{0} subtract(n, q)",
      "  n = f32[8]{0} negate(p)\n  ROOT r = f32[8]{0} subtract(p, q)",
      "  n = f32[8]{0} negate(p)\n  m = f32[8]{0} abs(p)\n  ROOT r = f32[8]{0} subtract(p, q)",
      "  n = f32[8]{0} negate(p)\n  ROOT r = f32[8]{0} subtract(p, q), control-predecessors={n}",
      "  m = f32[8]{0} abs(p)\n  ROOT r = f32[8]{0} subtract(p, q), control-predecessors={m}",
      "  ROOT c = f32[] constant(0)",
      "  ROOT c = f32[] constant(-0)",
      "  ROOT c = f32[] constant(nan)",
      "  ROOT c = f32[] constant(-nan)",
      "  ROOT c = f32[] constant(nan(0x400001))",
      "  ROOT c = s32[] constant(0)",
      "  ROOT c = f32[1]{0} constant({0})",
      "  ROOT c = f32[1]{0} constant({...})",
      "  ROOT c = f32[2]{0} constant({...})",
      "  ROOT c = f32[2]{0} constant({0, 0})",
      "  ROOT c = f32[2]{0} constant({0, 1})",
      "  ROOT c = f32[2]{0} constant({1, 0})",
      "  ROOT c = f32[1,2]{1,0} constant({{0, 0}})",
      "  ROOT c = f32[2,1]{1,0} constant({{0}, {0}})",
      "  z = f32[] constant(0)\n  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add",
      "  z = f32[] constant(0)\n  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=mul",
      "  z = f32[] constant(1)\n  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=mul",
      "  t = (f32[8]{0}, f32[8]{0}) tuple(p, q)\n  ROOT r = f32[8]{0} get-tuple-element(t), index=0",
      "  t = (f32[8]{0}, f32[8]{0}) tuple(p, q)\n  ROOT r = f32[8]{0} get-tuple-element(t), index=1",
      "  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(p, q)",
      "  ROOT t = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(p, q, q)",
      "  u = f32[8]{0} parameter(2)\n  ROOT r = f32[8]{0} subtract(p, q)",
      "  u = f32[9]{0} parameter(2)\n  ROOT r = f32[8]{0} subtract(p, q)",
      "  u = f32[<=9]{0} parameter(2)\n  ROOT r = f32[8]{0} subtract(p, q)",
  };
  std::vector<std::pair<Digest, size_t>> digests;
  for (size_t i = 0; i < lines.size(); ++i) digests.emplace_back(Hash(Entry(lines[i])), i);
  std::sort(digests.begin(), digests.end());
  for (size_t i = 1; i < digests.size(); ++i) {
    EXPECT_NE(digests[i].first, digests[i - 1].first) << lines[digests[i].second] << "\nand\n"
                                                      << lines[digests[i - 1].second];
  }
}

TEST(Fingerprint, HeaderFieldsCount) {
  const auto text = [](std::string_view header) {
    return StrCat("HloModule m", header, "\nENTRY e { p = f32[8]{0} parameter(0)\n ROOT r = f32[8]{0} negate(p) }");
  };
  std::vector<Digest> digests = {Hash(text("")),
                                 Hash(text(", replica_count=2")),
                                 Hash(text(", num_partitions=2")),
                                 Hash(text(", input_output_alias={ {}: (0, {}, may-alias) }")),
                                 Hash(text(", input_output_alias={ {}: (0, {}, must-alias) }")),
                                 Hash(text(", buffer_donor={ (0, {}) }"))};
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
  EXPECT_EQ(Hash(text("")), Hash(text(", frontend_attributes={a=\"b\"}")));
  EXPECT_NE(Hash(text(""), {.frontend_attributes = true}),
            Hash(text(", frontend_attributes={a=\"b\"}"), {.frontend_attributes = true}));
}

// ---- values and side effects ----

TEST(Fingerprint, EqualPureValuesAreOne) {
  EXPECT_EQ(Hash(Entry("  n = f32[8]{0} negate(p)\n  ROOT r = f32[8]{0} add(n, n)")),
            Hash(Entry("  n = f32[8]{0} negate(p)\n  m = f32[8]{0} negate(p)\n  ROOT r = f32[8]{0} add(n, m)")));
}

// Random numbers: each one is a new value.
std::string Draws(std::string_view order, std::string_view use) {
  std::string lines = "  lo = f32[] constant(0)\n  hi = f32[] constant(1)\n";
  for (char c : order) StrAppend(&lines, "  ", c, " = f32[8]{0} rng(lo, hi), distribution=rng_uniform\n");
  return Entry(StrCat(lines, "  ROOT t = (f32[8]{0}, f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(", use, ")"));
}

TEST(Fingerprint, EqualEffectsAreToldApart) {
  const Digest shared = Hash(Draws("a", "a, a, a, a"));
  const Digest pairs = Hash(Draws("ab", "a, a, b, b"));
  const Digest crossed = Hash(Draws("ab", "a, b, a, b"));
  EXPECT_NE(shared, pairs);
  EXPECT_NE(shared, crossed);
  EXPECT_NE(pairs, crossed);
  EXPECT_NE(Hash(Draws("ab", "a, a, a, a")), shared);
}

TEST(Fingerprint, EqualEffectsAreNumberedByTheGraph) {
  EXPECT_EQ(Hash(Draws("ab", "a, a, b, b")), Hash(Draws("ba", "a, a, b, b")));
  EXPECT_EQ(Hash(Draws("ab", "a, b, a, b")), Hash(Draws("ba", "a, b, a, b")));
  EXPECT_EQ(Hash(Draws("abc", "c, b, a, b")), Hash(Draws("bca", "a, c, b, c")));
}

TEST(Fingerprint, EffectsOfCalledComputationsAreToldApart) {
  const auto text = [](std::string_view lines) {
    return StrCat("HloModule m\ndraw { lo = f32[] constant(0)\n hi = f32[] constant(1)\n",
                  " ROOT r = f32[] rng(lo, hi), distribution=rng_uniform }\nENTRY e {\n", lines, "\n}");
  };
  EXPECT_NE(Hash(text(" a = f32[] call(), to_apply=draw\n ROOT t = (f32[], f32[]) tuple(a, a)")),
            Hash(text(" a = f32[] call(), to_apply=draw\n b = f32[] call(), to_apply=draw\n"
                      " ROOT t = (f32[], f32[]) tuple(a, b)")));
}

// ---- asynchronous operations ----

std::string Async(std::string_view wrapped, std::string_view attributes) {
  return StrCat("HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n",
                "wrapper { p = f32[8]{0} parameter(0)\n q = f32[8]{0} parameter(1)\n ROOT r = f32[8]{0} ", wrapped,
                " }\n", "ENTRY e { x = f32[8]{0} parameter(0)\n y = f32[8]{0} parameter(1)\n",
                " s = ((f32[8]{0}, f32[8]{0}), f32[8]{0}, s32[]) async-start(x, y), calls=wrapper", attributes,
                "\n ROOT d = f32[8]{0} async-done(s) }");
}

TEST(Fingerprint, WrappedOperationsAreWhatTheTextSays) {
  const std::string text = Async("custom-call(p, q), custom_call_target=\"f\"", "");
  const std::unique_ptr<Module> module = Parse(text);
  EXPECT_NE(ToString(*module).find("custom-call-start("), std::string::npos);
  EXPECT_EQ(Hash(text), Hash(ToString(*module)));
  // The text has one backend_config for both.
  EXPECT_EQ(Hash(Async("custom-call(p, q), custom_call_target=\"f\", backend_config=\"c\"", ", backend_config=\"c\"")),
            Hash(Async("custom-call(p, q), custom_call_target=\"f\"", ", backend_config=\"c\"")));
  EXPECT_NE(Hash(text), Hash(Async("custom-call(p, q), custom_call_target=\"f\"", ", backend_config=\"c\"")));
  EXPECT_NE(Hash(text), Hash(Async("custom-call(p, q), custom_call_target=\"g\"", "")));
  EXPECT_NE(Hash(text), Hash(Async("custom-call(q, p), custom_call_target=\"f\"", "")));
  EXPECT_NE(Hash(Async("subtract(p, q)", "")), Hash(Async("subtract(q, p)", "")));
  EXPECT_NE(Hash(Async("subtract(p, q)", "")), Hash(Async("divide(p, q)", "")));
}

TEST(Fingerprint, UncalledComputationsCount) {
  const std::string entry = "ENTRY e { ROOT p = f32[] parameter(0) }\n";
  const std::string extra = "extra { ROOT q = s32[] parameter(0) }\n";
  EXPECT_NE(Hash("HloModule m\n" + entry), Hash("HloModule m\n" + extra + entry));
  EXPECT_EQ(Hash("HloModule m\n" + entry + extra), Hash("HloModule m\n" + extra + entry));
}

// ---- size and unusual modules ----

TEST(Fingerprint, LongChainsNeedNoStack) {
  Module module;
  Context& context = module.context();
  const ComputationId entry = module.AddComputation(context.strings.Intern("e"));
  module.SetEntry(entry);
  const Shape shape = context.shapes.Scalar(ElementType::kF32);
  InstructionId last = module.AddInstruction(entry, Opcode::kParameter, shape, context.strings.Intern("p"), {});
  std::vector<InstructionId> ids{last};
  for (int i = 0; i < 200000; ++i) {
    last = module.AddInstruction(entry, Opcode::kNegate, shape, context.strings.Intern("n"), {last});
    ids.push_back(last);
  }
  module.SetRoot(entry, last);
  const Digest before = Fingerprint(module);
  // Users before operands: the slow path.
  for (size_t i = ids.size(); i-- > 0;) module.MoveBefore(ids[i], InstructionId());
  EXPECT_EQ(Fingerprint(module), before);
}

TEST(Fingerprint, CirclesEnd) {
  const std::unique_ptr<Module> module =
      Parse(Entry("  a = f32[8]{0} negate(p)\n  b = f32[8]{0} negate(a)\n  ROOT r = f32[8]{0} add(b, q)"));
  std::vector<InstructionId> ids;
  for (Instruction i : module->entry().instructions()) ids.push_back(i.id());
  module->ReplaceOperand(ids[2], 0, ids[3]);  // a(b), b(a)
  Fingerprint(*module);
  // A computation that calls itself.
  module->SetAttr(ids[2], Attr::kToApply, module->entry().id().value);
  Fingerprint(*module);
}

TEST(Fingerprint, EmptyModules) {
  EXPECT_EQ(Fingerprint(Module()), Fingerprint(Module()));
  EXPECT_NE(Fingerprint(Module()), Hash("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }"));
}

TEST(Fingerprint, TableHasDigestsOfAllParts) {
  const std::unique_ptr<Module> module = Parse(kProgram);
  const FingerprintTable table(*module);
  EXPECT_EQ(table.module(), Fingerprint(*module));
  for (Computation c : module->computations()) {
    EXPECT_NE(table.of(c.id()), Digest{});
    for (Instruction i : c.instructions()) EXPECT_NE(table.of(i.id()), Digest{});
  }
}

TEST(Digest, Text) {
  EXPECT_EQ(ToString(Digest{0x0123456789abcdefull, 0xfedcba9876543210ull}), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(ToString(DigestOf("")), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace hlokit
