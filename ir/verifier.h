// Whether a module means something: what the parser cannot see line by line. VerifyModule reports every violation at
// the instruction that has it. The rules are those of XLA's own verifier before layouts are assigned, unless an option
// asks for more; where that verifier aborts or overflows on odd values, this one reports.
//
// Rules by kind of diagnostic, and the file that has them
//   duplicate-name, bad-parameter, operand-count, missing-attribute, undefined-operand, undefined-computation,
//   cyclic-operands, cyclic-calls, schedule              verify_structure.cc, verify_order.cc
//   inference      declared shape against inference       shape_inference.h, called from verifier.cc
//   operand-type, attribute-value                         verify_attributes.cc
//   call-signature called computations and their callers  verify_calls.cc, verify_embedded.cc
//   async-pair     start, update and done                 verify_async.cc, verify_pairs.cc
//   channel        users of a channel, send and recv      verify_pairs.cc
//   collective     groups, source-target pairs            verify_collectives.cc
//   aliasing       of outputs to parameters and operands  verify_header.cc, verify_aliasing.cc
//   sharding       fits its shape and its neighbours      verify_sharding.cc
//   buffer-use     values of type b(...)                  verify_buffers.cc
//   layout         only with `layout_sensitive`           verify_layout.cc
//   bad-header     entry layout, counts, propagation      verify_header.cc
#ifndef HLOKIT_IR_VERIFIER_H_
#define HLOKIT_IR_VERIFIER_H_

#include "ir/diagnostic.h"
#include "ir/module.h"

namespace hlokit {

struct VerifierOptions {
  // Layouts are decided: operations that only pass values on must keep them, elementwise ones must not change them.
  bool layout_sensitive = false;
  // An instruction may compute in another floating-point type than its operands have.
  bool allow_mixed_precision = true;
  // Dimensions `?` may appear outside of what reads and prints modules.
  bool allow_unbounded_dynamism = true;
  // The dimensions of a broadcast must ascend.
  bool ordered_broadcast_dimensions = false;
};

// Reports what is wrong with `module`; nothing if it is sound. Stops early when the sink is full. Time and memory are
// linear in the module.
void VerifyModule(const Module& module, const VerifierOptions& options, DiagnosticSink* sink);

}  // namespace hlokit

#endif  // HLOKIT_IR_VERIFIER_H_
