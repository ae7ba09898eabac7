// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/module_measure.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <complex>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/side_effects.h"
#include "ir/text/frontend_attributes.h"
#include "ir/types/float_types.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"
#include "passes/target/tiling.h"

namespace hlokit::properties {
namespace {

// ---- predicates ----

bool IsArray(Instruction i) { return i.shape().IsArray(); }
ElementType TypeOf(Instruction i) { return i.shape().element_type(); }
bool HasArrayOperand(Instruction i) { return IsArray(i) && i.operand_count() > 0 && IsArray(i.operand(0)); }

bool IsFusionOf(Instruction i, FusionKind kind) {
  return i.opcode() == Opcode::kFusion && i.enum_attr(Attr::kFusionKind, FusionKind::kCustom) == kind;
}

bool IsInVmem(Shape shape) { return shape.IsArray() && shape.has_layout() && shape.layout()->memory_space() == 1; }

// Batch dimensions first, then at most one free and one contracting dimension.
bool IsSimpleDot(Instruction dot) {
  const DotDims dims = DotDims::Of(dot);
  const auto simple = [](Shape shape, absl::Span<const int64_t> batch, absl::Span<const int64_t> contracting) {
    for (size_t k = 0; k < batch.size(); ++k) {
      if (batch[k] != static_cast<int64_t>(k)) return false;
    }
    return contracting.size() == 1 && shape.rank() <= static_cast<int64_t>(batch.size()) + 2;
  };
  return simple(dot.operand(0).shape(), dims.lhs_batch, dims.lhs_contracting) &&
         simple(dot.operand(1).shape(), dims.rhs_batch, dims.rhs_contracting);
}

// One dimension of index vectors, whole windows after it, and indices of the first dimensions of the array.
bool IsSimpleScatter(Instruction scatter) {
  const ScatterDims dims = ScatterDims::Of(scatter);
  const absl::Span<const int64_t> window = dims.update_window_dims, indexed = dims.scatter_dims_to_operand_dims;
  const Shape indices = scatter.operand((scatter.operand_count() - 1) / 2).shape();
  return indices.rank() == 2 && dims.index_vector_dim == 1 && dims.inserted_window_dims.empty() &&
         std::is_sorted(window.begin(), window.end()) && (window.empty() || window[0] == 1) &&
         std::is_sorted(indexed.begin(), indexed.end()) &&
         (indexed.empty() || indexed.back() + 1 == static_cast<int64_t>(indexed.size()));
}

bool HasUnitBatch(Instruction i) {
  if (i.opcode() != Opcode::kDot) return false;
  for (int64_t d : DotDims::Of(i).lhs_batch) {
    if (i.operand(0).shape().dim(d) == 1) return true;
  }
  return false;
}

bool SortsDimensions(Instruction i) {
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  return std::is_sorted(dims.begin(), dims.end());
}

// Returns true unless the result of a transpose has its elements in the order of the operand, by the layouts.
bool MovesInMemory(Instruction transpose) {
  const auto minor_to_major = [](Shape shape) {
    std::vector<int64_t> dims(static_cast<size_t>(shape.rank()));
    if (shape.has_layout()) {
      const absl::Span<const int64_t> given = shape.layout()->minor_to_major;
      dims.assign(given.begin(), given.end());
    } else {
      std::iota(dims.rbegin(), dims.rend(), 0);
    }
    return dims;
  };
  std::vector<int64_t> order = minor_to_major(transpose.shape());
  for (int64_t& d : order) d = transpose.list_attr(Attr::kDimensions)[static_cast<size_t>(d)];
  return order != minor_to_major(transpose.operand(0).shape());
}

// Returns true if the result of a reduction has its dimensions in another memory order than the first operand.
bool Reorders(Instruction i) {
  const Shape result = i.shape().IsTuple() ? i.shape().element(0) : i.shape();
  if (i.opcode() != Opcode::kReduce || !result.has_layout() || !i.operand(0).shape().has_layout()) return false;
  const absl::Span<const int64_t> reduced = i.list_attr(Attr::kDimensions);
  std::vector<int64_t> left;  // dimensions of the operand, by dimension of the result
  for (int64_t d = 0; d < i.operand(0).shape().rank(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) left.push_back(d);
  }
  const absl::Span<const int64_t> order = i.operand(0).shape().layout()->minor_to_major;
  auto at = order.begin();
  for (int64_t d : result.layout()->minor_to_major) {
    at = std::find(at, order.end(), left[static_cast<size_t>(d)]);
    if (at == order.end()) return true;
  }
  return false;
}

// Returns true if the arrays of a reduction are in different memory orders.
bool HasMixedLayouts(Instruction i) {
  if (i.opcode() != Opcode::kReduce) return false;
  for (int64_t k = 0; k < i.operand_count() / 2; ++k) {
    const Shape first = i.operand(0).shape(), shape = i.operand(k).shape();
    if (first.has_layout() && shape.has_layout() && first.layout()->minor_to_major != shape.layout()->minor_to_major) {
      return true;
    }
  }
  return false;
}

// Returns true for a dot of an array that a reshape gave fewer dimensions, perhaps transposed or converted since.
bool IsDotOfMerged(Instruction i) {
  if (i.opcode() != Opcode::kDot) return false;
  for (Instruction operand : i.operands()) {
    while (operand.opcode() == Opcode::kTranspose || operand.opcode() == Opcode::kConvert) operand = operand.operand(0);
    if (operand.opcode() == Opcode::kReshape && operand.operand(0).shape().rank() > operand.shape().rank()) return true;
  }
  return false;
}

struct NamedPredicate {
  std::string_view name;
  Predicate holds;
};
constexpr NamedPredicate kPredicates[] = {
    {"array", [](Instruction i) { return IsArray(i) && i.shape().rank() > 0; }},
    {"scalar", [](Instruction i) { return i.shape().IsScalar(); }},
    {"empty", [](Instruction i) { return IsArray(i) && i.shape().element_count() == 0; }},
    {"filled", [](Instruction i) { return IsArray(i) && i.shape().element_count() != 0; }},
    {"dynamic", [](Instruction i) { return i.shape().has_dynamic_dims(); }},
    {"tuple", [](Instruction i) { return i.shape().IsTuple(); }},
    {"integer", [](Instruction i) { return IsArray(i) && IsInteger(TypeOf(i)); }},
    {"of-integers", [](Instruction i) { return HasArrayOperand(i) && IsInteger(TypeOf(i.operand(0))); }},
    {"bf16", [](Instruction i) { return IsArray(i) && TypeOf(i) == ElementType::kBF16; }},
    {"elementwise", [](Instruction i) { return HasTrait(i.opcode(), kElementwise); }},
    {"computed", [](Instruction i) { return i.opcode() != Opcode::kConstant && i.opcode() != Opcode::kParameter; }},
    {"variable", [](Instruction i) { return i.opcode() != Opcode::kConstant; }},
    // Of the result and operand 0.
    {"same-shape", [](Instruction i) { return HasArrayOperand(i) && i.shape() == i.operand(0).shape(); }},
    {"same-count",
     [](Instruction i) {
       return HasArrayOperand(i) && i.shape().element_count() == i.operand(0).shape().element_count();
     }},
    {"narrows", [](Instruction i) { return HasArrayOperand(i) && BitsOf(TypeOf(i)) < BitsOf(TypeOf(i.operand(0))); }},
    {"widens", [](Instruction i) { return HasArrayOperand(i) && BitsOf(TypeOf(i)) > BitsOf(TypeOf(i.operand(0))); }},
    {"sorted-dims", SortsDimensions},
    {"unsimple",
     [](Instruction i) {
       return (i.opcode() == Opcode::kDot && !IsSimpleDot(i)) ||
              (i.opcode() == Opcode::kScatter && !IsSimpleScatter(i));
     }},
    {"unit-batch", HasUnitBatch},
    {"several-batch", [](Instruction i) { return i.opcode() == Opcode::kDot && DotDims::Of(i).lhs_batch.size() > 1; }},
    {"of-merged", IsDotOfMerged},
    {"grouped", [](Instruction i) { return i.int_attr(Attr::kFeatureGroupCount, 1) > 1; }},
    {"batch-grouped", [](Instruction i) { return i.int_attr(Attr::kBatchGroupCount, 1) > 1; }},
    {"batching", [](Instruction i) { return !i.list_attr(Attr::kInputBatchingDims).empty(); }},
    {"of-real", [](Instruction i) { return HasArrayOperand(i) && !IsComplex(TypeOf(i.operand(0))); }},
    {"sharded", [](Instruction i) { return i.has(Attr::kSharding); }},
    {"shardy",
     [](Instruction i) {
       return i.string_attr(Attr::kCustomCallTarget).starts_with("xla.sdy.") ||
              FindFrontendAttribute(i, "xla.sdy.sharding").valid();
     }},
    {"attributed",
     [](Instruction i) {
       return i.has(Attr::kSharding) || i.has(Attr::kFrontendAttributes) || i.has(Attr::kOperandPrecision);
     }},
    {"ordered", [](Instruction i) { return i.has(Attr::kControlPredecessors); }},
    {"counted",
     [](Instruction i) {
       return i.string_attr(Attr::kBackendConfig).find("known_trip_count") != std::string_view::npos;
     }},
    {"fp8", [](Instruction i) { return IsArray(i) && IsFloat(TypeOf(i)) && BitsOf(TypeOf(i)) <= 8; }},
    {"f16", [](Instruction i) { return IsArray(i) && TypeOf(i) == ElementType::kF16; }},
    {"stable", [](Instruction i) { return i.bool_attr(Attr::kIsStable); }},
    {"of-entry", [](Instruction i) { return i.parent().is_entry(); }},
    {"loop", [](Instruction i) { return IsFusionOf(i, FusionKind::kLoop); }},
    {"input", [](Instruction i) { return IsFusionOf(i, FusionKind::kInput); }},
    {"output", [](Instruction i) { return IsFusionOf(i, FusionKind::kOutput); }},
    {"vmem", [](Instruction i) { return IsInVmem(i.shape()); }},
    {"to-vmem", [](Instruction i) { return i.opcode() == Opcode::kCopyStart && IsInVmem(i.shape().element(0)); }},
    {"from-vmem", [](Instruction i) { return i.opcode() == Opcode::kCopyStart && IsInVmem(i.shape().element(1)); }},
    {"in-host-memory",
     [](Instruction i) {
       return IsArray(i) && i.shape().has_layout() && i.shape().layout()->memory_space() == tpu::kHostMemorySpace;
     }},
    {"special-layout",
     [](Instruction i) { return IsArray(i) && i.shape().has_layout() && !i.shape().layout()->is_default; }},
    {"reorders", Reorders},
    {"mixed-layouts", HasMixedLayouts},
    {"top-k",
     [](Instruction i) {
       return i.opcode() == Opcode::kCustomCall && i.string_attr(Attr::kCustomCallTarget) == "TopK";
     }},
    {"move-to-host",
     [](Instruction i) {
       return i.opcode() == Opcode::kCustomCall && i.string_attr(Attr::kCustomCallTarget) == "MoveToHost";
     }},
    {"move-to-device",
     [](Instruction i) {
       return i.opcode() == Opcode::kCustomCall && i.string_attr(Attr::kCustomCallTarget) == "MoveToDevice";
     }},
    {"placement",
     [](Instruction i) {
       return i.opcode() == Opcode::kCustomCall &&
              i.string_attr(Attr::kCustomCallTarget) == "annotate_device_placement";
     }},
    {"in-place", [](Instruction i) { return i.opcode() == Opcode::kTranspose && !MovesInMemory(i); }},
};

// ---- patterns ----

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : rest_(text) {}

