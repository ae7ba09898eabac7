// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "parser/json/json_parser.h"

namespace hlokit {
namespace {

struct Outcome {
  std::unique_ptr<Module> module;
  DiagnosticSink sink;
  std::string text;  // of the diagnostics
};

Outcome ReadJson(std::string_view json, const ParseOptions& options = {}) {
  Outcome o;
  const auto source = std::make_shared<const SourceBuffer>("m.json", std::string(json));
  o.module = ParseJsonModule(source, options, &o.sink);
  o.text = RenderText(o.sink, *source);
  EXPECT_EQ(o.module == nullptr, o.sink.has_errors()) << o.text;
  return o;
}

std::unique_ptr<Module> ReadHlo(std::string_view text, const ParseOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text, options);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? std::move(*module) : nullptr;
}

std::string FileText(std::string_view path) {
  std::ifstream in(StrCat(HLOKIT_SOURCE_DIR, "/", path), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

// Returns everything in a module that its texts do not abbreviate.
std::string FullText(const Module& module) {
  PrintOptions options;
  options.print_large_constants = true;
  options.syntax_sugar_async_ops = false;
  return ToString(module, options);
}

void ExpectSame(const Module& a, const Module& b) {
  EXPECT_EQ(FullText(a), FullText(b));
  EXPECT_EQ(ToString(a), ToString(b));
  EXPECT_EQ(ToString(a, PrintOptions::ShortParsable()), ToString(b, PrintOptions::ShortParsable()));
  EXPECT_EQ(Fingerprint(a), Fingerprint(b));
  EXPECT_EQ(ToJson(a), ToJson(b));
}

void ExpectRoundTrip(const Module& module, const ParseOptions& options = {}) {
  const std::string json = ToJson(module);
  const Outcome back = ReadJson(json, options);
  ASSERT_NE(back.module, nullptr) << back.text;
  ExpectSame(module, *back.module);
}

// Returns a module of one computation with two parameters `a` and `b`, followed by `instructions`.
std::string Json(std::string_view instructions, std::string_view root = "r") {
  return StrCat(R"({"format":"hlokit-module","version":1,"name":"m","entry":"e","computations":[
{"name":"e","root":")",
                root, R"(","instructions":[
{"name":"a","opcode":"parameter","shape":"f32[8]{0}","parameter":0},
{"name":"b","opcode":"parameter","shape":"f32[8]{0}","parameter":1},
)",
                instructions, "]}]}\n");
}

constexpr std::string_view kAdd = R"({"name":"r","opcode":"add","shape":"f32[8]{0}","operands":["a","b"]})";

struct Broken {
  std::string_view json;
  DiagnosticKind kind;
  std::string_view message;  // a substring of it
};

void ExpectBroken(const Broken& b) {
  const Outcome o = ReadJson(b.json);
  ASSERT_TRUE(o.sink.has_errors()) << b.json;
  const Diagnostic& d = o.sink.diagnostics()[0];
  EXPECT_EQ(ToString(d.kind), ToString(b.kind)) << o.text;
  EXPECT_NE(o.text.find(b.message), std::string::npos) << o.text;
  EXPECT_LE(d.range.offset, b.json.size()) << o.text;
}

// ---- round trips ----

TEST(JsonTest, EveryAttributeComesBack) {
  const std::unique_ptr<Module> module = ReadHlo(FileText("tests/data/every_attribute.hlo"));
  ASSERT_NE(module, nullptr);
  std::set<Attr> stored;
  for (Computation c : module->computations()) {
    for (Instruction i : c.instructions()) {
      for (const AttrValue& value : i.attrs()) stored.insert(value.attr);
    }
  }
  for (size_t i = 0; i < kAttrCount; ++i) {
    const auto attr = static_cast<Attr>(i);
    // Legacy, stored elsewhere, or tested below.
    if (attr == Attr::kMode || attr == Attr::kMetadata || attr == Attr::kUnknownOpcode ||
        attr == Attr::kUnknownAttributes) {
      continue;
    }
    EXPECT_TRUE(stored.contains(attr)) << "no instance of attribute " << i << ", " << ToString(attr);
  }
  ExpectRoundTrip(*module);
}

TEST(JsonTest, MembersMayComeInAnyOrder) {
  const std::unique_ptr<Module> module = ReadHlo(FileText("tests/data/every_attribute.hlo"));
  ASSERT_NE(module, nullptr);
  std::string json = ToJson(*module);
  // The library rejects lone surrogates; any other byte serves.
  for (size_t at; (at = json.find("\\udcff")) != std::string::npos;) json.replace(at, 6, "x");
  const Outcome plain = ReadJson(json);
  ASSERT_NE(plain.module, nullptr) << plain.text;
  // Sorts the members of objects by key: "attributes" before "opcode", "literal" before "shape".
  const Outcome sorted = ReadJson(nlohmann::json::parse(json).dump());
  ASSERT_NE(sorted.module, nullptr) << sorted.text;
  ExpectSame(*plain.module, *sorted.module);
}

TEST(JsonTest, WhatIsUnknownIsKept) {
  ParseOptions options;
  options.allow_unknown = true;
  const std::unique_ptr<Module> module = ReadHlo(R"(HloModule m, future={a,"b"}, future={c}
ENTRY e {
  a = f32[8]{0} parameter(0), dimensions={0}
  ROOT r = f32[8]{0} teleport(a), to={"x, y"}, to=5
})",
                                                 options);
  ASSERT_NE(module, nullptr);
  ExpectRoundTrip(*module, options);
  const Outcome strict = ReadJson(ToJson(*module));
  EXPECT_EQ(strict.module, nullptr);
  EXPECT_EQ(strict.sink.error_count(), 6u) << strict.text;

  const Outcome member = ReadJson(
      Json(
          R"({"name":"r","opcode":"add","shape":"f32[8]{0}","operands":["a","b"],"attributes":{"dimensions":"{0}","x":7},"y":[{}]})"),
      options);
  ASSERT_NE(member.module, nullptr) << member.text;
  EXPECT_EQ(member.sink.warning_count(), 3u) << member.text;
  EXPECT_NE(ToString(*member.module).find("add(%a, %b), dimensions={0}, x=7"), std::string::npos);
}

TEST(JsonTest, StringsOfAnyBytes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  all += "\u00e4\u20ac\U0001f600 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\x80 \xe2\x82";
  const std::unique_ptr<Module> module = ReadHlo(
      "HloModule m\nENTRY e {\n  ROOT r = f32[] custom-call(), custom_call_target=\"t\", backend_config=\"c\"\n}\n");
  ASSERT_NE(module, nullptr);
  module->SetAttr(module->entry().root().id(), Attr::kBackendConfig, module->context().strings.Intern(all).value);
  const std::string json = ToJson(*module);
  for (char c : json) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  const Outcome back = ReadJson(json);
  ASSERT_NE(back.module, nullptr) << back.text;
  EXPECT_EQ(back.module->entry().root().string_attr(Attr::kBackendConfig), all);

  const Outcome escapes = ReadJson(Json(
      R"({"name":"r","opcode":"custom-call","shape":"f32[]","attributes":{"custom_call_target":"\u0041\/\uD83d\uDE00\b\f\u00e4"}})"));
  ASSERT_NE(escapes.module, nullptr) << escapes.text;
  EXPECT_EQ(escapes.module->entry().root().string_attr(Attr::kCustomCallTarget), "A/\U0001f600\b\f\u00e4");
}

TEST(JsonTest, NumbersAreExact) {
  const std::unique_ptr<Module> module = ReadHlo(R"(HloModule m
ENTRY e {
  x = f32[1,8]{1,0} parameter(0)
  y = f32[8]{0} parameter(1)
  ROOT n = (f32[1,8]{1,0}, f32[8]{0}, f32[8]{0}) batch-norm-training(x, y, y), epsilon=0.001, feature_index=1
})");
  ASSERT_NE(module, nullptr);
  const InstructionId root = module->entry().root().id();
  std::mt19937 random(7);
  std::vector<uint32_t> values = {0,          0x80000000, 1,          0x7f7fffff, 0x7f800000,
                                  0xff800000, 0x7fc00000, 0xffc00000, 0x7fc12345};
  for (int i = 0; i < 200; ++i) values.push_back(random());
  for (uint32_t bits : values) {
    // Signalling NaNs have no text.
    if ((bits & 0x7f800000) == 0x7f800000 && (bits & 0x7fffff) != 0) bits |= 0x400000;
    module->SetAttr(root, Attr::kEpsilon, bits);
    const Outcome back = ReadJson(ToJson(*module));
    ASSERT_NE(back.module, nullptr) << back.text;
    EXPECT_EQ(back.module->entry().root().payload(Attr::kEpsilon).value_or(1), bits) << ToJson(*module);
  }
  for (int64_t v : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, std::numeric_limits<int64_t>::max(),
                    std::numeric_limits<int64_t>::min()}) {
    module->SetAttr(root, Attr::kFeatureIndex, module->EncodeInt64(v));
    const Outcome back = ReadJson(ToJson(*module));
    ASSERT_NE(back.module, nullptr) << back.text;
    EXPECT_EQ(back.module->entry().root().int_attr(Attr::kFeatureIndex), v);
  }
}

TEST(JsonTest, OrdersStay) {
  // An edited module: users before operands, callers before callees, duplicate names.
  const std::unique_ptr<Module> module = ReadHlo(R"(HloModule m
f { p = f32[8]{0} parameter(0)
  ROOT q = f32[8]{0} negate(p) }
g { p.1 = f32[8]{0} parameter(0)
  ROOT q.1 = f32[8]{0} call(p.1), to_apply=f }
ENTRY e {
  a = f32[8]{0} parameter(0)
  x = f32[8]{0} negate(a)
  y = f32[8]{0} call(x), to_apply=g, control-predecessors={a}
  z = f32[8]{0} add(y, x), control-predecessors={x}
  ROOT r = f32[8]{0} add(z, x)
})");
  ASSERT_NE(module, nullptr);
  const Computation e = module->entry();
  std::vector<InstructionId> ids;
  for (Instruction i : e.instructions()) ids.push_back(i.id());
  for (size_t i = 1; i < ids.size(); ++i) module->MoveBefore(ids[i], ids[i - 1]);  // last first
  const std::vector<Computation> order = module->computations();
  module->SetComputationOrder({order[2].id(), order[1].id(), order[0].id()});
  module->SetName(order[0].parameter(0).id(), module->record(ids[0]).name);
  const std::string json = ToJson(*module);
  EXPECT_LT(json.find("\"name\":\"r\""), json.find("\"name\":\"x\""));
  ExpectRoundTrip(*module);
}

TEST(JsonTest, ChainsOfAnyLengthInAnyOrder) {
  constexpr int kLength = 200000;
  std::string forward;
  for (int i = kLength; i > 0; --i) {
    StrAppend(&forward, R"({"name":"n)", i, R"(","opcode":"negate","shape":"f32[8]{0}","operands":["n)", i - 1,
              "\"]},\n");
  }
  const Outcome o = ReadJson(Json(
      StrCat(forward, R"({"name":"n0","opcode":"copy","shape":"f32[8]{0}","operands":["a"]})"), StrCat("n", kLength)));
  ASSERT_NE(o.module, nullptr) << o.text;
  EXPECT_EQ(o.module->instruction_count(), kLength + 3u);
}

TEST(JsonTest, LooksLikeJson) {
  EXPECT_TRUE(LooksLikeJson("{"));
  EXPECT_TRUE(LooksLikeJson(" \n// x\n/* y */ {\"a\""));
  EXPECT_FALSE(LooksLikeJson(""));
  EXPECT_FALSE(LooksLikeJson("// {"));
  EXPECT_FALSE(LooksLikeJson("/* {"));
  EXPECT_FALSE(LooksLikeJson("HloModule m {"));
}

// ---- errors ----

TEST(JsonTest, BrokenJson) {
  using K = DiagnosticKind;
  for (const Broken& b : std::initializer_list<Broken>{
           {"", K::kUnexpectedToken, "1:1: error: expected a module"},
           {"[]", K::kUnexpectedToken, "expected a module"},
           {"{", K::kUnexpectedToken, "expected a key"},
           {"{}", K::kMissingAttribute, "missing key `format`"},
           {R"({"format":"x"})", K::kBadHeader, "expected format `hlokit-module`, found `x`"},
           {R"({"format":"hlokit-module","version":2})", K::kBadHeader, "version 2"},
           {R"({"format":"hlokit-module","version":1})", K::kMissingAttribute, "at least one computation"},
           {R"({"format" "hlokit-module"})", K::kUnexpectedToken, "`:` after a key"},
           {R"({"format":"hlokit-module",})", K::kUnexpectedToken, "a key in quotes"},
           {R"({"format":"hlokit-module" "version":1})", K::kUnexpectedToken, "expected `,` or `}`"},
           {R"({"formt":"hlokit-module"})", K::kUnknownAttribute, "did you mean `format`?"},
           {R"({"format":"hlokit-module","format":"hlokit-module"})", K::kDuplicateAttribute, "duplicate attribute"},
           {"{\"format\":\"hlokit-mod\nule\"}", K::kUnterminatedString, "unterminated string"},
           {"{\"format\":\"hlokit-mod\tule\"}", K::kBadCharacter, "control character"},
           {R"({"format":"hlokit-\module"})", K::kBadCharacter, "malformed escape"},
           {R"({"name":"\ud83d"})", K::kBadCharacter, "malformed escape"},
           {R"({"name":"\u12g4"})", K::kBadCharacter, "malformed escape"},
           {R"({"version":1.5})", K::kUnexpectedToken, "whole number"},
           {R"({"version":99999999999999999999})", K::kNumberOutOfRange, "does not fit"},
           {R"({"name":"two words"})", K::kUnexpectedToken, "not a valid name"},
           {R"({"x":[1}})", K::kUnknownAttribute, "expected `,` or `]`"},
       }) {
    ExpectBroken(b);
  }
  const std::string after = Json(kAdd) + "x";
  ExpectBroken({after, K::kUnexpectedToken, "the end of the text"});
}

TEST(JsonTest, BrokenInstructions) {
  using K = DiagnosticKind;
  const std::pair<std::string_view, Broken> cases[] = {
      {R"(7)", {"", K::kUnexpectedToken, "5:1: error: expected an instruction"}},
      {R"({"opcode":"negate","shape":"f32[8]","operands":["a"]})", {"", K::kMissingAttribute, "missing key `name`"}},
      {R"({"name":"r","shape":"f32[8]","operands":["a"]})", {"", K::kMissingAttribute, "missing key `opcode`"}},
      {R"({"name":"r","opcode":"negate","operands":["a"]})", {"", K::kMissingShape, "missing key `shape`"}},
      {R"({"name":"a","opcode":"negate","shape":"f32[8]","operands":["b"]})", {"", K::kDuplicateName, "`a`"}},
      {R"({"name":"r","opcode":"negat","shape":"f32[8]","operands":["a"]})", {"", K::kUnknownOpcode, "`negate`?"}},
      {R"({"name":"r","opcode":"add-start","shape":"f32[8]","operands":["a"]})",
       {"", K::kUnknownOpcode, "async-start"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8,","operands":["a"]})", {"", K::kUnexpectedToken, "5:46: error"}},
      {R"({"name":"r","opcode":"negate","shape":"f33[8]","operands":["a"]})", {"", K::kUnknownType, "f33"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8] x","operands":["a"]})",
       {"", K::kUnexpectedToken, "end of the string"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["aa"]})", {"", K::kUndefinedOperand, "`aa`"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["r"]})",
       {"", K::kCyclicOperands, "depends on itself"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["a","b"]})",
       {"", K::kOperandCount, "expected 1 operand"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["a"],"elided":true})",
       {"", K::kUnknownAttribute, "only constants"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["a"],"attributes":{"dimensions":[0]}})",
       {"", K::kUnknownAttribute, "other opcodes take `dimensions`"}},
      {R"({"name":"r","opcode":"broadcast","shape":"f32[8]","operands":["a"],"attributes":{"dimension":[0]}})",
       {"", K::kUnknownAttribute, "did you mean `dimensions`?"}},
      {R"({"name":"r","opcode":"broadcast","shape":"f32[8]","operands":["a"],"attributes":{"dimensions":[0],"dimensions":[0]}})",
       {"", K::kDuplicateAttribute, "duplicate attribute"}},
      {R"({"name":"r","opcode":"reverse","shape":"f32[8]","operands":["a"]})",
       {"", K::kMissingAttribute, "`dimensions`"}},
      {R"({"name":"r","opcode":"reverse","shape":"f32[8]","operands":["a"],"attributes":{"dimensions":0}})",
       {"", K::kUnexpectedToken, "a list of integers"}},
      {R"({"name":"r","opcode":"call","shape":"f32[8]","operands":["a"],"attributes":{"to_apply":"x"}})",
       {"", K::kUndefinedComputation, "`x`"}},
      {R"({"name":"r","opcode":"call","shape":"f32[8]","operands":["a"],"attributes":{"to_apply":"e"}})",
       {"", K::kCyclicCalls, "calls `e`"}},
      {R"({"name":"r","opcode":"fusion","shape":"f32[8]","operands":["a"],"attributes":{"kind":"kLop","calls":"e"}})",
       {"", K::kBadAttribute, "did you mean `kLoop`?"}},
      {R"({"name":"r","opcode":"parameter","shape":"f32[8]"})", {"", K::kMissingAttribute, "`parameter`"}},
      {R"({"name":"r","opcode":"parameter","shape":"f32[8]","parameter":0})",
       {"", K::kBadParameter, "duplicate parameter number 0"}},
      {R"({"name":"r","opcode":"parameter","shape":"f32[8]","parameter":-1})", {"", K::kBadParameter, "out of range"}},
      {R"({"name":"r","opcode":"parameter","shape":"f32[8]","parameter":2147483647})",
       {"", K::kBadParameter, "out of range"}},
      {R"({"name":"r","opcode":"constant","shape":"f32[2]","literal":"{1, 2, 3}"})",
       {"", K::kBadLiteral, "5:68: error"}},
      {R"({"name":"r","opcode":"constant","shape":"f32[2]"})", {"", K::kMissingAttribute, "`literal` and `elided`"}},
      {R"({"name":"r","opcode":"constant","shape":"f32[1]","literal":"{1}","elided":true})",
       {"", K::kMissingAttribute, "`literal` and `elided`"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["a"],"metadata":{"op_nam":"x"}})",
       {"", K::kUnknownAttribute, "did you mean `op_name`?"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["a"],"metadata":{"source_line":3000000000}})",
       {"", K::kNumberOutOfRange, "32 bits"}},
      {R"({"name":"r","opcode":"negate","shape":"f32[8]","operands":["a"],"unknown_attributes":[["x","1"]]})",
       {"", K::kUnknownAttribute, "`x`"}},
      // A location after escapes.
      {R"({"name":"r","opcode":"domain","shape":"f32[8]","operands":["a"],"attributes":{"domain":"{kind=\"sharding\", entri={}}"}})",
       {"", K::kUnknownAttribute, "5:109: error"}},
  };
  for (auto [instruction, broken] : cases) {
    const std::string json = Json(instruction);
    broken.json = json;
    ExpectBroken(broken);
  }
}

