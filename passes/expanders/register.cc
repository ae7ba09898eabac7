// SPDX-License-Identifier: Apache-2.0
// The expanders, with small programs that show them at work.
#include "passes/core/register_passes.h"
#include "passes/expanders/expanders.h"
#include "passes/expanders/topk_rewriter.h"

namespace hlokit {
namespace {

class BatchNormExpander : public RulePass {
 protected:
  const RewritePatternSet& rules() const override {
    static const RewritePatternSet* const kTwoPasses = [] {
      auto* rules = new RewritePatternSet();
      AddBatchNormExpanderRules(rules);
      return rules;
    }();
    static const RewritePatternSet* const kOnePass = [] {
      auto* rules = new RewritePatternSet();
      AddOnePassBatchNormExpanderRules(rules);
      return rules;
    }();
    return options().Bool("one-pass") ? *kOnePass : *kTwoPasses;
  }
};

struct Example {
  std::string_view pass;
  std::string_view text;
};

constexpr Example kExpanderExamples[] = {
    {"topk-decomposer", R"(ENTRY e {
  p = f32[2,5] parameter(0)
  q = s32[5] constant({3,-1,4,-1,5})
  a = (f32[2,2], s32[2,2]) topk(p), k=2, largest=true, metadata={op_name="f/largest"}
  b = (s32[3], s32[3]) topk(q), k=3, largest=false, metadata={op_name="f/smallest"}
  ROOT t = ((f32[2,2], s32[2,2]), (s32[3], s32[3])) tuple(a, b)
})"},
    {"topk-rewriter", R"(greater {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER
}
ENTRY e {
  p = f32[2,8] parameter(0)
  i = s32[2,8] iota(), iota_dimension=1
  s = (f32[2,8], s32[2,8]) sort(p, i), dimensions={1}, is_stable=true, to_apply=greater, metadata={op_name="f/sort"}
  all = s32[2,8] get-tuple-element(s), index=1
  ROOT largest = s32[2,3] slice(all), slice={[0:2], [0:3]}, metadata={op_name="f/first"}
})"},
    {"reduce-decomposer", R"(sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[2,3,4]{2,1,0} parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[2,3]{0,1} reduce(p, zero), dimensions={2}, to_apply=sum, metadata={op_name="f/sum"}
})"},
    {"ragged-dot-rewriter", R"(ENTRY e {
  rows = f32[6,4] parameter(0)
  experts = f32[2,4,3] parameter(1)
  sizes = s32[2] parameter(2)
  ROOT d = f32[6,3] ragged-dot(rows, experts, sizes), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}, metadata={op_name="f/experts"}
})"},
    {"select-and-scatter-expander", R"(ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[4,4] parameter(0)
  gradient = f32[2,2] parameter(1)
  zero = f32[] constant(0)
  ROOT r = f32[4,4] select-and-scatter(p, gradient, zero), window={size=2x2 stride=2x2}, select=ge, scatter=sum, metadata={op_name="f/pool"}
})"},
    {"stable-sort-expander", R"(less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT, metadata={op_name="f/less"}
}
ENTRY e {
  k = s32[2,4] constant({{2,1,2,1},{3,3,0,3}})
  v = f32[2,4] parameter(0)
  ROOT s = (s32[2,4], f32[2,4]) sort(k, v), dimensions={1}, is_stable=true, to_apply=less, metadata={op_name="f/sort"}
})"},
    {"map-inliner", R"(each {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  two = f32[] constant(2)
  c = pred[] compare(x, two), direction=LT, metadata={op_name="f/lt"}
  m = f32[] subtract(x, y), metadata={op_name="f/sub"}
  ROOT r = f32[] select(c, m, two), metadata={op_name="f/select"}
}
ENTRY e {
  p = f32[2,3] parameter(0)
  q = f32[2,3] parameter(1)
  ROOT r = f32[2,3] map(p, q), dimensions={0,1}, to_apply=each, metadata={op_name="f/map"}
})"},
    {"real-imag-expander", R"(ENTRY e {
  p = f32[3] parameter(0)
  x = f32[3] exponential(p), metadata={op_name="f/exp"}
  r = f32[3] real(x), metadata={op_name="f/real"}
  i = f32[3] imag(p), metadata={op_name="f/imag"}
  ROOT t = (f32[3], f32[3]) tuple(r, i)
})"},
    {"bitcast-dtypes-expander", R"(ENTRY e {
  p = f32[3] parameter(0)
  q = s16[3,2] constant({{1,-2},{300,4},{-5,6}})
  a = s8[3,4] bitcast-convert(p), metadata={op_name="f/narrow"}
  b = s32[3] bitcast-convert(q), metadata={op_name="f/wide"}
  ROOT t = (s8[3,4], s32[3]) tuple(a, b)
})"},
    {"dot-dimension-merger", R"(ENTRY e {
  a = f32[4,2,3,5] parameter(0)
  b = f32[2,3,4,6] parameter(1)
  ROOT d = f32[2,3,5,6] dot(a, b), lhs_batch_dims={1,2}, rhs_batch_dims={0,1}, lhs_contracting_dims={0}, rhs_contracting_dims={2}, metadata={op_name="f/dot"}
})"},
    {"dot-dimension-splitter", R"(ENTRY e {
  a = f32[2,3,4,5] parameter(0)
  b = f32[2,3,5,6] parameter(1)
  r = f32[6,4,5] reshape(a)
  s = f32[6,5,6] reshape(b)
  d = f32[6,4,6] dot(r, s), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, metadata={op_name="f/dot"}
  ROOT o = f32[2,3,4,6] reshape(d)
})"},
    {"convolution-group-converter", R"(ENTRY e {
  x = f32[1,4,4] parameter(0)
  k = f32[2,2,6] parameter(1)
  ROOT c = f32[1,3,6] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2, metadata={op_name="f/conv"}
})"},
    {"cholesky-expander", R"(ENTRY e {
  a = f32[2,2] parameter(0)
  ROOT l = f32[2,2] cholesky(a), lower=true
})"},
    {"qr-expander", R"(ENTRY e {
  a = f32[4,3] parameter(0)
  qr = (f32[4,3], f32[3]) custom-call(a), custom_call_target="Qr", metadata={op_name="f/qr"}
  r = f32[4,3] get-tuple-element(qr), index=0
  taus = f32[3] get-tuple-element(qr), index=1
  ROOT q = f32[4,3] custom-call(r, taus), custom_call_target="ProductOfElementaryHouseholderReflectors", metadata={op_name="f/q"}
})"},
    {"eigh-expander", R"(ENTRY e {
  a = f32[4,4] parameter(0)
  ROOT vw = (f32[4,4], f32[4]) custom-call(a), custom_call_target="Eigh", backend_config="1,1,100,1e-6", metadata={op_name="f/eigh"}
})"},
    {"triangular-solve-expander", R"(ENTRY e {
  a = f32[2,2] parameter(0)
  b = f32[2,3] parameter(1)
  ROOT x = f32[2,3] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
})"},
    {"gather-expander", R"(ENTRY e {
  p = f32[5,3] parameter(0)
  i = s32[2] parameter(1)
  ROOT g = f32[2,3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}, metadata={op_name="f/take"}
})"},
    {"scatter-expander", R"(sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[5,3] parameter(0)
  i = s32[2] parameter(1)
  u = f32[2,3] parameter(2)
  ROOT g = f32[5,3] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum, metadata={op_name="f/add"}
})"},
    {"rng-bit-generator-expander", R"(ENTRY e {
  state = u64[2] parameter(0)
  ROOT r = (u64[2], u32[3]) rng-bit-generator(state), algorithm=rng_philox, metadata={op_name="f/random"}
})"},
    {"batchnorm-expander", R"(ENTRY e {
  x = f32[2,3] parameter(0)
  scale = f32[3] parameter(1)
  offset = f32[3] parameter(2)
  mean = f32[3] parameter(3)
  variance = f32[3] parameter(4)
  ROOT r = f32[2,3] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.001, feature_index=1, metadata={op_name="f/bn"}
})"},
    {"dot-decomposer", R"(ENTRY e {
  a = f32[2,5,3] parameter(0)
  b = f32[4,5] parameter(1)
  ROOT d = f32[2,3,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name="f/dot"}
})"},
    {"logistic-expander", R"(ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] logistic(x), metadata={op_name="f/sigmoid"}
})"},
    {"rng-expander", R"(ENTRY e {
  a = f32[] constant(-1)
  b = f32[] constant(1)
  ROOT r = f32[4] rng(a, b), distribution=rng_uniform, metadata={op_name="f/noise"}
})"},
};