  absl::StatusOr<Pattern> Parse() {
    Pattern pattern;
    if (ParseOne(&pattern) && !rest_.empty()) Fail("expected the end");
    if (!error_.empty()) return absl::InvalidArgumentError(error_);
    return pattern;
  }

 private:
  bool Fail(std::string_view what) {
    if (error_.empty()) error_ = StrCat(what, " at `", rest_, "`");
    return false;
  }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view TakeWord() {
    size_t size = 0;
    while (size < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[size])) || rest_[size] == '-')) ++size;
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }

  // Recursion is as deep as a pattern of the table.
  bool ParseOne(Pattern* pattern) {
    pattern->excluded = Take("!");
    if (pattern->excluded && (rest_.empty() || std::islower(static_cast<unsigned char>(rest_[0])) == 0)) {
      return Fail("expected an opcode after `!`");
    }
    if (!Take("*")) {
      const std::string_view word = TakeWord();
      if (word.empty()) return Fail("expected a pattern");
      if (std::isdigit(static_cast<unsigned char>(word[0]))) {
        pattern->kind = Pattern::Kind::kSplat;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pattern->value);
        return (error == std::errc() && end == word.data() + word.size()) || Fail(StrCat("`", word, "` is no number"));
      }
      if (word.size() == 1 && std::isupper(static_cast<unsigned char>(word[0]))) {
        pattern->kind = Pattern::Kind::kVariable;
        pattern->value = word[0];
        return true;
      }
      for (std::string_view name = word;; name = TakeWord()) {
        const std::optional<Opcode> opcode = OpcodeFromText(name);
        if (!opcode) return Fail(StrCat("no opcode is called `", name, "`"));
        pattern->opcodes.push_back(*opcode);
        if (!Take("|")) break;
      }
    }
    if (Take("[")) {
      do {
        const std::string_view name = TakeWord();
        const auto* found = std::find_if(std::begin(kPredicates), std::end(kPredicates),
                                         [&](const NamedPredicate& p) { return p.name == name; });
        if (found == std::end(kPredicates)) return Fail(StrCat("no predicate is called `", name, "`"));
        pattern->predicates.push_back(found->holds);
      } while (Take(","));
      if (!Take("]")) return Fail("expected `]`");
    }
    if (Take("{")) {
      pattern->operand_match = Pattern::Operands::kSome;
      return ParseOne(&pattern->operands.emplace_back()) && (Take("}") || Fail("expected `}`"));
    }
    if (!Take("(")) return true;
    pattern->operand_match = Pattern::Operands::kAll;
    do {
      if (Take("...")) {
        pattern->operand_match = Pattern::Operands::kFirst;
        break;
      }
      if (!ParseOne(&pattern->operands.emplace_back())) return false;
    } while (Take(","));
    return Take(")") || Fail("expected `)`");
  }

  std::string_view rest_;
  std::string error_;
};

