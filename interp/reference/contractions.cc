// SPDX-License-Identifier: Apache-2.0
// Contractions: the variants of dot, and convolution.
//
// Operands are converted to the result's type and then to the accumulation type: f32, or f64, c64 and c128 for those;
// integers wrap. Products are added in ascending order, with each product and each sum rounded: up to 128 in one run,
// more in runs of 64 whose sums are then added. The sum of no products is 0.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "interp/reference/ops.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/sparsity_config.h"

namespace hlokit::reference {
namespace {

// Calls body(A()) with the accumulation type of this result type.
template <typename Body>
void VisitSumType(ElementType result, Body body) {
  if (result == ElementType::kC64) return body(C64());
  if (result == ElementType::kC128) return body(C128());
  if (result == ElementType::kF64) return body(double());
  if (IsFloat(result)) return body(float());
  body(uint64_t());
}

template <typename A>
std::vector<A> NumbersOf(Run& run, const Leaf& operand, ElementType result) {
  std::vector<A> numbers;
  const Leaf converted = Converted(run, operand, result);
  for (int64_t i = 0; converted != nullptr && i < converted->count() && run.Tick(); ++i) {
    if constexpr (std::is_integral_v<A>) {
      numbers.push_back(static_cast<A>(converted->Integer(i)));
    } else if constexpr (std::is_floating_point_v<A>) {
      numbers.push_back(static_cast<A>(converted->Real(i)));
    } else {
      numbers.push_back(A(converted->Complex(i)));
    }
  }
  return numbers;
}

template <typename A>
void SetSum(Array* array, int64_t i, A sum) {
  if constexpr (std::is_integral_v<A>) {
    array->SetInteger(i, static_cast<int64_t>(sum));
  } else if constexpr (std::is_floating_point_v<A>) {
    array->SetReal(i, sum);
  } else {
    array->SetComplex(i, C128(sum));
  }
}

// Returns the sum of `count` products; product(k, &a, &b) sets the factors, or returns false to skip one.
template <typename A, typename Factors>
A SumOfProducts(Run& run, int64_t count, Factors factors) {
  const int64_t length = count <= 128 ? 128 : 64;
  A sum = 0;
  for (int64_t begin = 0; begin < count && run.Tick(); begin += length) {
    A part = 0;
    for (int64_t k = begin; k < std::min(begin + length, count); ++k) {
      A a, b;
      if (factors(k, &a, &b)) part += a * b;
    }
    sum += part;
  }
  return sum;
}

std::vector<int64_t> Others(int64_t rank, std::initializer_list<Dims> taken) {
  std::vector<int64_t> others;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::none_of(taken.begin(), taken.end(), [&](Dims dims) { return Contains(dims, d); })) others.push_back(d);
  }
  return others;
}

std::shared_ptr<Array> NewArray(const Op& op, ElementType type, Dims dims) {
  return op.run.Allocate(op.run.program.module->context().shapes.Array(type, dims));
}

// The products summed for a result element: indices [begin, end) of the contraction, with the right operand offset by
// `rhs`.
struct Terms {
  int64_t rhs = 0;
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<uint8_t> present;  // by index from `begin`: whether it counts; empty: all do
};

