// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/process_calls.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "interp/custom_calls/custom_calls.h"
#include "interp/custom_calls/gpu_arrays.h"
#include "interp/custom_calls/gpu_calls.h"
#include "interp/custom_calls/lapack_calls.h"
#include "interp/custom_calls/matrix_calls.h"
#include "interp/custom_calls/tpu_calls.h"
#include "ir/core/hashing.h"
#include "ir/graph/module.h"

namespace hlokit::interp {
namespace {

struct ProcessCalls {
  std::mutex mutex;
  std::map<std::string, CustomCallFunction, std::less<>> functions;
  std::function<bool(std::string_view)> matches;
  std::set<std::string> stubbed;

  static ProcessCalls& Get() {
    static auto* const calls = new ProcessCalls();
    return *calls;
  }
};

// A number in [-1, 1).
double Weight(uint64_t seed, uint64_t index) {
  const uint64_t bits = MixHash(seed + 0x9e3779b97f4a7c15u, index * 0xbf58476d1ce4e5b9u + 1) >> 11;
  return static_cast<double>(bits) * 0x1p-52 - 1;
}

// Finite, also of NaN and infinities.
double Squash(double x) {
  if (std::isnan(x)) return 0.5;
  return std::isinf(x) ? (x > 0 ? 1 : -1) : x / (1 + std::abs(x));
}

absl::Status Stub(uint64_t seed, absl::Span<const CustomCallOperand> operands,
                  absl::Span<const CustomCallResult> results) {
  // Each operand as a whole, and its elements.
  std::vector<double> totals;
  std::vector<std::vector<double>> elements;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].shape.IsArray()) continue;
    const NumberArray array = ReadArray(operands[k]);
    std::vector<double> values;
    double total = 0;
    for (size_t i = 0; i < array.values.size(); ++i) {
      values.push_back(Squash(array.values[i].real()) + 0.5 * Squash(array.values[i].imag()));
      total += Weight(seed + k, i) * values.back();
    }
    totals.push_back(array.values.empty() ? 0 : total / std::sqrt(static_cast<double>(array.values.size())));
    elements.push_back(std::move(values));
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const Shape shape = results[r].shape;
    if (!shape.IsArray()) continue;
    std::vector<Complex> made(static_cast<size_t>(shape.element_count()));
    const bool integers = IsInteger(shape.element_type()), bits = shape.element_type() == ElementType::kPred;
    for (size_t i = 0; i < made.size(); ++i) {
      double sum = Weight(seed ^ (r + 1), i);
      for (size_t k = 0; k < totals.size(); ++k) {
        sum += totals[k] * Weight(seed + r, i * totals.size() + k);
        if (!elements[k].empty()) sum += 0.5 * elements[k][i % elements[k].size()];
      }
      const double x = 2 * Squash(sum);
      made[i] = Complex(integers ? std::floor(4 * (x + 2))
                        : bits   ? (x > 0 ? 1.0 : 0.0)
                                 : x,
                        IsComplex(shape.element_type()) ? Weight(seed ^ (r + 7), i) : 0.0);
    }
    WriteArray(made, results[r]);
  }
  return absl::OkStatus();
}

// Returns true for calls that engines run without a function.
bool IsKnown(std::string_view target) {
  return IsMarkerTarget(target) || IsNopTarget(target) || target == "TopK" || FindMatrixCall(target) != nullptr;
}

}  // namespace

void RegisterProcessCall(std::string target, CustomCallFunction function) {
  ProcessCalls& calls = ProcessCalls::Get();
  const std::lock_guard<std::mutex> lock(calls.mutex);
  if (function == nullptr) {
    calls.functions.erase(target);
  } else {
    calls.functions[std::move(target)] = std::move(function);
  }
}

void StubProcessCalls(std::function<bool(std::string_view target)> matches) {
  ProcessCalls& calls = ProcessCalls::Get();
  const std::lock_guard<std::mutex> lock(calls.mutex);
  calls.matches = std::move(matches);
}

std::vector<std::string> StubbedTargets() {
  ProcessCalls& calls = ProcessCalls::Get();
  const std::lock_guard<std::mutex> lock(calls.mutex);
  return {calls.stubbed.begin(), calls.stubbed.end()};
}

CustomCallFunction FunctionFor(Instruction call) {
  const std::string_view target = call.string_attr(Attr::kCustomCallTarget);
  ProcessCalls& calls = ProcessCalls::Get();
  {
    const std::lock_guard<std::mutex> lock(calls.mutex);
    if (const auto found = calls.functions.find(target); found != calls.functions.end()) return found->second;
  }
  for (const auto& find : {TpuCallFor, GpuCallFor}) {
    if (CustomCallFunction function = find(call); function != nullptr) return function;
  }
  if (CustomCallFunction function = LapackCallFor(target); function != nullptr) return function;
  const std::lock_guard<std::mutex> lock(calls.mutex);
  if (calls.matches == nullptr || IsKnown(target) || !calls.matches(target)) return nullptr;
  calls.stubbed.insert(std::string(target));
  return [seed = HashBytes(target)](absl::Span<const CustomCallOperand> operands,
                                    absl::Span<const CustomCallResult> results,
                                    std::string_view) { return Stub(seed, operands, results); };
}

}  // namespace hlokit::interp
