// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/infer_types.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "parser/mlir/bounds.h"
#include "parser/mlir/convolution_numbers.h"

namespace hlokit::stablehlo {

using mlir::kDynamicSize;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

mlir::NodeId WithSizes(mlir::NodeTable* nodes, NodeId type, absl::Span<const int64_t> sizes) {
  if (nodes->kind(type) != NodeKind::kTensorType || nodes->ints(type).size() != sizes.size()) return type;
  std::vector<int64_t> merged(nodes->ints(type).begin(), nodes->ints(type).end());
  std::vector<int64_t> bounds = mlir::BoundsOf(*nodes, type);
  bool changed = false;
  for (size_t i = 0; i < merged.size(); ++i) {
    if (merged[i] != kDynamicSize || sizes[i] < 0) continue;
    merged[i] = sizes[i];
    if (!bounds.empty()) bounds[i] = kDynamicSize;
    changed = true;
  }
  if (!changed) return type;
  std::vector<NodeId> children = nodes->children(type);
  if (!bounds.empty()) {
    children.resize(1);
    if (const NodeId encoding = mlir::MakeBounds(nodes, bounds); encoding.valid()) children.push_back(encoding);
  }
  return nodes->Make(NodeKind::kTensorType, "", merged, children);
}

namespace {

using Ints = std::vector<int64_t>;

// Open sizes stay open.
int64_t Add(int64_t a, int64_t b) { return a < 0 || b < 0 ? kDynamicSize : a + b; }

// The size of a padded, dilated array.
int64_t Padded(int64_t size, int64_t low, int64_t high, int64_t interior) {
  if (size < 0) return kDynamicSize;
  return std::max<int64_t>(0, size + low + high + interior * std::max<int64_t>(0, size - 1));
}

// How many windows there are.
int64_t Windows(int64_t size, int64_t window, int64_t stride, int64_t dilation) {
  if (size < 0 || window < 0) return kDynamicSize;
  const int64_t reach = window == 0 ? 0 : (window - 1) * dilation + 1;
  return reach > size || stride < 1 ? 0 : (size - reach) / stride + 1;
}

bool Has(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

class Inference {
 public:
  Inference(mlir::NodeTable* nodes, const RefinedOp& op, std::vector<RefinedValue>* values)
      : n_(*nodes), op_(op), values_(*values) {}

  void Run();

 private:
  NodeId Attribute(std::string_view name) const {
    for (const mlir::Attribute& a : op_.attributes) {
      if (n_.str(a.name) == name) return a.value;
    }
    return {};
  }
  Ints List(std::string_view name) const { return n_.Integers(Attribute(name)).value_or(Ints()); }
  Ints Field(NodeId fields, std::string_view name) const {
    return n_.Integers(n_.Entry(fields, name)).value_or(Ints());
  }
  int64_t Int(std::string_view name) const { return n_.IntegerValue(Attribute(name)).value_or(-1); }
  bool IsTensor(size_t i) const {
    return i < op_.operands.size() && n_.kind(values_[op_.operands[i]].type) == NodeKind::kTensorType;
  }
  // The sizes of an operand; empty if it is no tensor.
  Ints in(size_t i) const {
    if (!IsTensor(i)) return {};
    const absl::Span<const int64_t> sizes = n_.ints(values_[op_.operands[i]].type);
    return {sizes.begin(), sizes.end()};
  }
  const std::optional<Ints>& known(size_t i) const {
    static const std::optional<Ints>& unknown = *new std::optional<Ints>();
    return i < op_.operands.size() ? values_[op_.operands[i]].constant : unknown;
  }
  size_t rank(size_t result) const {
    const NodeId type = values_[op_.results[result]].type;
    return n_.kind(type) == NodeKind::kTensorType ? n_.ints(type).size() : 0;
  }
  void Set(size_t result, const Ints& sizes) {
    if (result >= op_.results.size()) return;
    NodeId& type = values_[op_.results[result]].type;
    type = WithSizes(&n_, type, sizes);
  }
  void SetKnown(size_t operand) {
    if (operand < op_.operands.size() && known(operand)) Set(0, *known(operand));
  }
  // Each result is like the operand of its number.
  void SetLikeOperands() {
    for (size_t i = 0; i < op_.results.size() && i < op_.operands.size(); ++i) Set(i, in(i));
  }
  // Returns false for operations that are not elementwise.
  bool Elementwise();
  void Broadcasting();
  void Reduce();
  void ReduceWindow(const Ints& window, Ints strides, Ints base, Ints dilation, const Ints& padding);
  void DotGeneral();
  void Convolution(const Ints& padding);
  void Gather(const Ints& sizes);
  void Pad(const Ints& low, const Ints& high, const Ints& interior);
  void Slice(const Ints& start, const Ints& limit, const Ints& stride);
  void RealDynamicSlice();
  void Concatenate();
  void BitcastConvert();
  void Fft();
  void Collective();
  void CustomCall();
  bool Shapes();
  bool Sized();

  mlir::NodeTable& n_;
  const RefinedOp& op_;
  std::vector<RefinedValue>& values_;
};

bool Inference::Elementwise() {
  switch (op_.kind()) {
    case OpKind::kStablehloConvert:
    case OpKind::kStablehloReducePrecision:
    case OpKind::kStablehloReverse:
    case OpKind::kStablehloSelect:
    case OpKind::kStablehloClamp:
    case OpKind::kStablehloAbs:
    case OpKind::kStablehloCeil:
    case OpKind::kStablehloFloor:
    case OpKind::kStablehloSign:
    case OpKind::kStablehloNegate:
    case OpKind::kStablehloNot:
    case OpKind::kStablehloPopcnt:
    case OpKind::kStablehloCountLeadingZeros:
    case OpKind::kStablehloRoundNearestAfz:
    case OpKind::kStablehloRoundNearestEven:
    case OpKind::kStablehloIsFinite:
    case OpKind::kStablehloReal:
    case OpKind::kStablehloImag:
    case OpKind::kStablehloCbrt:
    case OpKind::kStablehloCosine:
    case OpKind::kStablehloSine:
    case OpKind::kStablehloTan:
    case OpKind::kStablehloTanh:
    case OpKind::kStablehloExponential:
    case OpKind::kStablehloExponentialMinusOne:
    case OpKind::kStablehloLog:
    case OpKind::kStablehloLogPlusOne:
    case OpKind::kStablehloLogistic:
    case OpKind::kStablehloSqrt:
    case OpKind::kStablehloRsqrt:
    case OpKind::kStablehloUniformQuantize:
    case OpKind::kStablehloUniformDequantize:
    case OpKind::kStablehloAdd:
    case OpKind::kStablehloSubtract:
    case OpKind::kStablehloMultiply:
    case OpKind::kStablehloDivide:
    case OpKind::kStablehloRemainder:
    case OpKind::kStablehloMaximum:
    case OpKind::kStablehloMinimum:
    case OpKind::kStablehloPower:
    case OpKind::kStablehloAtan2:
    case OpKind::kStablehloAnd:
    case OpKind::kStablehloOr:
    case OpKind::kStablehloXor:
    case OpKind::kStablehloShiftLeft:
    case OpKind::kStablehloShiftRightArithmetic:
    case OpKind::kStablehloShiftRightLogical:
    case OpKind::kStablehloComplex:
    case OpKind::kStablehloCompare:
    case OpKind::kStablehloMap:
    case OpKind::kChloAcos:
    case OpKind::kChloAcosh:
    case OpKind::kChloAsin:
    case OpKind::kChloAsinh:
    case OpKind::kChloAtan:
    case OpKind::kChloAtanh:
    case OpKind::kChloCosh:
    case OpKind::kChloSinh:
    case OpKind::kChloTan:
    case OpKind::kChloErf:
    case OpKind::kChloErfc:
    case OpKind::kChloErfInv:
    case OpKind::kChloLgamma:
    case OpKind::kChloDigamma:
    case OpKind::kChloBesselI1e:
    case OpKind::kChloSquare:
    case OpKind::kChloConj:
    case OpKind::kChloIsInf:
    case OpKind::kChloIsPosInf:
    case OpKind::kChloIsNegInf:
    case OpKind::kChloZeta:
    case OpKind::kChloPolygamma:
    case OpKind::kChloNextAfter:
    case OpKind::kChloMulhi:
    case OpKind::kChloConstantLike:
    case OpKind::kMhloCopy:
    case OpKind::kMhloStochasticConvert:
    case OpKind::kTensorCast:
      break;
    default:
      return false;
  }
  // A scalar predicate or bound has another rank than the result.
  for (size_t i = 0; i < op_.operands.size(); ++i) {
    for (size_t r = 0; r < op_.results.size(); ++r) {
      if (IsTensor(i) && in(i).size() == rank(r)) Set(r, in(i));
    }
  }
  return true;
}

void Inference::Broadcasting() {
  Ints sizes(rank(0), kDynamicSize);
  const Ints dims = List("broadcast_dimensions");
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool open = false;
    int64_t size = 1;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const Ints from = in(i);
      const bool given = !dims.empty() && from.size() < sizes.size();
      std::optional<int64_t> own;
      for (size_t k = 0; k < from.size(); ++k) {
        const size_t target = given && k < dims.size() ? static_cast<size_t>(dims[k])
                                                       : k + sizes.size() - std::min(sizes.size(), from.size());
        if (target == d) own = from[k];
      }
      if (!own) continue;
      if (*own < 0) open = true;
      if (*own > 1 || *own == 0) size = *own;
    }
    if (!open || size != 1) sizes[d] = size;
  }
  Set(0, sizes);
}

void Inference::Reduce() {
  const Ints dims = List("dimensions");
  for (size_t r = 0; r < op_.results.size(); ++r) {
    Ints sizes;
    const Ints from = in(r);
    for (size_t d = 0; d < from.size(); ++d) {
      if (!Has(dims, static_cast<int64_t>(d))) sizes.push_back(from[d]);
    }
    Set(r, sizes);
  }
}

void Inference::ReduceWindow(const Ints& window, Ints strides, Ints base, Ints dilation, const Ints& padding) {
  for (size_t r = 0; r < op_.results.size(); ++r) {
    const Ints from = in(r);
    strides.resize(from.size(), 1);
    base.resize(from.size(), 1);
    dilation.resize(from.size(), 1);
    if (window.size() != from.size() || (!padding.empty() && padding.size() != 2 * from.size())) return;
    Ints sizes;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t low = padding.empty() ? 0 : padding[2 * d], high = padding.empty() ? 0 : padding[2 * d + 1];
      sizes.push_back(Windows(Padded(from[d], low, high, base[d] - 1), window[d], strides[d], dilation[d]));
    }
    Set(r, sizes);
  }
}

