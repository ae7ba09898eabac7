// SPDX-License-Identifier: Apache-2.0
#include "passes/view/opcode_family.h"

#include "passes/target/op_class.h"

namespace hlokit {

OpcodeFamily FamilyOf(Instruction i) {
  if (i.opcode() == Opcode::kParameter) return OpcodeFamily::kParameter;
  if (i.opcode() == Opcode::kConstant) return OpcodeFamily::kConstant;
  if (i.opcode() == Opcode::kFusion) return OpcodeFamily::kFusion;
  switch (tpu::ClassOf(i.opcode())) {
    case tpu::OpClass::kProduct:
      return OpcodeFamily::kMatmul;
    case tpu::OpClass::kElementwise:
    case tpu::OpClass::kScalar:
      return OpcodeFamily::kElementwise;
    case tpu::OpClass::kReduce:
      return OpcodeFamily::kReduction;
    case tpu::OpClass::kMovement:
    case tpu::OpClass::kUpdate:
    case tpu::OpClass::kAsyncCopy:
      return OpcodeFamily::kMovement;
    case tpu::OpClass::kCollective:
      return OpcodeFamily::kCollective;
    case tpu::OpClass::kAlias:
    case tpu::OpClass::kTuple:
    case tpu::OpClass::kGetTupleElement:
    case tpu::OpClass::kDone:
    case tpu::OpClass::kCall:
    case tpu::OpClass::kLoop:
      return OpcodeFamily::kControl;
    case tpu::OpClass::kHost:
      return OpcodeFamily::kHost;
    case tpu::OpClass::kStandalone:
    case tpu::OpClass::kNoWork:
      return OpcodeFamily::kOther;
  }
  return OpcodeFamily::kOther;
}

std::string_view ToString(OpcodeFamily family) {
  switch (family) {
    case OpcodeFamily::kParameter:
      return "parameter";
    case OpcodeFamily::kConstant:
      return "constant";
    case OpcodeFamily::kMatmul:
      return "matmul";
    case OpcodeFamily::kElementwise:
      return "elementwise";
    case OpcodeFamily::kReduction:
      return "reduction";
    case OpcodeFamily::kMovement:
      return "data movement";
    case OpcodeFamily::kCollective:
      return "collective";
    case OpcodeFamily::kFusion:
      return "fusion";
    case OpcodeFamily::kControl:
      return "control flow";
    case OpcodeFamily::kHost:
      return "host transfer";
    case OpcodeFamily::kOther:
      return "other";
  }
  return "";
}

std::string_view LightColorOf(OpcodeFamily family) {
  switch (family) {
    case OpcodeFamily::kParameter:
      return "#d5ecd9";
    case OpcodeFamily::kConstant:
      return "#eef0f3";
    case OpcodeFamily::kMatmul:
      return "#bcd0f7";
    case OpcodeFamily::kElementwise:
      return "#f9e3b0";
    case OpcodeFamily::kReduction:
      return "#bfe3c1";
    case OpcodeFamily::kMovement:
      return "#e5d3c1";
    case OpcodeFamily::kCollective:
      return "#f5bdb6";
    case OpcodeFamily::kFusion:
      return "#dcc9f0";
    case OpcodeFamily::kControl:
      return "#d5dae1";
    case OpcodeFamily::kHost:
      return "#cfc8ea";
    case OpcodeFamily::kOther:
      return "#ffffff";
  }
  return "#ffffff";
}

}  // namespace hlokit
