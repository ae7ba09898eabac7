// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/tpu_layout_preferences.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_table.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/layout/layout_assignment.h"

namespace hlokit {

namespace {

constexpr int64_t kMaxLayoutLeaves = int64_t{1} << 22;
constexpr size_t kMaxCandidates = 16;
constexpr size_t kMaxDefaultCandidates = 4;  // of members with different orders
constexpr double kFixedLayoutWeight = 1e6;   // times the cost of a copy
constexpr double kProductMismatch = 4;       // cost of transposing a matmul operand, in passes over it

// Returns true if results have the dimensions of the operands: arrays of the same rank share an order.
bool KeepsDimensions(Opcode opcode) { return HasTrait(opcode, kElementwise) || HasTrait(opcode, kKeepsDimensions); }

double BitsIn(Shape array) {
  return array.element_type() == ElementType::kPred ? 8 : std::max(BitsOf(array.element_type()), 1);
}

}  // namespace

std::vector<Shape> LeavesInOrder(Shape shape) {
  std::vector<Shape> leaves;
  std::vector<Shape> open = {shape};
  while (!open.empty()) {
    const Shape s = open.back();
    open.pop_back();
    if (s.IsTuple() && s.tuple_size() > 0) {
      for (int64_t k = s.tuple_size(); k-- > 0;) open.push_back(s.element(k));
    } else if (!s.IsTuple() || s != shape) {
      leaves.push_back(s);
    }
  }
  return leaves;
}

bool TpuLayoutPreferences::HasFixedLayout(const tpu::VectorTile& tile, Shape array) {
  if (array.rank() < 2) return true;
  const MinorToMajor plain = DefaultOrder(array.rank());
  MinorToMajor order = plain;
  if (array.has_layout()) order.assign(array.layout()->minor_to_major.begin(), array.layout()->minor_to_major.end());
  if (order != plain || array.element_count() <= 0) return true;
  return TiledElements(tile, array, MinPaddingOrder(tile, array)) > TiledElements(tile, array, order) / 5 * 4;
}

class LayoutSolver {
 public:
  LayoutSolver(const Module& module, const tpu::VectorTile& tile, TpuLayoutPreferences* orders)
      : module_(module), tile_(tile), orders_(*orders) {}

  void Run() {
    if (!CountLeaves()) return;
    LinkAll();
    Compress();
    CollectConstraints();
    ChooseAll();
    orders_.ok_ = true;
  }

 private:
  struct LayoutConstraint {
    enum Kind : uint8_t { kPair, kNotMinor, kFixed, kReshape } kind;
    uint32_t leaf;
    int64_t a = 0, b = 0;     // kPair: the dimensions that should be minor
    uint64_t dimensions = 0;  // kNotMinor: bits
    MinorToMajor order = {};  // kFixed
    uint32_t other = 0;       // kReshape: the leaf on its other side
    double weight = 1;        // times the bytes of the array
  };

