// SPDX-License-Identifier: Apache-2.0
// Runs a module through the PJRT plugin and prints its results as hlo-run does.
//
//   pjrt_run MODULE [--args=FILE] [--devices=N] [--partitions] [--each] [--check] [--compile]
//
// MODULE is StableHLO (a name that ends with .mlir or .mlirbc), HLO or a serialized HloModuleProto. FILE has the
// arguments of one device, which all get, or those of device 0, of device 1, ...; without it arguments are synthetic.
//   --devices=N    replicas of the program; 0: what the module says, replicas and partitions
//   --partitions   the devices are partitions instead
//   --each         a call for each device, each on a thread of its own, instead of one for all
//   --check        compares with the exact engine, bit by bit, instead of printing; 77: the engine cannot run it
//   --compile      ends after compiling
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "interp/program/engine_table.h"
#include "io/arrays/arguments.h"
#include "ir/core/text_writer.h"
#include "ir/graph/literal_fill.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
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

struct Flags {
  std::string module, args;
  int64_t devices = 1;
  bool partitions = false, each = false, check = false, compile = false;
};

// Literals of one device or of all.
using Literals = std::vector<Literal>;

// Reads the arguments of the file: their lines say their shapes.
std::optional<Literals> ReadLiterals(const std::string& path, Context* context) {
  const SourceBuffer source(path, ReadAll(path));
  std::vector<Shape> shapes;
  std::istringstream lines{std::string(source.text())};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line.starts_with("//")) continue;
    const absl::StatusOr<Shape> shape = ParseShapeText(line.substr(0, line.find(' ')), context);
    if (!shape.ok()) {
      Fail(shape.status().ToString());
      return std::nullopt;
    }
    shapes.push_back(*shape);
  }
  DiagnosticSink sink;
  std::optional<Literals> literals = interp::ReadArguments(source, shapes, context, &sink);
  if (!literals) Fail(RenderText(sink, source));
  return literals;
}

// A client with the program, compiled.
class Session {
 public:
  Session(const Flags& flags, const std::string& code, int64_t replicas, int64_t partitions)
      : flags_(flags), client_(replicas * partitions) {
    const bool stablehlo = flags.module.ends_with(".mlir") || flags.module.ends_with(".mlirbc");
    compiled_ =
        Compile(client_.get(), code, stablehlo ? "mlir" : "hlo", CompileOptionsOf(replicas, partitions), &executable_);
  }
  ~Session() { Destroy(executable_); }
  const Result& compiled() const { return compiled_; }

  // Runs the program. `given`: the literals of one device, or of all.
  Result Run(const Literals& given, size_t parameters, std::string* printed, std::vector<std::string>* bytes) {
    std::vector<std::vector<PJRT_Buffer*>> arguments, results;
    const std::vector<PJRT_Device*> devices = client_.devices();
    for (size_t d = 0; d < devices.size(); ++d) {
      std::vector<PJRT_Buffer*>& of_device = arguments.emplace_back();
      const size_t first = given.size() > parameters ? d * parameters : 0;
      for (size_t i = first; i < first + parameters; ++i) of_device.push_back(BufferOf(given[i], devices[d]));
    }
    Result ran = flags_.each ? RunEach(arguments, devices, &results) : Execute(executable_, arguments, &results);
    for (const std::vector<PJRT_Buffer*>& of_device : results) {
      for (PJRT_Buffer* const buffer : of_device) {
        if (ran.ok()) ran = Read(buffer, printed, bytes);
        Destroy(buffer);
      }
    }
    for (const std::vector<PJRT_Buffer*>& of_device : arguments) {
      for (PJRT_Buffer* const buffer : of_device) Destroy(buffer);
    }
    return ran;
  }

 private:
  PJRT_Buffer* BufferOf(const Literal& literal, PJRT_Device* device) {
    const Shape shape = literal.shape();
    return MakeRawBuffer(client_.get(), device, TypeNumber(std::string(ToString(shape.element_type()))), literal.data(),
                         {shape.dims().begin(), shape.dims().end()});
  }