void AddExpander(PassRegistry* registry, PassInfo info) {
  for (const Example& example : kExpanderExamples) {
    if (example.pass == info.name) info.example = example.text;
  }
  registry->Add(std::move(info));
}

// Expansions of sorts, and of operations on the representation of elements.
void RegisterElementExpanders(PassRegistry* registry) {
  AddExpander(registry,
              {.name = "topk-decomposer",
               .category = "expand",
               .summary = "expand top-k into sorts",
               .doc = "A stable sort with indices, and slices of its results, for the operation and the custom-call "
                      "TopK. Floats are compared by total order, where XLA's takes the comparator of the call, and "
                      "leaves the indices out if only the values are used.",
               .create = MakePass<RulesOf<AddTopkDecomposerRules, RewriteScope::kSequential>>});
  AddExpander(registry,
              {.name = "topk-rewriter",
               .category = "expand",
               .summary = "replace sorts of which the first elements are used by top-k",
               .doc = "A descending sort of f32 or bf16, alone or with an iota, along the first or last dimension, "
                      "becomes the custom-call TopK. As XLA's, which asks the backend whether that is profitable, "
                      "and accepts comparators that are not a total order: here these stay, since zeros of both signs "
                      "would be in another order. Several slices of one result are accepted too, if they are "
                      "equally long.",
               .create = MakePass<TopkRewriter>});
  AddExpander(registry,
              {.name = "stable-sort-expander",
               .category = "expand",
               .summary = "expand stable sorts into sorts with indices",
               .doc = "The index decides between elements of which neither comes first. As XLA's, but an iota "
                      "that is an operand already is not used.",
               .create = MakePass<RulesOf<AddStableSortExpanderRules, RewriteScope::kSequential>>});
  AddExpander(registry,
              {.name = "map-inliner",
               .category = "expand",
               .summary = "replace maps by the operations of their functions",
               .doc = "If these are elementwise, or constants, up to 10,000 of them. XLA's inlines functions of one "
                      "operation.",
               .create = MakePass<RulesOf<AddMapInlinerRules>>});
  AddExpander(registry, {.name = "real-imag-expander",
                         .category = "expand",
                         .summary = "remove real and imaginary parts of real numbers",
                         .doc = "As XLA's: the number itself, and zero.",
                         .create = MakePass<RulesOf<AddRealImagExpanderRules>>});
  AddExpander(registry,
              {.name = "bitcast-dtypes-expander",
               .category = "expand",
               .summary = "expand bitcast-converts that change the width",
               .doc = "As shifts of unsigned integers, and a reduction by or over the elements that are joined, for "
                      "widths of 8 to 64 bits. XLA's joins slices one by one.",
               .create = MakePass<RulesOf<AddBitcastDtypesExpanderRules, RewriteScope::kSequential>>});
}