void Inference::DotGeneral() {
  const NodeId numbers = Attribute("dot_dimension_numbers");
  const Ints lhs = in(0), rhs = in(1);
  const Ints lhs_batch = Field(numbers, "lhs_batching_dimensions"),
             rhs_batch = Field(numbers, "rhs_batching_dimensions"),
             lhs_contracted = Field(numbers, "lhs_contracting_dimensions"),
             rhs_contracted = Field(numbers, "rhs_contracting_dimensions");
  Ints sizes;
  for (size_t i = 0; i < lhs_batch.size() && i < rhs_batch.size(); ++i) {
    const auto l = static_cast<size_t>(lhs_batch[i]), r = static_cast<size_t>(rhs_batch[i]);
    if (l >= lhs.size() || r >= rhs.size()) return;
    sizes.push_back(lhs[l] >= 0 ? lhs[l] : rhs[r]);
  }
  const auto add_free = [&](const Ints& from, const Ints& batch, const Ints& contracted) {
    for (size_t d = 0; d < from.size(); ++d) {
      const auto dimension = static_cast<int64_t>(d);
      if (!Has(batch, dimension) && !Has(contracted, dimension)) sizes.push_back(from[d]);
    }
  };
  add_free(lhs, lhs_batch, lhs_contracted);
  add_free(rhs, rhs_batch, rhs_contracted);
  Set(0, sizes);
}