  // A call for each device, each on its own thread.
  Result RunEach(const std::vector<std::vector<PJRT_Buffer*>>& arguments, const std::vector<PJRT_Device*>& devices,
                 std::vector<std::vector<PJRT_Buffer*>>* results) {
    std::vector<Result> ran(devices.size());
    results->resize(devices.size());
    std::vector<std::thread> threads;
    for (size_t d = 0; d < devices.size(); ++d) {
      threads.emplace_back([&, d] {
        std::vector<std::vector<PJRT_Buffer*>> own;
        ran[d] = Execute(executable_, {arguments[d]}, &own, {}, devices[d]);
        (*results)[d] = own[0];
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Result& result : ran) {
      if (!result.ok()) return result;
    }
    return {};
  }

  static Result Read(PJRT_Buffer* buffer, std::string* printed, std::vector<std::string>* bytes) {
    auto type = Garbage<PJRT_Buffer_ElementType_Args>();
    type.buffer = buffer;
    EXPECT_CALL_OK(Api().PJRT_Buffer_ElementType(&type));
    if (type.type == PJRT_Buffer_Type_TOKEN) return {};
    auto dims = Garbage<PJRT_Buffer_Dimensions_Args>();
    dims.buffer = buffer;
    EXPECT_CALL_OK(Api().PJRT_Buffer_Dimensions(&dims));
    ElementType element = ElementType::kPred;
    for (size_t t = 0; t < kElementTypeCount; ++t) {
      if (TypeNumber(std::string(ToString(static_cast<ElementType>(t)))) == type.type) {
        element = static_cast<ElementType>(t);
      }
    }
    std::string& read = bytes->emplace_back();
    Result result = ReadRawBuffer(buffer, &read);
    if (!result.ok()) return result;
    Context context;
    const Shape shape = context.shapes.Array(element, absl::MakeConstSpan(dims.dims, dims.num_dims));
    const Literal literal = Literal::Borrowed(shape, reinterpret_cast<std::byte*>(read.data()));
    TextWriter out(printed);
    interp::PrintLeaves(out, absl::MakeConstSpan(&literal, 1));
    return result;
  }

  const Flags& flags_;
  const ClientScope client_;
  PJRT_LoadedExecutable* executable_ = nullptr;
  Result compiled_;
};

// Exit status of --check for programs that the engine cannot run.
constexpr int kLeftOut = 77;

int LeftOut(const std::string& message) {
  std::cerr << "left out: " << message << "\n";
  return kLeftOut;
}

int Run(const Flags& flags) {
  const std::string code = ReadAll(flags.module);
  const auto source = std::make_shared<const SourceBuffer>(flags.module, code);
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
  if (module == nullptr || sink.has_errors()) return Fail(RenderText(sink, *source));
  int64_t replicas = flags.partitions ? 1 : flags.devices, partitions = flags.partitions ? flags.devices : 1;
  if (flags.devices == 0) {
    replicas = std::max<int64_t>(module->header().replica_count, 1);
    partitions = std::max<int64_t>(module->header().num_partitions, 1);
  }
  Session session(flags, code, replicas, partitions);
  if (!session.compiled().ok()) {
    return flags.check ? LeftOut(session.compiled().message) : Fail(session.compiled().message);
  }
  if (flags.compile) return 0;

  // The engine, which knows the arguments of the program.
  constexpr int64_t kMaxBytes = int64_t{1} << 31;
  interp::EvaluatorOptions options;
  options.limits.max_bytes = kMaxBytes;
  options.num_replicas = replicas;
  options.num_partitions = partitions;
  const std::unique_ptr<interp::Engine> evaluator =
      interp::PrepareEngine(interp::EngineKind::kExact, *module, options, &sink);
  if (evaluator == nullptr) return LeftOut(RenderText(sink, *source));
  const size_t parameters = evaluator->argument_shapes().size();
  int64_t bytes = 0;
  for (const Shape shape : evaluator->argument_shapes()) bytes += ByteSize(shape);
  if (bytes > kMaxBytes / (replicas * partitions)) return LeftOut("the arguments are too large");
  const auto devices = static_cast<size_t>(replicas * partitions);
  Literals given;
  if (!flags.args.empty()) {
    std::optional<Literals> read = ReadLiterals(flags.args, &module->context());
    if (!read) return 1;
    given = *std::move(read);
  } else {
    for (size_t i = 0; i < devices * parameters; ++i) {
      given.push_back(FillElided(evaluator->argument_shapes()[i % parameters], FillKind::kRandom, i));
    }
  }
  if (given.size() != parameters && given.size() != devices * parameters) {
    return Fail("the program takes " + std::to_string(parameters) + " arguments on each of " + std::to_string(devices) +
                " devices; there are " + std::to_string(given.size()));
  }
  std::string printed;
  std::vector<std::string> found;
  const Result ran = session.Run(given, parameters, &printed, &found);
  if (!flags.check) {
    if (!ran.ok()) return Fail(ran.message);
    std::cout << printed;
    return 0;
  }
  Literals all;
  for (size_t d = 0; d < devices; ++d) {
    const size_t first = given.size() > parameters ? d * parameters : 0;
    for (size_t i = first; i < first + parameters; ++i) all.push_back(given[i]);
  }
  const std::optional<Literals> expected = evaluator->Run(all, &sink);
  if (!expected) return ran.ok() ? Fail("the plugin runs what the engine does not") : LeftOut(ran.message);
  if (!ran.ok()) return Fail(ran.message);
  std::vector<std::string> wanted;
  for (const Literal& literal : *expected) {
    if (literal.shape().IsToken()) continue;
    wanted.emplace_back(reinterpret_cast<const char*>(literal.data()), static_cast<size_t>(literal.size_bytes()));
  }
  if (wanted == found) return 0;
  std::string text;
  {
    TextWriter out(&text);
    interp::PrintLeaves(out, *expected);
  }
  return Fail("results differ; expected\n" + text + "found\n" + printed);
}

}  // namespace
}  // namespace hlokit::pjrt_test

int main(int argc, char** argv) {
  hlokit::pjrt_test::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--args=")) {
      flags.args = argument.substr(7);
    } else if (argument.starts_with("--devices=")) {
      flags.devices = std::strtoll(argument.c_str() + 10, nullptr, 10);
    } else if (argument == "--partitions") {
      flags.partitions = true;
    } else if (argument == "--each") {
      flags.each = true;
    } else if (argument == "--check") {
      flags.check = true;
    } else if (argument == "--compile") {
      flags.compile = true;
    } else if (flags.module.empty() && !argument.starts_with("-")) {
      flags.module = argument;
    } else {
      std::cerr << "usage: pjrt_run MODULE [--args=FILE] [--devices=N] [--partitions] [--each] [--check] "
                   "[--compile]\n";
      return 2;
    }
  }
  return hlokit::pjrt_test::Run(flags);
}
