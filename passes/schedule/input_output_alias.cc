// SPDX-License-Identifier: Apache-2.0
// Lets results reuse the buffers of parameters, as XLA's OptimizeInputOutputBufferAlias does.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/analysis/cost.h"
#include "passes/core/pass_row.h"
#include "passes/schedule/host_memory.h"

namespace hlokit {
namespace {

// An array of a parameter or result.
struct Leaf {
  int64_t parameter;  // of results: unused
  ListId index;       // within the tuple
  int64_t memory_space;
  int64_t bytes;
};

// Appends the static arrays of `shape`, in the order of the text.
void AppendLeaves(Context& context, int64_t parameter, Shape shape, std::vector<Leaf>* leaves) {
  std::vector<std::pair<Shape, std::vector<int64_t>>> open = {{shape, {}}};
  while (!open.empty()) {
    const auto [at, index] = std::move(open.back());
    open.pop_back();
    if (at.IsTuple()) {
      for (int64_t k = at.tuple_size(); k-- > 0;) {
        std::vector<int64_t> inner = index;
        inner.push_back(k);
        open.emplace_back(at.element(k), std::move(inner));
      }
    } else if (at.IsArray() && !at.has_dynamic_dims()) {
      const int64_t memory_space = at.has_layout() ? at.layout()->memory_space() : 0;
      leaves->push_back({parameter, context.lists.Intern(index), memory_space, BufferBytes(at)});
    }
  }
}

auto Order(const Leaf& leaf) { return std::make_tuple(leaf.memory_space, -leaf.bytes); }

// Removes the leaves for which `drop` holds, and sorts the others by memory space, largest first.
template <typename Drop>
void Prepare(std::vector<Leaf>* leaves, Drop drop) {
  std::erase_if(*leaves, drop);
  std::stable_sort(leaves->begin(), leaves->end(), [](const Leaf& a, const Leaf& b) { return Order(a) < Order(b); });
}

}  // namespace

absl::StatusOr<int64_t> AddInputOutputAliases(Module& module, bool donors_only) {
  ModuleHeader& header = module.header();
  if (header.is_scheduled || !header.entry_layout || header.entry_layout->result.has_dynamic_dims()) return 0;
  Context& context = module.context();
  std::vector<Leaf> donors, results;
  for (size_t p = 0; p < header.entry_layout->parameters.size(); ++p) {
    AppendLeaves(context, static_cast<int64_t>(p), header.entry_layout->parameters[p], &donors);
  }
  AppendLeaves(context, 0, header.entry_layout->result, &results);
  std::vector<std::pair<int64_t, ListId>> declared, used;
  std::vector<ListId> taken;
  for (const BufferDonor& donor : header.buffer_donor) declared.emplace_back(donor.parameter, donor.parameter_index);
  for (const InputOutputAlias& alias : header.input_output_alias) {
    used.emplace_back(alias.parameter, alias.parameter_index);
    taken.push_back(alias.output_index);
  }
  const auto less = [](const auto& a, const auto& b) {
    return std::make_pair(a.first, a.second.value) < std::make_pair(b.first, b.second.value);
  };
  const auto less_id = [](ListId a, ListId b) { return a.value < b.value; };
  std::sort(declared.begin(), declared.end(), less);
  std::sort(used.begin(), used.end(), less);
  std::sort(taken.begin(), taken.end(), less_id);
  Prepare(&donors, [&](const Leaf& leaf) {
    const std::pair<int64_t, ListId> key(leaf.parameter, leaf.index);
    return std::binary_search(used.begin(), used.end(), key, less) ||
           (donors_only && !std::binary_search(declared.begin(), declared.end(), key, less));
  });
  Prepare(&results,
          [&](const Leaf& leaf) { return std::binary_search(taken.begin(), taken.end(), leaf.index, less_id); });

  std::vector<std::pair<int64_t, ListId>> donated;
  for (size_t d = 0, r = 0; d < donors.size() && r < results.size();) {
    if (Order(donors[d]) < Order(results[r])) {
      ++d;
    } else if (Order(results[r]) < Order(donors[d])) {
      ++r;
    } else {
      const Leaf &from = donors[d++], &to = results[r++];
      header.input_output_alias.push_back({to.index, from.parameter, from.index, /*must_alias=*/false});
      donated.emplace_back(from.parameter, from.index);
    }
  }
  if (donated.empty()) return 0;
  std::sort(donated.begin(), donated.end(), less);
  std::erase_if(header.buffer_donor, [&](const BufferDonor& donor) {
    return std::binary_search(donated.begin(), donated.end(), std::make_pair(donor.parameter, donor.parameter_index),
                              less);
  });
  std::sort(header.input_output_alias.begin(), header.input_output_alias.end(),
            [&](const InputOutputAlias& a, const InputOutputAlias& b) {
              const absl::Span<const int64_t> x = context.list(a.output_index), y = context.list(b.output_index);
              return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
            });
  return static_cast<int64_t>(donated.size());
}

namespace {

class InputOutputAliasing : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = AddInputOutputAliases(module, options().Bool("donors-only"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("results given buffers of parameters", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(OptimizeInputOutputBufferAlias) {
  return {.name = "optimize-input-output-buffer-alias",
          .category = "schedule",
          .summary = "let results reuse the buffers of parameters",
          .doc =
              "Results get may-alias entries with parameters of the same size and memory space, largest first. "
              "As in XLA, by default from parameters that the header names in buffer_donor.",
          .example = R"(HloModule step, buffer_donor={ (0, {}) }

ENTRY e {
  weights = f32[8] parameter(0)
  gradient = f32[8] parameter(1)
  updated = f32[8] subtract(weights, gradient)
  ROOT r = (f32[8]) tuple(updated)
})",
          .options = {{.name = "donors-only",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "true",
                       .doc = "take buffers only from parameters that the header declares as donors"}},
          .preconditions = kNoSchedule,
          .create = MakePass<InputOutputAliasing>};
}

}  // namespace hlokit
