// SPDX-License-Identifier: Apache-2.0
#include "tracer/lowering/xla_op.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy {
namespace {

std::string DimsToString(Dims dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) StrAppend(&out, i == 0 ? "" : ", ", dims[i]);
  return out + "]";
}

std::string_view ReducerName(Opcode opcode) {
  static constexpr std::pair<Opcode, std::string_view> kNames[] = {{Opcode::kAdd, "AddComputation"},
                                                                   {Opcode::kMultiply, "MulComputation"},
                                                                   {Opcode::kMaximum, "MaxComputation"},
                                                                   {Opcode::kMinimum, "MinComputation"},
                                                                   {Opcode::kAnd, "AndComputation"}};
  for (const auto& [reducer, name] : kNames) {
    if (reducer == opcode) return name;
  }
  return "OrComputation";
}

// Complex numbers have neither order nor remainders.
bool RejectsType(Opcode opcode, ElementType type) {
  return IsComplex(type) && OpcodeSet{Opcode::kMaximum, Opcode::kMinimum, Opcode::kRemainder}.Contains(opcode);
}
absl::Status TypeError(std::string_view what, ElementType type) {
  return absl::InvalidArgumentError(StrCat("\"", what, "\" not implemented for '", TorchTypeName(type), "'"));
}

}  // namespace

Shape XlaOp::shape() const {
  return ok() ? emitter_->builder().shape_of(id_) : emitter_->ScalarShape(ElementType::kF32);
}

int64_t XlaOp::size(int64_t dim) const {
  const Shape s = shape();
  if (dim < 0) dim += s.rank();
  return dim >= 0 && dim < s.rank() ? s.dim(dim) : 1;
}

DimVector XlaOp::dims() const {
  const Shape s = shape();
  return DimVector(s.dims().begin(), s.dims().end());
}

XlaOp XlaEmitter::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return XlaOp(this, InstructionId());
}

ComputationId XlaEmitter::Reducer(Opcode opcode, ElementType type) {
  for (const Known& known : reducers_) {
    if (known.key == static_cast<int>(opcode) && known.type == type) return known.id;
  }
  // On pred, add is or and multiply is and.
  if (RejectsType(opcode, type)) Fail(TypeError(ToString(opcode), type));
  Opcode body = opcode;
  if (type == ElementType::kPred && opcode == Opcode::kAdd) body = Opcode::kOr;
  if (type == ElementType::kPred && opcode == Opcode::kMultiply) body = Opcode::kAnd;
  const ComputationId id = module().AddComputation(module().UniqueComputationName(ReducerName(opcode)));
  Builder b(&module(), id);
  const Builder::Result x = b.Parameter(0, ScalarShape(type), "x");
  const Builder::Result y = b.Parameter(1, ScalarShape(type), "y");
  if (x.ok() && y.ok()) {
    const Builder::Result root = b.Binary(body, *x, *y);
    if (root.ok()) b.SetRoot(*root);
    if (!root.ok()) Fail(root.status());
  }
  reducers_.push_back({static_cast<int>(opcode), type, {}, id});
  return id;
}

ComputationId XlaEmitter::Comparator(ComparisonDirection direction, ElementType type,
                                     absl::Span<const ElementType> extra) {
  for (const Known& known : comparators_) {
    if (known.key == static_cast<int>(direction) && known.type == type && absl::MakeConstSpan(known.extra) == extra) {
      return known.id;
    }
  }
  const ComputationId id = module().AddComputation(module().UniqueComputationName("CompareComputation"));
  XlaEmitter inner(&module(), id);
  Builder& b = inner.builder();
  std::vector<ElementType> types = {type};
  types.insert(types.end(), extra.begin(), extra.end());
  std::vector<InstructionId> parameters;
  for (size_t i = 0; i < 2 * types.size(); ++i) {
    const Builder::Result p =
        b.Parameter(static_cast<int64_t>(i), ScalarShape(types[i / 2]), StrCat(i % 2 == 0 ? "x" : "y", i / 2));
    if (p.ok()) parameters.push_back(*p);
  }
  const XlaOp x(&inner, parameters[0]), y(&inner, parameters[1]);
  XlaOp root = Compare(direction, x, y);
  if (IsFloat(type) && direction == ComparisonDirection::kLt) root = root | (Eq(x, x) & Ne(y, y));
  if (IsFloat(type) && direction == ComparisonDirection::kGt) root = root | (Ne(x, x) & Eq(y, y));
  if (!inner.status().ok()) Fail(inner.status());
  b.SetRoot(root.id());
  comparators_.push_back({static_cast<int>(direction), type, {extra.begin(), extra.end()}, id});
  return id;
}

// ---- constants ----