// Returns true if all elements equal `value`: of a constant, or of broadcasts of one.
bool IsSplatOf(Instruction i, int64_t value) {
  while (i.opcode() == Opcode::kBroadcast) i = i.operand(0);
  if (i.opcode() != Opcode::kConstant || !IsArray(i)) return false;
  const LiteralRecord& literal = i.literal();
  if (literal.elided || literal.data == nullptr || literal.size_bytes == 0) return false;
  return VisitType(TypeOf(i), [&]<typename T>(std::type_identity<T>) {
    const T* elements = reinterpret_cast<const T*>(literal.data);
    return std::all_of(elements, elements + literal.size_bytes / sizeof(T), [&](const T& element) {
      if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
        return element == T(static_cast<typename T::value_type>(value));
      } else {
        return static_cast<double>(element) == static_cast<double>(value);
      }
    });
  });
}

using Bindings = std::map<int64_t, Instruction>;

bool Matches(const Pattern& pattern, Instruction i, Bindings* bindings);

bool MatchesItself(const Pattern& pattern, Instruction i) {
  const bool listed = std::find(pattern.opcodes.begin(), pattern.opcodes.end(), i.opcode()) != pattern.opcodes.end();
  if (!pattern.opcodes.empty() && listed == pattern.excluded) return false;
  return std::all_of(pattern.predicates.begin(), pattern.predicates.end(), [&](Predicate holds) { return holds(i); });
}

