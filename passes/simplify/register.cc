// The passes of this room.
#include "passes/rooms.h"
#include "passes/simplify/algebraic/algsimp.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"

namespace hlokit {

void RegisterSimplifyPasses(PassRegistry* registry) {
  registry->Add({.name = "algsimp",
                 .room = "simplify",
                 .summary = "algebraic simplification",
                 .doc = "Rewrites single instructions and small groups into cheaper ones until no rule applies: "
                        "arithmetic with zero and one, comparisons and selections with a known result, chains of "
                        "conversions, reshapes, broadcasts, transposes, slices, concatenations and padding, reductions "
                        "of nothing, transposes into dots, elements of tuples. No float is reassociated.",
                 .make = MakePass<AlgebraicSimplifier>});
  registry->Add({.name = "tuple-simplifier",
                 .room = "simplify",
                 .summary = "forward the elements of tuples",
                 .doc = "An element of a tuple is what was put there, and a tuple of all elements of another is that "
                        "other one.",
                 .make = MakePass<TupleSimplifier>});
  registry->Add({.name = "cse",
                 .room = "simplify",
                 .summary = "merge equal instructions",
                 .doc =
                     "Merges instructions of a computation that have the same opcode, shape, operands (in any order "
                     "where the opcode is commutative) and attributes into the first of them. Called computations are "
                     "equal when they are equal instruction by instruction. Instructions with side effects, "
                     "parameters and constants without a value stay apart. Metadata does not keep instructions "
                     "apart: the one that stays stands for all.",
                 .make = MakePass<Cse>});
  registry->Add({.name = "dce",
                 .room = "simplify",
                 .summary = "remove unused instructions and computations",
                 .doc = "Removes instructions that nothing uses and that have no side effect, then computations that "
                        "nothing calls. Parameters stay, since callers give them values.",
                 .make = MakePass<Dce>});
}

}  // namespace hlokit
