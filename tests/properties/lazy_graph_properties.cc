// SPDX-License-Identifier: Apache-2.0
// Records random programs with the tracer and checks that two have the same lazy IR text if and only if they have the
// same cache key: what is in the key is printed, and nothing else is in the key. The text, read and recorded again, is
// the same text.
//
//   lazy_graph_properties [--count=N] [--seed=N] [--seconds=N]
//
// A program is a few calls with few different arguments, in several spellings, so that many programs are equal.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/core/str_cat.h"
#include "tests/properties/random_call.h"
#include "tests/random/text_builder.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_reader.h"
#include "tracer/text/ir_text.h"
#include "tracer/text/record/ir_builder.h"

namespace hlokit::lazy {
namespace {

using random_test::Random;

constexpr size_t kMaxPrograms = 200000;  // remembered

// Returns another spelling of a number or list: true, 1 and 1.0; 2 and (2, 2).
IValue Respelled(const IValue& value, Random& random) {
  if (const Scalar* s = value.get<Scalar>()) {
    switch (random.In(0, 3)) {
      case 0:
        return s->ToBool();
      case 1:
        return s->ToInt();
      case 2:
        return s->ToDouble();
      default:
        return value;
    }
  }
  if (const IntList* list = value.get<IntList>(); list != nullptr && !list->empty() && random.OneIn(2)) {
    return IntList(1, int64_t{(*list)[0]});
  }
  return value;
}

// The tensors that programs use: few, some of them the same.
Tensors Leaves(Tracer* tracer) {
  Tensors leaves;
  for (const ElementType type : {ElementType::kF32, ElementType::kF32, ElementType::kS64, ElementType::kPred}) {
    for (const IntList& dims : {IntList{}, IntList{3}, IntList{3, 3}}) {
      leaves.push_back(tracer->FromLiteral(Literal::Zeros(tracer->device()->ArrayShape(type, dims))));
    }
  }
  return leaves;
}

// Records a program and returns its results; empty after an error.
Tensors RecordProgram(Tracer* tracer, const std::vector<Op>& ops, uint64_t seed) {
  Random random(seed);
  const Tensors leaves = Leaves(tracer);
  Tensors values = leaves;
  Tensors results;
  const int64_t calls = random.In(1, 3);
  // Few ops in one stretch of seeds.
  const uint64_t stretch = seed / 4096;
  for (int64_t i = 0; i < calls; ++i) {
    const Op op = ops[(stretch * 5 + static_cast<uint64_t>(random.In(0, 4))) % ops.size()];
    Args args = RandomCall(tracer, op, static_cast<uint64_t>(random.In(0, 40)), /*oddness=*/2).args();
    for (IValue& arg : args) {
      if (arg.get<Tensor>() != nullptr && random.In(0, 3) != 0) {
        arg = random.OneIn(6) ? IValue() : IValue(random.Of(values));
      } else {
        arg = Respelled(arg, random);
      }
    }
    const Outputs outputs = Dispatch(op, std::move(args));
    if (!tracer->status().ok()) continue;
    for (const Tensor& t : outputs) {
      if (t.defined()) values.push_back(t);
      if (t.defined()) results.push_back(t);
    }
  }
  tracer->ClearStatus();
  Tensors roots;
  for (const Tensor& t : results) {
    if (random.In(0, 2) != 0) roots.push_back(t);
  }
  if (!roots.empty() && random.OneIn(4)) roots.push_back(random.Of(roots));
  return roots;
}

class Pairs {
 public:
  // Returns the other program's text or key if one of both is known with another partner; "" if they agree.
  std::string Check(const std::string& text, const std::string& key) {
    const auto by_text = keys_.emplace(text, key);
    const auto by_key = texts_.emplace(key, text);
    equal_ += by_text.second ? 0 : 1;
    if (by_text.first->second != key) return "the same text has another key:\n" + text;
    if (by_key.first->second != text) {
      return "the same key has another text:\n" + text + "and\n" + by_key.first->second;
    }
    return "";
  }
  size_t different() const { return keys_.size(); }
  uint64_t equal() const { return equal_; }

