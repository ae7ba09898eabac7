// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/op_reference.h"

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

std::string_view DescribePresence(const AttrSpec& spec) {
  switch (spec.presence) {
    case AttrSpec::kRequired:
      return "required";
    case AttrSpec::kOptional:
      return "optional";
    case AttrSpec::kDefaulted:
      return "always printed, may be left out";
    case AttrSpec::kLegacy:
      return "read from old text, not kept";
  }
  return "";
}

std::string_view DescribeElision(DefaultElision rule) {
  switch (rule) {
    case DefaultElision::kKeep:
      return "";
    case DefaultElision::kDropFalse:
      return "`false`";
    case DefaultElision::kDropZero:
      return "the first value";
    case DefaultElision::kDropOne:
      return "`1`";
    case DefaultElision::kDropMinusOne:
      return "`-1`";
    case DefaultElision::kDropEmpty:
      return "nothing in it";
    case DefaultElision::kDropAllZero:
      return "all the first value";
  }
  return "";
}

std::string_view DescribeMeaning(AttrCategory meaning) {
  switch (meaning) {
    case AttrCategory::kSemantic:
      return "counts";
    case AttrCategory::kSharding:
      return "with `sharding`";
    case AttrCategory::kFrontend:
      return "with `frontend-attributes`";
    case AttrCategory::kAnnotation:
      return "with `metadata`";
  }
  return "";
}

std::string ValuesOf(Attr attr) {
  const AttrInfo& info = InfoOf(attr);
  if (info.enum_type == EnumType::kNone) return std::string(DescribeAttrType(info.type));
  std::string values;
  for (std::string_view text : EnumTexts(info.enum_type)) StrAppend(&values, values.empty() ? "`" : ", `", text, "`");
  return values;
}

}  // namespace

std::string_view MeaningOf(Opcode opcode) {
  static constexpr std::string_view kMeanings[] = {
#define OPCODE(name, text, min, max, rule, traits, elements, cost, fusion, device, vector, transcendental, kernel, \
               meaning, ...)                                                                                       \
  meaning,
#include "ir/ops/opcodes.def"
      "an operation that this version does not know",
  };
  return kMeanings[static_cast<size_t>(opcode)];
}

