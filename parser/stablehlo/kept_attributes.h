// SPDX-License-Identifier: Apache-2.0
// Names of attributes by which StableHLO keeps what it has no place for, and HLO what it has none for: written by one
// direction, read by the other.
#ifndef HLOKIT_PARSER_STABLEHLO_KEPT_ATTRIBUTES_H_
#define HLOKIT_PARSER_STABLEHLO_KEPT_ATTRIBUTES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/ops/attribute.h"

namespace hlokit::stablehlo {

// The frontend attributes that have the attributes of MLIR that HLO has no place for, as MLIR prints them: those of an
// operation or argument on its instruction, those of the results and of the function main and of the module on the
// module; of other functions on their roots.
inline constexpr std::string_view kMlirAttributes = "mlir.attributes";
inline constexpr std::string_view kMlirResultAttributes = "mlir.result_attributes";
inline constexpr std::string_view kMlirFunctionAttributes = "mlir.function_attributes";
inline constexpr std::string_view kMlirModuleAttributes = "mlir.module_attributes";
// The discardable attributes that keep what an operation has no place for, so that reading gives the same instructions
// again. `hlokit.omitted_elements` numbers the elements of a value that no get-tuple-element takes (see
// Converter::IsOmitted).
inline constexpr std::string_view kOmittedElements = "hlokit.omitted_elements";
// The operands of a tuple, a return or a loop are all elements of one value, which it takes as a whole; also of
// elements that only these take.
inline constexpr std::string_view kWhole = "hlokit.whole";
// An operation that only says which value is the operand of a branch.
inline constexpr std::string_view kOperand = "hlokit.operand";
// The opcode, and attributes in HLO's text, of an instruction that has another operation's place.
inline constexpr std::string_view kOpcode = "hlokit.opcode";
inline constexpr std::string_view kAttributes = "hlokit.attributes";
// A function that no operation calls.
inline constexpr std::string_view kUncalled = "hlokit.uncalled";
// The shape of an argument in HLO's text, if its layout is not the default one.
inline constexpr std::string_view kShape = "hlokit.shape";
// The shapes of the parameters of the entry and of its result in HLO's text, if attributes of MHLO cannot say them.
inline constexpr std::string_view kEntryLayout = "hlokit.entry_layout";
// Donated parts of parameters, each its number and the indices of the part.
inline constexpr std::string_view kBufferDonors = "hlokit.buffer_donors";
// The shapes of the asynchronous updates between a start and this done, in HLO's text.
inline constexpr std::string_view kAsyncUpdates = "hlokit.async_updates";
// Of the layouts of a custom call, whose attributes have the order of dimensions only.
inline constexpr std::string_view kOperandMemorySpaces = "mhlo.operand_memory_spaces";
inline constexpr std::string_view kResultMemorySpaces = "mhlo.result_memory_spaces";
// Control dependencies: the number of a predecessor, and those of the predecessors of an operation.
inline constexpr std::string_view kControlId = "hlokit.control_id";
inline constexpr std::string_view kControlPredecessors = "hlokit.control_predecessors";
// The discardable attribute that keeps the backend_config of an operation that has none of its own.
inline constexpr std::string_view kBackendConfig = "mhlo.backend_config";

// How StableHLO says an attribute: the column `stablehlo` of ir/ops/attributes.def.
enum class AttributeForm : uint8_t { kOwn, kNamed, kText, kOwnOrText };
inline constexpr AttributeForm kAttributeForms[] = {
#define ATTRIBUTE(name, text, type, enum_type, elision, category, proto, stablehlo) AttributeForm::k##stablehlo,
#include "ir/ops/attributes.def"
};
constexpr AttributeForm FormOf(Attr attr) { return kAttributeForms[static_cast<size_t>(attr)]; }
// Returns true for attributes that kAttributes may have.
constexpr bool IsText(Attr attr) {
  return FormOf(attr) == AttributeForm::kText || FormOf(attr) == AttributeForm::kOwnOrText;
}

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_KEPT_ATTRIBUTES_H_