void Inference::Convolution(const Ints& padding) {
  mlir::ConvolutionNumbers numbers;
  const NodeId attribute = Attribute("dimension_numbers");
  if (!attribute.valid() || !mlir::ReadConvolutionNumbers(n_, attribute, &numbers).empty()) return;
  const Ints lhs = in(0), rhs = in(1);
  const auto& [input, kernel, output] = numbers.parts;
  const size_t spatial = input.spatial.size();
  if (lhs.size() != spatial + 2 || rhs.size() != spatial + 2 || kernel.spatial.size() != spatial) return;
  const auto at = [](const Ints& sizes, int64_t d) {
    return sizes[std::min(static_cast<size_t>(d), sizes.size() - 1)];
  };
  Ints strides = List("window_strides"), base = List("lhs_dilation"), dilation = List("rhs_dilation");
  strides.resize(spatial, 1);
  base.resize(spatial, 1);
  dilation.resize(spatial, 1);
  Ints sizes(lhs.size(), kDynamicSize);
  const auto set = [&](int64_t d, int64_t size) { sizes[std::min(static_cast<size_t>(d), sizes.size() - 1)] = size; };
  const int64_t batch = at(lhs, input.first), groups = std::max<int64_t>(1, Int("batch_group_count"));
  set(output.first, batch < 0 ? batch : batch / groups);
  set(output.second, at(rhs, kernel.second));
  for (size_t i = 0; i < spatial && i < output.spatial.size(); ++i) {
    const int64_t low = padding.size() < 2 * spatial ? 0 : padding[2 * i];
    const int64_t high = padding.size() < 2 * spatial ? 0 : padding[2 * i + 1];
    const int64_t size = Padded(at(lhs, input.spatial[i]), low, high, base[i] - 1);
    set(output.spatial[i], Windows(size, at(rhs, kernel.spatial[i]), strides[i], dilation[i]));
  }
  Set(0, sizes);
}

