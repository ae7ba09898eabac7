// SPDX-License-Identifier: Apache-2.0
#include "passes/query/resize.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/verify/verifier.h"
#include "passes/query/flow.h"
#include "passes/rewrite/splat.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::query {
namespace {

// The old and the new size of the dimension.
struct Sizes {
  int64_t from = 1, to = 1;

  // Returns true if a size can change in the same ratio.
  bool Fits(int64_t size) const { return New(size) >= 0; }
  // Returns the new size; -1 if it is not whole, or too large.
  int64_t New(int64_t size) const {
    int64_t product = 0;
    return size < 0 || __builtin_mul_overflow(size, to, &product) || product % from != 0 ? -1 : product / from;
  }
  std::string Text() const { return StrCat(to, "/", from); }
};

// A dimension of a leaf of a value.
struct Place {
  Instruction instruction;
  int64_t leaf = 0;
  int64_t dimension = 0;
};

absl::Status CannotFollow(Instruction i, std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat("cannot follow the dimension through `", i.name(), "`, ", i.opcode_text(), ": ", why));
}

// Finds the dimensions that change with those it is given.
class DimensionFlow {
 public:
  DimensionFlow(const Module& module, Sizes sizes) : flow_(module), sizes_(sizes) {}

  void Mark(Instruction i, int64_t leaf, int64_t dimension) {
    uint64_t& mask = marked_[{i.id().value, leaf}];
    const uint64_t bit = uint64_t{1} << static_cast<uint64_t>(dimension);
    if ((mask & bit) != 0) return;
    mask |= bit;
    open_.push_back({i, leaf, dimension});
  }

