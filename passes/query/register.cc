// SPDX-License-Identifier: Apache-2.0
// Registers the passes that edit what a query finds.
#include "passes/core/register_passes.h"
#include "passes/query/replace.h"
#include "passes/query/resize.h"

namespace hlokit {
namespace {

const OptionInfo kMatch = {.name = "match",
                           .type = OptionInfo::Type::kString,
                           .default_text = "",
                           .doc = "a pattern of instructions, as `hlo-inspect find` takes it"};
const OptionInfo kWhere = {.name = "where",
                           .type = OptionInfo::Type::kString,
                           .default_text = "",
                           .doc = "a condition on the matches, as `hlo-inspect find --where` takes it"};

}  // namespace

void RegisterQueryPasses(PassRegistry* registry) {
  registry->Add(
      {.name = "replace",
       .category = "edits",
       .summary = "replace the instructions that match a pattern",
       .doc = "replace{match=add(%x,0),with=%x}: each match is replaced by a variable of the pattern, a number, or "
              "instructions of these, all operands given. Attributes are those of the matched instruction of "
              "the same opcode. The shape must stay. Replaced instructions that nothing uses are removed; "
              "new ones are not matched again.",
       .options = {kMatch,
                   {.name = "with",
                    .type = OptionInfo::Type::kString,
                    .default_text = "",
                    .doc = "what replaces a match: convert(dot(%x,%y)), %x, 0"},
                   kWhere},
       .preconditions = "the replacement computes what is wanted: nothing checks that values stay.",
       .create = MakePass<query::ReplacePass>});
  registry->Add(
      {.name = "set-attribute",
       .category = "edits",
       .summary = "set an attribute of the instructions that match a pattern",
       .doc = "set-attribute{match=dot,name=operand_precision,value={highest,highest}}: the attribute by its name "
              "in HLO text, with a value as there; without a value it is removed. Attributes that name "
              "computations or instructions, and metadata, cannot be set.",
       .options =
           {kMatch,
            {.name = "name", .type = OptionInfo::Type::kString, .default_text = "", .doc = "the name of the attribute"},
            {.name = "value",
             .type = OptionInfo::Type::kString,
             .default_text = "",
             .doc = "its value, as in HLO text; empty: removes it"},
            kWhere},
       .create = MakePass<query::SetAttributePass>});
  registry->Add(
      {.name = "resize",
       .category = "edits",
       .summary = "change the batch size of a program",
       .doc = "resize{batch=8:16}: the dimension of entry parameters with the size 8 becomes 16, and what follows "
              "from it: it is followed by the rules of shardings through operations, and through tuples, "
              "fusions, calls, loops and branches; limits of slices and sizes of dynamic slices and gathers "
              "change too. An operation through which it cannot be followed is an error that names it, and "
              "the module stays. Constants that depend on the size, such as the divisor of a mean, stay.",
       .options =
           {{.name = "batch", .type = OptionInfo::Type::kString, .default_text = "", .doc = "the sizes, FROM:TO"},
            {.name = "parameters",
             .type = OptionInfo::Type::kString,
             .default_text = "",
             .doc = "the entry parameters that have the dimension, [a,b]; empty: all with the size FROM"},
            {.name = "dimension",
             .type = OptionInfo::Type::kInt,
             .default_text = "0",
             .doc = "the number of the dimension in these parameters"}},
       .create = MakePass<query::ResizePass>});
}

}  // namespace hlokit
