// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script_value.h"

#include <algorithm>
#include <atomic>

#include "absl/status/statusor.h"
#include "ir/core/str_cat.h"

namespace hlokit::lazy::script {

Object::Object(std::string_view type) : type_(type) {
  static std::atomic<uint64_t> next{0};
  id_ = next.fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<Value> Value::ListOf(std::vector<Value> values, bool results) {
  auto list = std::make_shared<List>();
  if (values.size() > List::kMaxSize) {
    return absl::ResourceExhaustedError(StrCat("a list has at most ", List::kMaxSize, " members"));
  }
  list->total = values.size();
  for (const Value& member : values) {
    if (member.list() == nullptr) continue;
    list->depth = std::max(list->depth, member.list()->depth + 1);
    list->total += member.list()->total;
    if (list->total > List::kMaxTotal) {
      return absl::ResourceExhaustedError(
          StrCat("a list has at most ", List::kMaxTotal, " members, with those of lists in it"));
    }
  }
  if (list->depth > List::kMaxDepth) {
    return absl::ResourceExhaustedError(StrCat("lists are nested more than ", List::kMaxDepth, " deep"));
  }
  list->values = std::move(values);
  list->results = results;
  return Value(std::shared_ptr<const List>(std::move(list)));
}

const Value& Value::single() const {
  static const Value kNothing;
  if (!has_results()) return *this;
  return list()->values.empty() ? kNothing : list()->values[0];
}

std::string_view Value::KindName() const {
  if (get<Tensor>() != nullptr) return "a tensor";
  if (const Scalar* number = get<Scalar>()) {
    return number->is_float() ? "a float" : number->kind() == Scalar::Kind::kBool ? "a bool" : "an integer";
  }
  if (get<std::string>() != nullptr || get<Word>() != nullptr) return "a string";
  if (has_results()) return list()->values.empty() ? "nothing" : "several results";
  if (list() != nullptr) return "a list";
  if (const auto* object = get<std::shared_ptr<Object>>()) return (*object)->type();
  return none() ? "none" : "nothing";
}

void AppendTensors(const Value& value, Tensors* tensors) {
  // Lists are at most kMaxDepth deep.
  struct Position {
    const List* list;
    size_t next;
  };
  std::vector<Position> open;
  const auto visit = [&](const Value& v) {
    if (const Tensor* t = v.get<Tensor>()) tensors->push_back(*t);
    if (v.list() != nullptr) open.push_back({v.list(), 0});
  };
  visit(value);
  while (!open.empty()) {
    Position& at = open.back();
    if (at.next == at.list->values.size()) {
      open.pop_back();
      continue;
    }
    const Value& member = at.list->values[at.next++];
    visit(member);
  }
}

}  // namespace hlokit::lazy::script
