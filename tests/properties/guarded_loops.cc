// SPDX-License-Identifier: Apache-2.0
// Runs generated loops on memory between pages that cannot be accessed.
//
//   guarded_loops [--random=N] [--seed=N] [--seconds=N] [--minimum-loops=N]
//
// Loops are those of random modules on the fast engine, fused as far as possible. Each is compiled for every
// instruction set of the processor, and runs on arrays of random sizes and strides that end right before, or begin
// right after, such a page, and so does its scratch memory: a read or write outside of an array ends the test with the
// loop's program. Nothing may be written between the rows of a result. Where values do not depend on the instruction
// set, they must be the same bits, or both NaN; functions of the exact engine are replaced by one that mixes bits.
// Reductions of columns also run in two parts, the second with the accumulators of the first, and must give the same
// bits. Modules themselves also run with their arguments in such memory.
//
// Exit code 1 after a difference, or if fewer loops than --minimum-loops ran.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/program/engine_table.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "tests/properties/guarded_memory.h"
#include "tests/properties/with_kernels.h"
#include "tests/random/random_module.h"
#include "tests/random/value_round_trips.h"

namespace hlokit {
namespace {

using namespace interp::compiled;  // NOLINT: a test of these classes
using interp::HostInstructionSet;
using interp::InstructionSet;
using Edge = GuardedMemory::Edge;

// What runs, for the handler of SIGSEGV.
std::string running;

void OnFault(int) {
  constexpr char kText[] = "access outside of an array in\n";
  ssize_t written = write(STDOUT_FILENO, kText, sizeof(kText) - 1);
  written = write(STDOUT_FILENO, running.data(), running.size());
  static_cast<void>(written);
  _exit(1);
}

size_t BytesOfElement(ElementType type) { return static_cast<size_t>((BitsOf(type) + 7) / 8); }

// In place of a function of the exact engine: any function of the elements.
struct MixFunction {
  ElementType result = ElementType::kPred;
  std::vector<ElementType> operands;
};

// Returns a number that is the same for all NaN.
uint64_t NumberOf(ElementType type, const std::byte* element) {
  uint64_t number = 0;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    std::memcpy(&number, element, std::min(sizeof(T), sizeof(number)));
    if constexpr (AnyFloat<T>) {
      T value;
      std::memcpy(static_cast<void*>(&value), element, sizeof(T));
      if (std::isnan(static_cast<double>(value))) number = 1;
    }
  });
  return number;
}

// Writes an element of a type: any bits, or for a floating-point type a number of moderate size.
void WriteElement(ElementType type, uint64_t bits, bool moderate, std::byte* to) {
  if (type == ElementType::kPred) bits &= 1;
  const float number = static_cast<float>(static_cast<int64_t>(bits >> 40) - 8388608) / 1e6f;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      if (moderate) {
        const T value = static_cast<T>(number);
        std::memcpy(to, static_cast<const void*>(&value), sizeof(T));
        return;
      }
    }
    std::memcpy(to, &bits, std::min(BytesOfElement(type), sizeof(bits)));
  });
}

void CallMix(const void* function, void* result, const void* a, const void* b, const void* c, int64_t n) {
  const MixFunction& mix = *static_cast<const MixFunction*>(function);
  const void* const operands[] = {a, b, c};
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = 0x9e3779b97f4a7c15;
    for (size_t k = 0; k < mix.operands.size(); ++k) {
      const size_t at = static_cast<size_t>(i) * BytesOfElement(mix.operands[k]);
      bits = (bits ^ NumberOf(mix.operands[k], static_cast<const std::byte*>(operands[k]) + at)) * 0xff51afd7ed558ccd;
      bits ^= bits >> 32;
    }
    const size_t at = static_cast<size_t>(i) * BytesOfElement(mix.result);
    WriteElement(mix.result, bits, true, static_cast<std::byte*>(result) + at);
  }
}