std::string_view DescribeShapeRule(ShapeRule rule) {
  switch (rule) {
    case ShapeRule::kExplicit:
      return "as the text says";
    case ShapeRule::kUnary:
    case ShapeRule::kFirstOperand:
      return "the shape of operand 0";
    case ShapeRule::kBinary:
      return "the shape that both operands have";
    case ShapeRule::kCompare:
    case ShapeRule::kIsFinite:
      return "pred elements in the dimensions of the operands";
    case ShapeRule::kComplex:
      return "complex elements in the dimensions of the operands";
    case ShapeRule::kRealImag:
      return "the parts' type in the dimensions of the operand";
    case ShapeRule::kConvert:
    case ShapeRule::kStochasticConvert:
      return "the dimensions of operand 0, of the element type in the text";
    case ShapeRule::kBitcastConvert:
      return "the dimensions of the operand; types of other widths add or take the last one";
    case ShapeRule::kClamp:
      return "the shape of operand 1";
    case ShapeRule::kSelect:
      return "the shape that operands 1 and 2 have";
    case ShapeRule::kToken:
      return "a token";
    case ShapeRule::kTuple:
      return "a tuple of the operands' shapes";
    case ShapeRule::kGetTupleElement:
      return "the element's shape";
    case ShapeRule::kBroadcast:
      return "the dimensions in the text, into which `dimensions` maps the operand's";
    case ShapeRule::kReshape:
      return "the dimensions in the text, with as many elements as the operand";
    case ShapeRule::kTranspose:
      return "the operand's dimensions in the order of `dimensions`";
    case ShapeRule::kReverse:
      return "the shape of the operand";
    case ShapeRule::kSlice:
      return "in each dimension ceil((limit - start) / stride)";
    case ShapeRule::kDynamicSlice:
      return "`dynamic_slice_sizes`";
    case ShapeRule::kDynamicUpdateSlice:
      return "the shape of operand 0";
    case ShapeRule::kConcatenate:
      return "the operands' dimensions, added up along one";
    case ShapeRule::kPad:
      return "low + size + (size - 1) * interior + high in each dimension";
    case ShapeRule::kIota:
      return "as the text says, with the iota dimension in it";
    case ShapeRule::kReduce:
      return "the operands' dimensions without the reduced ones, of the computation's result types";
    case ShapeRule::kReduceWindow:
      return "as many positions as the window has in each dimension";
    case ShapeRule::kSelectAndScatter:
      return "the shape of operand 0";
    case ShapeRule::kScan:
      return "the computation's outputs stacked along the dimension, then the carries";
    case ShapeRule::kMap:
      return "the operands' dimensions, of the computation's result type";
    case ShapeRule::kSort:
      return "the operands' shapes";
    case ShapeRule::kTopK:
      return "values and s32 indices, k long in the last dimension";
    case ShapeRule::kDot:
      return "batch dimensions, then what is left of operand 0, then of operand 1";
    case ShapeRule::kRaggedDot:
      return "that of a dot; with a dimension of groups in front when the ragged dimension is contracted";
    case ShapeRule::kScaledDot:
      return "that of the dot of operands 0 and 1";
    case ShapeRule::kConvolution:
      return "batch, output features and window positions where `dim_labels` puts them";
    case ShapeRule::kGather:
      return "batch dimensions of the indices, with `offset_dims` from the slices between them";
    case ShapeRule::kScatter:
      return "the shapes of the operands that are written to";
    case ShapeRule::kFft:
      return "the operand's shape; RFFT and IRFFT change type and last dimension";
    case ShapeRule::kCholesky:
      return "the shape of the operand";
    case ShapeRule::kTriangularSolve:
      return "the shape of operand 1";
    case ShapeRule::kBatchNormTraining:
      return "operand 0, mean and variance";
    case ShapeRule::kBatchNormInference:
      return "the shape of operand 0";
    case ShapeRule::kBatchNormGrad:
      return "gradients of operand, scale and offset";
    case ShapeRule::kGetDimensionSize:
      return "s32[]";
    case ShapeRule::kSetDimensionSize:
      return "the shape of operand 0, dynamic in the dimension";
    case ShapeRule::kReplicaId:
      return "u32[]";
    case ShapeRule::kRng:
      return "the dimensions in the text, of the operands' type";
    case ShapeRule::kRngBitGenerator:
      return "the state, and the bits in the shape of the text";
    case ShapeRule::kRngGetAndUpdateState:
      return "u64[2]";
    case ShapeRule::kCall:
      return "the result of the computation";
    case ShapeRule::kWhile:
      return "the shape of the state";
    case ShapeRule::kConditional:
      return "the result of every branch";
    case ShapeRule::kAllGather:
      return "the operand, as many times as long in the dimension as groups have members";
    case ShapeRule::kAllGatherStart:
      return "(operands, results)";
    case ShapeRule::kAllReduce:
      return "the operands' shapes";
    case ShapeRule::kAllToAll:
      return "the operands as a tuple, or the operand with the split dimension in pieces";
    case ShapeRule::kReduceScatter:
      return "the operand, divided in the dimension by the members of a group";
    case ShapeRule::kCollectiveBroadcast:
    case ShapeRule::kCollectivePermute:
      return "the operands' shapes";
    case ShapeRule::kCollectivePermuteStart:
      return "(operands, results, contexts)";
    case ShapeRule::kRaggedAllToAll:
      return "the shape of operand 1";
    case ShapeRule::kDone:
      return "the results in the operand";
    case ShapeRule::kCopyStart:
      return "(destination, source, u32[])";
    case ShapeRule::kCopyDone:
      return "the destination in the operand";
    case ShapeRule::kSend:
      return "(operand 0, u32[], token)";
    case ShapeRule::kRecv:
      return "(data, u32[], token)";
    case ShapeRule::kRecvDone:
      return "(data, token)";
    case ShapeRule::kInfeed:
      return "(data, token)";
    case ShapeRule::kAsyncStart:
      return "((operands), results, state...)";
    case ShapeRule::kAsyncUpdate:
      return "that of the chain so far, with what is bound late";
    case ShapeRule::kAsyncDone:
      return "the result of the computation";
  }
  return "";
}

std::string_view DescribeAttrType(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "`true` or `false`";
    case AttrType::kInt64:
      return "integer";
    case AttrType::kEnum:
      return "one of several words";
    case AttrType::kFloat:
      return "number";
    case AttrType::kString:
      return "`\"text\"`";
    case AttrType::kStringOrJson:
      return "`\"text\"` or `{JSON}`";
    case AttrType::kIdentifier:
      return "word";
    case AttrType::kSparsity:
      return "`{...}`, kept as it is";
    case AttrType::kComputation:
      return "computation: `%name` or a body in braces";
    case AttrType::kShape:
      return "shape";
    case AttrType::kLiteral:
      return "shape and literal";
    case AttrType::kMetadata:
      return "`{op_type=\"...\" op_name=\"...\" source_file=\"...\" source_line=1 ...}`";
    case AttrType::kInt64List:
      return "`{0,1}`";
    case AttrType::kInt64ListList:
      return "`{{0,1},{2,3}}`";
    case AttrType::kBoolList:
      return "`{true,false}`";
    case AttrType::kPrecisionList:
      return "`{default,high,highest,packed_nibble}`, one for each operand";
    case AttrType::kComputationList:
      return "`{%a, %b}`";
    case AttrType::kInstructionList:
      return "`{%a, %b}`";
    case AttrType::kShapeList:
      return "`{f32[2], f32[3]}`";
    case AttrType::kSliceRanges:
      return "`{[0:4], [0:8:2]}`: start, limit, stride";
    case AttrType::kPadding:
      return "`0_1x2_3_1`: low, high, interior";
    case AttrType::kWindow:
      return "`{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`";
    case AttrType::kConvolutionDims:
      return "`b01f_01io->b01f`";
    case AttrType::kFrontendAttributes:
      return "`{key=\"value\",other={...}}`";
    case AttrType::kOperandAliasing:
      return "`{{0}: (1, {})}`: output index: (operand, index)";
    case AttrType::kReplicaGroups:
      return "`{{0,1},{2,3}}`, `[2,2]<=[4]` or a mesh with axes";
    case AttrType::kSharding:
      return "`{devices=[2,1]<=[2]}`, `{replicated}`, a mesh with axes, ...";
    case AttrType::kDomain:
      return "`{kind=\"sharding\", entry={...}, exit={...}}`";
    case AttrType::kResultAccuracy:
      return "`{mode=highest}` or `{tolerance={atol=1,rtol=1,ulps=2}}`";
    case AttrType::kStatistics:
      return "`{visualizing_index=0,name=1.5}`";
    case AttrType::kOrigin:
      return "`{{\"name\" {0}}}`: where the value came from";
    case AttrType::kUnknown:
      return "kept as it is";
  }
  return "";
}