void Inference::Gather(const Ints& slice) {
  const NodeId numbers = Attribute("dimension_numbers");
  const Ints offset = Field(numbers, "offset_dims"), collapsed = Field(numbers, "collapsed_slice_dims"),
             batching = Field(numbers, "operand_batching_dims");
  const int64_t vector = n_.IntegerValue(n_.Entry(numbers, "index_vector_dim")).value_or(0);
  Ints windows, batch, sizes;
  for (size_t d = 0; d < slice.size(); ++d) {
    const auto dimension = static_cast<int64_t>(d);
    if (!Has(collapsed, dimension) && !Has(batching, dimension)) windows.push_back(slice[d]);
  }
  const Ints indices = in(1);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (static_cast<int64_t>(d) != vector) batch.push_back(indices[d]);
  }
  size_t next_window = 0, next_batch = 0;
  for (size_t d = 0; d < rank(0); ++d) {
    const bool window = Has(offset, static_cast<int64_t>(d));
    const Ints& from = window ? windows : batch;
    size_t& next = window ? next_window : next_batch;
    sizes.push_back(next < from.size() ? from[next] : kDynamicSize);
    ++next;
  }
  Set(0, sizes);
}

void Inference::Pad(const Ints& low, const Ints& high, const Ints& interior) {
  Ints sizes = in(0);
  if (low.size() != sizes.size() || high.size() != sizes.size() || interior.size() != sizes.size()) return;
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = Padded(sizes[d], low[d], high[d], interior[d]);
  Set(0, sizes);
}

