// SPDX-License-Identifier: Apache-2.0
#include "check/equivalence/equivalence_check.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/container/flat_hash_set.h"
#include "check/arguments/argument_generator.h"
#include "interp/program/engine_table.h"
#include "ir/core/diagnostic.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "ir/graph/module.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// Returns the rounding errors that a rewrite may cause without declaring a tolerance, in ulps.
int UlpsOf(ElementType type) {
  const int bits = IsComplex(type) ? BitsOf(type) / 2 : BitsOf(type);
  return bits >= 32 ? 4 : bits >= 16 ? 2 : 1;
}

std::string FirstError(const DiagnosticSink& sink) {
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity != Severity::kError) continue;
    // The interpreter's message names the flag of hlo-run, which has another name here.
    std::string message = d.message;
    constexpr std::string_view kFlag = "--max-seconds";
    if (const size_t at = message.find(kFlag); at != std::string::npos) message.insert(at + 2, "run-");
    return message;
  }
  return "no results";
}

// Returns the bytes of the arrays of one device, or INT64_MAX if there are more.
int64_t BytesOf(absl::Span<const Shape> leaves) {
  int64_t total = 0;
  for (Shape leaf : leaves) {
    const int64_t bytes = leaf.IsArray() ? LiteralBytes(leaf) : 0;
    if (bytes < 0 || __builtin_add_overflow(total, bytes, &total)) return std::numeric_limits<int64_t>::max();
  }
  return total;
}

// Arguments of all devices are made before they run: returns an error if they and the results exceed the limit.
absl::Status CheckBytes(const Engine& evaluator, const Limits& limits) {
  const int64_t arguments = BytesOf(evaluator.argument_shapes()), results = BytesOf(evaluator.result_shapes());
  int64_t bytes = 0;
  if (__builtin_add_overflow(arguments, results, &bytes) ||
      __builtin_mul_overflow(bytes, evaluator.num_devices(), &bytes) || bytes > limits.max_bytes) {
    return absl::FailedPreconditionError(StrCat("arguments and results take ", arguments, " and ", results,
                                                " bytes on each of ", evaluator.num_devices(),
                                                " devices; the limit for all is ", limits.max_bytes, " bytes"));
  }
  return absl::OkStatus();
}

// Divides the arguments of each replica among its partitions.
std::vector<Literal> DivideForReplicas(const PartitionTracker::Division& division, absl::Span<const Literal> arguments,
                                       PaddingFill fill) {
  std::vector<Literal> parts;
  const size_t count = division.parameters.leaves().size();
  for (size_t begin = 0; begin + count <= arguments.size() && count > 0; begin += count) {
    std::vector<Literal> own = division.parameters.Divide(arguments.subspan(begin, count), fill);
    std::move(own.begin(), own.end(), std::back_inserter(parts));
  }
  return parts;
}

absl::StatusOr<std::vector<Literal>> AssembleOfReplicas(const PartitionTracker::Division& division,
                                                        absl::Span<const Literal> parts, int64_t replicas) {
  std::vector<Literal> results;
  const size_t count = parts.size() / static_cast<size_t>(replicas);
  for (int64_t r = 0; r < replicas; ++r) {
    absl::StatusOr<std::vector<Literal>> own =
        division.result.Assemble(parts.subspan(static_cast<size_t>(r) * count, count), "result");
    if (!own.ok()) return own.status();
    std::move(own->begin(), own->end(), std::back_inserter(results));
  }
  return results;
}

}  // namespace

double EpsilonOf(ElementType type) {
  return VisitType(type, []<typename T>(std::type_identity<T>) -> double {
    if constexpr (AnyComplex<T>) {
      return static_cast<double>(std::numeric_limits<typename T::value_type>::epsilon());
    } else if constexpr (AnyFloat<T>) {
      return static_cast<double>(std::numeric_limits<T>::epsilon());
    } else {
      return 0;
    }
  });
}

Tolerance Tolerance::OfPass(double declared) {
  Tolerance tolerance;
  tolerance.declared_ = declared;
  return tolerance;
}

Tolerance Tolerance::OfAllTypes(const ErrorSpec& spec) {
  Tolerance tolerance;
  tolerance.others_ = spec;
  return tolerance;
}