XlaOp Constant(XlaEmitter& e, ElementType type, Scalar value) {
  return e.Take(e.builder().Constant(FilledLiteral(e.ScalarShape(type), value)));
}
XlaOp Number(XlaOp like, Scalar value) { return Constant(like.emitter(), like.type(), value); }
XlaOp Full(XlaEmitter& e, ElementType type, Dims dims, Scalar value) {
  return BroadcastInDim(Constant(e, type, value), dims, {});
}
XlaOp FullLike(XlaOp like, Scalar value) { return Full(like.emitter(), like.type(), like.dims(), value); }
XlaOp IotaOf(XlaEmitter& e, ElementType type, Dims dims, int64_t dim) {
  return e.Take(e.builder().Iota(e.ArrayShape(type, dims), dim));
}

// ---- elementwise ----

XlaOp Unary(Opcode opcode, XlaOp x) {
  if (!x.ok()) return x;
  return x.emitter().Take(x.emitter().builder().Unary(opcode, x.id()));
}

namespace {

// Returns torch's words for sizes that cannot be broadcast to each other.
std::string SizesDiffer(Dims a, Dims b) {
  const size_t rank = std::max(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {  // from the right
    const int64_t x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
    if (x == y || x == 1 || y == 1) continue;
    return StrCat("The size of tensor a (", x, ") must match the size of tensor b (", y,
                  ") at non-singleton dimension ", rank - 1 - i);
  }
  return "";
}

// Broadcasts both to the same dimensions.
bool Align(XlaOp* a, XlaOp* b) {
  if (!a->ok() || !b->ok()) {
    if (a->ok()) *a = *b;
    return false;
  }
  if (a->shape().dims() == b->shape().dims()) return true;
  const DimVector da = a->dims(), db = b->dims();
  std::optional<DimVector> dims = BroadcastDims(da, db);
  if (!dims) {
    *a = a->emitter().Fail(absl::InvalidArgumentError(SizesDiffer(da, db)));
    return false;
  }
  *a = BroadcastTo(*a, *dims);
  *b = BroadcastTo(*b, *dims);
  return a->ok() && b->ok();
}

}  // namespace

XlaOp Binary(Opcode opcode, XlaOp a, XlaOp b) {
  if (!Align(&a, &b)) return a;
  if (RejectsType(opcode, a.type())) return a.emitter().Fail(TypeError(ToString(opcode), a.type()));
  return a.emitter().Take(a.emitter().builder().Binary(opcode, a.id(), b.id()));
}

XlaOp Compare(ComparisonDirection direction, XlaOp a, XlaOp b) {
  if (!Align(&a, &b)) return a;
  if (IsComplex(a.type()) && direction != ComparisonDirection::kEq && direction != ComparisonDirection::kNe) {
    return a.emitter().Fail(TypeError("comparison", a.type()));
  }
  return a.emitter().Take(a.emitter().builder().Compare(a.id(), b.id(), direction));
}

XlaOp Select(XlaOp pred, XlaOp a, XlaOp b) {
  if (!Align(&a, &b)) return a;
  if (!Align(&a, &pred) || !Align(&b, &pred)) return a.ok() ? pred : a;
  return a.emitter().Take(a.emitter().builder().Select(pred.id(), a.id(), b.id()));
}

XlaOp Cast(XlaOp x, ElementType type) {
  if (!x.ok() || x.type() == type) return x;
  if (type == ElementType::kPred) return Ne(x, Number(x, 0));
  return x.emitter().Take(x.emitter().builder().Convert(x.id(), type));
}

// ---- data movement ----

XlaOp BroadcastInDim(XlaOp x, Dims sizes, Dims out_dims) {
  if (!x.ok()) return x;
  if (x.shape().dims() == sizes) return x;
  return x.emitter().Take(x.emitter().builder().Broadcast(x.id(), sizes, out_dims));
}

std::optional<DimVector> BroadcastDims(Dims a, Dims b) {
  DimVector out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // from the right
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

XlaOp BroadcastTo(XlaOp x, Dims sizes) {
  if (!x.ok() || x.shape().dims() == sizes) return x;
  const DimVector dims = x.dims();
  if (dims.size() > sizes.size()) return x.emitter().Fail("cannot be broadcast to fewer dimensions");
  const size_t offset = sizes.size() - dims.size();
  DimVector kept, out_dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != sizes[offset + i] && dims[i] != 1) {
      return x.emitter().Fail(absl::InvalidArgumentError(
          StrCat("sizes ", DimsToString(dims), " cannot be broadcast to ", DimsToString(sizes))));
    }
    if (dims[i] == sizes[offset + i]) {
      kept.push_back(dims[i]);
      out_dims.push_back(static_cast<int64_t>(offset + i));
    }
  }
  return BroadcastInDim(Reshape(x, kept), sizes, out_dims);
}

XlaOp Reshape(XlaOp x, Dims sizes) {
  if (!x.ok() || x.shape().dims() == sizes) return x;
  return x.emitter().Take(x.emitter().builder().Reshape(x.id(), sizes));
}

