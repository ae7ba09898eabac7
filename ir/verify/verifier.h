// SPDX-License-Identifier: Apache-2.0
// Verifies the rules of a module that the parser cannot check line by line. VerifyModule reports every violation at the
// instruction that has it. The rules are those of XLA's own verifier before layout assignment, unless an option adds
// more; where that verifier aborts or overflows on unusual values, this one reports an error.
//
// Kinds of diagnostic and the files with their rules
//   duplicate-name, bad-parameter, operand-count, duplicate-, unknown- and missing-attribute, undefined-operand,
//   undefined-computation                             structure.cc
//   cyclic-operands, cyclic-calls, schedule           order.cc
//   inference        declared shape against inference shape_inference.h, called from verifier.cc
//   attribute-value                                   attributes.cc, calls.cc, original_value.cc
//   call-signature   computations and their callers   shape_inference.h, calls.cc
//   async-pair       start, update and done           pairs.cc, async.cc
//   channel          users of a channel               pairs.cc
//   collective       groups, source-target pairs      collectives.cc, pairs.cc
//   aliasing         outputs and aliased operands     aliasing.cc, header.cc
//   sharding         shapes and neighbors            sharding.cc, calls.cc
//   buffer-use       values of type b(...)            buffers.cc
//   layout           fields of layouts, constraints of custom calls; all else only with `layout_sensitive`
//                                                     aliasing.cc, layout.cc
//   bad-header       entry layout, counts             header.cc
#ifndef HLOKIT_IR_VERIFY_VERIFIER_H_
#define HLOKIT_IR_VERIFY_VERIFIER_H_

#include "ir/core/diagnostic.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

struct VerifierOptions {
  // Layouts are assigned: forwarding operations must preserve them, elementwise ones must not change them.
  bool layout_sensitive = false;
  // An instruction may compute in another floating-point type than that of its operands.
  bool allow_mixed_precision = true;
  // Dimensions `?` may appear in any instruction.
  bool allow_unbounded_dynamism = true;
  // The dimensions of a broadcast must ascend.
  bool verify_broadcast_dimensions_order = false;
};

// Reports the errors of `module`, if any. Stops early when the sink is full. Time and memory are linear in the module.
void VerifyModule(const Module& module, const VerifierOptions& options, DiagnosticSink* sink);

}  // namespace hlokit

#endif  // HLOKIT_IR_VERIFY_VERIFIER_H_
