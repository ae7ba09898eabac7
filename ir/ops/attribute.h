// SPDX-License-Identifier: Apache-2.0
// Attributes of instructions: their names, their types, and how each type packs its value into the 32-bit payload that
// an instruction stores. The rows are in attributes.def.
//
// Payloads by type
//   kBool             0 or 1
//   kInt64            the value when it is in [0, 2^31); else 0x80000000 | ListId of a one-element list
//   kEnum             index of the value among its type's rows of enums.def
//   kFloat            bits of the float
//   kString, kStringOrJson, kIdentifier, kSparsity
//                     StringId. kStringOrJson keeps the text between quotes, or the text with its braces (which begins
//                     with '{'); kSparsity keeps the braced text.
//   kComputation      ComputationId
//   kShape            ShapeId
//   kLiteral          LiteralId
//   kMetadata         never stored as an attribute: see Instruction::metadata
//   all others        ListId of an encoded list:
//     kInt64List           the values
//     kInt64ListList       for each inner list: its size, its values
//     kBoolList            0/1 each
//     kPrecisionList       Precision values
//     kComputationList     ComputationId values
//     kInstructionList     InstructionId values
//     kShapeList           ShapeId values
//     kSliceRanges         for each dimension: start, limit, stride
//     kPadding             for each dimension: low, high, interior
//     kWindow              for each dimension: size, stride, pad low, pad high, base (lhs) dilation, window (rhs)
//                          dilation, reversal (0/1)
//     kConvolutionDims     n spatial dims, then input batch, input feature, input spatial[n], kernel input feature,
//                          kernel output feature, kernel spatial[n], output batch, output feature, output spatial[n]
//     kFrontendAttributes  for each entry, sorted by key: StringId key, StringId value
//     kOperandAliasing     for each entry: size and values of the output index, operand, size and values of its index
//     kReplicaGroups       see replica_groups.h; the empty list is "{}"
//     kSharding            see sharding.h
//     kDomain              StringId kind, ListId entry sharding, ListId exit sharding
//     kResultAccuracy      mode, bits of atol (double), bits of rtol (double), ulps; the default mode is not stored
//     kStatistics          index to visualize, then for each entry StringId name, bits of the value (double)
//     kOrigin              see original_value.h
//     kUnknown             StringIds: name, text, name, text, ...
#ifndef HLOKIT_IR_OPS_ATTRIBUTE_H_
#define HLOKIT_IR_OPS_ATTRIBUTE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"

