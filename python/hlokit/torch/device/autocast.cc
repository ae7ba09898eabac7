// SPDX-License-Identifier: Apache-2.0
// torch.autocast("xla") and ("tpu"): the lists of ops are PyTorch's.
#include <ATen/autocast_mode.h>

#include "lazy_tensor.h"

// Names of the macros of PyTorch's header.
#define HLOKIT_FOR_EACH(DO)                     \
  AT_FORALL_LOWER_PRECISION_FP(DO##_LOWER)      \
  AT_FORALL_FP32(DO##_FP32)                     \
  AT_FORALL_FP32_SET_OPT_DTYPE(DO##_FP32_DTYPE) \
  AT_FORALL_PROMOTE(DO##_PROMOTE)

namespace hlokit::torch_device {
namespace {

using c10::DeviceType;

#define HLOKIT_TPU_LOWER(...) KERNEL(DeviceType::PrivateUse1, __VA_ARGS__, lower_precision_fp)
#define HLOKIT_TPU_FP32(...) KERNEL(DeviceType::PrivateUse1, __VA_ARGS__, fp32)
#define HLOKIT_TPU_FP32_DTYPE(...) KERNEL(DeviceType::PrivateUse1, __VA_ARGS__, fp32_set_opt_dtype)
#define HLOKIT_TPU_PROMOTE(...) KERNEL(DeviceType::PrivateUse1, __VA_ARGS__, promote)
#define HLOKIT_XLA_LOWER(...) KERNEL(DeviceType::XLA, __VA_ARGS__, lower_precision_fp)
#define HLOKIT_XLA_FP32(...) KERNEL(DeviceType::XLA, __VA_ARGS__, fp32)
#define HLOKIT_XLA_FP32_DTYPE(...) KERNEL(DeviceType::XLA, __VA_ARGS__, fp32_set_opt_dtype)
#define HLOKIT_XLA_PROMOTE(...) KERNEL(DeviceType::XLA, __VA_ARGS__, promote)

void AddTpu(torch::Library& m) { HLOKIT_FOR_EACH(HLOKIT_TPU) }
void AddXla(torch::Library& m) { HLOKIT_FOR_EACH(HLOKIT_XLA) }

void Register(c10::DispatchKey key, void (*add)(torch::Library&)) {
  auto* const all = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  all->fallback(torch::CppFunction::makeFallthrough());
  add(*new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__));
}

}  // namespace

void RegisterAutocast(bool xla) {
  Register(c10::DispatchKey::AutocastPrivateUse1, &AddTpu);
  if (xla) Register(c10::DispatchKey::AutocastXLA, &AddXla);
}

}  // namespace hlokit::torch_device