// Contracts two arrays. Result dimensions: `sums`, batch, free dimensions of the left operand, then those of the right
// operand except `group_dims`; terms(s, m) returns the Terms of sum s and item m of the left operand's batch and free
// dimensions.
template <typename TermsOf>
void Contract(const Op& op, const Leaf& lhs, const Leaf& rhs, const DotDims& dims, Dims group_dims, int64_t sums,
              TermsOf terms_of) {
  Array& out = op.out();
  std::vector<int64_t> outer(dims.lhs_batch.begin(), dims.lhs_batch.end());
  for (int64_t d : Others(lhs->rank(), {dims.lhs_batch, dims.lhs_contracting})) outer.push_back(d);
  const std::vector<int64_t> lhs_begins = GroupPositions(lhs->dims(), outer);
  const std::vector<int64_t> rhs_batch = GroupPositions(rhs->dims(), dims.rhs_batch);
  const std::vector<int64_t> rhs_free =
      GroupPositions(rhs->dims(), Others(rhs->rank(), {dims.rhs_batch, dims.rhs_contracting, group_dims}));
  const std::vector<int64_t> lhs_steps = GroupPositions(lhs->dims(), dims.lhs_contracting);
  const std::vector<int64_t> rhs_steps = GroupPositions(rhs->dims(), dims.rhs_contracting);
  if (!op.Require(lhs_steps.size() == rhs_steps.size() &&
                      static_cast<int64_t>(lhs_begins.size() * rhs_free.size()) * sums == out.count() &&
                      lhs_begins.size() % rhs_batch.size() == 0,
                  "types and sizes of the operands do not fit the result")) {
    return;
  }
  const size_t in_batch = lhs_begins.size() / rhs_batch.size();
  VisitSumType(out.type(), [&]<typename A>(A) {
    const std::vector<A> left = NumbersOf<A>(op.run, lhs, out.type()), right = NumbersOf<A>(op.run, rhs, out.type());
    int64_t to = 0;
    for (int64_t s = 0; s < sums; ++s) {
      for (size_t m = 0; m < lhs_begins.size() && op.run.Tick(); ++m) {
        const Terms terms = terms_of(s, static_cast<int64_t>(m));
        for (int64_t n : rhs_free) {
          const int64_t rhs_begin = rhs_batch[m / in_batch] + terms.rhs + n;
          SetSum(&out, to++, SumOfProducts<A>(op.run, terms.end - terms.begin, [&](int64_t k, A* x, A* y) {
            if (!terms.present.empty() && terms.present[static_cast<size_t>(k)] == 0) return false;
            *x = left[static_cast<size_t>(lhs_begins[m] + lhs_steps[static_cast<size_t>(terms.begin + k)])];
            *y = right[static_cast<size_t>(rhs_begin + rhs_steps[static_cast<size_t>(terms.begin + k)])];
            return true;
          }));
        }
      }
    }
  });
}

void DotOf(const Op& op, const Leaf& lhs, const Leaf& rhs, const DotDims& dims) {
  int64_t count = 1;
  for (int64_t d : dims.lhs_contracting) count *= lhs->dim(d);
  if (op.out().count() != 0)
    Contract(op, lhs, rhs, dims, {}, 1, [&](int64_t, int64_t) { return Terms{0, 0, count, {}}; });
}

// Returns true for operand_precision={packed_nibble,packed_nibble}: each element is two 4-bit integers. Reports an
// error if only one operand is packed, or types or opcode do not allow it.
bool HasNibbles(const Op& op) {
  const Dims precision = op.instruction.list_attr(Attr::kOperandPrecision);
  const auto packed = std::count(precision.begin(), precision.end(), static_cast<int64_t>(Precision::kPackedNibble));
  if (packed == 0) return false;
  const Opcode opcode = op.instruction.opcode();
  bool fits = packed == 2 && (opcode == Opcode::kDot || opcode == Opcode::kConvolution);
  for (size_t k = 0; fits && k < 2; ++k) {
    fits = op.in(k).type() == ElementType::kS8 || op.in(k).type() == ElementType::kU8;
  }
  return op.Require(fits, "packed nibbles are those of s8 or u8, of both sides of a dot or convolution");
}

// Returns the array with dimension `dim` doubled: the low nibble of an element, then the high one.
Leaf Unpacked(const Op& op, const Array& packed, int64_t dim) {
  Index dims(packed.dims().begin(), packed.dims().end());
  dims[static_cast<size_t>(dim)] *= 2;
  const std::shared_ptr<Array> nibbles = NewArray(op, packed.type(), dims);
  if (nibbles == nullptr) return nullptr;
  int64_t to = 0;
  op.ForEachIndex(dims, [&](Index index) {
    const bool high = index[static_cast<size_t>(dim)] % 2 != 0;
    index[static_cast<size_t>(dim)] /= 2;
    const int64_t byte = packed.Integer(PositionOf(index, packed.dims()));
    const int64_t low = IsSigned(packed.type()) ? static_cast<int8_t>(byte << 4) >> 4 : byte & 15;
    nibbles->SetInteger(to++, high ? byte >> 4 : low);
  });
  return nibbles;
}