absl::StatusOr<Tolerance> Tolerance::Parse(std::string_view text) {
  Tolerance tolerance;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    std::optional<ElementType> type;
    if (const size_t equal = part.find('='); equal != std::string_view::npos) {
      type = ElementTypeFromText(part.substr(0, equal));
      if (!type || !(IsFloat(*type) || IsComplex(*type))) {
        return absl::InvalidArgumentError(StrCat(
            "tolerance `", text, "`: expected a floating-point or complex type, found `", part.substr(0, equal), "`"));
      }
      part.remove_prefix(equal + 1);
    }
    const absl::StatusOr<ErrorSpec> spec = ParseErrorSpec(part);
    if (!spec.ok()) {
      return absl::InvalidArgumentError(
          StrCat("tolerance `", text,
                 "`: expected a relative error, exact, or ulp:N, rel:X, abs:X (several separated by commas); ",
                 "`;` separates types, as in f32=1e-5;bf16=1e-2"));
    }
    const bool repeated = type ? std::any_of(tolerance.types_.begin(), tolerance.types_.end(),
                                             [&](const auto& given) { return given.first == *type; })
                               : tolerance.others_.has_value();
    if (repeated) {
      return absl::InvalidArgumentError(
          StrCat("tolerance `", text, "`: duplicate tolerance of ", type ? ToString(*type) : "all types"));
    }
    if (!type) {
      tolerance.others_ = *spec;
    } else {
      tolerance.types_.emplace_back(*type, *spec);
    }
  }
  return tolerance;
}

ErrorSpec Tolerance::Of(ElementType type) const {
  ErrorSpec spec;
  spec.ulp = 0;  // zeros of either sign are equal
  if (!IsFloat(type) && !IsComplex(type)) return spec;
  for (const auto& [of, given] : types_) {
    if (of == type) return given;
  }
  if (others_) return *others_;
  spec.ulp = UlpsOf(type);
  const double declared = declared_.value_or(0);
  if (declared > 0) {
    spec.relative = spec.absolute = std::max(declared, UlpsOf(type) * EpsilonOf(type));
  }
  return spec;
}

std::string CompareResults(absl::Span<const Literal> before, absl::Span<const Literal> after,
                           const Tolerance& tolerance) {
  const absl::StatusOr<ValueDifference> difference =
      CompareValuesByType(after, before, [&](ElementType type) { return tolerance.Of(type); });
  if (!difference.ok()) return std::string(difference.status().message());
  return difference->description;
}

namespace {

// Replaces the arguments of parameters for which there are values of their shape.
void TakeGiven(const Module& module, const std::map<std::string, Literal, std::less<>>& given,
               std::vector<Literal>* arguments) {
  size_t leaf = 0;
  for (int64_t k = 0; k < module.entry().parameter_count(); ++k) {
    const Instruction parameter = module.entry().parameter(k);
    const size_t first = leaf;
    leaf += static_cast<size_t>(parameter.shape().leaf_count());
    if (!parameter.shape().IsArray() || first >= arguments->size()) continue;
    const auto found = given.find(parameter.name());
    Literal& argument = (*arguments)[first];
    // The shapes are of different contexts.
    if (found == given.end() || ToString(found->second.shape(), false) != ToString(argument.shape(), false)) continue;
    std::memcpy(argument.data(), found->second.data(), argument.size_bytes());
  }
}

}  // namespace