std::vector<std::string_view> TraitNames(Opcode opcode) {
  static constexpr std::pair<OpTrait, std::string_view> kNames[] = {
      {kElementwise, "elementwise"},
      {kCommutative, "commutative"},
      {kSideEffect, "side effect"},
      {kCollective, "collective"},
      {kControlFlow, "control flow"},
      {kStartsAsync, "starts an asynchronous chain"},
      {kUpdatesAsync, "continues an asynchronous chain"},
      {kEndsAsync, "ends an asynchronous chain"},
      {kInferable, "shape may be left out"},
      {kKeepsDimensions, "dimensions of the operands"},
  };
  std::vector<std::string_view> names;
  for (const auto& [trait, name] : kNames) {
    if (HasTrait(opcode, trait)) names.push_back(name);
  }
  return names;
}

std::string OperandCountText(Opcode opcode) {
  const OpcodeInfo& info = InfoOf(opcode);
  if (info.max_operands == kVariadic) return StrCat(info.min_operands, " or more");
  if (info.min_operands == info.max_operands) return StrCat(info.min_operands);
  return StrCat(info.min_operands, " to ", info.max_operands);
}

void WriteOpSection(TextWriter& out, Opcode opcode) {
  const OpcodeInfo& info = InfoOf(opcode);
  out << "### " << info.text << "\n\n";
  std::string meaning(MeaningOf(opcode));
  if (meaning[0] >= 'a' && meaning[0] <= 'z' && (meaning.size() < 2 || meaning[1] != ' ' || meaning[0] == 'a')) {
    meaning[0] = static_cast<char>(meaning[0] - 'a' + 'A');
  }
  out << meaning << ".\n\n- operands: " << OperandCountText(opcode)
      << "\n- result: " << DescribeShapeRule(info.shape_rule) << "\n";
  const std::vector<std::string_view> traits = TraitNames(opcode);
  for (size_t i = 0; i < traits.size(); ++i) out << (i == 0 ? "- " : ", ") << traits[i];
  if (!traits.empty()) out << '\n';
  for (const AttrSpec& spec : info.attributes) {
    out << "- `" << ToString(spec.attr) << "` (" << DescribePresence(spec) << "): " << ValuesOf(spec.attr) << '\n';
  }
  out << '\n';
}

void WriteOpReference(TextWriter& out) {
  out << "# Operations\n\n"
         "Every opcode of HLO text with its operands, the rule its result shape follows and the attributes it takes, "
         "in the\n"
         "order in which they are printed. Made by `hlo-inspect ops --markdown` from the tables that drive reading, "
         "printing,\n"
         "checking and hashing; `hlo-inspect ops OPCODE` shows one.\n\n## Opcodes\n\n";
  for (size_t i = 0; i < kOpcodeCount; ++i) WriteOpSection(out, static_cast<Opcode>(i));
  out << "## Attributes\n\n"
         "A value in the column *left out* is not printed, and is what an instruction without the attribute has. The "
         "last\n"
         "column says whether the attribute counts in a fingerprint, or which `--with` of `hlo-inspect hash` lets it "
         "count.\n"
         "The last eight may stand on any instruction.\n\n"
         "| attribute | values | left out | fingerprint |\n| --- | --- | --- | --- |\n";
  for (size_t i = 0; i < kAttrCount; ++i) {
    const Attr attr = static_cast<Attr>(i);
    const AttrInfo& info = InfoOf(attr);
    if (info.text.empty()) continue;
    out << "| `" << info.text << "` | " << ValuesOf(attr) << " | " << DescribeElision(info.elision) << " | "
        << DescribeMeaning(info.category) << " |\n";
  }
}

}  // namespace hlokit