struct Sizes {
  int64_t rows = 1;
  int64_t columns = 1;
  std::vector<int64_t> in_strides, out_strides;
};

class LoopRun {
 public:
  LoopRun(const LoopProgram& program, const Sizes& sizes, uint64_t seed, Edge edge)
      : program_(program), sizes_(sizes), edge_(edge) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const ElementType type = program.inputs[i].type;
      const size_t elements = ElementsOf(program.inputs[i].row_value, sizes.in_strides[i]);
      inputs_.push_back(std::make_unique<GuardedMemory>(elements * BytesOfElement(type), edge));
      Fill(type, elements, &random, inputs_.back()->data());
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const LoopNode& node = program.nodes[program.outputs[i]];
      const size_t bytes = ElementsOf(node.row_value, sizes.out_strides[i]) * BytesOfElement(node.type);
      outputs_.push_back(std::make_unique<GuardedMemory>(bytes, edge));
      std::memset(outputs_.back()->data(), kUnwritten, bytes);
    }
  }

  // With reductions of columns, `first_rows` rows come first, and the others continue with their accumulators.
  void Run(const LoadedCode& code, int64_t first_rows) {
    LoopArguments arguments = {};
    arguments.in_strides = sizes_.in_strides.data();
    arguments.out_strides = sizes_.out_strides.data();
    arguments.columns = sizes_.columns;
    constexpr int64_t kMaxElementBytes = 8;
    arguments.scratch_pitch = sizes_.columns * kMaxElementBytes;
    const int64_t values = std::max(code.saved_values(), static_cast<int64_t>(Reductions().size()));
    const size_t scratch_bytes = static_cast<size_t>(values * arguments.scratch_pitch);
    scratch_ = std::make_unique<GuardedMemory>(scratch_bytes, edge_);
    std::memset(scratch_->data(), kUnwritten, scratch_bytes);
    arguments.scratch = scratch_->data();
    arguments.call = CallMix;
    std::vector<MixFunction> mixes(program_.calls);
    for (const LoopNode& node : program_.nodes) {
      if (node.op != LoopOp::kCall) continue;
      MixFunction& mix = mixes[node.param];
      mix.result = node.type;
      for (int k = 0; k < node.operand_count; ++k) mix.operands.push_back(program_.nodes[node.operands[k]].type);
    }
    std::vector<const void*> functions;
    for (const MixFunction& mix : mixes) functions.push_back(&mix);
    arguments.functions = functions.data();
    for (int64_t row = 0; row < sizes_.rows; row += arguments.rows) {
      std::vector<const std::byte*> in;
      std::vector<std::byte*> out;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        in.push_back(inputs_[i]->data() + OffsetOf(program_.inputs[i].type, row * sizes_.in_strides[i]));
      }
      for (size_t i = 0; i < outputs_.size(); ++i) {
        const ElementType type = program_.nodes[program_.outputs[i]].type;
        out.push_back(outputs_[i]->data() + OffsetOf(type, row * sizes_.out_strides[i]));
      }
      arguments.in = in.data();
      arguments.out = out.data();
      arguments.rows = row == 0 ? first_rows : sizes_.rows - row;
      arguments.resume = row == 0 ? 0 : 1;
      code.function()(&arguments);
    }
  }

  // Returns true if the accumulators of columns and the results are the same bits.
  bool EqualsInParts(const LoopRun& parts) const {
    const std::vector<ElementType> reductions = Reductions();
    for (size_t k = 0; k < reductions.size(); ++k) {
      const size_t at = k * static_cast<size_t>(sizes_.columns) * 8;
      const size_t bytes = static_cast<size_t>(sizes_.columns) * BytesOfElement(reductions[k]);
      if (std::memcmp(scratch_->data() + at, parts.scratch_->data() + at, bytes) != 0) return false;
    }
    return Equals(parts);
  }

  // Returns what is wrong with the memory between the rows of results; empty if nothing is.
  std::string CheckGaps() const {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const LoopNode& node = program_.nodes[program_.outputs[i]];
      const size_t bytes = BytesOfElement(node.type), stride = static_cast<size_t>(sizes_.out_strides[i]) * bytes;
      const size_t width = (node.row_value ? 1 : static_cast<size_t>(sizes_.columns)) * bytes;
      for (size_t row = 0; row + 1 < static_cast<size_t>(sizes_.rows); ++row) {
        for (size_t k = width; k < stride; ++k) {
          if (outputs_[i]->data()[row * stride + k] != std::byte{kUnwritten}) {
            return StrCat("output ", i, " is written after row ", row);
          }
        }
      }
    }
    return "";
  }

  // Returns true if the results are the same bits, or NaN.
  bool Equals(const LoopRun& other) const {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const LoopNode& node = program_.nodes[program_.outputs[i]];
      const size_t elements = ElementsOf(node.row_value, sizes_.out_strides[i]);
      const bool equal = VisitType(node.type, [&]<typename T>(std::type_identity<T>) {
        for (size_t k = 0; k < elements; ++k) {
          const std::byte* const mine = outputs_[i]->data() + k * sizeof(T);
          const std::byte* const its = other.outputs_[i]->data() + k * sizeof(T);
          if (std::memcmp(mine, its, sizeof(T)) == 0) continue;
          if constexpr (AnyFloat<T>) {
            T a, b;
            std::memcpy(static_cast<void*>(&a), mine, sizeof(T));
            std::memcpy(static_cast<void*>(&b), its, sizeof(T));
            if (std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b))) continue;
          }
          return false;
        }
        return true;
      });
      if (!equal) return false;
    }
    return true;
  }

 private:
  static constexpr int kUnwritten = 0xa5;

  size_t ElementsOf(bool row_value, int64_t stride) const {
    return static_cast<size_t>((sizes_.rows - 1) * stride + (row_value ? 1 : sizes_.columns));
  }

  static void Fill(ElementType type, size_t elements, std::mt19937_64* random, std::byte* to) {
    const size_t bytes = BytesOfElement(type);
    for (size_t k = 0; k < elements; ++k) {
      const uint64_t bits = (*random)();
      WriteElement(type, bits, (*random)() % 16 != 0, to + k * bytes);
    }
  }

  static ptrdiff_t OffsetOf(ElementType type, int64_t elements) {
    return static_cast<ptrdiff_t>(elements) * static_cast<ptrdiff_t>(BytesOfElement(type));
  }

  // Returns the types of the accumulators of columns.
  std::vector<ElementType> Reductions() const {
    std::vector<ElementType> types;
    for (const LoopNode& node : program_.nodes) {
      if (node.op == LoopOp::kReduce) types.push_back(node.type);
    }
    return types;
  }

  const LoopProgram& program_;
  const Sizes sizes_;
  const Edge edge_;
  std::vector<std::unique_ptr<GuardedMemory>> inputs_, outputs_;
  std::unique_ptr<GuardedMemory> scratch_;
};