absl::StatusOr<ResultSets> EvaluateOnFakeArguments(const Module& module, const EquivalenceOptions& run,
                                                   const PartitionTracker* partitions,
                                                   const ObservationRequest& request, ExecutionObserver* observer) {
  EvaluatorOptions options;
  options.observation = request;
  options.observer = observer;
  options.fill_elided = FillKind::kRandom;
  options.limits.max_seconds = run.max_seconds;
  options.limits.max_steps = run.max_steps;
  options.limits.max_seconds_flag = run.max_seconds_flag;
  options.num_replicas = module.header().replica_count;
  options.num_partitions = partitions != nullptr ? partitions->PartitionsOf(module) : module.header().num_partitions;
  const PartitionTracker::Division* const division = partitions != nullptr ? partitions->division() : nullptr;
  DiagnosticSink sink;
  const std::unique_ptr<Engine> evaluator = PrepareEngine(EngineKind::kExact, module, options, &sink);
  if (evaluator == nullptr) return absl::FailedPreconditionError(FirstError(sink));
  if (absl::Status status = CheckBytes(*evaluator, options.limits); !status.ok()) return status;
  std::chrono::steady_clock::time_point start;
  const auto is_late = [&] { return options.limits.IsOutOfTime(start); };
  const auto late = [&] {
    return absl::DeadlineExceededError(options.limits.OutOfTimeMessage("making the arguments"));
  };
  GeneratorOptions generator;
  generator.max_bytes = options.limits.max_bytes / evaluator->num_devices();
  generator.poll = [&] { return is_late() ? absl::Status(late()) : absl::OkStatus(); };
  ResultSets results;
  const int64_t sets = run.inputs + (run.special_values ? 1 : 0);
  for (int64_t set = 0; set < sets; ++set) {
    const uint64_t seed = run.seed + static_cast<uint64_t>(set);
    start = std::chrono::steady_clock::now();
    std::vector<Literal> arguments;
    const std::vector<Shape> shapes =
        division != nullptr ? division->parameters.whole_shapes() : evaluator->argument_shapes();
    // Each replica has the arguments of a whole program.
    const int64_t programs = division != nullptr ? options.num_replicas : evaluator->num_devices();
    for (int64_t d = 0; d < programs; ++d) {
      absl::StatusOr<std::vector<Literal>> own =
          MakeFakeArguments(shapes, seed + (static_cast<uint64_t>(d) << 48), generator);
      if (!own.ok()) return own.status();
      if (run.given != nullptr && set < run.inputs) TakeGiven(module, *run.given, &*own);
      std::move(own->begin(), own->end(), std::back_inserter(arguments));
    }
    if (set >= run.inputs) {
      for (size_t i = 0; i < arguments.size(); ++i) FillSpecial(run.seed + (uint64_t{i} << 32), &arguments[i], is_late);
    }
    if (is_late()) return late();
    if (division != nullptr) {
      arguments = DivideForReplicas(*division, arguments, kPaddingFills[static_cast<size_t>(set + 1) % 3]);
    }
    std::optional<std::vector<Literal>> values = evaluator->Run(arguments, &sink);
    if (!values) return absl::FailedPreconditionError(FirstError(sink));
    if (division != nullptr) {
      absl::StatusOr<std::vector<Literal>> whole = AssembleOfReplicas(*division, *values, options.num_replicas);
      if (!whole.ok()) return whole.status();
      values = *std::move(whole);
    }
    results.push_back(*std::move(values));
  }
  return results;
}

namespace {

// Keeps the values of the instructions for which there are literals.
class EntryValueRecorder : public ExecutionObserver {
 public:
  explicit EntryValueRecorder(std::vector<Literal>* values) : values_(*values) {}

  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> /*operands*/) override {
    if (id.value >= values_.size() || values.size() != 1 || !values_[id.value].shape().valid()) return absl::OkStatus();
    std::memcpy(values_[id.value].data(), values[0], values_[id.value].size_bytes());
    seen_.insert(id.value);
    return absl::OkStatus();
  }
  bool HasSeen(size_t id) const { return seen_.contains(static_cast<uint32_t>(id)); }

 private:
  std::vector<Literal>& values_;
  absl::flat_hash_set<uint32_t> seen_;
};

}  // namespace

std::vector<Literal> RecordEntryValues(const Module& module, const EquivalenceOptions& options) {
  constexpr int64_t kMaxElements = 64;
  if (module.header().replica_count != 1 || module.header().num_partitions != 1) return {};
  EquivalenceOptions once = options;
  once.inputs = 1;
  once.special_values = false;
  std::vector<Literal> values(module.instruction_id_bound());
  ObservationRequest request;
  request.instructions.resize(values.size());
  for (Instruction i : module.entry().instructions()) {
    const Shape shape = i.shape();
    if (!shape.IsArray() || shape.has_dynamic_dims()) continue;
    if (shape.element_count() < 0 || shape.element_count() > kMaxElements) continue;
    values[i.id().value] = Literal::Zeros(shape);
    request.instructions[i.id().value] = true;
  }
  EntryValueRecorder recorder(&values);
  const absl::StatusOr<ResultSets> results = EvaluateOnFakeArguments(module, once, nullptr, request, &recorder);
  if (!results.ok()) return {};
  for (size_t id = 0; id < values.size(); ++id) {
    if (!recorder.HasSeen(id)) values[id] = Literal();
  }
  return values;
}