TEST(JsonTest, ReportsAllErrors) {
  const Outcome o = ReadJson(Json(StrCat(R"({"name":"x","opcode":"negate","shape":"f32[8]","operands":["nope"]},
{"name":"y","opcode":"negate","shape":"f32[8]","operands":["x"],"bogus":[{"a":[1,2]}]},
{"name":"z","opcode":7,"shape":"f32[8]","operands":["y"],"attributes":{"q":1}},
)",
                                         kAdd)));
  EXPECT_EQ(o.sink.error_count(), 3u) << o.text;
  // Users of an erroneous instruction are not reported.
  EXPECT_EQ(o.text.find("`x`"), std::string::npos) << o.text;
}

// ---- hostile texts ----

TEST(JsonTest, DeepNestsAreNoCrash) {
  for (char open : {'[', '{'}) {
    for (bool closed : {false, true}) {
      std::string json = R"({"bogus":)";
      for (int i = 0; i < 100000; ++i) json += open == '[' ? "[" : "{\"a\":";
      json += "0";
      if (closed) json.append(100000, open == '[' ? ']' : '}');
      ParseOptions options;
      EXPECT_EQ(ReadJson(json, options).module, nullptr);
      options.allow_unknown = true;
      options.max_nesting = 1000;
      const Outcome o = ReadJson(json, options);
      EXPECT_EQ(o.sink.diagnostics().back().kind, DiagnosticKind::kTooDeep);
    }
  }
}

TEST(JsonTest, CutsAndMutationsAreNoCrash) {
  const std::unique_ptr<Module> module = ReadHlo(FileText("tests/data/every_attribute.hlo"));
  ASSERT_NE(module, nullptr);
  const std::string json = ToJson(*module);
  for (size_t size = 0; size + 2 < json.size(); size += 1 + size / 200) {
    EXPECT_EQ(ReadJson(std::string_view(json).substr(0, size)).module, nullptr) << size;
  }
  std::mt19937 random(1);
  constexpr std::string_view kBytes = "{}[]\",:\\0149-eE.truefalsn/* \n\0u";
  for (int n = 0; n < 300; ++n) {
    std::string text = json;
    for (int k = 0; k < 3; ++k) {
      const size_t at = random() % text.size();
      const size_t from = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(from, random() % 40));
          break;
      }
    }
    ReadJson(text);
    ParseOptions options;
    options.allow_unknown = true;
    ReadJson(text, options);
  }
}

}  // namespace
}  // namespace hlokit