void RegisterContractionExpanders(PassRegistry* registry) {
  AddExpander(registry, {.name = "reduce-decomposer",
                         .category = "expand",
                         .summary = "do reductions in the layout of their operand",
                         .doc = "A reduction whose result has the dimensions in another memory order than its operand "
                                "becomes one in the operand's order and a copy, after a conversion if that is the only "
                                "user. Operands of reductions of several arrays are copied to the layout of the first. "
                                "As XLA's, except that a backend cannot exempt reductions, and that tiles and memory "
                                "spaces stay.",
                         .create = MakePass<RulesOf<AddReduceDecomposerRules>>});
  AddExpander(registry,
              {.name = "ragged-dot-rewriter",
               .category = "expand",
               .summary = "expand ragged dots into dots and masks",
               .doc = "A dot with all groups, and a select with the ranges of the groups. XLA's masks the operands and "
                      "contracts the groups along with the rest, so that an infinity in one group makes NaN in others, "
                      "requires batch dimensions to come first, and ignores the groups of a ragged batch dimension; "
                      "here masked products are added over the groups, and batches beyond the last group are zero.",
               .tolerance = 1e-5,
               .create = MakePass<RulesOf<AddRaggedDotRewriterRules>>});
  AddExpander(
      registry,
      {.name = "select-and-scatter-expander",
       .category = "expand",
       .summary = "expand select-and-scatter into reduce-window and scatter",
       .doc = "The reduction of the windows yields the indices of the selected elements, to which the source is "
              "scattered. As XLA's, except that a combiner that is not one commutative operation is cloned "
              "with its parameters exchanged, since scatter passes them in the other order.",
       .tolerance = 1e-5,
       .create = MakePass<RulesOf<AddSelectAndScatterExpanderRules>>});
  AddExpander(registry,
              {.name = "tree-reduction-rewriter",
               .category = "expand",
               .summary = "reduce large dimensions in several steps",
               .doc = "Windows are reduced first, then their results. Only with add, multiply, minimum, maximum, "
                      "and, or from an initial value that changes nothing; XLA's trusts any reducer. Padding "
                      "is at the end, where XLA's is at both.",
               .options = {{.name = "reduce-window-size",
                            .type = OptionInfo::Type::kInt,
                            .default_text = "32",
                            .doc = "the size of a window in each reduced dimension",
                            .min = 2}},
               .tolerance = 1e-4,
               .create = MakePass<RulesOf<AddTreeReductionRewriterRules, RewriteScope::kSequential>>});
  AddExpander(registry, {.name = "dot-dimension-merger",
                         .category = "expand",
                         .summary = "merge batch dimensions of dots",
                         .doc = "Batch dimensions that are consecutive in both operands become one, with reshapes "
                                "around the dot. XLA's requires that of their layouts too.",
                         .create = MakePass<RulesOf<AddDotDimensionMergerRules>>});
  AddExpander(registry, {.name = "dot-dimension-splitter",
                         .category = "expand",
                         .summary = "split dimensions of dots that reshapes of the operands merged",
                         .doc = "Batch and contracting dimensions that both operands made of the same dimensions, and "
                                "others that one made, are taken apart, with a reshape after the dot; reshapes of "
                                "reshapes merge. Before sharding propagation: batch and heads, or batch and tokens, "
                                "in one dimension cannot both be divided among devices. The inverse of "
                                "dot-dimension-merger; XLA's pipelines have no such pass.",
                         .create = MakePass<RulesOf<AddDotDimensionSplitterRules>>});
  AddExpander(registry,
              {.name = "convolution-group-converter",
               .category = "expand",
               .summary = "expand convolutions with groups",
               .doc = "The kernel becomes dense: a weight is zero if its features are in different groups. "
                      "Groups of the batch become groups of features first. XLA's does one or the other, as "
                      "the backend says, and asks it for the cost; it makes groups of the batch a spatial "
                      "dimension with dilation, or computes all and masks the result. An infinity or NaN in one "
                      "group gives NaN in all, since zero weights multiply it.",
               .tolerance = 1e-5,
               .create = MakePass<RulesOf<AddConvolutionGroupConverterRules>>});
}

}  // namespace

