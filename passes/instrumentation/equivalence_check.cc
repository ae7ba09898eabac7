// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/equivalence_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/core/diagnostic.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

bool Close(double a, double b, double relative, double least) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) <= std::max(relative * std::max(std::fabs(a), std::fabs(b)), least);
}

template <typename T>
std::string CompareArrays(const Literal& before, const Literal& after, double tolerance) {
  double largest = 0;
  if (tolerance > 0) {
    for (const T& v : before.values<T>()) {
      if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
        if (std::isfinite(std::abs(v))) largest = std::max<double>(largest, std::abs(v));
      } else if (std::isfinite(static_cast<double>(v))) {
        largest = std::max(largest, std::fabs(static_cast<double>(v)));
      }
    }
  }
  const absl::Span<const T> a = before.values<T>(), b = after.values<T>();
  const bool exact = !IsFloat(before.shape().element_type()) && !IsComplex(before.shape().element_type());
  for (size_t i = 0; i < a.size(); ++i) {
    std::string x, y;
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      using Part = typename T::value_type;
      const double relative = std::max(tolerance, 4.0 * std::numeric_limits<Part>::epsilon());
      const double least = relative * std::max<double>({std::abs(a[i]), std::abs(b[i]), largest});
      if (Close(a[i].real(), b[i].real(), relative, least) && Close(a[i].imag(), b[i].imag(), relative, least))
        continue;
      x = StrCat(FormatDouble(a[i].real(), 17), "+", FormatDouble(a[i].imag(), 17), "i");
      y = StrCat(FormatDouble(b[i].real(), 17), "+", FormatDouble(b[i].imag(), 17), "i");
    } else if constexpr (std::is_integral_v<T>) {
      if (a[i] == b[i]) continue;
      x = StrCat(static_cast<int64_t>(a[i])), y = StrCat(static_cast<int64_t>(b[i]));
    } else {
      const double p = static_cast<double>(a[i]), q = static_cast<double>(b[i]);
      double relative = tolerance, least = tolerance * largest;
      if (exact) {
        relative = least = 0;
      } else if constexpr (requires { std::numeric_limits<T>::denorm_min(); }) {
        // The tolerance is at least four ulps.
        relative = std::max(relative, 4.0 * static_cast<double>(std::numeric_limits<T>::epsilon()));
        least = std::max(least, 4.0 * static_cast<double>(std::numeric_limits<T>::denorm_min()));
      }
      if (Close(p, q, relative, least)) continue;
      x = FormatDouble(p, 17), y = FormatDouble(q, 17);
    }
    return StrCat("element ", i, " of ", ToString(before.shape(), false), ": expected ", x, ", found ", y);
  }
  return "";
}

}  // namespace

absl::Status VerifyEach::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  if (!changed) return absl::OkStatus();
  DiagnosticSink sink;
  VerifyModule(module, options_, &sink);
  if (!sink.has_errors()) return absl::OkStatus();
  std::string text = StrCat("invalid module after pass `", run.info.name, "` (run ", run.number, ")");
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) StrAppend(&text, "\n  ", d.message);
  }
  return absl::InternalError(text);
}

std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes) {
  std::vector<uint8_t> depends(module.instruction_id_bound(), 0), holds(module.computation_id_bound(), 0);
  for (ComputationId id : ComputationPostOrder(module)) {
    for (InstructionId at : PostOrder(module.computation(id))) {
      const Instruction i = module.instruction(at);
      bool dependent = std::find(opcodes.begin(), opcodes.end(), i.opcode()) != opcodes.end();
      for (Instruction operand : i.operands()) dependent |= depends[operand.id().value] != 0;
      i.ForEachCallee([&](Computation callee) { dependent |= holds[callee.id().value] != 0; });
      depends[at.value] = dependent ? 1 : 0;
      if (dependent) holds[id.value] = 1;
    }
  }
  const Instruction root = module.entry().root();
  std::vector<uint8_t> results;
  const auto add = [&](Instruction i) {
    results.resize(results.size() + static_cast<size_t>(i.shape().leaf_count()), depends[i.id().value]);
  };
  if (root.opcode() != Opcode::kTuple) {
    add(root);
  } else {
    for (Instruction operand : root.operands()) add(operand);
  }
  return results;
}

absl::Status EquivalenceCheck::RunBeforePass(const PassRun& run, const Module& module) {
  redefined_.clear();
  if (!run.info.redefines.empty()) redefined_ = DependentResults(module, run.info.redefines);
  if (evaluated_) return absl::OkStatus();
  absl::StatusOr<std::vector<Literal>> results = evaluate_(module);
  if (!results.ok()) {
    return absl::FailedPreconditionError(
        StrCat("cannot run the module before the passes: ", std::string(results.status().message())));
  }
  results_ = *std::move(results);
  evaluated_ = true;
  return absl::OkStatus();
}

absl::Status EquivalenceCheck::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  if (!changed) return absl::OkStatus();
  const absl::StatusOr<std::vector<Literal>> results = evaluate_(module);
  if (!results.ok()) {
    return absl::FailedPreconditionError(StrCat("cannot run the module after pass `", run.info.name, "` (run ",
                                                run.number, "): ", std::string(results.status().message())));
  }
  needed_ = std::max(needed_, run.info.tolerance > 0 ? run.info.tolerance : -1);
  for (size_t k = 0; k < redefined_.size() && k < results_.size() && k < results->size(); ++k) {
    if (redefined_[k] != 0) results_[k] = (*results)[k];
  }
  const std::string difference = CompareResults(results_, *results, tolerance_.value_or(needed_));
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("different results after pass `", run.info.name, "` (run ", run.number, "): ", difference));
}

std::string CompareResults(absl::Span<const Literal> before, absl::Span<const Literal> after, double tolerance) {
  if (before.size() != after.size()) {
    return StrCat("expected ", before.size(), " results, found ", after.size());
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const Shape shape = before[i].shape();
    if (!SameShape(shape, after[i].shape(), /*ignore_layout=*/true)) {
      return StrCat("result ", i, ": expected shape ", ToString(shape), ", found ", ToString(after[i].shape()));
    }
    if (!shape.IsArray()) continue;
    const std::string difference = VisitType(shape.element_type(), [&]<typename T>(std::type_identity<T>) {
      return CompareArrays<T>(before[i], after[i], tolerance);
    });
    if (!difference.empty()) return StrCat("result ", i, ": ", difference);
  }
  return "";
}

}  // namespace hlokit
