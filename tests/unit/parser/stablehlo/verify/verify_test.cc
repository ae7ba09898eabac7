// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/verify/verify.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "ir/core/source_buffer.h"
#include "parser/mlir/definition.h"
#include "parser/mlir/parser.h"

namespace hlokit::stablehlo {
namespace {

// The messages about a function of these arguments and this operation, one a line.
std::string Verify(std::string_view arguments, std::string_view operation) {
  std::string text = "func.func @f(" + std::string(arguments) + ") {\n  " + std::string(operation) + "\n  return\n}\n";
  auto source = std::make_shared<const SourceBuffer>("test", std::move(text));
  DiagnosticSink sink;
  const auto program = mlir::ParseMlir(source, source->text(), {}, &sink);
  if (program != nullptr) VerifyProgram(*program, &sink);
  std::string messages;
  for (const auto& diagnostic : sink.diagnostics()) messages += diagnostic.message + "\n";
  return messages;
}

struct Row {
  std::string_view arguments, operation, message;  // "": valid
};

// Sizes that are not known (`?`) agree with all, so most of these can't be found by HLO's shape inference.
constexpr Row kRows[] = {
    {"%a: tensor<?xf32>", "%0 = stablehlo.add %a, %a : tensor<?xf32>", ""},
    {"%a: tensor<?xf32>", "%0 = \"stablehlo.add\"(%a, %a) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?x?xf32>",
     "requires the same shape for all operands and results"},
    {"%a: tensor<?xf32>, %b: tensor<?xf64>",
     "%0 = stablehlo.add %a, %b : (tensor<?xf32>, tensor<?xf64>) -> tensor<?xf32>", "requires the same element type"},
    {"%a: tensor<?xf32, #stablehlo.bounds<4>>",
     "%0 = \"stablehlo.abs\"(%a) : (tensor<?xf32, #stablehlo.bounds<4>>) -> tensor<6xf32>", "inferred type(s)"},
    {"%a: tensor<?x8xf32>", "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<?x8xf32>) -> tensor<7x?xf32>",
     "inferred type(s) 'tensor<8x?xf32>'"},
    {"%a: tensor<?x8xf32>", "%0 = stablehlo.transpose %a, dims = [1, 1] : (tensor<?x8xf32>) -> tensor<8x?xf32>",
     "must be a permutation of [0, 1] but got 1, 1"},
    {"%a: tensor<?x8xf32>", "%0 = stablehlo.slice %a [0:4, 0:9] : (tensor<?x8xf32>) -> tensor<4x9xf32>",
     "limit index 9 is larger than dimension size 8 in dimension 1"},
    {"%a: tensor<?x8xf32>, %i: tensor<i32>",
     "%0 = stablehlo.dynamic_slice %a, %i, sizes = [2, 2] : (tensor<?x8xf32>, tensor<i32>) -> tensor<2x2xf32>",
     "number of slice sizes (2) and number of start indices (1)"},
    {"%a: tensor<?x8xf32>, %b: tensor<?x7xf32>",
     "%0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<?x8xf32>, tensor<?x7xf32>) -> tensor<?x8xf32>",
     "do not match at non-concat index"},
    {"%a: tensor<?xf32>, %b: tensor<f32>",
     "%0 = stablehlo.pad %a, %b, low = [1], high = [1], interior = [-1] : (tensor<?xf32>, tensor<f32>) -> "
     "tensor<?xf32>",
     "Interior padding cannot be negative: -1"},
    {"", "%0 = stablehlo.iota dim = 0 : tensor<f32>", "does not support scalars"},
    {"%a: tensor<?xf32, #stablehlo.bounds<4>>, %b: tensor<f32>",
     "%0 = stablehlo.pad %a, %b, low = [-3], high = [-3], interior = [0] : (tensor<?xf32, #stablehlo.bounds<4>>, "
     "tensor<f32>) -> tensor<?xf32>",
     "Padding result in negative bound for dimension 0"},
    {"%a: tensor<2xf32>, %b: tensor<i32>",
     "%0 = \"stablehlo.tuple\"(%a, %b) : (tensor<2xf32>, tensor<i32>) -> tuple<tensor<2xf32>, tensor<f64>>",
     "inferred type(s) 'tuple<tensor<2xf32>, tensor<i32>>'"},
    {"%a: tensor<4xf32>",
     "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n"
     "  %0 = stablehlo.dynamic_reshape %a, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x?xf32>",
     "input has 4 elements, but output_shape has 6"},
    {"%a: tensor<2xi32>", "%0 = \"chlo.constant_like\"(%a) {value = 3.2 : f32} : (tensor<2xi32>) -> tensor<2xi32>",
     "value's type doesn't match element return type: 'f32' vs 'i32'"},
    {"%a: tensor<*xf32>", "%0 = \"chlo.constant_like\"(%a) {value = 3.2 : f32} : (tensor<*xf32>) -> tensor<*xf32>", ""},
    {"%a: !stablehlo.foobar", "", "unknown type `foobar` in dialect `stablehlo`"},
    {"%a: !mhlo.async_bundle<tensor<4xf32>, !mhlo.token>", "", ""},
    {"%a: tensor<4xf32>", "%0 = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<?xf32>", ""},
    {"%t: !stablehlo.token",
     "%0:2 = \"stablehlo.recv\"(%t) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, "
     "is_host_transfer = true} : (!stablehlo.token) -> (tensor<4xf32>, tensor<4xf32>)",
     "last element of result types is expected to be of token type, but got 'tensor<4xf32>'"},
    {"%t: !stablehlo.token",
     "%0:2 = \"stablehlo.infeed\"(%t) : (!stablehlo.token) -> (!stablehlo.token, !stablehlo.token)",
     "everything but the last element of result types is expected to be of tensor type"},
    {"%a: tensor<2x2xf32>",
     "%0 = \"stablehlo.dot_general\"(%a, %a) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = "
     "[1], rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = f32, "
     "rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
     "num_primitive_operations = 1, allow_imprecise_accumulation = true>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
     "tensor<2x2xf32>",
     "dot algorithm not known to be supported"},
    {"%a: tensor<4xf32>",
     "%0 = \"stablehlo.reduce_scatter\"(%a) ({ ^bb0(%x: tensor<f64>, %y: tensor<f64>): \"stablehlo.return\"(%x) : "
     "(tensor<f64>) -> () }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64} : "
     "(tensor<4xf32>) -> tensor<2xf32>",
     "expects result #0 to have the element type that the region returns, 'f64', but got 'f32'"},
    {"%a: tensor<4xf32>, %r: tensor<2xf32>",
     "%0 = \"stablehlo.collective_reduce\"(%a, %r) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): "
     "\"stablehlo.return\"(%x) : (tensor<f32>) -> () }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
     "has_dynamic_root} : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>",
     "must be a rank-1 i32 tensor, but got 'tensor<2xf32>'"},
    {"%a: tensor<4xf32>, %r: tensor<1xi64>",
     "%0 = \"stablehlo.collective_broadcast\"(%a, %r) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
     "has_dynamic_root} : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf32>",
     "must be a rank-1 i32 tensor, but got 'tensor<1xi64>'"},
    {"%a: tensor<4xf32>",
     "%0 = \"stablehlo.async_start\"(%a) ({ ^bb0(%x: tensor<4xf32>): %1 = \"stablehlo.slice\"(%x) {start_indices = "
     "array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32> "
     "\"stablehlo.return\"(%1) : (tensor<2xf32>) -> () }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>",
     "inferred type(s) '!stablehlo.future<tensor<2xf32>>'"},
    {"",
     "%s = stablehlo.constant dense<[5]> : tensor<1xi64>\n"
     "  %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<4xf32>",
     "output shape [5] is incompatible with return type of operation 'tensor<4xf32>'"},
    {"%a: tensor<?x?xf32>, %s: tensor<3xi64>",
     "%0 = \"stablehlo.dynamic_broadcast_in_dim\"(%a, %s) {broadcast_dimensions = array<i64: 0, 2>, "
     "known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 1>} : "
     "(tensor<?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>",
     "duplicate expansion hint"},
    {"%a: tensor<?x?xf32>, %i: tensor<?xi32>",
     "%0 = \"stablehlo.gather\"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 4>} : "
     "(tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x4xf32>",
     "slice_sizes[dim] should be <= 1, but got 2"},
    {"%a: tensor<?x4xf32>, %i: tensor<?xi32>",
     "%0 = \"stablehlo.gather\"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : "
     "(tensor<?x4xf32>, tensor<?xi32>) -> tensor<?x4xf32>",
     ""},
    {"%a: tensor<?x3x4xf32>, %b: tensor<?x4x5xf32>",
     "%0 = stablehlo.dot %a, %b : (tensor<?x3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x?x?xf32>",
     "ranks to be either 1 or 2"},
    {"%a: tensor<?x10xf32>",
     "%0 = stablehlo.fft %a, type = RFFT, length = [9] : (tensor<?x10xf32>) -> tensor<?x?xcomplex<f32>>",
     "RFFT requires innermost dimensions to be compatible with fft_length. Got: ?, 10 but wanted 9."},
    {"%a: tensor<?x3x4xf32>", "%0 = stablehlo.cholesky %a, lower = true : tensor<?x3x4xf32>",
     "minor dimensions of 'a' must have equal size"},
    {"%a: tuple<tensor<f32>>", "%0 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<f32>>) -> tensor<f32>",
     "index 1 is out of bounds of operand with size 1"},
    {"%i: tensor<i32>, %a: tensor<?xf32>",
     "%0 = \"stablehlo.case\"(%i) ({ \"stablehlo.return\"(%a) : (tensor<?xf32>) -> () }, { ^bb0(%b: tensor<?xf32>): "
     "\"stablehlo.return\"(%b) : (tensor<?xf32>) -> () }) : (tensor<i32>) -> tensor<?xf32>",
     "branch 1 must have 0 arguments, but found 1"},
    {"%a: tensor<2x3xf32>",
     "%0 = stablehlo.custom_call @t(%a) {operand_layouts = [dense<[0, 0]> : tensor<2xindex>], result_layouts = "
     "[dense<> : tensor<0xindex>]} : (tensor<2x3xf32>) -> tensor<f32>",
     "layout must be a permutation of [0, 2)"},
    {"%a: tensor<f32>",
     "%0 = stablehlo.custom_call @t(%a) {output_operand_aliases = [#stablehlo.output_operand_alias<"
     "output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (tensor<f32>) -> tensor<f32>",
     "in range [0, 1); got: 1"},
    {"%a: tensor<f32>",
     "%0 = stablehlo.custom_call @t(%a) {api_version = 4 : i32, backend_config = \"x\"} : (tensor<f32>) -> tensor<f32>",
     "must be a dictionary attribute"},
    {"%a: tensor<f32>", "%0 = stablehlo.composite \"a.b\" %a {decomposition = @g} : (tensor<f32>) -> tensor<f32>",
     "'g' does not reference a valid function"},
    {"%a: tensor<4x8xf32>",
     "%0 = \"stablehlo.all_to_all\"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 3 : i64, "
     "replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>} : (tensor<4x8xf32>) -> tensor<12x?xf32>",
     "split dimension has size 8, expected to be a multiple of split_count 3"},
    {"%a: tensor<2x!quant.uniform<i8:f32, 0.5:3>>",
     "%0 = stablehlo.add %a, %a : tensor<2x!quant.uniform<i8:f32, 0.5:3>>", ""},
    {"%a: tensor<2x!quant.uniform<i8:f32, 0.5:3>>",
     "%0 = \"stablehlo.add\"(%a, %a) : (tensor<2x!quant.uniform<i8:f32, 0.5:3>>, tensor<2x!quant.uniform<i8:f32, "
     "0.5:3>>) -> tensor<2x!quant.uniform<i4:f32, 0.5:3>>",
     "mismatched operands and result quantization storage types"},
    {"%a: tensor<2x!quant.uniform<i8:f32, 0.5:300>>",
     "%0 = stablehlo.add %a, %a : tensor<2x!quant.uniform<i8:f32, 0.5:300>>", "operand #0 must be ranked tensor"},
    {"%a: tensor<2x!quant.uniform<i8:f32:-1, {0.5}>>", "", "illegal quantized dimension: -1"},
    {"%a: tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>",
     "%0 = stablehlo.negate %a : tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>", "operand #0 must be ranked tensor"},
    {"%a: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>",
     "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> "
     "tensor<3x2x!quant.uniform<i8:f32:1, {0.5, 0.125}>>",
     "expect same quantization scales and zero_points"},
    {"%a: tensor<2xf32>",
     "%0 = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f64, 0.5>>",
     "Expressed type of result expected to be 'f32', but got 'f64'"},
    {"%a: tensor<9223372036854775807xi1>",
     "%0 = \"stablehlo.concatenate\"(%a, %a) {dimension = 0 : i64} : (tensor<9223372036854775807xi1>, "
     "tensor<9223372036854775807xi1>) -> tensor<?xi1>",
     "concatenation makes dimension 0 too large"},
    {"%a: tensor<4xf32>, %s: tensor<2xf32>, %i: tensor<f32>",
     "%0 = \"stablehlo.select_and_scatter\"(%a, %s, %i) ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %1 = "
     "stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  "
     "}, {\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %1 = stablehlo.add %x, %y : tensor<f32>\n    "
     "stablehlo.return %1 : tensor<f32>\n  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, "
     "padding "
     "= dense<9223372036854775807> : tensor<1x2xi64>} : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>",
     "padding makes dimension 0 too large"},
    {"%a: tensor<4x!quant.uniform<i8:f32, 0.5>>, %i: tensor<!quant.uniform<i8:f32, 0.5>>",
     "%0 = \"stablehlo.reduce\"(%a, %i) ({\n  ^bb0(%x: tensor<!quant.uniform<u8:f32, 0.5>>, %y: "
     "tensor<!quant.uniform<u8:f32, 0.5>>):\n    stablehlo.return %x : tensor<!quant.uniform<u8:f32, 0.5>>\n  }) "
     "{dimensions = array<i64: 0>} : (tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<!quant.uniform<i8:f32, 0.5>>) -> "
     "tensor<!quant.uniform<u8:f32, 0.5>>",
     "is expected to be promotable"},
    {"%a: tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>, %i: tensor<!quant.uniform<i8<-127:127>:f32, 0.5>>",
     "%0 = \"stablehlo.reduce\"(%a, %i) ({\n  ^bb0(%x: tensor<!quant.uniform<i32:f32, 0.5>>, %y: "
     "tensor<!quant.uniform<i32:f32, 0.5>>):\n    stablehlo.return %x : tensor<!quant.uniform<i32:f32, 0.5>>\n  }) "
     "{dimensions = array<i64: 0>} : (tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>, "
     "tensor<!quant.uniform<i8<-127:127>"
     ":f32, 0.5>>) -> tensor<!quant.uniform<i32:f32, 0.5>>",
     ""},
    {"%a: tensor<f32>",
     "%0 = stablehlo.cbrt %a {result_accuracy = #stablehlo.result_accuracy<atol = \"x\">} : tensor<f32>",
     "expects atol of result_accuracy to be a 64-bit float"},
    {"%a: tensor<?x?xf32, #stablehlo.bounds<3>>", "", "Bounds length is 1, expected to be equal to rank(2)"},
    {"%a: tensor<f32>", "\"x.y\"() {n = #stablehlo.conv<[b, 0, 0, f]x[0, 1, i, o]->[b, 0, 1, f]>} : () -> ()",
     "Duplicate entries for spatial dimension 0"},
    {"%a: tensor<f32>", "\"x.y\"() {n = #stablehlo.dot<rows = [0]>} : () -> ()", "expected one of: `lhs_batching"},
};

TEST(VerifyProgram, ReportsWhatOperationsViolate) {
  for (const Row& row : kRows) {
    const std::string messages = Verify(row.arguments, row.operation);
    if (row.message.empty()) {
      EXPECT_EQ(messages, "") << row.operation;
    } else {
      EXPECT_NE(messages.find(row.message), std::string::npos) << row.operation << "\n" << messages;
    }
  }
}

TEST(VerifyProgram, EveryRuleIsOneOfAnOperation) {
  constexpr std::string_view kRules[] = {
#define RULE(name, function, description) name,
#include "parser/stablehlo/verify/rules.def"
  };
  constexpr std::string_view kConstraints[] = {
#define CONSTRAINTS(kind, rules) rules,
#include "parser/stablehlo/verify/constraints.def"
  };
  for (std::string_view rule : kRules) {
    bool used = false;
    for (std::string_view rules : kConstraints) {
      used = used || (" " + std::string(rules) + " ").find(" " + std::string(rule) + " ") != std::string::npos;
    }
    EXPECT_TRUE(used) << rule;
  }
}

}  // namespace
}  // namespace hlokit::stablehlo