std::string EquivalenceCheck::NameOfSet(size_t set) const {
  if (IsSpecial(set)) return "special values";
  return StrCat("seed ", options_.seed + set);
}

absl::Status EquivalenceCheck::RunBeforePass(const PassRun& run, const Module& module) {
  ++passes_;
  redefined_ = UncomparedResults();
  redefined_.Add(module, run.info.redefines);
  if (options_.special_values) {
    unordered_.Add(DependentResults(module, SortsByPartialOrder), kUnorderedSort);
  }
  if (!partitions_) partitions_.emplace(module);
  partitions_->RunBeforePass(module);
  if (evaluated_) return absl::OkStatus();
  absl::StatusOr<ResultSets> results = EvaluateOnFakeArguments(module, options_, &*partitions_);
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
  ++compared_;
  all_redefined_.Add(redefined_);
  partitions_->RunAfterPass(module);
  const absl::StatusOr<ResultSets> results = EvaluateOnFakeArguments(module, options_, &*partitions_);
  if (!results.ok()) {
    return absl::FailedPreconditionError(StrCat("cannot run the module after pass `", run.info.name, "` (run ",
                                                run.number, "): ", std::string(results.status().message())));
  }
  declared_ = std::max(declared_, run.info.tolerance);
  const Tolerance tolerance = options_.tolerance.value_or(Tolerance::OfPass(declared_));
  for (size_t set = 0; set < results->size(); ++set) {
    std::vector<Literal>& before = results_[set];
    const std::vector<Literal>& after = (*results)[set];
    // Results of one device after another.
    for (size_t k = 0; k < before.size() && k < after.size(); ++k) {
      if (redefined_.Contains(k) || (IsSpecial(set) && unordered_.Contains(k))) before[k] = after[k];
    }
    const absl::StatusOr<ValueDifference> difference =
        CompareValuesByType(after, before, [&](ElementType type) { return tolerance.Of(type); });
    const std::string what = difference.ok() ? difference->description : std::string(difference.status().message());
    if (!what.empty()) {
      return absl::FailedPreconditionError(StrCat("different results after pass `", run.info.name, "` (run ",
                                                  run.number, ", ", NameOfSet(set), "): ", what));
    }
    largest_.max_ulp = std::max(largest_.max_ulp, difference->max_ulp);
    largest_.max_absolute = std::max(largest_.max_absolute, difference->max_absolute);
  }
  return absl::OkStatus();
}

std::string EquivalenceCheck::Summary() const {
  if (!evaluated_) return "nothing was run, since there are no passes";
  if (compared_ == 0)
    return StrCat("no result compared: 0 of ", Counted(passes_, "pass", "passes"), " changed the module");
  int64_t elements = 0, results = 0;
  for (size_t k = 0; k < results_[0].size(); ++k) {
    const Literal& result = results_[0][k];
    if (all_redefined_.Contains(k)) continue;
    ++results;
    if (result.shape().IsArray()) elements += result.element_count();
  }
  const std::string uncompared = Uncompared();
  if (results == 0) {
    return StrCat("no result compared after ", Counted(compared_, "pass", "passes"), " that changed the module (of ",
                  passes_, "): ", uncompared.empty() ? "the module returns none" : uncompared);
  }
  std::string text = StrCat("same results after each of ", Counted(compared_, "pass", "passes"),
                            " that changed the module (of ", passes_, "): ", Counted(results, "result"), " of ",
                            Counted(elements, "element"), ", on ", Counted(options_.inputs, "set"), " of arguments");
  StrAppend(&text, " (", NameOfSet(0),
            options_.inputs > 1 ? StrCat(" to ", options_.seed + static_cast<uint64_t>(options_.inputs) - 1) : "",
            options_.special_values ? ", and special values" : "", ")");
  if (largest_.max_ulp == 0) {
    text += "; equal";
  } else {
    StrAppend(&text, "; largest difference ", FormatDouble(largest_.max_ulp, 4), " ulp, ",
              FormatDouble(largest_.max_absolute, 4));
  }
  return uncompared.empty() ? text : StrCat(text, "; ", uncompared);
}

std::string EquivalenceCheck::Uncompared() const {
  const std::string redefined = all_redefined_.ToString();
  const std::string unordered = compared_ == 0 ? std::string() : unordered_.ToString("results of special values");
  return StrCat(redefined, redefined.empty() || unordered.empty() ? "" : "; ", unordered);
}

}  // namespace hlokit::interp
