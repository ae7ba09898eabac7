// SPDX-License-Identifier: Apache-2.0
// The extension for estimates, which only this plugin has: what a program would take on a simulated TPU. No client is
// needed, and nothing runs. python/hlokit/jax/_plugin.py has the same structs.
#ifndef HLOKIT_PJRT_C_API_SIMULATION_ARGS_H_
#define HLOKIT_PJRT_C_API_SIMULATION_ARGS_H_

#include <cstddef>

#include "pjrt/c_api/types.h"

extern "C" {

// Far from the numbers that the interface gives.
inline constexpr auto PJRT_Extension_Type_HlokitSimulation = static_cast<PJRT_Extension_Type>(0x686c6b01);

struct HlokitSimulation;

struct HlokitSimulation_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Program* program;  // as for PJRT_Client_Compile
  const char* compile_options;  // serialized CompileOptionsProto: how many replicas and partitions
  size_t compile_options_size;
  const char* device;  // "v6e:4x4"
  size_t device_size;
  bool with_document;
  HlokitSimulation* simulation;  // out; owns the texts
  const char* text;              // out: the report
  size_t text_size;              // out
  const char* json;              // out: the report
  size_t json_size;              // out
  const char* document;          // out: the data of the report's page; empty unless asked for
  size_t document_size;          // out
};

struct HlokitSimulation_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  HlokitSimulation* simulation;
};

struct HlokitSimulation_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*HlokitSimulation_Create)(HlokitSimulation_Create_Args* args);
  PJRT_Error* (*HlokitSimulation_Destroy)(HlokitSimulation_Destroy_Args* args);
};

}  // extern "C"

#endif  // HLOKIT_PJRT_C_API_SIMULATION_ARGS_H_