namespace hlokit {

enum class Attr : uint8_t {
#define ATTRIBUTE(name, ...) k##name,
#include "ir/ops/attributes.def"
};

enum class AttrType : uint8_t {
#include "ir/ops/attribute_type_names.inc"  // a line for each row of attribute_types.def
};

// The meaning of an attribute's payload.
enum class PayloadKind : uint8_t {
  kBool,
  kInt64,  // see Context::DecodeInt64
  kEnum,
  kFloat,
  kString,
  kComputation,
  kShape,
  kLiteral,
  kMetadata,
  kList,
};

// The meaning of the numbers of a list.
enum class ElementKind : uint8_t {
  kNone,         // not a list
  kInteger,      // values; also records of values alone
  kIntegerList,  // for each inner list: its size, its values
  kBool,
  kPrecision,
  kComputation,
  kInstruction,
  kShape,
  kString,
  kMixed,  // records that hold ids and values: only the functions of the type know which
};

// The form of a value in JSON.
enum class JsonForm : uint8_t {
  kValue,       // follows from payload and elements
  kObject,      // an object that functions of the type write and read
  kText,        // HLO text in a string
  kSeparately,  // not written with the attributes
};

struct AttrTypeInfo {
  PayloadKind payload;
  ElementKind elements;
  JsonForm json;
};

inline constexpr AttrTypeInfo kAttrTypeInfo[] = {
#define ATTRIBUTE_TYPE(name, payload, elements, syntax, json, description) \
  {PayloadKind::k##payload, ElementKind::k##elements, JsonForm::k##json},
#include "ir/ops/attribute_type_columns.inc"
};

inline constexpr size_t kAttrTypeCount = sizeof(kAttrTypeInfo) / sizeof(kAttrTypeInfo[0]);

constexpr const AttrTypeInfo& InfoOf(AttrType type) { return kAttrTypeInfo[static_cast<size_t>(type)]; }

enum class EnumType : uint8_t {
  kComparisonDirection,
  kComparisonType,
  kFftType,
  kFusionKind,
  kRngDistribution,
  kRngAlgorithm,
  kPrecision,
  kDotAlgorithm,
  kPaddingType,
  kCustomCallSchedule,
  kCustomCallApiVersion,
  kTriangularTranspose,
  kConvolutionKind,
  kResultAccuracyMode,
  kNone,
};

// The enumerators that code refers to by name; enums.def has the spellings, in the same order.
enum class ComparisonDirection : uint32_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class ComparisonType : uint32_t { kFloat, kTotalOrder, kSigned, kUnsigned };
enum class FftType : uint32_t { kFft, kIfft, kRfft, kIrfft };
enum class FusionKind : uint32_t { kLoop, kInput, kOutput, kCustom };
enum class RngDistribution : uint32_t { kUniform, kNormal };
enum class RngAlgorithm : uint32_t { kDefault, kThreeFry, kPhilox };
enum class Precision : uint32_t { kDefault, kHigh, kHighest, kPackedNibble };
enum class TriangularTranspose : uint32_t { kInvalid, kNoTranspose, kTranspose, kAdjoint };
enum class ResultAccuracyMode : uint32_t { kDefault, kHighest, kTolerance };
enum class CustomCallApiVersion : uint32_t {
  kUnspecified,
  kOriginal,
  kStatusReturning,
  kStatusReturningUnified,
  kTypedFfi
};

enum class DefaultElision : uint8_t { kKeep, kDropFalse, kDropZero, kDropOne, kDropMinusOne, kDropEmpty, kDropAllZero };
enum class AttrCategory : uint8_t { kSemantic, kSharding, kFrontend, kAnnotation };

struct AttrInfo {
  std::string_view text;
  AttrType type;
  EnumType enum_type;
  DefaultElision elision;
  AttrCategory category;
};

inline constexpr AttrInfo kAttrInfo[] = {
#define ATTRIBUTE(name, text, type, enum_type, elision, category, ...) \
  {text, AttrType::type, EnumType::k##enum_type, DefaultElision::elision, AttrCategory::category},
#include "ir/ops/attributes.def"
};
inline constexpr size_t kAttrCount = sizeof(kAttrInfo) / sizeof(kAttrInfo[0]);

constexpr const AttrInfo& InfoOf(Attr attr) { return kAttrInfo[static_cast<size_t>(attr)]; }
constexpr std::string_view ToString(Attr attr) { return InfoOf(attr).text; }
// Returns true for attributes that any instruction may carry: the rows after "common".
constexpr bool IsCommon(Attr attr) { return attr >= Attr::kParameterReplication; }

// Returns true if the payload is a ListId.
constexpr bool HoldsList(AttrType type) { return InfoOf(type).payload == PayloadKind::kList; }
// True for attributes that name computations, in one byte each.
inline constexpr std::array<bool, kAttrCount> kNamesComputations = [] {
  std::array<bool, kAttrCount> names{};
  for (size_t i = 0; i < kAttrCount; ++i) {
    const AttrTypeInfo& type = InfoOf(kAttrInfo[i].type);
    names[i] = type.payload == PayloadKind::kComputation || type.elements == ElementKind::kComputation;
  }
  return names;
}();
// Returns true if values of the attribute are computations that the instruction calls.
constexpr bool NamesComputations(Attr attr) { return kNamesComputations[static_cast<size_t>(attr)]; }

// Returns the attributes named `text`, in table order (several if opcodes differ).
absl::Span<const Attr> AttrsFromText(std::string_view text);

// Returns the spellings of an enum type's values; the index is the payload.
absl::Span<const std::string_view> EnumTexts(EnumType type);
std::optional<uint32_t> EnumFromText(EnumType type, std::string_view text);
// Returns the number of a value in XLA's protocol buffers; 0 if these have none.
int EnumProtoNumber(EnumType type, uint32_t value);

// One attribute of one instruction, as stored.
struct AttrValue {
  Attr attr;
  uint32_t payload;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_ATTRIBUTE_H_