// Returns a structured-sparse array made dense: elements at their positions in each block, zeros elsewhere. The later
// of two elements at one position wins.
Leaf Densified(const Op& op, const Array& values, const Array& places, const TensorSparsityConfig& side) {
  const size_t dim = static_cast<size_t>(side.dimension);
  Index dims(values.dims().begin(), values.dims().end());
  int64_t lane_elements = 0;
  const bool fits = IsInteger(places.type()) && places.dims() == values.dims() && dim < dims.size() &&
                    !__builtin_mul_overflow(side.num_non_zero, side.stride, &lane_elements) &&
                    dims[dim] % lane_elements == 0 &&
                    !__builtin_mul_overflow(dims[dim] / side.num_non_zero, side.block_size, &dims[dim]);
  if (!op.Require(fits, "elements and places do not fit sparsity_config")) return nullptr;
  const std::shared_ptr<Array> dense = NewArray(op, values.type(), dims);
  if (dense == nullptr) return nullptr;
  int64_t from = 0;
  op.ForEachIndex(values.dims(), [&](Index index) {
    const int64_t place = IndexAt(places, from);
    if (!op.Require(place >= 0 && place < side.block_size, "a place of a sparse operand is beyond its block")) return;
    // `stride` blocks are interleaved, before and after.
    const int64_t lane = index[dim] % side.stride, block_row = index[dim] / lane_elements;
    index[dim] = block_row * side.stride * side.block_size + lane + place * side.stride;
    dense->CopyElement(PositionOf(index, dims), values, from++);
  });
  return dense;
}

// Returns the kernel of a convolution, made dense if it is sparse; null after an error.
Leaf KernelOf(const Op& op) {
  const absl::StatusOr<SparsityConfig> config =
      SparsityConfig::Parse(op.instruction.string_attr(Attr::kSparsityConfig));
  if (!config.ok()) {
    op.Fail(std::string(config.status().message()));
    return nullptr;
  }
  if (!config->lhs && !config->rhs) {
    const bool two = op.operands.size() == 2 && op.operands[1].size() == 1;
    return op.Require(two, "convolution without sparsity_config has two operands, arrays") ? op.operands[1][0]
                                                                                           : nullptr;
  }
  const bool pair = op.operands.size() == 2 && op.operands[1].size() == 2;
  const bool separate = op.operands.size() == 3 && op.operands[1].size() == 1;
  if (!op.Require(!config->lhs && (pair || separate), "XLA defines values for a sparse kernel with its places only") ||
      !op.Require(config->rhs->dimension == ConvolutionDims::Of(op.instruction).kernel_input_feature,
                  "a kernel can be sparse along its input features only")) {
    return nullptr;
  }
  return Densified(op, op.in(1), pair ? *op.operands[1][1] : op.in(2), *config->rhs);
}

// Groups of the elements of a ragged dot's ragged dimension.
class RaggedGroups {
 public:
  // Reads group sizes from position `first` of operand 2. Group ends are accumulated in the type of the sizes.
  RaggedGroups(const Array& sizes, int64_t first, int64_t groups, int64_t length) : length_(length) {
    const int unused = 64 - BitsOf(sizes.type());
    uint64_t sum = 0;
    for (int64_t g = 0; g < groups; ++g) {
      sum += static_cast<uint64_t>(IndexAt(sizes, first + g));
      const uint64_t low = sum << unused;
      ends_.push_back(IsSigned(sizes.type()) ? static_cast<int64_t>(low) >> unused
                                             : static_cast<int64_t>(std::min<uint64_t>(low >> unused, INT64_MAX)));
    }
  }
  bool Has(int64_t group, int64_t i) const {
    const int64_t begin = group == 0 ? 0 : ends_[static_cast<size_t>(group) - 1];
    return i >= begin && i < std::min(ends_[static_cast<size_t>(group)], length_);
  }
  // Returns the first group of element i, or -1.
  int64_t GroupOfElement(int64_t i) const {
    for (size_t g = 0; g < ends_.size(); ++g) {
      if (Has(static_cast<int64_t>(g), i)) return static_cast<int64_t>(g);
    }
    return -1;
  }
  int64_t total() const { return ends_.empty() ? 0 : std::clamp<int64_t>(ends_.back(), 0, length_); }

 private:
  std::vector<int64_t> ends_;
  const int64_t length_;
};

// Returns the index of item `i` of the dimensions `group`, the last of which varies fastest.
Index GroupIndex(Dims dims, Dims group, int64_t i) {
  Index index(group.size());
  for (size_t d = group.size(); d-- > 0;) {
    const int64_t size = dims[static_cast<size_t>(group[d])];
    index[d] = i % size;
    i /= size;
  }
  return index;
}

}  // namespace