 private:
  std::unordered_map<std::string, std::string> keys_;   // by text
  std::unordered_map<std::string, std::string> texts_;  // by key
  uint64_t equal_ = 0;
};

// Returns the text of the graph that the text describes, or the error.
std::string ReadAgain(Tracer* tracer, const std::string& text) {
  TextDump dump;
  DiagnosticSink sink;
  Tensors roots;
  const auto parameter = [&](int64_t number, Shape shape, SourceRange) {
    return SyntheticParameter(*tracer, number, shape);
  };
  if (!ReadGraphs(std::make_shared<const SourceBuffer>("program", text), &dump, &sink) ||
      !BuildGraph(dump, dump.graphs[0], *tracer, parameter, &roots, &sink)) {
    return StrCat("error: ", sink.diagnostics().empty() ? "" : sink.diagnostics()[0].message);
  }
  return TensorsToString(roots);
}

bool Flag(std::string_view argument, std::string_view name, uint64_t* value) {
  if (!argument.starts_with(name)) return false;
  *value = std::strtoull(std::string(argument.substr(name.size())).c_str(), nullptr, 10);
  return true;
}

int Run(int argc, char** argv) {
  uint64_t count = 20000, seed = 0, seconds = 0;
  for (int i = 1; i < argc; ++i) {
    if (!Flag(argv[i], "--count=", &count) && !Flag(argv[i], "--seed=", &seed) &&
        !Flag(argv[i], "--seconds=", &seconds)) {
      std::fprintf(stderr, "usage: lazy_graph_properties [--count=N] [--seed=N] [--seconds=N]\n");
      return 2;
    }
  }
  std::vector<Op> ops;
  for (size_t i = 0; i < kOpCount; ++i) {
    // A fallback computes; a node without a lowering is of no program.
    if ((InfoOf(static_cast<Op>(i)).flags & (kFallback | kInternal)) == 0) ops.push_back(static_cast<Op>(i));
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  TracerOptions options;
  options.client.evaluator.num_threads = 1;
  options.warn_pending_nodes = int64_t{1} << 40;
  // One tracer each: the words of the in-process key are of one device.
  std::unique_ptr<Tracer> tracer;
  Pairs digests, words;
  uint64_t programs = 0, failed = 0;
  for (uint64_t next = seed * count; next < (seed + 1) * count && digests.different() < kMaxPrograms; ++next) {
    if (seconds != 0 && Clock::now() - begin > std::chrono::seconds(seconds)) break;
    if (programs % 20000 == 0) {
      tracer = std::make_unique<Tracer>(options);
      words = Pairs();
    }
    const DeviceGuard guard(tracer->device());
    const Tensors roots = RecordProgram(tracer.get(), ops, next);
    if (roots.empty()) continue;
    DeviceState& device = *tracer->device();
    DeviceLock lock(device.mutex());
    const PendingSubgraph slice = CollectSubgraphOfTensors(roots);
    const std::string text = GraphToString(device, slice);
    const std::string digest_failure = digests.Check(text, ToString(HashOf(device, slice, {})));
    const absl::Span<const uint32_t> key = KeyOf(device, slice, {});
    const std::string in_process(reinterpret_cast<const char*>(key.data()), key.size() * sizeof(uint32_t));
    const std::string again = ReadAgain(tracer.get(), text);
    const std::string reading = again == text ? "" : StrCat("read again it differs:\n", text, "and\n", again);
    for (const std::string& failure : {digest_failure, words.Check(text, in_process), reading}) {
      if (failure.empty()) continue;
      if (++failed <= 5) std::printf("program %llu: %s\n", static_cast<unsigned long long>(next), failure.c_str());
    }
    ++programs;
  }
  if (programs > 1000 && digests.equal() * 20 < programs) {
    std::printf("too few equal programs\n");
    ++failed;
  }
  std::printf("%llu programs, %zu different, %llu failed\n", static_cast<unsigned long long>(programs),
              digests.different(), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::lazy

int main(int argc, char** argv) { return hlokit::lazy::Run(argc, argv); }