void Inference::Slice(const Ints& start, const Ints& limit, const Ints& stride) {
  Ints sizes;
  if (start.size() != limit.size() || start.size() != stride.size()) return;
  for (size_t d = 0; d < start.size(); ++d) {
    if (stride[d] < 1) return;
    sizes.push_back(std::max<int64_t>(0, (limit[d] - start[d] + stride[d] - 1) / stride[d]));
  }
  Set(0, sizes);
}

void Inference::RealDynamicSlice() {
  if (op_.operands.size() != 4 || !known(3)) return;
  if (known(1) && known(2)) return Slice(*known(1), *known(2), *known(3));
  // The limits may be the starts and known sizes.
  const uint32_t* const addends = values_[op_.operands[2]].addends;
  for (int side = 0; side < 2; ++side) {
    const std::optional<Ints>& sizes = values_[addends[side]].constant;
    if (addends[0] == addends[1] || addends[1 - side] != op_.operands[1] || !sizes) continue;
    Slice(Ints(sizes->size(), 0), *sizes, *known(3));
  }
}

void Inference::Concatenate() {
  const auto dimension = static_cast<size_t>(Int("dimension"));
  Ints sizes = in(0);
  if (dimension >= sizes.size()) return;
  sizes[dimension] = 0;
  for (size_t i = 0; i < op_.operands.size(); ++i) {
    const Ints from = in(i);
    if (from.size() != sizes.size()) return;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (d == dimension) sizes[d] = Add(sizes[d], from[d]);
      if (d != dimension && sizes[d] < 0) sizes[d] = from[d];
    }
  }
  Set(0, sizes);
}

void Inference::BitcastConvert() {
  Ints sizes = in(0);
  while (sizes.size() > rank(0)) sizes.pop_back();
  while (sizes.size() < rank(0)) sizes.push_back(kDynamicSize);
  Set(0, sizes);
}

void Inference::Fft() {
  Ints sizes = in(0);
  const Ints length = List("fft_length");
  const NodeId type = Attribute("fft_type");
  if (sizes.empty() || length.empty() || !type.valid() || n_.kind(type) != NodeKind::kEnum) return;
  const std::string_view name = n_.str(StringId(static_cast<uint32_t>(n_.ints(type)[0])));
  if (name == "RFFT") sizes.back() = length.back() / 2 + 1;
  if (name == "IRFFT") sizes.back() = length.back();
  Set(0, sizes);
}

void Inference::Collective() {
  // Groups are not counted here: a dimension that they change has its size in the program.
  const OpKind kind = op_.kind();
  int64_t changed = -1, other = -1;
  if (kind == OpKind::kStablehloAllGather) changed = Int("all_gather_dim");
  if (kind == OpKind::kStablehloReduceScatter) changed = Int("scatter_dimension");
  if (kind == OpKind::kStablehloAllToAll) {
    changed = Int("split_dimension");
    other = Int("concat_dimension");
  }
  const int64_t count = Int("split_count");
  for (size_t i = 0; i < op_.results.size() && i < op_.operands.size(); ++i) {
    Ints sizes = in(i);
    for (size_t d = 0; d < sizes.size(); ++d) {
      const auto dimension = static_cast<int64_t>(d);
      if (other >= 0 && changed != other && count > 0 && sizes[d] >= 0) {
        if (dimension == changed) sizes[d] /= count;
        if (dimension == other) sizes[d] *= count;
      } else if (other < 0 && dimension == changed) {
        sizes[d] = kDynamicSize;
      }
    }
    Set(i, sizes);
  }
}

