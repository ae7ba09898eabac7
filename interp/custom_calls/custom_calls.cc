// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/custom_calls.h"

#include <algorithm>
#include <iterator>

#include "interp/custom_calls/gpu_calls.h"
#include "interp/custom_calls/lapack_calls.h"
#include "interp/custom_calls/matrix_calls.h"
#include "interp/custom_calls/tpu_calls.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kMarkers[] = {"AssumeGatherIndicesInBound",
                                         "AssumeScatterIndicesInBound",
                                         "GatherScatterIndicesBitpacked",
                                         "LayoutConstraint",
                                         "MoveToDevice",
                                         "MoveToHost",
                                         "Pin",
                                         "PinToDevice",
                                         "PinToDeviceSram",
                                         "SPMDFullToShardShape",
                                         "SPMDShardToFullShape",
                                         "ShardBarrierFrom",
                                         "ShardBarrierTo",
                                         "Sharding",
                                         "Unpin",
                                         "annotate_device_placement"};

constexpr std::string_view kNops[] = {"NopCustomCall", "NopReturnToken", "dce_sink", "xla.sdy.ShardingGroup"};

}  // namespace

bool IsMarkerTarget(std::string_view target) {
  return std::find(std::begin(kMarkers), std::end(kMarkers), target) != std::end(kMarkers) ||
         target.starts_with("xla.sdy.");
}

bool IsNopTarget(std::string_view target) {
  return std::find(std::begin(kNops), std::end(kNops), target) != std::end(kNops);
}

std::string UnknownTargetMessage(std::string_view target, const CustomCallRegistry* registry) {
  if (IsPartConversion(target)) {
    return StrCat("custom-call target \"", target,
                  "\" goes between a value of all devices and the part of one: the program is for several devices "
                  "(hlo-run --partitions=N)");
  }
  if (IsMarkerTarget(target)) {
    return StrCat("custom-call target \"", target, "\" returns its operand: the call must have one of its own shape");
  }
  std::string message = StrCat("no function for custom-call target \"", target, "\"; there are TopK, xla.sdy.*");
  for (std::string_view call : MatrixCallTargets()) StrAppend(&message, ", ", call);
  for (std::string_view call : TpuCallTargets()) StrAppend(&message, ", ", call);
  for (std::string_view call : GpuCallTargets()) StrAppend(&message, ", ", call);
  StrAppend(&message, ", ", kLapackTargets);
  for (std::string_view marker : kMarkers) StrAppend(&message, ", ", marker);
  for (std::string_view nop : kNops) StrAppend(&message, ", ", nop);
  if (registry != nullptr) {
    for (const std::string& registered : registry->Targets()) StrAppend(&message, ", ", registered);
  }
  StrAppend(&message, "; --stub-custom-calls makes up a result");
  return message;
}

}  // namespace hlokit::interp