// Returns true if all instruction sets give the same bits.
bool IsSetIndependent(const LoopProgram& program) {
  return std::all_of(program.nodes.begin(), program.nodes.end(),
                     [](const LoopNode& node) { return AccuracyOf(node.op) == LoopAccuracy::kExact; });
}

class GuardedLoopsTest {
 public:
  bool ParseFlag(std::string_view argument) {
    return Number(argument, "--random=", &random_) || Number(argument, "--seed=", &seed_) ||
           Number(argument, "--seconds=", &seconds_) || Number(argument, "--minimum-loops=", &minimum_loops_);
  }

  int Run() {
    std::signal(SIGSEGV, OnFault);
    std::signal(SIGBUS, OnFault);
    for (uint64_t seed = seed_; seed < seed_ + random_ && !OutOfTime(); ++seed) CheckModule(seed);
    std::printf(
        "%lld modules, %lld loops, %lld runs, %lld of them also in two parts, %lld differ; "
        "lesser instruction sets decline %lld\n",
        static_cast<long long>(modules_), static_cast<long long>(loops_), static_cast<long long>(runs_),
        static_cast<long long>(resumed_), static_cast<long long>(differ_), static_cast<long long>(declined_));
    if (static_cast<uint64_t>(loops_) < minimum_loops_) {
      std::printf("fewer than %llu loops ran (--minimum-loops)\n", static_cast<unsigned long long>(minimum_loops_));
      return 1;
    }
    return differ_ == 0 ? 0 : 1;
  }

