// A simulated execution as an XSpace, the profile that TensorBoard's profile plugin (XProf) opens: a plane for the
// device with its peaks and the lines Steps, XLA Modules, XLA Ops and Async XLA Ops, one for the host, and the task
// environment. The HLO module itself is not in it, so graph and memory viewer have nothing to show.
#ifndef HLOKIT_INTERP_TPU_XPLANE_H_
#define HLOKIT_INTERP_TPU_XPLANE_H_

#include <cstddef>
#include <string>

#include "interp/tpu/timeline.h"

namespace hlokit::tpu {

// The bytes of XSpace. Equal inputs give equal bytes. Times begin at 0.
std::string XSpaceBytes(const ReportInput& input, const KernelPlan& plan, size_t max_events);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_XPLANE_H_