void RegisterExpanderPasses(PassRegistry* registry) {
  RegisterElementExpanders(registry);
  RegisterContractionExpanders(registry);
  AddExpander(registry,
              {.name = "batchnorm-expander",
               .category = "expand",
               .summary = "expand batch normalizations",
               .doc = "Expands training, inference and gradient into sums, products and rsqrt over all dimensions "
                      "but the feature. Requires operands of one float type.",
               .options = {{.name = "one-pass",
                            .type = OptionInfo::Type::kBool,
                            .default_text = "false",
                            .doc = "compute a variance as the mean square less the square of the mean, from one read "
                                   "of the operand, as compilers for TPUs do"}},
               .tolerance = 1e-4,
               .create = MakePass<BatchNormExpander>});
  const OptionInfo size = {"max-size", OptionInfo::Type::kInt, "32", "larger matrices stay"};
  const OptionInfo wide = {
      "wide", OptionInfo::Type::kBool, "true",
      "compute in f64 and round the result; else in the type of the matrix, or f32 if that is wider"};
  AddExpander(registry, {.name = "cholesky-expander",
                         .category = "expand",
                         .summary = "expand Cholesky factorizations of small real matrices",
                         .doc = "Column by column, with slices and dots; NaN if the matrix is not positive definite.",
                         .options = {size, wide},
                         .tolerance = 1e-3,
                         .create = MakePass<RulesOf<AddCholeskyExpanderRules>>});
  AddExpander(
      registry,
      {.name = "triangular-solve-expander",
       .category = "expand",
       .summary = "expand triangular solves with small real matrices",
       .doc = "Forward or backward substitution, row by row, with slices and dots. The other triangle is not read.",
       .options = {size, wide},
       .tolerance = 1e-3,
       .create = MakePass<RulesOf<AddTriangularSolveExpanderRules>>});
  AddExpander(registry,
              {.name = "qr-expander",
               .category = "expand",
               .summary = "expand QR decompositions of real matrices",
               .doc = "The custom-calls Qr and ProductOfElementaryHouseholderReflectors become loops of Householder "
                      "reflections, one for each column. XLA's works in blocks of 128 columns, with a product of each "
                      "block's reflections, and on complex matrices, which stay here.",
               .options = {wide},
               .tolerance = 1e-3,
               .create = MakePass<RulesOf<AddQrExpanderRules, RewriteScope::kSequential>>});
  AddExpander(
      registry,
      {.name = "eigh-expander",
       .category = "expand",
       .summary = "expand eigendecompositions of real symmetric matrices",
       .doc = "The custom-call Eigh becomes sweeps of Jacobi rotations, n / 2 at once, as XLA's, with the same "
              "limits from its backend_config. XLA's takes Hermitian matrices too, which stay here. Eigenvectors "
              "of equal eigenvalues, and their signs, are as good as others.",
       .options = {wide},
       .tolerance = 1e-3,
       .create = MakePass<RulesOf<AddEighExpanderRules, RewriteScope::kSequential>>});
  AddExpander(registry, {.name = "dot-decomposer",
                         .category = "expand",
                         .summary = "transform dots into canonical form",
                         .doc = "Batch dimensions first, then rows and contracting dimension on the left, contracting "
                                "dimension and columns on the right, with transposes and reshapes around the dot.",
                         .create = MakePass<RulesOf<AddDotDecomposerRules>>});
  AddExpander(registry,
              {.name = "rng-bit-generator-expander",
               .category = "expand",
               .summary = "expand random bit generators",
               .doc = "ThreeFry and Philox as integer arithmetic on arrays of counters: the same bits and the same "
                      "next state. The default algorithm is Philox.",
               .create = MakePass<RulesOf<AddRngBitGeneratorExpanderRules>>});
  AddExpander(
      registry,
      {.name = "rng-expander",
       .category = "expand",
       .summary = "expand random numbers",
       .doc = "Uniform and normal numbers as arithmetic on bits of Philox or ThreeFry, whose counter is the random "
              "state of the program, read and advanced by rng-get-and-update-state. The distribution is that of other "
              "implementations of rng, the numbers are not.",
       .options = {{.name = "algorithm",
                    .type = OptionInfo::Type::kString,
                    .default_text = "philox",
                    .doc = "the random bit generator",
                    .choices = {"philox", "three-fry"}},
                   {"key", OptionInfo::Type::kInt, "0", "the key of the generator: another one gives other numbers"}},
       .redefines = {Opcode::kRng},
       .create = MakePass<RulesOf<AddRngExpanderRules, RewriteScope::kSequential>>});
  AddExpander(registry,
              {.name = "gather-expander",
               .category = "expand",
               .summary = "expand gathers into loops",
               .doc = "One iteration for each index vector, with a dynamic slice of the operand that is written into "
                      "the result. gather-simplifier handles single slices better.",
               .create = MakePass<RulesOf<AddGatherExpanderRules, RewriteScope::kSequential>>});
  AddExpander(registry,
              {.name = "scatter-expander",
               .category = "expand",
               .summary = "expand scatters into loops",
               .doc = "One iteration for each index vector, in order, with a dynamic slice, the combiner as a map "
                      "over the window, and a dynamic update; windows that do not fit are dropped. A scatter into "
                      "several arrays becomes one loop with a map for each array.",
               .create = MakePass<RulesOf<AddScatterExpanderRules, RewriteScope::kSequential>>});
  AddExpander(registry, {.name = "logistic-expander",
                         .category = "expand",
                         .summary = "expand logistic functions",
                         .doc = "logistic(x) = 1 / (1 + exp(-x)), which rounds more often.",
                         .tolerance = 1e-5,
                         .create = MakePass<RulesOf<AddLogisticExpanderRules>>});
}

}  // namespace hlokit