  absl::Status Follow() {
    while (!open_.empty()) {
      const Place at = open_.back();
      open_.pop_back();
      if (absl::Status s = FollowFrom(at); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Returns the marked dimensions of a leaf, a bit for each.
  uint64_t MaskOf(InstructionId id, int64_t leaf) const {
    const auto found = marked_.find({id.value, leaf});
    return found == marked_.end() ? 0 : found->second;
  }
  bool IsMarked(Instruction i) const {
    const int64_t leaves = i.shape().leaf_count();
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      if (MaskOf(i.id(), leaf) != 0) return true;
    }
    return false;
  }
  bool empty() const { return marked_.empty(); }

 private:
  absl::Status FollowFrom(const Place& at) {
    const Shape leaf = Leaves(at.instruction.shape())[static_cast<size_t>(at.leaf)];
    if (leaf.rank() > 64 || leaf.is_dynamic(at.dimension) || !sizes_.Fits(leaf.dim(at.dimension))) {
      return CannotFollow(at.instruction, StrCat("dimension ", at.dimension, " of ", ToString(leaf, false),
                                                 " cannot be ", sizes_.Text(), " as large"));
    }
    // Leaves of the values are forwarded; operations have rules.
    const Instruction i = at.instruction;
    if (i.opcode() == Opcode::kParameter || i.is_root()) {
      const Instruction caller = flow_.FunctionCaller(i.parent());
      if (caller.valid()) return CannotFollow(caller, "it applies a function of arrays");
    }
    for (const ValueLeaf& next : flow_.Forwarded({i, at.leaf})) Mark(next.instruction, next.leaf, at.dimension);
    if (i.opcode() == Opcode::kConstant) {
      if (!SplatOf(i)) return CannotFollow(i, "its elements are not all equal");
    } else if (!ValueFlow::ForwardsLeaves(i)) {
      if (absl::Status s = FollowRule(i, /*operand=*/-1, at.leaf, at.dimension); !s.ok()) return s;
    }
    for (const auto use : i.uses()) {
      if (ValueFlow::ForwardsLeaves(use.user) || use.user.opcode() == Opcode::kGetDimensionSize) continue;
      if (absl::Status s = FollowRule(use.user, use.operand_index, at.leaf, at.dimension); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Marks the dimensions that share a factor with one of an operand, or, for -1, of a leaf of the result.
  absl::Status FollowRule(Instruction i, int64_t operand, int64_t leaf, int64_t dimension) {
    const RuleClass kind = RuleClassOf(i);
    if (kind == RuleClass::kForwarding || kind == RuleClass::kNothing) {
      return CannotFollow(i, "it is a part of an asynchronous operation, or has no rule");
    }
    auto [found, fresh] = rules_.try_emplace(i.id().value);
    if (fresh) found->second = RuleOf(i);
    const ShardingRule& rule = found->second;
    if (!rule.known) return CannotFollow(i, "its dimensions have no rule");
    const auto number = static_cast<size_t>(operand < 0 ? leaf : operand);
    const std::vector<ArrayFactors>& arrays = operand < 0 ? rule.results : rule.operands;
    if (number >= arrays.size() || static_cast<size_t>(dimension) >= arrays[number].size()) {
      return CannotFollow(i, "its dimensions have no rule");
    }
    // Of several factors the most major one that has the old size as a divisor, or else one that the ratio makes whole.
    const std::vector<int32_t>& factors = arrays[number][static_cast<size_t>(dimension)];
    std::optional<int32_t> chosen;
    for (const bool exact : {true, false}) {
      for (const int32_t f : factors) {
        const int64_t size = rule.factors[static_cast<size_t>(f)].size;
        if (!chosen && (factors.size() == 1 || (exact ? size % sizes_.from == 0 : size > 1 && sizes_.Fits(size)))) {
          chosen = f;
        }
      }
    }
    if (!chosen) {
      return CannotFollow(
          i, StrCat("dimension ", dimension, " is made of parts of other dimensions, none of which can be ",
                    sizes_.Text(), " as large"));
    }
    bool in_operands = false, in_results = false;
    const auto mark = [&](Instruction value, int64_t value_leaf, const ArrayFactors& array) {
      bool any = false;
      for (size_t d = 0; d < array.size(); ++d) {
        if (std::find(array[d].begin(), array[d].end(), *chosen) == array[d].end()) continue;
        Mark(value, value_leaf, static_cast<int64_t>(d));
        any = true;
      }
      return any;
    };
    for (size_t k = 0; k < rule.operands.size(); ++k) {
      in_operands |= mark(i.operand(static_cast<int64_t>(k)), 0, rule.operands[k]);
    }
    for (size_t k = 0; k < rule.results.size(); ++k) in_results |= mark(i, static_cast<int64_t>(k), rule.results[k]);
    const FactorKind factor = rule.factors[static_cast<size_t>(*chosen)].kind;
    if (!in_results && factor != FactorKind::kReduced) return CannotFollow(i, "it reads a part of the dimension");
    if (!in_operands && kind != RuleClass::kSource && kind != RuleClass::kBroadcast) {
      return CannotFollow(i, "the size does not come from an operand");
    }
    return absl::OkStatus();
  }

  const ValueFlow flow_;
  const Sizes sizes_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, uint64_t> marked_;
  absl::flat_hash_map<uint32_t, ShardingRule> rules_;
  std::vector<Place> open_;
};

// Returns "FROM:TO" as numbers.
bool ParseSizes(std::string_view text, int64_t* from, int64_t* to) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  for (const auto& [part, number] : {std::pair{text.substr(0, colon), from}, std::pair{text.substr(colon + 1), to}}) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *number);
    if (error != std::errc() || end != part.data() + part.size() || *number < 1) return false;
  }
  return true;
}

// Sets the new shapes of a copy of the module.
class Resizer {
 public:
  Resizer(Module* module, const DimensionFlow& flow, Sizes sizes) : module_(*module), flow_(flow), sizes_(sizes) {}

  absl::Status Apply() {
    for (const Computation c : module_.computations()) {
      std::vector<InstructionId> ids;
      for (const Instruction i : c.instructions()) ids.push_back(i.id());
      for (InstructionId id : ids) {
        const Instruction i = module_.instruction(id);
        if (absl::Status s = SetAttributes(i); !s.ok()) return s;
        if (!flow_.IsMarked(i)) continue;
        const Shape shape = NewShape(i);
        if (!shape.valid()) return CannotFollow(i, "the new size is too large");
        if (i.opcode() == Opcode::kConstant) SetConstant(i, shape);
        module_.SetShape(id, shape);
        ++changed_;
      }
    }
    if (module_.header().entry_layout) {
      EntryLayout& layout = *module_.header().entry_layout;
      const Computation entry = module_.entry();
      for (size_t k = 0; k < layout.parameters.size(); ++k) {
        const Instruction p = entry.parameter(static_cast<int64_t>(k));
        if (flow_.IsMarked(p)) layout.parameters[k] = p.shape();
      }
      if (flow_.IsMarked(entry.root())) layout.result = entry.root().shape();
    }
    return absl::OkStatus();
  }
  int64_t changed() const { return changed_; }

 private:
  ShapeTable& shapes() { return module_.context().shapes; }

  // Returns an invalid shape if a size overflows.
  Shape NewArray(Shape array, uint64_t mask) {
    std::vector<int64_t> dims(array.dims().begin(), array.dims().end());
    std::vector<uint8_t> dynamic;
    for (int64_t d = 0; d < array.rank(); ++d) {
      dynamic.push_back(array.is_dynamic(d));
      if ((mask >> static_cast<uint64_t>(d) & 1) == 0) continue;
      int64_t& size = dims[static_cast<size_t>(d)];
      size = sizes_.New(size);
      if (size < 0) return Shape();
    }
    const Shape made = shapes().Array(array.element_type(), dims, dynamic, array.layout());
    return made.element_count() < 0 ? Shape() : made;
  }

  // Rebuilds tuples from their new leaves, on a stack.
  Shape NewShape(Instruction i) {
    struct Frame {
      Shape shape;
      std::vector<Shape> elements;
    };
    int64_t leaf = 0;
    std::vector<Frame> open = {{i.shape(), {}}};
    for (;;) {
      Frame& at = open.back();
      Shape done;
      if (!at.shape.IsTuple()) {
        const uint64_t mask = flow_.MaskOf(i.id(), leaf++);
        done = mask == 0 ? at.shape : NewArray(at.shape, mask);
        if (!done.valid()) return done;
      } else if (static_cast<int64_t>(at.elements.size()) == at.shape.tuple_size()) {
        done = shapes().Tuple(at.elements);
      } else {
        open.push_back({at.shape.element(static_cast<int64_t>(at.elements.size())), {}});
        continue;
      }
      open.pop_back();
      if (open.empty()) return done;
      open.back().elements.push_back(done);
    }
  }

  void SetConstant(Instruction i, Shape shape) {
    const Literal old = module_.context().literals.ToLiteral(i.literal_id());
    Literal value = Literal::Zeros(shape);
    const size_t width = static_cast<size_t>(BytesOf(shape.element_type()));
    for (size_t at = 0; at + width <= value.size_bytes(); at += width)
      std::memcpy(value.data() + at, old.data(), width);
    module_.SetPayload(i.id(), module_.context().literals.Add(value).value);
  }

  // Sizes in attributes. Requires: the shapes of operands before in the computation are new, that of `i` is not.
  absl::Status SetAttributes(Instruction i) {
    if (i.opcode() == Opcode::kSlice) return SetRanges(i, flow_.MaskOf(i.id(), 0));
    if (i.opcode() == Opcode::kDynamicSlice) return SetSizes(i, Attr::kDynamicSliceSizes, flow_.MaskOf(i.id(), 0));
    if (i.opcode() == Opcode::kGather) return SetSizes(i, Attr::kSliceSizes, flow_.MaskOf(i.operand(0).id(), 0));
    return absl::OkStatus();
  }

  // Changes the limits of a slice in these dimensions, which must be whole ones.
  absl::Status SetRanges(Instruction i, uint64_t mask) {
    std::vector<int64_t> ranges(i.list_attr(Attr::kSlice).begin(), i.list_attr(Attr::kSlice).end());
    for (int64_t d = 0; d < i.shape().rank() && mask != 0; ++d) {
      if ((mask >> static_cast<uint64_t>(d) & 1) == 0) continue;
      int64_t* const range = &ranges[static_cast<size_t>(3 * d)];
      if (range[0] != 0 || range[2] != 1 || sizes_.New(range[1]) != i.operand(0).shape().dim(d)) {
        return CannotFollow(i, StrCat("it reads a part of dimension ", d));
      }
      range[1] = sizes_.New(range[1]);
    }
    if (mask != 0) module_.SetAttr(i.id(), Attr::kSlice, module_.ListPayload(ranges));
    return absl::OkStatus();
  }

  // Changes the sizes of slices of operand 0 in these dimensions, which must be whole ones.
  absl::Status SetSizes(Instruction i, Attr attr, uint64_t mask) {
    std::vector<int64_t> sizes(i.list_attr(attr).begin(), i.list_attr(attr).end());
    if (mask == 0) return absl::OkStatus();
    for (size_t d = 0; d < sizes.size() && d < 64; ++d) {
      if ((mask >> d & 1) == 0) continue;
      sizes[d] = sizes_.New(sizes[d]);
      if (sizes[d] != i.operand(0).shape().dim(static_cast<int64_t>(d))) {
        return CannotFollow(i, StrCat("it reads a part of dimension ", d));
      }
    }
    module_.SetAttr(i.id(), attr, module_.ListPayload(sizes));
    return absl::OkStatus();
  }

  Module& module_;
  const DimensionFlow& flow_;
  const Sizes sizes_;
  int64_t changed_ = 0;
};

}  // namespace

absl::StatusOr<bool> ResizePass::Run(Module& module) {
  if (options().String("batch").empty()) return false;
  int64_t from = 0, to = 0;
  if (!ParseSizes(options().String("batch"), &from, &to)) {
    return absl::InvalidArgumentError(
        StrCat("batch: expected FROM:TO, as 8:16, found `", options().String("batch"), "`"));
  }
  if (from == to) return false;
  std::vector<std::string> names(1);
  for (const char c : options().String("parameters")) {
    if (c == ',') {
      names.emplace_back();
    } else if (c != '[' && c != ']' && c != ' ' && c != '%') {
      names.back() += c;
    }
  }
  std::erase(names, "");
  const int64_t dimension = options().Int("dimension");
  DimensionFlow flow(module, {from, to});
  const Computation entry = module.entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) {
    const Instruction p = entry.parameter(k);
    const auto named = std::find(names.begin(), names.end(), p.name());
    if (!names.empty() && named == names.end()) continue;
    bool any = false;
    const std::vector<Shape> leaves = Leaves(p.shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (dimension >= leaves[leaf].rank() || dimension >= 64 || leaves[leaf].dim(dimension) != from) continue;
      flow.Mark(p, static_cast<int64_t>(leaf), dimension);
      any = true;
    }
    if (names.empty()) continue;
    if (!any) {
      return absl::InvalidArgumentError(StrCat("parameter `", p.name(), "` has no dimension ", dimension, " of size ",
                                               from, ", but is ", ToString(p.shape(), false)));
    }
    names.erase(named);
    if (names.empty()) break;
  }
  if (!names.empty()) return absl::InvalidArgumentError(StrCat("the entry has no parameter `", names[0], "`"));
  if (flow.empty()) {
    return absl::InvalidArgumentError(StrCat("no parameter has size ", from, " in dimension ", dimension));
  }
  if (absl::Status s = flow.Follow(); !s.ok()) return s;
  Module changed = module.Clone();
  Resizer resizer(&changed, flow, {from, to});
  if (absl::Status s = resizer.Apply(); !s.ok()) return s;
  DiagnosticSink sink;
  VerifyModule(changed, {}, &sink);
  if (sink.has_errors()) {
    return absl::InvalidArgumentError(StrCat("the dimension does not fit everywhere: ", sink.diagnostics()[0].message));
  }
  Count("instructions resized", resizer.changed());
  module = std::move(changed);
  return true;
}

}  // namespace hlokit::query