namespace fill_ops {

// `dot`. Packed nibbles are contracted together, along the last contracting dimension or an added one.
void Dot(Op& op) {
  if (!op.Require(op.operands.size() == 2, "dot has two operands; of more, HLO defines no meaning")) return;
  const DotDims dims = DotDims::Of(op.instruction);
  const bool nibbles = HasNibbles(op);
  if (op.run.failed()) return;
  if (!nibbles) return DotOf(op, op.operands[0][0], op.operands[1][0], dims);
  Leaf sides[2];
  std::vector<int64_t> contracting[2];
  for (size_t k = 0; k < 2; ++k) {
    const Dims of = k == 0 ? dims.lhs_contracting : dims.rhs_contracting;
    contracting[k].assign(of.begin(), of.end());
    sides[k] = op.operands[k][0];
    if (contracting[k].empty()) {
      contracting[k].push_back(sides[k]->rank());
      Index longer(sides[k]->dims().begin(), sides[k]->dims().end());
      longer.push_back(1);
      const std::shared_ptr<Array> reshaped = NewArray(op, sides[k]->type(), longer);
      if (reshaped == nullptr) return;
      reshaped->CopyBytes(*sides[k]);
      sides[k] = reshaped;
    }
    sides[k] = Unpacked(op, *sides[k], contracting[k].back());
    if (sides[k] == nullptr) return;
  }
  DotOf(op, sides[0], sides[1], {dims.lhs_batch, contracting[0], dims.rhs_batch, contracting[1]});
}

// `scaled-dot`: operands times scales, in f32 or f64. A scale has the rank of its operand and in each dimension a
// divisor of its size: one number for a block of elements.
void ScaledDot(Op& op) {
  if (HasNibbles(op) || op.run.failed()) return;
  const ElementType type = op.out().type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
  Leaf sides[2];
  for (size_t k = 0; k < 2; ++k) {
    const Leaf values = Converted(op.run, op.operands[k][0], type),
               scale = Converted(op.run, op.operands[k + 2][0], type);
    const std::shared_ptr<Array> product = NewArray(op, type, op.in(k).dims());
    if (values == nullptr || scale == nullptr || product == nullptr) return;
    for (int64_t d = 0; d < scale->rank(); ++d) {
      const bool divides = scale->rank() == values->rank() && scale->dim(d) != 0 && values->dim(d) % scale->dim(d) == 0;
      if (!op.Require(divides, "a scale does not divide its operand")) return;
    }
    int64_t i = 0;
    op.ForEachIndex(values->dims(), [&](Index index) {
      for (int64_t d = 0; d < scale->rank(); ++d) index[static_cast<size_t>(d)] /= values->dim(d) / scale->dim(d);
      const double factor = scale->Real(scale->rank() == 0 ? 0 : PositionOf(index, scale->dims()));
      product->SetReal(i, values->Real(i) * factor);
      ++i;
    });
    sides[k] = product;
  }
  DotOf(op, sides[0], sides[1], DotDims::Of(op.instruction));
}

// `ragged-dot`: operand 2 divides one dimension of the left operand into groups. If it is a free dimension, each of its
// elements is multiplied with the right operand of its group. If it is contracted, there is a sum for each group, with
// that dimension first in the contraction. If it is a batch dimension, the groups limit its extent. Elements outside of
// all groups are zero.
void RaggedDot(Op& op) {
  if (HasNibbles(op) || op.run.failed()) return;
  const DotDims dims = DotDims::Of(op.instruction);
  const Array &lhs = op.in(0), &rhs = op.in(1), &sizes = op.in(2);
  const Dims ragged_dims = op.instruction.list_attr(Attr::kLhsRaggedDims);
  const Dims group_dims = op.instruction.list_attr(Attr::kRhsGroupDims);
  if (!op.Require(ragged_dims.size() == 1 && sizes.rank() >= 1 && IsInteger(sizes.type()),
                  "dimension numbers do not fit the operands") ||
      op.out().count() == 0) {
    return;
  }
  const int64_t ragged = ragged_dims[0], length = lhs.dim(ragged), groups = sizes.dim(sizes.rank() - 1);
  const bool is_batch = Contains(dims.lhs_batch, ragged), is_contracting = Contains(dims.lhs_contracting, ragged);
  // The dimensions of operand 2 before the group dimension.
  const std::vector<int64_t> free_dims = Others(lhs.rank(), {dims.lhs_batch, dims.lhs_contracting});
  std::vector<int64_t> prefix;
  for (int64_t d : dims.lhs_batch) {
    if (is_batch && d == ragged) break;
    prefix.push_back(d);
  }
  for (int64_t d : free_dims) {
    if (!is_batch && !is_contracting && d < ragged) prefix.push_back(d);
  }
  const size_t contracted = prefix.size();  // from here on
  for (int64_t d : dims.lhs_contracting) {
    if (!is_contracting || d == ragged) break;
    prefix.push_back(d);
  }
  if (!op.Require(sizes.rank() == 1 || sizes.rank() == static_cast<int64_t>(prefix.size()) + 1,
                  "the group sizes do not fit the operands")) {
    return;
  }
  const bool by_term = sizes.rank() != 1 && contracted < prefix.size();
  // The ragged dimension is contracted first.
  std::vector<int64_t> lhs_sum, rhs_sum;
  int64_t count = 1;
  for (bool first : {true, false}) {
    for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
      if ((dims.lhs_contracting[i] == ragged) != first) continue;
      lhs_sum.push_back(dims.lhs_contracting[i]);
      rhs_sum.push_back(dims.rhs_contracting[i]);
      count *= lhs.dim(dims.lhs_contracting[i]);
    }
  }
  // The groups for an index of the left operand's batch and free dimensions.
  std::vector<int64_t> outer(dims.lhs_batch.begin(), dims.lhs_batch.end());
  outer.insert(outer.end(), free_dims.begin(), free_dims.end());
  // `term`: the index in the dimensions `lhs_sum`, if the groups depend on it.
  const auto groups_at = [&](const Index& index, const Index& term) {
    int64_t first = 0;
    for (size_t p = 0; sizes.rank() != 1 && p < prefix.size(); ++p) {
      const std::vector<int64_t>& of = p < contracted ? outer : lhs_sum;
      const size_t at = static_cast<size_t>(std::find(of.begin(), of.end(), prefix[p]) - of.begin());
      first = first * lhs.dim(prefix[p]) + (p < contracted ? index : term)[at];
    }
    return RaggedGroups(sizes, first * groups, groups, length);
  };
  const std::vector<int64_t> rhs_groups = GroupPositions(rhs.dims(), group_dims);
  const size_t ragged_at = static_cast<size_t>(std::find(outer.begin(), outer.end(), ragged) - outer.begin());
  const auto terms_of = [&](int64_t sum, int64_t m) {
    const Index index = GroupIndex(lhs.dims(), outer, m);
    if (by_term) {
      Terms terms{0, 0, count, {}};
      for (int64_t k = 0; k < count && op.run.Tick(); ++k) {
        const Index term = GroupIndex(lhs.dims(), lhs_sum, k);
        terms.present.push_back(groups_at(index, term).Has(sum, term[0]) ? 1 : 0);
      }
      terms.end = static_cast<int64_t>(terms.present.size());
      return terms;
    }
    const RaggedGroups cut = groups_at(index, {});
    if (is_contracting) {
      int64_t begin = 0;
      while (begin < length && !cut.Has(sum, begin)) ++begin;
      int64_t end = begin;
      while (end < length && cut.Has(sum, end)) ++end;
      return length == 0 ? Terms() : Terms{0, begin * (count / length), end * (count / length), {}};
    }
    if (is_batch) return index[ragged_at] < cut.total() ? Terms{0, 0, count, {}} : Terms();
    const int64_t group = cut.GroupOfElement(index[ragged_at]);
    return group < 0 || group >= static_cast<int64_t>(rhs_groups.size())
               ? Terms()
               : Terms{rhs_groups[static_cast<size_t>(group)], 0, count, {}};
  };
  Contract(op, op.operands[0][0], op.operands[1][0], {dims.lhs_batch, lhs_sum, dims.rhs_batch, rhs_sum}, group_dims,
           is_contracting ? groups : 1, terms_of);
}