XlaOp Transpose(XlaOp x, Dims permutation) {
  if (!x.ok() || std::is_sorted(permutation.begin(), permutation.end())) return x;
  return x.emitter().Take(x.emitter().builder().Transpose(x.id(), permutation));
}

XlaOp Slice(XlaOp x, Dims starts, Dims limits, Dims strides) {
  if (!x.ok()) return x;
  return x.emitter().Take(x.emitter().builder().Slice(x.id(), starts, limits, strides));
}

XlaOp SliceDim(XlaOp x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  if (!x.ok() || dim < 0 || dim >= x.rank()) return x;
  DimVector starts(x.rank(), 0), limits = x.dims(), strides(x.rank(), 1);
  starts[dim] = start;
  limits[dim] = limit;
  strides[dim] = stride;
  return Slice(x, starts, limits, strides);
}

XlaOp Concatenate(absl::Span<const XlaOp> parts, int64_t dim) {
  std::vector<InstructionId> ids;
  for (const XlaOp& part : parts) {
    if (!part.ok()) return part;
    ids.push_back(part.id());
  }
  return parts[0].emitter().Take(parts[0].emitter().builder().Concatenate(ids, dim));
}

XlaOp Pad(XlaOp x, XlaOp value, Dims low, Dims high, Dims interior) {
  if (!x.ok() || !value.ok()) return x.ok() ? value : x;
  return x.emitter().Take(x.emitter().builder().Pad(x.id(), value.id(), low, high, interior));
}

XlaOp Reverse(XlaOp x, Dims dims) {
  if (!x.ok() || dims.empty()) return x;
  return x.emitter().Take(x.emitter().builder().Reverse(x.id(), dims));
}

// ---- reductions, contractions, indexing ----

Scalar IdentityElement(Opcode opcode, ElementType type) {
  if (opcode == Opcode::kMaximum) return SmallestOf(type);
  if (opcode == Opcode::kMinimum) return LargestOf(type);
  if (OpcodeSet{Opcode::kMultiply, Opcode::kAnd}.Contains(opcode)) return 1;
  return 0;
}

XlaOp Reduce(Opcode opcode, XlaOp x, Dims dims, bool keepdim) {
  if (!x.ok()) return x;
  XlaEmitter& e = x.emitter();
  const XlaOp init = Number(x, IdentityElement(opcode, x.type()));
  XlaOp reduced = e.Take(e.builder().Reduce({x.id()}, {init.id()}, dims, e.Reducer(opcode, x.type())));
  if (!keepdim) return reduced;
  DimVector kept = x.dims();
  for (int64_t d : dims) kept[d] = 1;
  return Reshape(reduced, kept);
}

XlaOp BroadcastReduced(XlaOp reduced, XlaOp like, Dims dims) {
  if (!reduced.ok()) return reduced;
  DimVector out_dims;
  for (int64_t i = 0; i < like.rank(); ++i) {
    if (!absl::c_linear_search(dims, i)) out_dims.push_back(i);
  }
  return BroadcastInDim(reduced, like.dims(), out_dims);
}

AttrValue WindowAttr(Builder& b, const Window& w) {
  DimVector encoded;
  for (size_t i = 0; i < w.size.size(); ++i) {
    const auto at = [i](const DimVector& v, int64_t absent) { return v.empty() ? absent : v[i]; };
    encoded.insert(encoded.end(), {w.size[i], at(w.stride, 1), at(w.low, 0), at(w.high, 0), at(w.base_dilation, 1),
                                   at(w.window_dilation, 1), 0});
  }
  return b.List(Attr::kWindow, encoded);
}

XlaOp ReduceWindow(Opcode opcode, XlaOp x, XlaOp init, const Window& window) {
  if (!x.ok()) return x;
  XlaEmitter& e = x.emitter();
  const ComputationId reducer = e.Reducer(opcode, x.type());
  return e.Take(e.builder().Add(Opcode::kReduceWindow, {x.id(), init.id()},
                                {WindowAttr(e.builder(), window), Builder::Calls(Attr::kToApply, reducer)}));
}

XlaOp Dot(XlaOp a, XlaOp b, const Builder::DotNumbers& numbers) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  return a.emitter().Take(a.emitter().builder().Dot(a.id(), b.id(), numbers));
}

XlaOp Element(XlaOp tuple, int64_t index) {
  if (!tuple.ok()) return tuple;
  return tuple.emitter().Take(tuple.emitter().builder().GetTupleElement(tuple.id(), index));
}

std::vector<XlaOp> Sort(absl::Span<const XlaOp> arrays, int64_t dim, ComparisonDirection direction) {
  XlaEmitter& e = arrays[0].emitter();
  std::vector<InstructionId> ids;
  std::vector<ElementType> extra;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].ok()) return std::vector<XlaOp>(arrays.size(), arrays[i]);
    ids.push_back(arrays[i].id());
    if (i != 0) extra.push_back(arrays[i].type());
  }
  const ComputationId comparator = e.Comparator(direction, arrays[0].type(), extra);
  const XlaOp sorted = e.Take(e.builder().Sort(ids, dim, comparator, /*is_stable=*/true));
  if (arrays.size() == 1) return {sorted};
  std::vector<XlaOp> parts;
  for (size_t i = 0; i < arrays.size(); ++i) parts.push_back(Element(sorted, static_cast<int64_t>(i)));
  return parts;
}

namespace {

// Gathers from a dimension of size 0, which is valid if no index is used.
XlaOp GatherOfNothing(XlaOp x, XlaOp indices, const GatherNumbers& n) {
  DimVector batch = indices.dims(), window, dims;
  if (n.index_vector_dim < indices.rank()) batch.erase(batch.begin() + n.index_vector_dim);
  for (size_t d = 0; d < n.slice_sizes.size(); ++d) {
    const auto& collapsed = n.collapsed_slice_dims;
    if (std::find(collapsed.begin(), collapsed.end(), static_cast<int64_t>(d)) == collapsed.end()) {
      window.push_back(n.slice_sizes[d]);
    }
  }
  size_t next_batch = 0, next_window = 0;
  for (size_t d = 0; d < batch.size() + window.size(); ++d) {
    const bool of_window =
        std::find(n.offset_dims.begin(), n.offset_dims.end(), static_cast<int64_t>(d)) != n.offset_dims.end();
    dims.push_back(of_window ? window[next_window++] : batch[next_batch++]);
  }
  if (std::find(dims.begin(), dims.end(), 0) == dims.end()) {
    return x.emitter().Fail("an index is out of range: the dimension has no elements");
  }
  return Full(x.emitter(), x.type(), dims, 0);
}

}  // namespace

XlaOp Gather(XlaOp x, XlaOp indices, const GatherNumbers& n) {
  if (!x.ok() || !indices.ok()) return x.ok() ? indices : x;
  XlaEmitter& e = x.emitter();
  for (size_t d = 0; d < n.slice_sizes.size(); ++d) {
    if (n.slice_sizes[d] > x.size(static_cast<int64_t>(d))) return GatherOfNothing(x, indices, n);
  }
  Builder& b = e.builder();
  return e.Take(
      b.Add(Opcode::kGather, {x.id(), indices.id()},
            {b.List(Attr::kOffsetDims, n.offset_dims), b.List(Attr::kCollapsedSliceDims, n.collapsed_slice_dims),
             b.List(Attr::kStartIndexMap, n.start_index_map), b.Int(Attr::kIndexVectorDim, n.index_vector_dim),
             b.List(Attr::kSliceSizes, n.slice_sizes)}));
}

GatherNumbers GatherAlongDim(XlaOp x, int64_t dim) {
  GatherNumbers g;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != dim) g.offset_dims.push_back(d);
  }
  g.collapsed_slice_dims = {dim};
  g.start_index_map = {dim};
  g.slice_sizes = x.dims();
  if (x.rank() != 0) g.slice_sizes[dim] = 1;
  g.index_vector_dim = 1;
  return g;
}

XlaOp Scatter(XlaOp x, XlaOp indices, XlaOp updates, const ScatterNumbers& n, std::optional<Opcode> opcode) {
  if (!x.ok() || !indices.ok() || !updates.ok()) return !x.ok() ? x : !indices.ok() ? indices : updates;
  if (updates.elements() == 0) return x;
  XlaEmitter& e = x.emitter();
  Builder& b = e.builder();
  ComputationId combiner;
  if (opcode) {
    combiner = e.Reducer(*opcode, x.type());
  } else {
    combiner = e.module().AddComputation(e.module().UniqueComputationName("ReplaceComputation"));
    Builder body(&e.module(), combiner);
    const Builder::Result old = body.Parameter(0, e.ScalarShape(x.type()), "x");
    const Builder::Result fresh = body.Parameter(1, e.ScalarShape(x.type()), "y");
    if (!old.ok() || !fresh.ok()) return e.Fail("cannot build a computation");
    body.SetRoot(*fresh);
  }
  return e.Take(b.Add(
      Opcode::kScatter, {x.id(), indices.id(), updates.id()},
      {b.List(Attr::kUpdateWindowDims, n.update_window_dims), b.List(Attr::kInsertedWindowDims, n.inserted_window_dims),
       b.List(Attr::kScatterDimsToOperandDims, n.scatter_dims_to_operand_dims),
       b.Int(Attr::kIndexVectorDim, n.index_vector_dim), Builder::Calls(Attr::kToApply, combiner)}));
}

}  // namespace hlokit::lazy