// Operands that are shapes of results; StableHLO's own operations that it has as custom calls.
void Inference::CustomCall() {
  const NodeId name = Attribute("call_target_name");
  const std::string_view target = name.valid() && n_.kind(name) == NodeKind::kString ? n_.text(name) : "";
  const Ints shapes = List("indices_of_shape_operands");
  for (size_t r = 0; r < shapes.size() && r < op_.results.size(); ++r) {
    const auto operand = static_cast<size_t>(shapes[r]);
    if (operand < op_.operands.size() && known(operand)) Set(r, *known(operand));
  }
  if (target == "stablehlo.dynamic_reduce_window" && op_.operands.size() >= 7) {
    const size_t first = op_.operands.size() - 5;
    for (size_t i = first; i < op_.operands.size(); ++i) {
      if (!known(i)) return;
    }
    ReduceWindow(*known(first), *known(first + 1), *known(first + 2), *known(first + 3), *known(first + 4));
  }
  if (target == "stablehlo.dynamic_rng_bit_generator" && op_.operands.size() == 2 && op_.results.size() == 2) {
    Set(0, in(0));
    if (known(1)) Set(1, *known(1));
  }
  const bool top_k = target == "stablehlo.dynamic_top_k" || target == "stablehlo.dynamic_approx_top_k";
  if (top_k && op_.operands.size() == 2 && known(1) && !in(0).empty() && known(1)->size() == 1) {
    Ints sizes = in(0);
    sizes.back() = (*known(1))[0];
    for (size_t r = 0; r < op_.results.size(); ++r) Set(r, sizes);
  }
}

// Operations whose result has the sizes that an operand says. Returns false for others.
bool Inference::Sized() {
  switch (op_.kind()) {
    case OpKind::kStablehloDynamicIota:
      SetKnown(0);
      return true;
    case OpKind::kStablehloDynamicReshape:
    case OpKind::kStablehloDynamicBroadcastInDim:
      SetKnown(1);
      return true;
    case OpKind::kStablehloRng:
      SetKnown(2);
      return true;
    case OpKind::kStablehloDynamicPad:
      if (known(2) && known(3) && known(4)) Pad(*known(2), *known(3), *known(4));
      return true;
    case OpKind::kStablehloRealDynamicSlice:
      RealDynamicSlice();
      return true;
    case OpKind::kStablehloDynamicGather:
      if (known(2)) Gather(*known(2));
      return true;
    case OpKind::kStablehloDynamicConv:
      if (known(2)) Convolution(*known(2));
      return true;
    case OpKind::kShapeShapeOf: {
      Set(0, {static_cast<int64_t>(in(0).size())});
      return true;
    }
    case OpKind::kTensorFromElements:
    case OpKind::kTensorDim:
      return true;
    default:
      return false;
  }
}

