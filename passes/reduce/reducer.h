// SPDX-License-Identifier: Apache-2.0
// Reducers: edits that make a module smaller, and may change what it computes. Reduction (reduction.h) searches for
// edits after which the module is still interesting.
//
// A reducer lists the targets that it could edit. Targets name instructions, computations and attributes by id: ids
// survive copies of the module and other edits, so that a list of targets stays usable, except those that are gone.
#ifndef HLOKIT_PASSES_REDUCE_REDUCER_H_
#define HLOKIT_PASSES_REDUCE_REDUCER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::reduce {

struct Target {
  uint32_t id = 0;
  uint32_t detail = 0;
};

// How a reducer's targets are searched.
enum class Search : uint8_t {
  kSubsets,       // all at once, then halves, quarters, … down to single ones: those that may be edited together are
  kAlternatives,  // one after the other; after the first that may be edited, from the new list of targets
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual std::string_view name() const = 0;  // "outputs": a plural noun, or what is done
  virtual Search search() const { return Search::kSubsets; }
  // Returns true if the targets depend on recorded values.
  virtual bool uses_values() const { return false; }
  // Returns the targets, those first whose edit is expected to remove most.
  virtual std::vector<Target> Targets(const Module& module) const = 0;
  // Edits a target. Returns false, and changes nothing, if it is gone or cannot be edited. The module may be left with
  // dead code and an outdated header (CleanUp), and may be invalid.
  virtual bool Apply(Module& module, Target target) const = 0;
};

// Instructions, each by itself: those that match, of the entry or of all computations.
class InstructionReducer : public Reducer {
 public:
  enum class Where : uint8_t { kEntry, kModule };
  using Matches = std::function<bool(Instruction)>;
  // Called for an instruction that is there. Returns false, and changes nothing, if it cannot be edited.
  using Edit = std::function<bool(Module&, Instruction)>;

  InstructionReducer(std::string_view name, Where where, Matches matches, Edit edit)
      : name_(name), where_(where), matches_(std::move(matches)), edit_(std::move(edit)) {}
  std::string_view name() const override { return name_; }
  std::vector<Target> Targets(const Module& module) const override;
  bool Apply(Module& module, Target target) const override;

 private:
  std::string_view name_;
  Where where_;
  Matches matches_;
  Edit edit_;
};

// The values of the entry's instructions in a run of the module that is reduced, by instruction; empty literals for
// unknown ones.
using RecordedValues = std::vector<Literal>;

using Reducers = std::vector<std::unique_ptr<Reducer>>;

// The reducers, those first that remove most. `values`, if not null, outlives them, and is that of the current module
// when targets are listed. One function for each kind, in the source of that name.
Reducers AllReducers(const RecordedValues* values);
void AddCutReducers(Reducers* reducers);          // prefixes and suffixes of the entry, outputs, parameters
void AddControlFlowReducers(Reducers* reducers);  // loops, branches, calls, fusions
void AddValueReducers(const RecordedValues* values,
                      Reducers* reducers);       // instructions become operands or constants; constants
void AddSizeReducers(Reducers* reducers);        // dimensions, element types
void AddPassReducers(Reducers* reducers);        // passes that simplify
void AddAnnotationReducers(Reducers* reducers);  // attributes, metadata, header

}  // namespace hlokit::reduce

#endif  // HLOKIT_PASSES_REDUCE_REDUCER_H_
