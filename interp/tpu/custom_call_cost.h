// Custom calls whose work is known: kernels that state it in their backend_config (Pallas: "cost_estimate" with flops,
// transcendentals and bytes_accessed), and fused attention by its operands' shapes.
#ifndef HLOKIT_INTERP_TPU_CUSTOM_CALL_COST_H_
#define HLOKIT_INTERP_TPU_CUSTOM_CALL_COST_H_

#include "interp/tpu/machine.h"
#include "ir/module.h"

namespace hlokit::tpu {

struct CustomCallWork {
  bool known = false;
  double flops = 0;
  double transcendentals = 0;
  double matrix_seconds = 0;
};
CustomCallWork WorkOfCustomCall(const Machine& machine, Instruction call);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_CUSTOM_CALL_COST_H_
