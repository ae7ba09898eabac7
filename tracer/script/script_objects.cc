// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script_objects.h"

#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/tensor_impl.h"

namespace hlokit::lazy::script {

absl::Status Module::AddChild(std::shared_ptr<Module> child) {
  depth_ = std::max(depth_, child->depth_ + 1);
  if (depth_ > kMaxDepth) {
    return absl::ResourceExhaustedError(StrCat("modules are nested more than ", kMaxDepth, " deep"));
  }
  total_ += child->total_;
  if (total_ > kMaxTotal) {
    return absl::ResourceExhaustedError(StrCat("a module has at most ", kMaxTotal, " modules in it"));
  }
  children_.push_back(std::move(child));
  return absl::OkStatus();
}

void Module::Visit(const std::function<void(const Module&, const std::string&)>& visit) const {
  // Modules are at most kMaxDepth deep.
  struct Position {
    const Module* module;
    std::string prefix;
    size_t next;
  };
  std::vector<Position> open = {{this, "", 0}};
  visit(*this, "");
  while (!open.empty()) {
    Position& at = open.back();
    if (at.next == at.module->children_.size()) {
      open.pop_back();
      continue;
    }
    const size_t number = at.next++;
    const Module* const child = at.module->children_[number].get();
    std::string prefix = StrCat(at.prefix, number, ".");
    visit(*child, prefix);
    open.push_back({child, std::move(prefix), 0});
  }
}

std::vector<nn::NamedTensor> Module::Collect(Part part) const {
  std::vector<nn::NamedTensor> tensors;
  absl::flat_hash_set<const TensorImpl*> known;
  Visit([&](const Module& module, const std::string& prefix) {
    if (module.registry_ == nullptr) return;
    for (const nn::NamedTensor& t : (module.registry_.get()->*part)()) {
      // A module that is in two places is listed once.
      if (known.insert(t.tensor.impl()).second) tensors.push_back({StrCat(prefix, t.name), t.tensor});
    }
  });
  return tensors;
}

void Module::SetTraining(bool training) {
  std::vector<Module*> open = {this};
  while (!open.empty()) {
    Module* const module = open.back();
    open.pop_back();
    module->training_ = training;
    for (const std::shared_ptr<Module>& child : module->children_) open.push_back(child.get());
  }
}

absl::StatusOr<Value> Module::CallWith(const Value& input) const {
  std::vector<Value> values;
  for (const Parameter& parameter : forward_signature_->parameters) {
    if (!values.empty() && !parameter.has_default) {
      return absl::InvalidArgumentError(StrCat("the module takes `", parameter.name, "` too"));
    }
    absl::StatusOr<Value> value = values.empty() ? ConvertTo(parameter, input.single()) : parameter.default_value;
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  return Call(Arguments(values));
}

void Module::AppendState(std::vector<uint64_t>* state) const {
  Visit([&](const Module& module, const std::string&) {
    module.Object::AppendState(state);
    state->push_back(module.training_ ? 1 : 0);
  });
}

void OptimizerObject::AppendState(std::vector<uint64_t>* state) const {
  Object::AppendState(state);
  for (size_t group = 0; group < optimizer->group_count(); ++group) {
    state->push_back(std::bit_cast<uint64_t>(optimizer->lr(group)));
  }
}

}  // namespace hlokit::lazy::script