  bool CountLeaves() {
    orders_.first_.assign(module_.instruction_id_bound() + 1, 0);
    int64_t count = 0;
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        orders_.first_[i.id().value] = static_cast<uint32_t>(count);
        count = SaturatingAdd(count, i.shape().leaf_count());
        if (count > kMaxLayoutLeaves) return false;
        if (i.shape().IsArray()) {
          shape_.push_back(i.shape());
        } else {
          for (Shape leaf : LeavesInOrder(i.shape())) shape_.push_back(leaf);
        }
        made_.resize(shape_.size(), MemoryPasses(i));
      }
    }
    parent_.resize(shape_.size());
    for (uint32_t n = 0; n < parent_.size(); ++n) parent_[n] = n;
    orders_.to_class_.resize(shape_.size());
    return true;
  }

  // Returns the number of memory passes over the result: written and read if defined here, read if it is an entry
  // parameter.
  static uint8_t MemoryPasses(Instruction i) {
    if (i.opcode() == Opcode::kParameter) return i.parent().is_entry() ? 1 : 0;
    const bool made = !HasTrait(i.opcode(), kForwards) && !HasTrait(i.opcode(), kControlFlow);
    return made && i.opcode() != Opcode::kConstant ? 2 : 0;
  }

  uint32_t LeafOf(Instruction i, int64_t leaf = 0) const {
    return orders_.first_[i.id().value] + static_cast<uint32_t>(leaf);
  }

  // ---- classes: a union-find forest; each leaf maps its dimensions to those of its parent ----

  static MinorToMajor Then(const MinorToMajor& a, const MinorToMajor& b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    MinorToMajor both;
    for (int64_t d : a) both.push_back(b[static_cast<size_t>(d)]);
    return both;
  }

  static MinorToMajor Inverse(const MinorToMajor& a) {
    MinorToMajor inverse(a.size(), 0);
    for (size_t d = 0; d < a.size(); ++d) inverse[static_cast<size_t>(a[d])] = static_cast<int64_t>(d);
    return inverse;
  }

  uint32_t Find(uint32_t leaf) {
    uint32_t root = leaf;
    std::vector<uint32_t>& path = path_;
    path.clear();
    while (parent_[root] != root) {
      path.push_back(root);
      root = parent_[root];
    }
    // Path compression from the root down: map the dimensions to those of the root.
    for (size_t k = path.size(); k-- > 0;) {
      const uint32_t n = path[k];
      if (parent_[n] == root) continue;
      orders_.to_class_[n] = Then(orders_.to_class_[n], orders_.to_class_[parent_[n]]);
      parent_[n] = root;
    }
    return root;
  }

  // `b_of` maps dimensions of a to those of b; empty: the identity.
  void Link(uint32_t a, uint32_t b, const MinorToMajor& b_of = {}) {
    if (!shape_[a].IsArray() || !shape_[b].IsArray() || shape_[a].rank() != shape_[b].rank()) return;
    const uint32_t ra = Find(a), rb = Find(b);
    if (ra == rb) return;
    const MinorToMajor a_to_class = orders_.to_class_[a], b_to_class = orders_.to_class_[b];
    MinorToMajor to = Then(b_of, b_to_class);
    if (!a_to_class.empty()) to = Then(Inverse(a_to_class), to);
    parent_[ra] = rb;
    orders_.to_class_[ra] = to;
  }

  void LinkLeaves(uint32_t a, uint32_t b, int64_t count) {
    for (uint32_t k = 0; k < static_cast<uint32_t>(count); ++k) Link(a + k, b + k);
  }
  void LinkWhole(Instruction a, Instruction b) {
    if (a.shape().leaf_count() == b.shape().leaf_count()) LinkLeaves(LeafOf(a), LeafOf(b), a.shape().leaf_count());
  }

  static int64_t LeafOfElement(Shape tuple, int64_t index) {
    int64_t leaf = 0;
    for (int64_t k = 0; k < index; ++k) leaf += std::max<int64_t>(tuple.element(k).leaf_count(), 1);
    return leaf;
  }

  void LinkAll() {
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) LinkOne(i);
    }
    LinkAliases();
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.opcode() != Opcode::kTranspose) continue;
        // Dimension permutation[d] of the operand is d of the result.
        const absl::Span<const int64_t> permutation = i.list_attr(Attr::kDimensions);
        if (static_cast<int64_t>(permutation.size()) != i.shape().rank()) continue;
        Link(LeafOf(i), LeafOf(i.operand(0)), MinorToMajor(permutation.begin(), permutation.end()));
      }
    }
  }

  void LinkOne(Instruction i) {
    const Opcode opcode = i.opcode();
    if (opcode == Opcode::kTuple) {
      int64_t leaf = 0;
      for (Instruction operand : i.operands()) {
        LinkLeaves(LeafOf(i, leaf), LeafOf(operand), operand.shape().leaf_count());
        leaf += std::max<int64_t>(operand.shape().leaf_count(), 1);
      }
    } else if (opcode == Opcode::kGetTupleElement) {
      const Shape tuple = i.operand(0).shape();
      const int64_t index = i.int_attr(Attr::kIndex);
      if (!tuple.IsTuple() || index < 0 || index >= tuple.tuple_size()) return;
      LinkLeaves(LeafOf(i), LeafOf(i.operand(0), LeafOfElement(tuple, index)), i.shape().leaf_count());
    } else if (HasTrait(opcode, kForwards)) {
      if (i.operand_count() > 0) LinkWhole(i, i.operand(0));
    } else if (HasTrait(opcode, kControlFlow)) {
      LinkCallees(i);
    } else if (HasTrait(opcode, kAsyncChain)) {
      LinkAsync(i);
    } else if (KeepsDimensions(opcode)) {
      const int64_t leaves = i.shape().leaf_count();
      for (int64_t k = 0; k < i.operand_count(); ++k) {
        if (i.operand(k).shape().IsArray())
          Link(LeafOf(i, leaves > 1 ? std::min(k, leaves - 1) : 0), LeafOf(i.operand(k)));
      }
    }
  }

  // Links results that hold operands or the start's result to these; leaves of equal shape count as the same.
  void LinkAsync(Instruction i) {
    absl::flat_hash_map<uint32_t, uint32_t> first;  // by shape: a leaf of an operand
    const auto for_operands = [&](const auto& visit) {
      for (Instruction operand : i.operands()) {
        for (int64_t m = 0; m < operand.shape().leaf_count(); ++m) visit(LeafOf(operand, m));
      }
    };
    for_operands([&](uint32_t leaf) { first.emplace(shape_[leaf].WithoutLayout().id().value, leaf); });
    absl::flat_hash_set<uint32_t> shared;
    for (int64_t k = 0; k < i.shape().leaf_count(); ++k) {
      const auto found = first.find(shape_[LeafOf(i, k)].WithoutLayout().id().value);
      if (found == first.end()) continue;
      Link(LeafOf(i, k), found->second);
      shared.insert(found->first);
    }
    for_operands([&](uint32_t leaf) {
      const uint32_t shape = shape_[leaf].WithoutLayout().id().value;
      if (shared.contains(shape)) Link(leaf, first[shape]);
    });
  }

  void LinkCallees(Instruction i) {
    const std::vector<Computation> callees = i.called_computations();
    const bool branches = i.opcode() == Opcode::kConditional, loop = i.opcode() == Opcode::kWhile;
    if (loop) LinkWhole(i, i.operand(0));
    for (size_t n = 0; n < callees.size(); ++n) {
      const Computation callee = callees[n];
      for (int64_t k = 0; k < callee.parameter_count(); ++k) {
        const int64_t operand = branches ? static_cast<int64_t>(n) + 1 : k;
        if (operand < i.operand_count()) LinkWhole(callee.parameter(k), i.operand(operand));
      }
      if (!loop || callee == i.computation_attr(Attr::kBody)) LinkWhole(i, callee.root());
    }
  }

  // Links results with the parameters that they alias.
  void LinkAliases() {
    const Computation entry = module_.entry();
    for (const InputOutputAlias& alias : module_.header().input_output_alias) {
      if (alias.parameter < 0 || alias.parameter >= entry.parameter_count()) continue;
      const std::optional<int64_t> from = LeafAt(entry.parameter(alias.parameter).shape(), alias.parameter_index);
      const std::optional<int64_t> to = LeafAt(entry.root().shape(), alias.output_index);
      if (from && to) Link(LeafOf(entry.parameter(alias.parameter), *from), LeafOf(entry.root(), *to));
    }
  }

  std::optional<int64_t> LeafAt(Shape shape, ListId index) const {
    int64_t leaf = 0;
    for (int64_t k : module_.context().list(index)) {
      if (!shape.IsTuple() || k < 0 || k >= shape.tuple_size()) return std::nullopt;
      leaf += LeafOfElement(shape, k);
      shape = shape.element(k);
    }
    return shape.IsArray() ? std::optional<int64_t>(leaf) : std::nullopt;
  }

  // Numbers the classes in the order of their first leaves, with the members of each contiguous.
  void Compress() {
    std::vector<uint32_t> number(shape_.size(), UINT32_MAX);
    orders_.class_.resize(shape_.size());
    uint32_t classes = 0;
    for (uint32_t n = 0; n < shape_.size(); ++n) {
      const uint32_t root = Find(n);
      if (number[root] == UINT32_MAX) {
        number[root] = classes++;
        root_.push_back(root);
      }
      orders_.class_[n] = number[root];
    }
    members_.resize(classes);
    constraints_.resize(classes);
    for (uint32_t n = 0; n < shape_.size(); ++n) members_[orders_.class_[n]].push_back(n);
    orders_.order_.resize(classes);
  }

  // ---- constraints ----

  void AddConstraint(LayoutConstraint constraint) {
    const Shape array = shape_[constraint.leaf];
    if (array.IsArray() && array.rank() > 1)
      constraints_[orders_.class_[constraint.leaf]].push_back(std::move(constraint));
  }

  void AddFixed(uint32_t leaf, double weight) {
    const Shape array = shape_[leaf];
    if (!array.IsArray()) return;
    LayoutConstraint constraint{.kind = LayoutConstraint::kFixed, .leaf = leaf, .weight = weight};
    constraint.order = DefaultOrder(array.rank());
    if (array.has_layout()) {
      constraint.order.assign(array.layout()->minor_to_major.begin(), array.layout()->minor_to_major.end());
    }
    if (static_cast<int64_t>(constraint.order.size()) == array.rank()) AddConstraint(std::move(constraint));
  }

  void CollectConstraints() {
    const Computation entry = module_.entry();
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) AddConstraintsFor(i);
    }
    for (int64_t p = 0; p < entry.parameter_count(); ++p) {
      const Instruction parameter = entry.parameter(p);
      for (int64_t k = 0; k < parameter.shape().leaf_count(); ++k) {
        const uint32_t leaf = LeafOf(parameter, k);
        if (!shape_[leaf].IsArray()) continue;
        // Arrays in tuples cannot be copied at the entry's boundary.
        if (!parameter.shape().IsArray()) {
          AddFixed(leaf, kFixedLayoutWeight);
        } else if (TpuLayoutPreferences::HasFixedLayout(tile_, shape_[leaf])) {
          AddFixed(leaf, 2);
        }
      }
    }
    for (int64_t k = 0; k < entry.root().shape().leaf_count(); ++k) {
      const uint32_t leaf = LeafOf(entry.root(), k);
      if (shape_[leaf].IsArray() && TpuLayoutPreferences::HasFixedLayout(tile_, shape_[leaf])) AddFixed(leaf, 2);
    }
  }

  void AddConstraintsFor(Instruction i) {
    using Rule = void (LayoutSolver::*)(Instruction);
    static constexpr OpcodeRow<Rule> kRows[] = {
        {Opcode::kConvolution, &LayoutSolver::AddConvolution},
        {Opcode::kDot, &LayoutSolver::AddDot},
        {Opcode::kReshape, &LayoutSolver::AddReshape},
        {Opcode::kCustomCall, &LayoutSolver::AddGivenLayouts},
    };
    static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
    if (const Rule rule = kRules[static_cast<size_t>(i.opcode())]; rule != nullptr) {
      (this->*rule)(i);
    } else if (HasTrait(i.opcode(), kAsyncChain)) {
      AddGivenLayouts(i);
    }
  }

  void AddConvolution(Instruction i) {
    const ConvolutionDims dims = ConvolutionDims::Of(AttrReader(i));
    if (!dims.ok() || i.operand_count() < 2) return;
    AddPair(LeafOf(i.operand(0)), dims.input_feature, dims.input_batch);
    AddPair(LeafOf(i.operand(1)), dims.kernel_output_feature, dims.kernel_input_feature);
    AddPair(LeafOf(i), dims.output_feature, dims.output_batch);
  }

  void AddDot(Instruction i) {
    const DotDims dims = DotDims::Of(AttrReader(i));
    AddNotMinor(LeafOf(i.operand(0)), dims.lhs_batch);
    AddNotMinor(LeafOf(i.operand(1)), dims.rhs_batch);
    MinorToMajor batch;
    for (size_t d = 0; d < dims.lhs_batch.size(); ++d) batch.push_back(static_cast<int64_t>(d));
    AddNotMinor(LeafOf(i), batch);
  }

  void AddReshape(Instruction i) {
    if (!i.shape().IsArray() || !i.operand(0).shape().IsArray()) return;
    const uint32_t result = LeafOf(i), operand = LeafOf(i.operand(0));
    AddConstraint({.kind = LayoutConstraint::kReshape, .leaf = result, .other = operand, .weight = 2});
    AddConstraint({.kind = LayoutConstraint::kReshape, .leaf = operand, .other = result, .weight = 2});
  }

  void AddGivenLayouts(Instruction i) {
    for (int64_t k = 0; k < i.shape().leaf_count(); ++k) AddFixed(LeafOf(i, k), kFixedLayoutWeight);
    for (Instruction operand : i.operands()) {
      if (operand.shape().IsArray()) AddFixed(LeafOf(operand), 2);
    }
  }

  void AddPair(uint32_t leaf, int64_t a, int64_t b) {
    const Shape array = shape_[leaf];
    if (!array.IsArray() || a < 0 || b < 0 || a >= array.rank() || b >= array.rank() || a == b) return;
    AddConstraint({.kind = LayoutConstraint::kPair, .leaf = leaf, .a = a, .b = b, .weight = kProductMismatch});
  }

  void AddNotMinor(uint32_t leaf, absl::Span<const int64_t> dimensions) {
    uint64_t bits = 0;
    for (int64_t d : dimensions) bits |= d < 64 ? uint64_t{1} << d : 0;
    if (bits != 0)
      AddConstraint(
          {.kind = LayoutConstraint::kNotMinor, .leaf = leaf, .dimensions = bits, .weight = kProductMismatch});
  }

  // ---- selection ----

  double BytesOf(uint32_t leaf, const MinorToMajor& order) const {
    return static_cast<double>(TiledElements(tile_, shape_[leaf], order)) * BitsIn(shape_[leaf]) / 8;
  }

  MinorToMajor ToClass(uint32_t leaf, const MinorToMajor& order) const {
    const MinorToMajor& to = orders_.to_class_[leaf];
    if (to.empty()) return order;
    MinorToMajor mapped;
    for (int64_t d : order) mapped.push_back(to[static_cast<size_t>(d)]);
    return mapped;
  }
  MinorToMajor FromClass(uint32_t leaf, const MinorToMajor& order) const {
    const MinorToMajor& to = orders_.to_class_[leaf];
    if (to.empty()) return order;
    return Then(order, Inverse(to));
  }

  void Propose(uint32_t leaf, const MinorToMajor& order, std::vector<MinorToMajor>* candidates) const {
    if (candidates->size() >= kMaxCandidates) return;
    MinorToMajor mapped = ToClass(leaf, order);
    if (std::find(candidates->begin(), candidates->end(), mapped) == candidates->end()) {
      candidates->push_back(std::move(mapped));
    }
  }

  std::vector<MinorToMajor> Candidates(uint32_t c) const {
    std::vector<MinorToMajor> candidates;
    uint32_t largest = members_[c][0];
    for (uint32_t leaf : members_[c]) {
      if (shape_[leaf].element_count() > shape_[largest].element_count()) largest = leaf;
    }
    for (uint32_t leaf : members_[c]) {
      if (candidates.size() >= kMaxDefaultCandidates) break;
      Propose(leaf, DefaultOrder(shape_[leaf].rank()), &candidates);
    }
    Propose(largest, OrderWithMinor(shape_[largest], {}), &candidates);
    for (const LayoutConstraint& constraint : constraints_[c]) {
      if (constraint.kind == LayoutConstraint::kPair) {
        const int64_t ab[] = {constraint.a, constraint.b}, ba[] = {constraint.b, constraint.a};
        Propose(constraint.leaf, OrderWithMinor(shape_[constraint.leaf], ab), &candidates);
        Propose(constraint.leaf, OrderWithMinor(shape_[constraint.leaf], ba), &candidates);
      } else if (constraint.kind == LayoutConstraint::kFixed) {
        Propose(constraint.leaf, constraint.order, &candidates);
      }
    }
    Propose(largest, MinPaddingOrder(tile_, shape_[largest]), &candidates);
    return candidates;
  }

  // Returns the cost in bytes moved.
  double CostOf(uint32_t c, const MinorToMajor& order) const {
    double cost = 0;
    for (uint32_t leaf : members_[c]) {
      if (made_[leaf] != 0) cost += made_[leaf] * BytesOf(leaf, FromClass(leaf, order));
    }
    for (const LayoutConstraint& constraint : constraints_[c]) {
      const MinorToMajor own = FromClass(constraint.leaf, order);
      if (IsSatisfied(constraint, own)) continue;
      double bytes = BytesOf(constraint.leaf, own);
      if (constraint.kind == LayoutConstraint::kFixed) bytes = (bytes + BytesOf(constraint.leaf, constraint.order)) / 2;
      cost += constraint.weight * bytes;
    }
    return cost;
  }

  bool IsSatisfied(const LayoutConstraint& constraint, const MinorToMajor& order) const {
    const Shape array = shape_[constraint.leaf];
    switch (constraint.kind) {
      case LayoutConstraint::kPair: {
        size_t seen = 0;
        for (int64_t d : order) {
          if (SizeOf(array, d) == 1) continue;
          if (seen++ == 2) return true;
          if (d != constraint.a && d != constraint.b)
            return SizeOf(array, constraint.a) == 1 || SizeOf(array, constraint.b) == 1 ? seen > 1 : false;
        }
        return true;
      }
      case LayoutConstraint::kNotMinor:
        for (int64_t d : order) {
          if (SizeOf(array, d) != 1) return d >= 64 || (constraint.dimensions >> d & 1) == 0;
        }
        return true;
      case LayoutConstraint::kFixed:
        return order == constraint.order;
      case LayoutConstraint::kReshape: {
        const Shape other = shape_[constraint.other];
        if (orders_.class_[constraint.other] == orders_.class_[constraint.leaf]) return true;
        MinorToMajor theirs = orders_.order_[orders_.class_[constraint.other]];
        theirs = theirs.empty() ? DefaultOrder(other.rank()) : FromClass(constraint.other, theirs);
        return ReshapeIsBitcast(array, order, other, theirs);
      }
    }
    return true;
  }

  void ChooseAll() {
    std::vector<std::pair<double, uint32_t>> by_size;
    for (uint32_t c = 0; c < members_.size(); ++c) {
      double bytes = 0;
      for (uint32_t leaf : members_[c]) {
        if (shape_[leaf].IsArray() && made_[leaf]) bytes += static_cast<double>(shape_[leaf].element_count());
      }
      by_size.emplace_back(-bytes, c);
    }
    std::sort(by_size.begin(), by_size.end());
    for (const auto& [bytes, c] : by_size) {
      const Shape array = shape_[members_[c][0]];
      if (!array.IsArray()) continue;
      if (array.rank() < 2) {
        orders_.order_[c] = DefaultOrder(array.rank());
        continue;
      }
      double least = -1;
      MinorToMajor best;
      for (MinorToMajor& order : Candidates(c)) {
        const double cost = CostOf(c, order);
        if (least >= 0 && cost >= least) continue;
        least = cost;
        best = std::move(order);
      }
      orders_.order_[c] = std::move(best);
    }
  }

  const Module& module_;
  const tpu::VectorTile tile_;
  TpuLayoutPreferences& orders_;
  std::vector<Shape> shape_;      // by leaf
  std::vector<uint8_t> made_;     // by leaf: MemoryPasses; 0 for forwarded values
  std::vector<uint32_t> parent_;  // by leaf
  std::vector<uint32_t> path_;
  std::vector<uint32_t> root_;                              // by class
  std::vector<std::vector<uint32_t>> members_;              // by class
  std::vector<std::vector<LayoutConstraint>> constraints_;  // by class
};

TpuLayoutPreferences::TpuLayoutPreferences(const Module& module, const tpu::VectorTile& tile) {
  LayoutSolver(module, tile, this).Run();
}

MinorToMajor TpuLayoutPreferences::MinorToMajorOf(Instruction instruction, int64_t leaf) const {
  const size_t n = first_[instruction.id().value] + static_cast<size_t>(leaf);
  const MinorToMajor& order = order_[class_[n]];
  const MinorToMajor& to = to_class_[n];
  if (to.empty()) return order;
  MinorToMajor inverse(to.size(), 0), own;
  for (size_t d = 0; d < to.size(); ++d) inverse[static_cast<size_t>(to[d])] = static_cast<int64_t>(d);
  for (int64_t d : order) own.push_back(inverse[static_cast<size_t>(d)]);
  return own;
}

}  // namespace hlokit