bool MatchesOperands(const Pattern& pattern, Instruction i, bool exchanged, Bindings* bindings) {
  const auto count = static_cast<int64_t>(pattern.operands.size());
  const bool more = pattern.operand_match == Pattern::Operands::kFirst;
  if (more ? i.operand_count() < count : i.operand_count() != count) return false;
  Bindings trial = *bindings;
  for (int64_t k = 0; k < count; ++k) {
    if (!Matches(pattern.operands[static_cast<size_t>(k)], i.operand(exchanged ? 1 - k : k), &trial)) return false;
  }
  *bindings = std::move(trial);
  return true;
}

bool Matches(const Pattern& pattern, Instruction i, Bindings* bindings) {
  if (pattern.kind == Pattern::Kind::kSplat) return IsSplatOf(i, pattern.value);
  if (pattern.kind == Pattern::Kind::kVariable) {
    return bindings->try_emplace(pattern.value, i).first->second == i;
  }
  if (!MatchesItself(pattern, i)) return false;
  switch (pattern.operand_match) {
    case Pattern::Operands::kAny:
      return true;
    case Pattern::Operands::kAll:
    case Pattern::Operands::kFirst:
      return MatchesOperands(pattern, i, false, bindings) ||
             (HasTrait(i.opcode(), kCommutative) && pattern.operands.size() == 2 && i.operand_count() == 2 &&
              MatchesOperands(pattern, i, true, bindings));
    case Pattern::Operands::kSome:
      for (Instruction operand : i.operands()) {
        Bindings trial = *bindings;
        if (!Matches(pattern.operands[0], operand, &trial)) continue;
        *bindings = std::move(trial);
        return true;
      }
      return false;
  }
  return false;
}