// `convolution`: sums over the positions of the kernel in row-major order and, innermost, the input features of a
// group; positions in padding or between dilated elements count in the order but add nothing. Integers of 8 to 32 bits
// are summed in 64 bits and saturate.
void Convolution(Op& op) {
  const ConvolutionDims dims = ConvolutionDims::Of(op.instruction);
  const WindowView window = WindowView::Of(op.instruction);
  const bool nibbles = HasNibbles(op);
  Leaf input = op.operands[0][0], kernel = op.run.failed() ? nullptr : KernelOf(op);
  if (kernel == nullptr || !op.Require(dims.ok() && dims.IsPermutation() && dims.rank() == op.shape.rank() &&
                                           input->rank() == dims.rank() && kernel->rank() == dims.rank() &&
                                           window.ok() && (window.rank() == dims.spatial_rank() || window.rank() == 0),
                                       "dimension labels and window do not fit the operands")) {
    return;
  }
  if (nibbles) {
    input = Unpacked(op, *input, dims.input_feature);
    kernel = Unpacked(op, *kernel, dims.kernel_input_feature);
    if (input == nullptr || kernel == nullptr) return;
  }
  const int64_t feature_groups = op.instruction.int_attr(Attr::kFeatureGroupCount, 1);
  const int64_t batch_groups = op.instruction.int_attr(Attr::kBatchGroupCount, 1);
  const int64_t images = input->dim(dims.input_batch), output_features = kernel->dim(dims.kernel_output_feature);
  const int64_t features = kernel->dim(dims.kernel_input_feature);  // of a group
  if (!op.Require(feature_groups >= 1 && batch_groups >= 1 && (feature_groups == 1 || batch_groups == 1) &&
                      output_features % (feature_groups * batch_groups) == 0 && images % batch_groups == 0 &&
                      input->dim(dims.input_feature) == features * feature_groups,
                  "group counts do not fit the operands")) {
    return;
  }
  Index sizes;  // of the kernel
  for (int64_t d : dims.kernel_spatial) sizes.push_back(kernel->dim(d));
  const int64_t products = ElementCount(sizes) * features;
  const ElementType type = op.out().type();
  const bool saturates = IsInteger(type) && BitsOf(type) >= 8 && BitsOf(type) < 64;
  if (op.out().count() == 0) return;
  VisitSumType(type, [&]<typename A>(A) {
    const std::vector<A> left = NumbersOf<A>(op.run, input, type), right = NumbersOf<A>(op.run, kernel, type);
    int64_t to = 0;
    op.ForEachIndex(op.shape.dims(), [&](const Index& position) {
      const int64_t feature = position[static_cast<size_t>(dims.output_feature)];
      const int64_t group = feature / (output_features / (feature_groups * batch_groups));
      Index from(position.size()), weight(position.size());
      from[static_cast<size_t>(dims.input_batch)] =
          position[static_cast<size_t>(dims.output_batch)] + (batch_groups > 1 ? group * (images / batch_groups) : 0);
      weight[static_cast<size_t>(dims.kernel_output_feature)] = feature;
      Index place(sizes.size(), 0);
      bool inside = false;
      const A sum = SumOfProducts<A>(op.run, products, [&](int64_t k, A* x, A* y) {
        const int64_t f = k % features;
        if (f == 0) {
          if (k != 0) NextIndex(sizes, &place);
          inside = true;
          for (size_t d = 0; d < sizes.size(); ++d) {
            const WindowDim w = window.rank() == 0 ? WindowDim() : window[static_cast<int64_t>(d)];
            const int64_t element = ElementUnder(w, input->dim(dims.input_spatial[d]),
                                                 position[static_cast<size_t>(dims.output_spatial[d])], place[d]);
            inside = inside && element >= 0;
            from[static_cast<size_t>(dims.input_spatial[d])] = element;
            weight[static_cast<size_t>(dims.kernel_spatial[d])] = w.reversal ? sizes[d] - 1 - place[d] : place[d];
          }
        }
        if (!inside) return false;
        from[static_cast<size_t>(dims.input_feature)] = f + (feature_groups > 1 ? group * features : 0);
        weight[static_cast<size_t>(dims.kernel_input_feature)] = f;
        *x = left[static_cast<size_t>(PositionOf(from, input->dims()))];
        *y = right[static_cast<size_t>(PositionOf(weight, kernel->dims()))];
        return true;
      });
      if constexpr (std::is_integral_v<A>) {
        const int64_t max = static_cast<int64_t>((uint64_t{1} << (BitsOf(type) - (IsSigned(type) ? 1 : 0)) % 64) - 1);
        const int64_t clamped = IsSigned(type)
                                    ? std::clamp<int64_t>(static_cast<int64_t>(sum), -max - 1, max)
                                    : static_cast<int64_t>(std::min<uint64_t>(sum, static_cast<uint64_t>(max)));
        return op.out().SetInteger(to++, saturates ? clamped : static_cast<int64_t>(sum));
      }
      SetSum(&op.out(), to++, sum);
    });
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference
