// SPDX-License-Identifier: Apache-2.0
#include "tracer/dispatch/autocast.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/tensor.h"

namespace hlokit::lazy {
namespace {

enum class Policy : uint8_t { kNone, kLowerPrecision, kFloat, kPromote };

struct Row {
  std::string_view name;
  Policy policy;
};
constexpr Row kRows[] = {
#define AUTOCAST(name, policy) {name, Policy::k##policy},
#include "tracer/dispatch/autocast_ops.def"
#undef AUTOCAST
};

// By op.
const std::vector<Policy>& Policies() {
  static const auto* const kPolicies = [] {
    auto* policies = new std::vector<Policy>(kOpCount, Policy::kNone);
    for (size_t i = 0; i < kOpCount; ++i) {
      const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) {
        return r.name == SchemaOf(static_cast<Op>(i)).name && (InfoOf(static_cast<Op>(i)).flags & kInternal) == 0;
      });
      if (row != std::end(kRows)) (*policies)[i] = row->policy;
    }
    return policies;
  }();
  return *kPolicies;
}

struct State {
  std::optional<ElementType> type;
  int depth = 0;                                                                // of guards
  absl::flat_hash_map<const TensorImpl*, std::pair<Tensor, Tensor>> converted;  // leaves and their conversions
};
thread_local State state;

bool IsCast(const Tensor& t) {
  if (!t.defined()) return false;
  const ElementType type = t.dtype();
  return type == ElementType::kF32 || type == ElementType::kF16 || type == ElementType::kBF16;
}

Tensor Converted(const Tensor& t, ElementType type) {
  if (!IsCast(t) || t.dtype() == type) return t;
  const bool is_parameter =
      GradEnabled() && t.requires_grad() && t.is_leaf() && t.dtype() == ElementType::kF32 && type == state.type;
  if (!is_parameter) return To(t, type);
  if (const auto at = state.converted.find(t.impl()); at != state.converted.end()) return at->second.second;
  Tensor narrow = To(t, type);
  state.converted.emplace(t.impl(), std::pair(t, narrow));
  return narrow;
}

template <typename Fn>
void ForEachTensor(Args* args, Fn fn) {
  for (IValue& arg : *args) {
    if (const Tensor* t = arg.get<Tensor>()) {
      fn(*t, [&](Tensor by) { arg = std::move(by); });
    } else if (const Tensors* list = arg.get<Tensors>()) {
      Tensors changed = *list;
      for (Tensor& t : changed) fn(t, [&](Tensor by) { t = std::move(by); });
      arg = std::move(changed);
    }
  }
}

ElementType Widest(Args* args, ElementType type) {
  ForEachTensor(args, [&](const Tensor& t, const auto&) {
    if (t.defined() && IsFloat(t.dtype()) && BitsOf(t.dtype()) > BitsOf(type)) type = t.dtype();
  });
  return type;
}

}  // namespace

AutocastGuard::AutocastGuard(std::optional<ElementType> type) : previous_(std::exchange(state.type, type)) {
  ++state.depth;
}

AutocastGuard::~AutocastGuard() {
  state.type = previous_;
  if (--state.depth == 0) state.converted.clear();
}

bool AutocastEnabled() { return state.type.has_value(); }

bool CastArguments(Op op, Args* args) {
  const Policy policy = Policies()[static_cast<size_t>(op)];
  if (policy == Policy::kNone) return false;
  ElementType type = policy == Policy::kLowerPrecision ? *state.type : ElementType::kF32;
  if (policy == Policy::kPromote) type = Widest(args, *state.type);
  ForEachTensor(args, [&](const Tensor& t, const auto& replace) {
    if (IsCast(t) && t.dtype() != type) replace(Converted(t, type));
  });
  return true;
}

std::vector<std::string_view> UnknownAutocastNames() {
  std::vector<std::string_view> unknown;
  for (const Row& row : kRows) {
    bool known = false;
    for (size_t i = 0; i < kOpCount; ++i) known = known || SchemaOf(static_cast<Op>(i)).name == row.name;
    if (!known) unknown.push_back(row.name);
  }
  return unknown;
}

}  // namespace hlokit::lazy
