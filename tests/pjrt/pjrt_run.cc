// SPDX-License-Identifier: Apache-2.0
// Runs a module through the PJRT plugin and prints its results as hlo-run does.
//
//   pjrt_run MODULE [--args=FILE] [--devices=N]
//
// MODULE is StableHLO (a name that ends with .mlir or .mlirbc) or a serialized HloModuleProto. FILE has the arguments
// of one device; with several devices all get the same, and the results of all are printed.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "interp/values/arguments.h"
#include "ir/core/text_writer.h"
#include "parser/core/parser.h"
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Numbers of types in the interface, by their text in HLO.
int TypeNumber(const std::string& type) {
  static const std::vector<std::string> names = {
      "",           "pred", "s8",  "s16",   "s32", "s64",  "u8",     "u16",      "u32",           "u64",
      "f16",        "f32",  "f64", "bf16",  "c64", "c128", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz",
      "f8e4m3fnuz", "s4",   "u4",  "token", "s2",  "u2",   "f8e4m3", "f8e3m4",   "f8e8m0fnu",     "f4e2m1fn",
      "s1",         "u1"};
  for (size_t i = 1; i < names.size(); ++i) {
    if (names[i] == type) return static_cast<int>(i);
  }
  return 0;
}

int Fail(const std::string& message) {
  std::cerr << "error: " << message << "\n";
  return 1;
}

int Run(const std::string& path, const std::string& args, int64_t devices) {
  const ClientScope client(devices);
  const bool stablehlo = path.ends_with(".mlir") || path.ends_with(".mlirbc");
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled =
      Compile(client.get(), ReadAll(path), stablehlo ? "mlir" : "hlo", CompileOptionsOf(devices, 1), &executable);
  if (!compiled.ok()) return Fail(compiled.message);

  // The lines say their shapes.
  Context context;
  const SourceBuffer source(args, args.empty() ? "" : ReadAll(args));
  std::vector<Shape> shapes;
  std::istringstream lines{std::string(source.text())};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line.starts_with("//")) continue;
    const absl::StatusOr<Shape> shape = ParseShapeText(line.substr(0, line.find(' ')), &context);
    if (!shape.ok()) return Fail(shape.status().ToString());
    shapes.push_back(*shape);
  }
  DiagnosticSink sink;
  const std::optional<std::vector<Literal>> literals = interp::ReadArguments(source, shapes, &context, &sink);
  if (!literals) return Fail(RenderText(sink, source));
  std::vector<std::vector<PJRT_Buffer*>> arguments, results;
  for (PJRT_Device* const device : client.devices()) {
    std::vector<PJRT_Buffer*>& of_device = arguments.emplace_back();
    for (const Literal& literal : *literals) {
      const Shape shape = literal.shape();
      of_device.push_back(MakeRawBuffer(client.get(), device, TypeNumber(std::string(ToString(shape.element_type()))),
                                        literal.data(), {shape.dims().begin(), shape.dims().end()}));
    }
  }
  const Result ran = Execute(executable, arguments, &results);
  if (!ran.ok()) return Fail(ran.message);
  std::string text;
  TextWriter out(&text);
  for (const std::vector<PJRT_Buffer*>& of_device : results) {
    for (PJRT_Buffer* const buffer : of_device) {
      auto type = Garbage<PJRT_Buffer_ElementType_Args>();
      type.buffer = buffer;
      EXPECT_CALL_OK(Api().PJRT_Buffer_ElementType(&type));
      if (type.type == PJRT_Buffer_Type_TOKEN) continue;
      auto dims = Garbage<PJRT_Buffer_Dimensions_Args>();
      dims.buffer = buffer;
      EXPECT_CALL_OK(Api().PJRT_Buffer_Dimensions(&dims));
      ElementType element = ElementType::kPred;
      for (size_t t = 0; t < kElementTypeCount; ++t) {
        if (TypeNumber(std::string(ToString(static_cast<ElementType>(t)))) == type.type) {
          element = static_cast<ElementType>(t);
        }
      }
      std::string bytes;
      const Result read = ReadRawBuffer(buffer, &bytes);
      if (!read.ok()) return Fail(read.message);
      const Shape shape = context.shapes.Array(element, absl::MakeConstSpan(dims.dims, dims.num_dims));
      const Literal literal = Literal::Borrowed(shape, reinterpret_cast<std::byte*>(bytes.data()));
      interp::PrintLeaves(out, absl::MakeConstSpan(&literal, 1));
    }
  }
  out.Flush();
  std::cout << text;
  for (const auto& lists : {arguments, results}) {
    for (const auto& of_device : lists) {
      for (PJRT_Buffer* const buffer : of_device) Destroy(buffer);
    }
  }
  Destroy(executable);
  return 0;
}

}  // namespace
}  // namespace hlokit::pjrt_test

int main(int argc, char** argv) {
  std::string module, args;
  int64_t devices = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--args=")) {
      args = argument.substr(7);
    } else if (argument.starts_with("--devices=")) {
      devices = std::stoll(argument.substr(10));
    } else if (module.empty() && !argument.starts_with("-")) {
      module = argument;
    } else {
      std::cerr << "usage: pjrt_run MODULE [--args=FILE] [--devices=N]\n";
      return 2;
    }
  }
  return hlokit::pjrt_test::Run(module, args, devices);
}
