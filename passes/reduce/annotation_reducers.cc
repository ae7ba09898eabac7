// SPDX-License-Identifier: Apache-2.0
// Reducers of what does not change the results of most programs: attributes, metadata, layouts, the header.
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "passes/reduce/module_edits.h"
#include "passes/reduce/reducer.h"

namespace hlokit::reduce {
namespace {

// Attributes without which an instruction is valid: those that it needs are candidates that do not verify.
class DropAttributes : public Reducer {
 public:
  std::string_view name() const override { return "attributes"; }
  std::vector<Target> Targets(const Module& module) const override {
    // By attribute, so that large subsets are all of one kind.
    std::vector<std::vector<Target>> by_attribute;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        for (const AttrValue& value : i.attrs()) {
          if (IsNeeded(value)) continue;
          const size_t attr = static_cast<size_t>(value.attr);
          if (by_attribute.size() <= attr) by_attribute.resize(attr + 1);
          by_attribute[attr].push_back({i.id().value, static_cast<uint32_t>(attr)});
        }
      }
    }
    std::vector<Target> targets;
    for (const std::vector<Target>& some : by_attribute) targets.insert(targets.end(), some.begin(), some.end());
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    const InstructionId id(target.id);
    const Attr attr = static_cast<Attr>(target.detail);
    if (!IsAlive(module, id) || !module.instruction(id).has(attr)) return false;
    module.RemoveAttr(id, attr);
    return true;
  }

 private:
  // An instruction without its callees has no meaning.
  static bool IsNeeded(const AttrValue& value) { return NamesComputations(value.attr); }
};

// One of the parts of the header.
class DropHeaderFields : public Reducer {
 public:
  std::string_view name() const override { return "header fields"; }
  std::vector<Target> Targets(const Module&) const override {
    std::vector<Target> targets;
    for (uint32_t k = 0; k < Fields().size(); ++k) targets.push_back({k, 0});
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    Fields()[target.id](module);
    return true;
  }

 private:
  using Edit = void (*)(Module&);
  static const std::vector<Edit>& Fields() {
    static const std::vector<Edit>& fields = *new std::vector<Edit>{
        [](Module& m) { m.header().input_output_alias.clear(); },
        [](Module& m) { m.header().buffer_donor.clear(); },
        [](Module& m) { m.header().alias_passthrough_params = false; },
        [](Module& m) { m.header().is_scheduled = false; },
        [](Module& m) { m.header().replica_count = 1; },
        [](Module& m) { m.header().num_partitions = 1; },
        [](Module& m) { m.header().allow_spmd_sharding_propagation_to_parameters = ListId(); },
        [](Module& m) { m.header().allow_spmd_sharding_propagation_to_output = ListId(); },
        [](Module& m) { m.header().frontend_attributes = ListId(); },
        [](Module& m) { m.header().origin_recovery_table.clear(); },
        [](Module& m) { m.header().debug_attributes.clear(); },
        [](Module& m) { m.header().stack_frames = {}; },
        [](Module& m) { m.header().unknown_attributes.clear(); },
    };
    return fields;
  }
};

}  // namespace

void AddAnnotationReducers(Reducers* reducers) {
  const auto add = [&](std::string_view name, InstructionReducer::Matches matches, InstructionReducer::Edit edit) {
    reducers->push_back(std::make_unique<InstructionReducer>(name, InstructionReducer::Where::kModule,
                                                             std::move(matches), std::move(edit)));
  };
  // Of all instructions, then of single ones.
  add(
      "metadata", [](Instruction i) { return i.metadata_id() != MetadataId(); },
      [](Module& module, Instruction i) {
        module.SetMetadata(i.id(), MetadataId());
        return true;
      });
  reducers->push_back(std::make_unique<DropAttributes>());
  const auto plain = [](const Module& module, Instruction i) {
    return module.context().shapes.WithDefaultLayouts(i.shape());
  };
  add(
      "layouts", [plain](Instruction i) { return plain(i.module(), i) != i.shape(); },
      [plain](Module& module, Instruction i) {
        const Shape shape = plain(module, i);
        if (shape == i.shape()) return false;
        module.SetShape(i.id(), shape);
        return true;
      });
  reducers->push_back(std::make_unique<DropHeaderFields>());
}

}  // namespace hlokit::reduce
