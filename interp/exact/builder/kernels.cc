// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/kernels.h"

#include <cstddef>

namespace hlokit::interp {
namespace {

constexpr PrepareFn kKernels[] = {
#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, ...) Prepare##kernel,
#include "ir/ops/opcode_columns.inc"
    nullptr,  // unknown opcode
};

}  // namespace

PrepareFn PrepareFnOf(Opcode opcode) { return kKernels[static_cast<size_t>(opcode)]; }

}  // namespace hlokit::interp