// Operations that move data. Returns false for others.
bool Inference::Shapes() {
  switch (op_.kind()) {
    case OpKind::kStablehloTranspose: {
      Ints sizes;
      const Ints from = in(0);
      for (int64_t d : List("permutation")) {
        if (d < 0 || d >= static_cast<int64_t>(from.size())) return true;
        sizes.push_back(from[static_cast<size_t>(d)]);
      }
      Set(0, sizes);
      return true;
    }
    case OpKind::kStablehloBroadcast: {
      Ints sizes = List("broadcast_sizes");
      const Ints from = in(0);
      sizes.insert(sizes.end(), from.begin(), from.end());
      Set(0, sizes);
      return true;
    }
    case OpKind::kStablehloConcatenate:
      Concatenate();
      return true;
    case OpKind::kStablehloSlice:
      Slice(List("start_indices"), List("limit_indices"), List("strides"));
      return true;
    case OpKind::kStablehloPad:
      Pad(List("edge_padding_low"), List("edge_padding_high"), List("interior_padding"));
      return true;
    case OpKind::kStablehloGather:
      Gather(List("slice_sizes"));
      return true;
    case OpKind::kStablehloReduce:
      Reduce();
      return true;
    case OpKind::kStablehloReduceWindow:
      ReduceWindow(List("window_dimensions"), List("window_strides"), List("base_dilations"), List("window_dilations"),
                   List("padding"));
      return true;
    case OpKind::kStablehloDotGeneral:
      DotGeneral();
      return true;
    case OpKind::kStablehloDot: {
      Ints sizes = in(0), rhs = in(1);
      if (sizes.empty() || rhs.empty()) return true;
      sizes.pop_back();
      sizes.insert(sizes.end(), rhs.begin() + 1, rhs.end());
      Set(0, sizes);
      return true;
    }
    case OpKind::kStablehloConvolution:
      Convolution(List("padding"));
      return true;
    case OpKind::kStablehloBitcastConvert:
      BitcastConvert();
      return true;
    case OpKind::kStablehloFft:
      Fft();
      return true;
    case OpKind::kStablehloTriangularSolve:
      Set(0, in(1));
      return true;
    case OpKind::kStablehloAllGather:
    case OpKind::kStablehloAllToAll:
    case OpKind::kStablehloReduceScatter:
      Collective();
      return true;
    case OpKind::kStablehloCustomCall:
    case OpKind::kMhloCustomCall:
      CustomCall();
      return true;
    case OpKind::kChloTopK:
    case OpKind::kMhloTopk: {
      Ints sizes = in(0);
      if (sizes.empty()) return true;
      sizes.back() = Int("k");
      for (size_t r = 0; r < op_.results.size(); ++r) Set(r, sizes);
      return true;
    }
    default:
      return false;
  }
}

void Inference::Run() {
  if (op_.definition == nullptr || op_.results.empty() || Sized() || Shapes() || Elementwise()) return;
  switch (op_.kind()) {
    case OpKind::kStablehloScatter:
    case OpKind::kStablehloDynamicUpdateSlice:
    case OpKind::kStablehloSelectAndScatter:
    case OpKind::kStablehloSort:
    case OpKind::kStablehloWhile:
    case OpKind::kStablehloOptimizationBarrier:
    case OpKind::kStablehloRngBitGenerator:
    case OpKind::kStablehloBatchNormInference:
    case OpKind::kStablehloBatchNormTraining:
    case OpKind::kStablehloBatchNormGrad:
    case OpKind::kStablehloAllReduce:
    case OpKind::kStablehloCollectivePermute:
    case OpKind::kStablehloCollectiveBroadcast:
    case OpKind::kStablehloCollectiveReduce:
    case OpKind::kSdyNamedComputation:
    case OpKind::kStablehloCholesky:
    case OpKind::kStablehloCrossReplicaSum:
    case OpKind::kMhloAddDependency:
    case OpKind::kMhloDomain:
    case OpKind::kSdyShardingConstraint:
    case OpKind::kSdyReshard:
    case OpKind::kSdyPropagationBarrier:
    case OpKind::kSdyDataFlowEdge:
    case OpKind::kSdyAllGather:
    case OpKind::kSdyAllSlice:
    case OpKind::kSdyAllToAll:
    case OpKind::kSdyAllReduce:
    case OpKind::kSdyReduceScatter:
    case OpKind::kSdyShardedToUnreduced:
    case OpKind::kSdyReplicatedToUnreduced:
    case OpKind::kSdyCollectivePermute:
      SetLikeOperands();
      return;
    case OpKind::kTensorInsert:
      Set(0, in(1));
      return;
    default:  // static in every program, or the result has what the program says
      break;
  }
  const std::string_view name = op_.definition->name;
  if (name.starts_with("chlo.broadcast_")) Broadcasting();
}

}  // namespace

void InferTypes(mlir::NodeTable* nodes, const RefinedOp& op, std::vector<RefinedValue>* values) {
  Inference(nodes, op, values).Run();
}

}  // namespace hlokit::stablehlo