 private:
  static bool Number(std::string_view argument, std::string_view name, uint64_t* value) {
    if (!argument.starts_with(name)) return false;
    *value = std::strtoull(std::string(argument.substr(name.size())).c_str(), nullptr, 10);
    return true;
  }
  bool OutOfTime() const { return seconds_ != 0 && Clock::now() - begin_ > std::chrono::seconds(seconds_); }

  void CheckModule(uint64_t seed) {
    random_test::RandomModuleOptions random;
    random.seed = seed;
    if (seed < kOpcodeCount) random.first = static_cast<Opcode>(seed);
    DiagnosticSink sink;
    const auto source = std::make_shared<const SourceBuffer>("random.hlo", random_test::RandomModule(random));
    const std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
    if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
    auto values = module == nullptr || sink.has_errors()
                      ? absl::StatusOr<std::vector<Literal>>(absl::InternalError("rejected"))
                      : interp::MakeFakeArguments(*module, 1, {.num_threads = 1, .max_bytes = 1 << 26, .poll = {}});
    if (!values.ok()) return;
    ++modules_;
    interp::EvaluatorOptions options;
    random_test::AnyHost host;
    options.host_io = &host;
    options.seed = 1;
    options.num_threads = 1;
    options.fill_elided = FillKind::kRandom;
    options.limits.max_bytes = int64_t{1} << 30;
    options.limits.max_seconds = 60;
    const auto kernels = std::make_shared<CompiledKernels>(interp::ObservationRequest(),
                                                           GroupOptions::OfAnySize(GroupOptions().max_members));
    const auto evaluator = PrepareWithKernels(kernels, *module, options, &sink);
    if (evaluator == nullptr) return;
    running = StrCat("the module of --random=1 --seed=", seed, "\n");
    for (const Edge edge : {Edge::kBegin, Edge::kEnd}) {
      std::vector<std::unique_ptr<GuardedMemory>> memory;
      std::vector<Literal> guarded;
      for (const Literal& value : *values) {
        memory.push_back(std::make_unique<GuardedMemory>(value.size_bytes(), edge));
        std::memcpy(memory.back()->data(), value.data(), value.size_bytes());
        guarded.push_back(Literal::Borrowed(value.shape(), memory.back()->data()));
      }
      evaluator->Run(guarded, &sink);
    }
    std::mt19937_64 sizes(seed);
    for (const CompiledLoop& loop : kernels->loops()) {
      if (loop.program.form == LoopForm::kWhile) continue;  // has no arrays
      CheckLoop(loop.program, seed, &sizes);
      // Rows in registers, and the same in memory.
      LoopProgram other = loop.program;
      const int64_t columns = static_cast<int64_t>(1 + sizes() % 140);
      other.columns = loop.program.columns > 0 ? 0 : columns;
      if (other.columns == 0 || FitsInRegisters(other, columns, interp::LanesOf(InstructionSet::kAvx512))) {
        CheckLoop(other, seed, &sizes);
      }
    }
  }

  void CheckLoop(const LoopProgram& program, uint64_t seed, std::mt19937_64* random) {
    if (!Generator().ok()) return;
    CodeGenerator* const generator = *Generator();
    ++loops_;
    std::vector<std::unique_ptr<LoadedCode>> codes;
    for (const InstructionSet set : {InstructionSet::kSse4, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
      if (set > HostInstructionSet()) break;
      const auto generated = generator->Generate(program, set, false);
      if (const GeneratedCode* const code = std::get_if<GeneratedCode>(&generated)) {
        codes.push_back(LoadedCode::Load(*code));
        if (codes.back() == nullptr) return Differ(seed, program, "no memory for code");
      } else if (set == HostInstructionSet()) {
        return Differ(seed, program, StrCat("does not compile: ", std::get<GenerationError>(generated).message));
      } else {
        ++declined_;  // as f16 without instructions for it
      }
    }
    for (const Edge edge : {Edge::kBegin, Edge::kEnd}) {
      Sizes sizes;
      sizes.rows = static_cast<int64_t>(1 + (*random)() % 4);
      sizes.columns = static_cast<int64_t>(1 + (*random)() % ((*random)() % 4 == 0 ? 300 : 75));
      if (program.columns > 0) sizes.columns = program.columns;
      // Rows lie apart, one after the other or, of inputs, at one place.
      const auto stride = [&](bool row_value, bool repeats) {
        const int64_t width = row_value ? 1 : sizes.columns;
        const uint64_t how = (*random)() % (repeats ? 4 : 3);
        return how == 3 ? 0 : width + static_cast<int64_t>(how == 2 ? (*random)() % 9 : 0);
      };
      for (const LoopInput& input : program.inputs) {
        sizes.in_strides.push_back(input.column_value ? 0 : stride(input.row_value, true));
      }
      for (const uint16_t output : program.outputs) {
        sizes.out_strides.push_back(stride(program.nodes[output].row_value, false));
      }
      const uint64_t values = (*random)();
      std::vector<std::unique_ptr<LoopRun>> runs;
      for (size_t set = 0; set < codes.size(); ++set) {
        running = StrCat("a loop of --random=1 --seed=", seed, ", instruction set ", set, ", ", sizes.rows, " rows of ",
                         sizes.columns, " elements\n", CanonicalText(program));
        runs.push_back(std::make_unique<LoopRun>(program, sizes, values, edge));
        runs.back()->Run(*codes[set], sizes.rows);
        ++runs_;
        if (program.form == LoopForm::kColumns && sizes.rows > 1) {
          LoopRun parts(program, sizes, values, edge);
          parts.Run(*codes[set], 1 + static_cast<int64_t>(values % static_cast<uint64_t>(sizes.rows - 1)));
          ++resumed_;
          if (!runs.back()->EqualsInParts(parts)) return Differ(seed, program, "rows in two parts give other values");
        }
        if (const std::string gap = runs.back()->CheckGaps(); !gap.empty()) return Differ(seed, program, gap);
        if (set > 0 && IsSetIndependent(program) && !runs.back()->Equals(*runs[0])) {
          return Differ(seed, program, "the instruction sets give different values");
        }
      }
    }
  }

  void Differ(uint64_t seed, const LoopProgram& program, const std::string& why) {
    if (++differ_ <= 10) {
      std::printf("--random=1 --seed=%llu: %s\n%s", static_cast<unsigned long long>(seed), why.c_str(),
                  CanonicalText(program).c_str());
    }
  }

  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_ = Clock::now();
  uint64_t random_ = 100, seed_ = 0, seconds_ = 0, minimum_loops_ = 0;
  int64_t modules_ = 0, loops_ = 0, runs_ = 0, resumed_ = 0, declined_ = 0, differ_ = 0;
};

int Main(int argc, char** argv) {
  GuardedLoopsTest test;
  for (int i = 1; i < argc; ++i) {
    if (test.ParseFlag(argv[i])) continue;
    std::fprintf(stderr, "usage: guarded_loops [--random=N] [--seed=N] [--seconds=N] [--minimum-loops=N]\n");
    return 2;
  }
  return test.Run();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
