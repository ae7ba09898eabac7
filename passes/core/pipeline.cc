// SPDX-License-Identifier: Apache-2.0
#include "passes/core/pipeline.h"

#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/pass_error.h"
#include "passes/remarks/remark.h"

namespace hlokit {

std::string Pipeline::ToString(bool expand) const {
  std::string text;
  struct Open {
    uint32_t node;
    size_t next;
  };
  std::vector<Open> open = {{0, 0}};
  while (!open.empty()) {
    Open& top = open.back();
    const Node& group = nodes_[top.node];
    const bool whole = top.node == 0;
    if (top.next == 0 && !whole) StrAppend(&text, group.label, "(");
    if (top.next == group.children.size()) {
      if (!whole) StrAppend(&text, ")", group.repeat ? "*" : "");
      open.pop_back();
      continue;
    }
    if (top.next != 0) StrAppend(&text, ",");
    const uint32_t child_id = group.children[top.next++];
    const Node& child = nodes_[child_id];
    if (child.info != nullptr) {
      StrAppend(&text, child.info->name, child.pass->options().ToString(), child.repeat ? "*" : "");
    } else if (child.named && !expand) {
      StrAppend(&text, child.label, child.options, child.repeat ? "*" : "");
    } else {
      open.push_back({child_id, 0});
    }
  }
  return text;
}

std::vector<const PassInfo*> Pipeline::passes() const {
  std::vector<const PassInfo*> passes;
  std::vector<uint32_t> open = {0};
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    if (node.info != nullptr) passes.push_back(node.info);
    open.insert(open.end(), node.children.rbegin(), node.children.rend());
  }
  return passes;
}

absl::StatusOr<Pipeline::Result> Pipeline::Run(Module& module, const PipelineOptions& options,
                                               absl::Span<PassInstrumentation* const> instruments) {
  Result result;
  // Version of the module, and the version for which each pass found nothing to do; passes with equal text share it.
  int64_t version = 0;
  int64_t run_number = 0;
  std::vector<int64_t> idle_at(texts_.size(), -1);
  for (const Node& node : nodes_) {
    if (node.pass != nullptr) node.pass->set_context(&options.context);
  }

  struct Open {
    uint32_t node;
    size_t next = 0;
    int64_t round = 1;
    int64_t version;    // at the start of the iteration
    size_t place_size;  // length of the enclosing group's path
  };
  std::string place;
  std::vector<Open> open = {{0, 0, 1, version, 0}};
  while (!open.empty()) {
    Open& top = open.back();
    const Node& group = nodes_[top.node];
    const bool single = group.info != nullptr;
    if (top.next == (single ? 1 : group.children.size())) {
      if (group.repeat && version != top.version) {
        if (top.round < options.max_iterations) {
          top = {top.node, 0, top.round + 1, version, top.place_size};
          continue;
        }
        result.not_converged.push_back(single ? texts_[group.text] : group.label);
      }
      place.resize(top.place_size);
      open.pop_back();
      continue;
    }
    const uint32_t child = single ? top.node : group.children[top.next];
    ++top.next;
    const Node& node = nodes_[child];
    if (node.skip_if_scheduled && module.header().is_scheduled) continue;
    if (node.skip_if_partitioned) {
      if (TakePartitionsOfShardings(&module, options.context.diagnostics)) {
        ++version;
        result.changed = true;
      }
      if (!AwaitsPartitioning(module)) {
        WarnOfUndivided(module, /*asked=*/open.size() == 1, options.context.diagnostics);
        continue;
      }
    }
    if (node.info == nullptr || (node.repeat && !single)) {
      open.push_back({child, 0, 1, version, place.size()});
      if (node.info == nullptr && !node.label.empty()) StrAppend(&place, place.empty() ? "" : "/", node.label);
      continue;
    }
    if (idle_at[node.text] == version) continue;
    const PassRun run{*node.info, *node.pass, run_number + 1, place};
    if (!std::all_of(instruments.begin(), instruments.end(), [&](auto* i) { return i->ShouldRun(run); })) continue;
    ++run_number;
    for (PassInstrumentation* instrument : instruments) {
      if (absl::Status status = instrument->RunBeforePass(run, module); !status.ok()) return status;
    }
    if (options.context.remarks != nullptr) options.context.remarks->BeginPass(node.info->name);
    const absl::StatusOr<bool> changed = node.pass->Run(module);
    if (!changed.ok()) {
      for (PassInstrumentation* instrument : instruments) instrument->RunAfterPassFailed(run, changed.status());
      return WithMessage(changed.status(),
                         StrCat("pass ", node.info->name, ": ", std::string(changed.status().message())));
    }
    if (*changed) {
      ++version;
      result.changed = true;
    } else {
      idle_at[node.text] = version;
    }
    for (PassInstrumentation* instrument : instruments) {
      if (absl::Status status = instrument->RunAfterPass(run, module, *changed); !status.ok()) return status;
    }
  }
  return result;
}

}  // namespace hlokit