int64_t CountMatches(const Pattern& pattern, Instruction i) {
  Bindings bindings;
  if (pattern.operand_match != Pattern::Operands::kSome) return Matches(pattern, i, &bindings) ? 1 : 0;
  if (!MatchesItself(pattern, i)) return 0;
  int64_t count = 0;
  for (Instruction operand : i.operands()) {
    Bindings trial;
    count += Matches(pattern.operands[0], operand, &trial) ? 1 : 0;
  }
  return count;
}

// ---- measures ----

template <typename Count>
int64_t SumOverInstructions(const Module& module, Count count) {
  int64_t sum = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) sum += static_cast<int64_t>(count(i));
  }
  return sum;
}

// Returns the bytes of the operands of collectives, each counted once.
int64_t SentBytes(const Module& module) {
  return SumOverInstructions(module, [](Instruction i) {
    int64_t bytes = 0;
    if (!HasTrait(i.opcode(), kCollective)) return bytes;
    for (Instruction operand : i.operands()) bytes += BufferBytes(operand.shape());
    return bytes;
  });
}

int64_t PeakBytes(const Module& module) {
  const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
  return memory.ok() ? memory->OfModule().peak_bytes : -1;
}

// Returns the number of instructions that come after an instruction that needs them.
int64_t MisorderedInstructions(const Module& module) {
  std::vector<uint8_t> seen(module.instruction_id_bound(), 0);
  return SumOverInstructions(module, [&](Instruction i) {
    seen[i.id().value] = 1;
    int64_t late = 0;
    for (Instruction operand : i.operands()) late += seen[operand.id().value] == 0 ? 1 : 0;
    for (Instruction first : i.control_predecessors()) late += seen[first.id().value] == 0 ? 1 : 0;
    return late;
  });
}

int64_t UnusedInstructions(const Module& module) {
  const SideEffects effects(module);
  return SumOverInstructions(module, [&](Instruction i) {
    return !i.has_users() && !i.is_root() && i.opcode() != Opcode::kParameter && i.control_successors().empty() &&
           !effects.Of(i);
  });
}

// Returns the number of instructions that equal an earlier one of their computation, with the same operands.
int64_t DuplicateInstructions(const Module& module) {
  const SideEffects effects(module);
  using Key = std::tuple<Opcode, uint32_t, uint32_t, std::vector<uint32_t>, std::vector<std::pair<Attr, uint32_t>>>;
  int64_t count = 0;
  for (Computation c : module.computations()) {
    std::set<Key> known;
    for (Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kParameter || HasTrait(i.opcode(), kImpure) || effects.Of(i)) continue;
      Key key(i.opcode(), i.shape().id().value, i.record().payload, {}, {});
      for (Instruction operand : i.operands()) std::get<3>(key).push_back(operand.id().value);
      for (AttrValue value : i.attrs()) {
        if (value.attr == Attr::kControlPredecessors || value.attr == Attr::kSharding || !IsCommon(value.attr)) {
          std::get<4>(key).push_back({value.attr, value.payload});
        }
      }
      count += known.insert(std::move(key)).second ? 0 : 1;
    }
  }
  return count;
}

std::map<uint32_t, int64_t> CallsOf(const Module& module) {
  std::map<uint32_t, int64_t> calls;
  SumOverInstructions(module, [&](Instruction i) {
    i.ForEachCallee([&](Computation callee) { ++calls[callee.id().value]; });
    return 0;
  });
  return calls;
}

// Returns the number of computations that several instructions run as sequences, or one instruction several times.
int64_t SharedComputations(const Module& module) {
  std::map<uint32_t, int64_t> calls;
  SumOverInstructions(module, [&](Instruction i) {
    if (CallsSequentialCode(i.opcode())) i.ForEachCallee([&](Computation callee) { ++calls[callee.id().value]; });
    return 0;
  });
  return std::count_if(calls.begin(), calls.end(), [](const auto& row) { return row.second > 1; });
}

// Returns the number of instructions that compute something in the branches of conditionals, or in the bodies of loops.
int64_t ComputedIn(const Module& module, Opcode caller) {
  return SumOverInstructions(module, [&](Instruction instruction) {
    int64_t count = 0;
    if (instruction.opcode() != caller) return count;
    for (AttrValue value : instruction.attrs()) {
      if (value.attr == Attr::kCondition) continue;
      module.ForEachCallee(value, [&](ComputationId callee) {
        for (Instruction i : module.computation(callee).instructions()) {
          const Opcode opcode = i.opcode();
          count += opcode != Opcode::kParameter && opcode != Opcode::kGetTupleElement && opcode != Opcode::kTuple &&
                   opcode != Opcode::kConstant;
        }
      });
    }
    return count;
  });
}

// Constants of a schedule that another instruction separates from their first user.
int64_t EarlyConstants(const Module& module) {
  if (!module.header().is_scheduled) return 0;
  int64_t early = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kConstant || !i.has_users()) continue;
      InstructionId next = i.record().next;
      while (next.valid() && module.record(next).opcode == Opcode::kConstant) next = module.record(next).next;
      bool used = false;
      for (Instruction user : i.users()) used |= user.id() == next;
      early += used ? 0 : 1;
    }
  }
  return early;
}

struct NamedMeasure {
  std::string_view name;
  int64_t (*of)(const Module&);
};
constexpr NamedMeasure kMeasures[] = {
    {"instructions", [](const Module& m) { return static_cast<int64_t>(m.instruction_count()); }},
    {"computations", [](const Module& m) { return static_cast<int64_t>(m.computation_count()); }},
    {"uncalled-computations",
     [](const Module& m) { return static_cast<int64_t>(m.computation_count() - 1 - CallsOf(m).size()); }},
    {"shared-computations", SharedComputations},
    {"unused-instructions", UnusedInstructions},
    {"duplicates", DuplicateInstructions},
    {"flops", [](const Module& m) { return CostAnalysis(m).OfModule().flops; }},
    {"bytes", [](const Module& m) { return CostAnalysis(m).OfModule().bytes(); }},
    {"peak-bytes", PeakBytes},
    {"sent-bytes", SentBytes},
    {"aliases", [](const Module& m) { return static_cast<int64_t>(m.header().input_output_alias.size()); }},
    {"scheduled", [](const Module& m) { return static_cast<int64_t>(m.header().is_scheduled); }},
    {"misordered", MisorderedInstructions},
    {"control-edges",
     [](const Module& m) {
       return SumOverInstructions(m, [](Instruction i) { return i.list_attr(Attr::kControlPredecessors).size(); });
     }},
    {"without-metadata",
     [](const Module& m) { return SumOverInstructions(m, [](Instruction i) { return !i.metadata_id().valid(); }); }},
    {"loop-state",
     [](const Module& m) {
       return SumOverInstructions(
           m, [](Instruction i) { return i.opcode() == Opcode::kWhile ? i.shape().tuple_size() : 0; });
     }},
    {"in-loops", [](const Module& m) { return ComputedIn(m, Opcode::kWhile); }},
    {"in-branches", [](const Module& m) { return ComputedIn(m, Opcode::kConditional); }},
    {"early-constants", EarlyConstants},
};

}  // namespace

absl::StatusOr<Measure> Measure::Parse(std::string_view text) {
  Measure measure;
  measure.text_ = text;
  if (text.starts_with("#")) {
    const std::string_view name = text.substr(1);
    for (const NamedMeasure& known : kMeasures) {
      if (known.name == name) measure.function_ = known.of;
    }
    if (measure.function_ == nullptr) {
      return absl::InvalidArgumentError(StrCat("no measure is called `", name, "`"));
    }
    return measure;
  }
  absl::StatusOr<Pattern> pattern = PatternParser(text).Parse();
  if (!pattern.ok()) return pattern.status();
  measure.pattern_ = *std::move(pattern);
  return measure;
}

int64_t Measure::Of(const Module& module) const {
  if (function_ != nullptr) return function_(module);
  return SumOverInstructions(module, [&](Instruction i) { return CountMatches(pattern_, i); });
}

}  // namespace hlokit::properties
