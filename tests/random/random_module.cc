#include "tests/random/random_module.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "interp/reference/element_op.h"
#include "ir/attribute_views.h"
#include "ir/context.h"
#include "ir/module.h"
#include "ir/shape_inference.h"
#include "tests/random/text_builder.h"

namespace hlokit::random_test {
namespace {

using enum ElementType;

const std::vector<ElementType> kTypes = {kPred, kS4,  kS8,   kS16, kS32, kS64,    kU4,       kU8,  kU16, kU32,
                                         kU64,  kF16, kBF16, kF32, kF64, kF8E5M2, kF8E4M3FN, kC64, kC128};
const std::vector<ElementType> kReals = {kF16, kBF16, kF32, kF64};
const std::vector<ElementType> kNumbers = {kS8, kS32, kS64, kU8, kU32, kF16, kBF16, kF32, kF64};
const std::vector<ElementType> kIndices = {kS8, kS32, kS64, kU8, kU16, kU32, kU64};

class Generator {
 public:
  explicit Generator(const RandomModuleOptions& options) : options_(options), random_(options.seed) {
    context_ = std::make_shared<Context>();
    scratch_ = std::make_unique<Module>(context_);
  }

  std::string Make() {
    Region entry;
    region_ = &entry;
    if (options_.first) Emit(*options_.first);
    for (int i = 0; i < options_.instructions; ++i) Emit(static_cast<Opcode>(random_.In(0, kOpcodeCount - 1)));
    std::string parameters;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      StrAppend(&parameters, "  ", parameters_[i].name, " = ", Text(parameters_[i].array), " parameter(", i, ")\n");
    }
    // The last values are the result; some of the others are dead.
    std::vector<std::string> results, shapes;
    for (size_t i = entry.values.size(); i-- > 0 && results.size() < 6;) {
      results.push_back(entry.values[i].name);
      shapes.push_back(Text(entry.values[i].array));
    }
    return StrCat("HloModule random_", options_.seed, "\n\n", computations_, "ENTRY e {\n", parameters, entry.lines,
                  "  ROOT results = (", Join(shapes), ") tuple(", Join(results), ")\n}\n");
  }

 private:
  // ---- text ----

  static std::string Join(const std::vector<std::string>& list) {
    std::string text;
    for (size_t i = 0; i < list.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", list[i]);
    return text;
  }
  std::string NewName(std::string_view base) { return StrCat(base, ".", ++names_); }

  // A line whose result is no array that others use; its name.
  std::string Line(std::string_view shape, std::string_view opcode, const std::vector<std::string>& operands,
                   std::string_view attributes = "") {
    const std::string name = NewName("v");
    StrAppend(&region_->lines, "  ", name, " = ", shape, " ", opcode, "(", Join(operands), ")",
              attributes.empty() ? "" : ", ", attributes, "\n");
    return name;
  }
  Value Add(const Array& result, std::string_view opcode, const std::vector<std::string>& operands,
            std::string_view attributes = "") {
    Value value{Line(Text(result), opcode, operands, attributes), result};
    region_->values.push_back(value);
    return value;
  }
  void TakeElement(const std::string& tuple, int64_t index, const Array& array) {
    Add(array, "get-tuple-element", {tuple}, StrCat("index=", index));
  }
  // (a, b, ...) of arrays: its elements become values.
  void AddTuple(const std::vector<Array>& results, std::string_view opcode, const std::vector<std::string>& operands,
                std::string_view attributes) {
    const std::string tuple = Line(TupleText(results), opcode, operands, attributes);
    for (size_t i = 0; i < results.size(); ++i) TakeElement(tuple, static_cast<int64_t>(i), results[i]);
  }
  static std::string TupleText(const std::vector<Array>& arrays) {
    std::vector<std::string> shapes;
    for (const Array& a : arrays) shapes.push_back(Text(a));
    return StrCat("(", Join(shapes), ")");
  }

  // ---- values ----

  Dims RandomDims(int64_t min_rank = 0, int64_t max_rank = 3) {
    Dims dims(static_cast<size_t>(random_.In(min_rank, max_rank)));
    for (int64_t& d : dims) d = random_.OneIn(12) ? 0 : random_.In(1, 4);
    return dims;
  }
  Dims FullDims(int64_t min_rank, int64_t max_rank) {
    Dims dims(static_cast<size_t>(random_.In(min_rank, max_rank)));
    for (int64_t& d : dims) d = random_.In(1, 4);
    return dims;
  }

  std::string Constant(ElementType type) {
    std::string literal = std::to_string(random_.In(0, 3));
    if (type == kPred) literal = random_.OneIn(2) ? "true" : "false";
    if (IsComplex(type)) literal = StrCat("(", literal, ", 1)");
    if (IsSigned(type) && IsInteger(type) && random_.OneIn(2)) literal = StrCat("-", literal);
    return Line(StrCat(TextOf(type), "[]"), "constant", {literal});
  }

  // An array of this shape: one that is there, a parameter, or one made for it.
  std::string Need(const Array& array) {
    std::vector<std::string> there;
    for (const Value& v : region_->values) {
      if (v.array == array) there.push_back(v.name);
    }
    if (!there.empty() && !random_.OneIn(4)) return random_.Of(there);
    // Another one of these dimensions, converted.
    for (const Value& v : region_->values) {
      if (v.array.dims == array.dims && v.array.type != array.type && random_.OneIn(4) &&
          (!IsComplex(v.array.type) || IsComplex(array.type))) {
        return Add(array, "convert", {v.name}).name;
      }
    }
    if (nesting_ == 0 && parameters_.size() < 12 && !random_.OneIn(3)) {
      const Value parameter{NewName("p"), array};
      parameters_.push_back(parameter);
      region_->values.push_back(parameter);
      return parameter.name;
    }
    if (!array.dims.empty() && random_.OneIn(2) && !IsComplex(array.type) && array.type != kPred) {
      return Add(array, "iota", {},
                 StrCat("iota_dimension=", random_.In(0, static_cast<int64_t>(array.dims.size()) - 1)))
          .name;
    }
    const std::string scalar = Constant(array.type);
    return array.dims.empty() ? scalar : Add(array, "broadcast", {scalar}, "dimensions={}").name;
  }
  std::string Scalar(ElementType type) { return Need({type, {}}); }

  // ---- computations ----

  // (type, type) -> type.
  std::string Function(ElementType type) {
    static const std::vector<std::string_view> kOfNumbers = {"add", "multiply", "maximum", "minimum", "subtract"};
    static const std::vector<std::string_view> kOfComplex = {"add", "multiply", "subtract"};
    static const std::vector<std::string_view> kOfPred = {"and", "or", "xor"};
    const std::string_view opcode = random_.Of(type == kPred ? kOfPred : IsComplex(type) ? kOfComplex : kOfNumbers);
    const std::string name = NewName("function");
    const std::string t = StrCat(TextOf(type), "[]");
    StrAppend(&computations_, name, " {\n  a = ", t, " parameter(0)\n  b = ", t, " parameter(1)\n  ROOT r = ", t, " ",
              opcode, "(a, b)\n}\n\n");
    return name;
  }
  std::string Comparison(const std::vector<ElementType>& types) {
    const std::string name = NewName("less");
    StrAppend(&computations_, name, " {\n");
    for (size_t i = 0; i < types.size(); ++i) {
      for (int side = 0; side < 2; ++side) {
        StrAppend(&computations_, "  p", 2 * i + side, " = ", TextOf(types[i]), "[] parameter(", 2 * i + side, ")\n");
      }
    }
    StrAppend(&computations_, "  ROOT r = pred[] compare(p0, p1), direction=", random_.OneIn(2) ? "LT" : "GT",
              IsFloat(types[0]) && random_.OneIn(2) ? ", type=TOTALORDER" : "", "\n}\n\n");
    return name;
  }

  // Fills a computation with parameters of these arrays and a root of `result`, in between random instructions.
  std::string Body(const std::vector<Array>& parameters, const Array& result) {
    Region region;
    Region* const outer = std::exchange(region_, &region);
    ++nesting_;
    std::vector<std::string> lines;
    const std::string name = NewName("body");
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value v{NewName("p"), parameters[i]};
      StrAppend(&region.lines, "  ", v.name, " = ", Text(v.array), " parameter(", i, ")\n");
      region.values.push_back(v);
    }
    for (int64_t i = random_.In(0, 3); i > 0; --i) Emit(static_cast<Opcode>(random_.In(0, kOpcodeCount - 1)));
    const std::string operand = Need(result);
    StrAppend(&region.lines, "  ROOT ", NewName("r"), " = ", Text(result), " copy(", operand, ")\n");
    StrAppend(&computations_, name, " {\n", region.lines, "}\n\n");
    --nesting_;
    region_ = outer;
    return name;
  }

  // ---- whether an opcode takes these types ----

  bool Accepts(Opcode opcode, const std::vector<ElementType>& types, ElementType result) {
    std::vector<Shape> shapes;
    for (ElementType t : types) shapes.push_back(context_->shapes.Array(t, {}));
    const InferenceRequest request = {scratch_.get(), opcode, shapes, {}, context_->shapes.Array(result, {})};
    if (!CheckShape(request, /*mixed_precision=*/false).ok()) return false;
    // Shape inference lets some pass that mean nothing, such as shifts of floats.
    std::string error;
    return opcode == Opcode::kReducePrecision ||
           interp::ElementOp::Make(opcode, AttrReader(*scratch_, {}), types, result, &error).has_value();
  }
  // A type that `count` operands and the result may have; null if there is none.
  std::optional<ElementType> TypeFor(Opcode opcode, size_t count) {
    std::vector<ElementType> types;
    for (ElementType t : kTypes) {
      if (Accepts(opcode, std::vector<ElementType>(count, t), t)) types.push_back(t);
    }
    if (types.empty()) return std::nullopt;
    return random_.Of(types);
  }

  void Emit(Opcode opcode);
  bool EmitMovement(Opcode opcode);
  bool EmitCombination(Opcode opcode);
  bool EmitLinearAlgebra(Opcode opcode);
  bool EmitControl(Opcode opcode);
  bool EmitDevices(Opcode opcode);
  bool EmitElementwise(Opcode opcode);

  const RandomModuleOptions options_;
  Random random_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Module> scratch_;
  std::string computations_;
  std::vector<Value> parameters_;  // of the entry
  Region* region_ = nullptr;
  int nesting_ = 0;
  int names_ = 0;
  bool draws_ = false;  // there is an instruction that takes the next random number
};

bool Generator::EmitElementwise(Opcode opcode) {
  const std::string_view text = TextOf(opcode);
  const Dims dims = RandomDims();
  const auto operands = [&](ElementType type, int n) {
    std::vector<std::string> names;
    for (int i = 0; i < n; ++i) names.push_back(Need({type, dims}));
    return names;
  };
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kUnary:
    case ShapeRule::kBinary: {
      const int n = InfoOf(opcode).min_operands;
      const bool reduces = opcode == Opcode::kReducePrecision;
      const std::optional<ElementType> type = reduces ? random_.Of(kReals) : TypeFor(opcode, static_cast<size_t>(n));
      if (!type) {
        // The result has another type: abs of a complex number.
        Add({kF32, dims}, text, operands(kC64, n));
        return true;
      }
      const bool real_result = opcode == Opcode::kAbs && IsComplex(*type);
      Add({real_result ? ComponentType(*type) : *type, dims}, text, operands(*type, n),
          reduces ? StrCat("exponent_bits=", random_.In(1, 8), ", mantissa_bits=", random_.In(0, 10)) : "");
      return true;
    }
    case ShapeRule::kCompare: {
      const ElementType type = random_.Of(kTypes);
      const bool ordered = !IsComplex(type);
      static const std::vector<std::string_view> kAny = {"EQ", "NE"};
      static const std::vector<std::string_view> kOrdered = {"EQ", "NE", "LT", "LE", "GT", "GE"};
      Add({kPred, dims}, text, operands(type, 2),
          StrCat("direction=", random_.Of(ordered ? kOrdered : kAny),
                 IsFloat(type) && random_.OneIn(3) ? ", type=TOTALORDER" : ""));
      return true;
    }
    case ShapeRule::kComplex: {
      const ElementType part = random_.OneIn(2) ? kF32 : kF64;
      Add({part == kF32 ? kC64 : kC128, dims}, text, operands(part, 2));
      return true;
    }
    case ShapeRule::kRealImag:
      Add({kF32, dims}, text, operands(kC64, 1));
      return true;
    case ShapeRule::kIsFinite:
      Add({kPred, dims}, text, operands(random_.Of(kReals), 1));
      return true;
    case ShapeRule::kConvert: {
      const ElementType from = random_.Of(kTypes);
      ElementType to = random_.Of(kTypes);
      if (IsComplex(from) && !IsComplex(to)) to = kC128;
      Add({to, dims}, text, operands(from, 1));
      return true;
    }
    case ShapeRule::kBitcastConvert: {
      static const std::vector<std::pair<ElementType, ElementType>> kPairs = {
          {kF32, kS32}, {kU64, kF64}, {kBF16, kU16}, {kS8, kU8}, {kF16, kBF16}};
      const auto [from, to] = random_.Of(kPairs);
      Add({to, dims}, text, operands(from, 1));
      // Another width: the last dimension goes or comes.
      Dims wide = dims;
      wide.push_back(4);
      Add({kU8, wide}, text, {Need({kS32, dims})});
      return true;
    }
    case ShapeRule::kStochasticConvert:
      Add({random_.OneIn(2) ? kS8 : kS32, dims}, text, {Need({kF32, dims}), Need({kU32, dims})});
      return true;
    case ShapeRule::kClamp: {
      const ElementType type = random_.Of(kNumbers);
      const Array bound{type, random_.OneIn(2) ? dims : Dims()};
      Add({type, dims}, text, {Need(bound), Need({type, dims}), Need(bound)});
      return true;
    }
    case ShapeRule::kSelect: {
      const ElementType type = random_.Of(kTypes);
      Add({type, dims}, text,
          {Need({kPred, random_.OneIn(2) ? dims : Dims()}), Need({type, dims}), Need({type, dims})});
      return true;
    }
    default:
      return false;
  }
}

bool Generator::EmitMovement(Opcode opcode) {
  const std::string_view text = TextOf(opcode);
  const ElementType type = random_.Of(kTypes);
  const auto ascending = [&](size_t of) {
    Dims list;
    for (size_t i = 0; i < of; ++i) {
      if (random_.OneIn(2)) list.push_back(static_cast<int64_t>(i));
    }
    return list;
  };
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kBroadcast: {
      const Dims to = RandomDims(0, 4);
      const Dims kept = ascending(to.size());
      Dims from;
      for (int64_t d : kept) from.push_back(to[static_cast<size_t>(d)]);
      Add({type, to}, text, {Need({type, from})}, StrCat("dimensions={", List(kept), "}"));
      return true;
    }
    case ShapeRule::kReshape: {
      const Dims from = RandomDims(0, 3);
      Dims to = from;
      std::reverse(to.begin(), to.end());
      if (random_.OneIn(2)) to = {std::accumulate(from.begin(), from.end(), int64_t{1}, std::multiplies<>())};
      if (random_.OneIn(3)) to.insert(to.begin(), 1);
      Add({type, to}, text, {Need({type, from})});
      return true;
    }
    case ShapeRule::kTranspose: {
      const Dims from = RandomDims(0, 4);
      Dims order(from.size()), to;
      std::iota(order.begin(), order.end(), 0);
      for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<size_t>(random_.In(0, static_cast<int64_t>(i) - 1))]);
      }
      for (int64_t d : order) to.push_back(from[static_cast<size_t>(d)]);
      Add({type, to}, text, {Need({type, from})}, StrCat("dimensions={", List(order), "}"));
      return true;
    }
    case ShapeRule::kReverse: {
      const Dims dims = RandomDims();
      Add({type, dims}, text, {Need({type, dims})}, StrCat("dimensions={", List(ascending(dims.size())), "}"));
      return true;
    }
    case ShapeRule::kSlice: {
      const Dims from = RandomDims();
      Dims to;
      std::vector<std::string> ranges;
      for (int64_t d : from) {
        const int64_t start = random_.In(0, d);
        const int64_t limit = random_.In(start, d);
        const int64_t stride = random_.In(1, 2);
        ranges.push_back(StrCat("[", start, ":", limit, stride == 1 ? "" : StrCat(":", stride), "]"));
        to.push_back((limit - start + stride - 1) / stride);
      }
      Add({type, to}, text, {Need({type, from})}, StrCat("slice={", Join(ranges), "}"));
      return true;
    }
    case ShapeRule::kDynamicSlice:
    case ShapeRule::kDynamicUpdateSlice: {
      const Dims from = RandomDims(1, 3);
      Dims part;
      for (int64_t d : from) part.push_back(random_.In(0, d));
      const bool updates = opcode == Opcode::kDynamicUpdateSlice;
      std::vector<std::string> operands = {Need({type, from})};
      if (updates) operands.push_back(Need({type, part}));
      const ElementType index = random_.Of(kIndices);
      for (size_t i = 0; i < from.size(); ++i) operands.push_back(Scalar(index));
      if (updates) {
        Add({type, from}, text, operands);
      } else {
        Add({type, part}, text, operands, StrCat("dynamic_slice_sizes={", List(part), "}"));
      }
      return true;
    }
    case ShapeRule::kConcatenate: {
      Dims dims = RandomDims(1, 3);
      const int64_t along = random_.In(0, static_cast<int64_t>(dims.size()) - 1);
      int64_t total = 0;
      std::vector<std::string> operands;
      for (int64_t n = random_.In(1, 3); n > 0; --n) {
        dims[static_cast<size_t>(along)] = random_.In(0, 3);
        total += dims[static_cast<size_t>(along)];
        operands.push_back(Need({type, dims}));
      }
      dims[static_cast<size_t>(along)] = total;
      Add({type, dims}, text, operands, StrCat("dimensions={", along, "}"));
      return true;
    }
    case ShapeRule::kPad: {
      const Dims from = RandomDims(1, 3);
      Dims to;
      std::string padding;
      for (size_t i = 0; i < from.size(); ++i) {
        const int64_t interior = random_.In(0, 2);
        const int64_t inner = from[i] == 0 ? 0 : from[i] + (from[i] - 1) * interior;
        const int64_t low = random_.In(-std::min<int64_t>(inner, 1), 2);
        const int64_t high = random_.In(std::max<int64_t>(-1, -inner - low), 2);
        to.push_back(inner + low + high);
        StrAppend(&padding, i == 0 ? "" : "x", low, "_", high, "_", interior);
      }
      if (std::any_of(to.begin(), to.end(), [](int64_t d) { return d < 0; })) return true;
      Add({type, to}, text, {Need({type, from}), Scalar(type)}, StrCat("padding=", padding));
      return true;
    }
    case ShapeRule::kFirstOperand: {
      const Array array{type, RandomDims()};
      std::vector<std::string> operands = {Need(array)};
      if (opcode == Opcode::kAddDependency) operands.push_back(Line("token[]", "after-all", {}));
      Add(array, text, operands);
      return true;
    }
    default:
      return false;
  }
}

bool Generator::EmitCombination(Opcode opcode) {
  const std::string_view text = TextOf(opcode);
  const ElementType type = random_.Of(kNumbers);
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kReduce: {
      const Dims from = RandomDims(0, 3);
      Dims reduced, to;
      for (size_t i = 0; i < from.size(); ++i) {
        if (random_.OneIn(2)) {
          reduced.push_back(static_cast<int64_t>(i));
        } else {
          to.push_back(from[i]);
        }
      }
      Add({type, to}, text, {Need({type, from}), Scalar(type)},
          StrCat("dimensions={", List(reduced), "}, to_apply=", Function(type)));
      return true;
    }
    case ShapeRule::kReduceWindow: {
      const Dims from = FullDims(1, 3);
      Dims to;
      std::string sizes, strides, pads, dilations;
      for (size_t i = 0; i < from.size(); ++i) {
        const int64_t size = random_.In(1, 3);
        const int64_t stride = random_.In(1, 2);
        const int64_t low = random_.In(0, 2);
        const int64_t high = random_.In(0, 2);
        const int64_t base = random_.In(1, 2);
        const int64_t padded = (from[i] - 1) * base + 1 + low + high;
        to.push_back(padded < size ? 0 : (padded - size) / stride + 1);
        const char* x = i == 0 ? "" : "x";
        StrAppend(&sizes, x, size);
        StrAppend(&strides, x, stride);
        StrAppend(&pads, x, low, "_", high);
        StrAppend(&dilations, x, base);
      }
      Add({type, to}, text, {Need({type, from}), Scalar(type)},
          StrCat("window={size=", sizes, " stride=", strides, " pad=", pads, " lhs_dilate=", dilations,
                 "}, to_apply=", Function(type)));
      return true;
    }
    case ShapeRule::kSelectAndScatter: {
      const int64_t n = random_.In(2, 5);
      const int64_t size = random_.In(1, 2);
      const Array operand{type, {n}};
      const std::string select = NewName("ge");
      const std::string t = StrCat(TextOf(type), "[]");
      StrAppend(&computations_, select, " {\n  a = ", t, " parameter(0)\n  b = ", t,
                " parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}\n\n");
      Add(operand, text, {Need(operand), Need({type, {(n - size) / 2 + 1}}), Scalar(type)},
          StrCat("window={size=", size, " stride=2}, select=", select, ", scatter=", Function(type)));
      return true;
    }
    case ShapeRule::kMap: {
      const Dims dims = RandomDims();
      Dims all(dims.size());
      std::iota(all.begin(), all.end(), 0);
      Add({type, dims}, text, {Need({type, dims}), Need({type, dims})},
          StrCat("dimensions={", List(all), "}, to_apply=", Function(type)));
      return true;
    }
    case ShapeRule::kScan: {
      const Dims from = FullDims(1, 2);
      const int64_t along = random_.In(0, static_cast<int64_t>(from.size()) - 1);
      Dims carry = from;
      carry.erase(carry.begin() + along);
      // (carry, element) -> (output, carry)
      const Array state{type, carry};
      const std::string name = NewName("step");
      StrAppend(&computations_, name, " {\n  a = ", Text(state), " parameter(0)\n  b = ", Text(state),
                " parameter(1)\n  c = ", Text(state), " add(a, b)\n  ROOT r = (", Text(state), ", ", Text(state),
                ") tuple(c, c)\n}\n\n");
      AddTuple({{type, from}, state}, text, {Need({type, from}), Need(state)},
               StrCat("dimensions={", along, "}, num_carries=1, to_apply=", name));
      return true;
    }
    case ShapeRule::kSort: {
      const Dims dims = RandomDims(1, 3);
      const int64_t along = random_.In(0, static_cast<int64_t>(dims.size()) - 1);
      std::vector<ElementType> types = {type};
      if (random_.OneIn(2)) types.push_back(random_.Of(kTypes));
      std::vector<std::string> operands;
      std::vector<Array> arrays;
      for (ElementType t : types) {
        arrays.push_back({t, dims});
        operands.push_back(Need(arrays.back()));
      }
      const std::string attributes = StrCat("dimensions={", along, "}, is_stable=true, to_apply=", Comparison(types));
      if (types.size() == 1) {
        Add(arrays[0], text, operands, attributes);
      } else {
        AddTuple(arrays, text, operands, attributes);
      }
      return true;
    }
    case ShapeRule::kTopK: {
      const Dims from = FullDims(1, 2);
      Dims to = from;
      to.back() = random_.In(1, from.back());
      AddTuple({{type, to}, {kS32, to}}, text, {Need({type, from})},
               StrCat("k=", to.back(), ", largest=", random_.OneIn(2) ? "true" : "false"));
      return true;
    }
    case ShapeRule::kGather: {
      const int64_t rows = random_.In(1, 4), columns = random_.In(1, 4), n = random_.In(0, 4);
      Add({type, {n, columns}}, text, {Need({type, {rows, columns}}), Need({random_.Of(kIndices), {n, 1}})},
          StrCat("offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,",
                 columns, "}"));
      return true;
    }
    case ShapeRule::kScatter: {
      const int64_t rows = random_.In(1, 4), columns = random_.In(1, 4), n = random_.In(0, 4);
      const Array array{type, {rows, columns}};
      Add(array, text, {Need(array), Need({random_.Of(kIndices), {n, 1}}), Need({type, {n, columns}})},
          StrCat("update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                 "index_vector_dim=1, to_apply=",
                 Function(type)));
      return true;
    }
    default:
      return false;
  }
}

bool Generator::EmitLinearAlgebra(Opcode opcode) {
  const std::string_view text = TextOf(opcode);
  const ElementType real = random_.Of(kReals);
  const int64_t m = random_.In(1, 4), k = random_.In(1, 4), n = random_.In(1, 4), b = random_.In(1, 3);
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kDot: {
      const ElementType type = random_.Of(kNumbers);
      Add({type, {b, m, n}}, text, {Need({type, {b, m, k}}), Need({type, {n, k, b}})},
          "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={1}");
      return true;
    }
    case ShapeRule::kRaggedDot:
      Add({real, {m, n}}, text, {Need({real, {m, k}}), Need({real, {b, k, n}}), Need({kS32, {b}})},
          "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}");
      return true;
    case ShapeRule::kScaledDot:
      Add({kF32, {m, n}}, text,
          {Need({kF8E4M3FN, {m, 2 * k}}), Need({kF8E4M3FN, {n, 2 * k}}), Need({kF32, {m, k}}), Need({kF32, {n, k}})},
          "lhs_contracting_dims={1}, rhs_contracting_dims={1}");
      return true;
    case ShapeRule::kConvolution: {
      const ElementType type = random_.Of(kNumbers);
      const int64_t size = random_.In(1, 3), stride = random_.In(1, 2), low = random_.In(0, 1);
      const int64_t padded = m + 2 + low;
      Add({type, {b, (padded - size) / stride + 1, n}}, text, {Need({type, {b, m + 2, k}}), Need({type, {size, k, n}})},
          StrCat("window={size=", size, " stride=", stride, " pad=", low, "_0",
                 random_.OneIn(2) ? " rhs_reversal=1" : "", "}, dim_labels=b0f_0io->b0f"));
      return true;
    }
    case ShapeRule::kFft:
      Add({kC64, {b, m}}, text, {Need({kC64, {b, m}})},
          StrCat("fft_type=", random_.OneIn(2) ? "FFT" : "IFFT", ", fft_length={", m, "}"));
      return true;
    case ShapeRule::kCholesky: {
      const Array array{random_.OneIn(4) ? kC64 : real, {b, m, m}};
      Add(array, text, {Need(array)}, "lower=true");
      return true;
    }
    case ShapeRule::kTriangularSolve: {
      const Array right{real, {b, m, n}};
      Add(right, text, {Need({real, {b, m, m}}), Need(right)},
          "left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE");
      return true;
    }
    case ShapeRule::kBatchNormTraining:
      AddTuple({{kF32, {b, n}}, {kF32, {n}}, {kF32, {n}}}, text,
               {Need({kF32, {b, n}}), Need({kF32, {n}}), Need({kF32, {n}})}, "epsilon=0.01, feature_index=1");
      return true;
    case ShapeRule::kBatchNormInference:
      Add({kF32, {b, n}}, text,
          {Need({kF32, {b, n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {n}})},
          "epsilon=0.01, feature_index=1");
      return true;
    case ShapeRule::kBatchNormGrad:
      AddTuple({{kF32, {b, n}}, {kF32, {n}}, {kF32, {n}}}, text,
               {Need({kF32, {b, n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {b, n}})},
               "epsilon=0.01, feature_index=1");
      return true;
    case ShapeRule::kRng:
      // Of several draws, which comes first is a matter of the order in which the text is written.
      if (std::exchange(draws_, true)) return true;
      Add({kF32, {m, n}}, text, {Scalar(kF32), Scalar(kF32)}, "distribution=rng_uniform");
      return true;
    case ShapeRule::kRngBitGenerator:
      AddTuple({{kU64, {2}}, {kU32, {m, n}}}, text, {Need({kU64, {2}})},
               StrCat("algorithm=", random_.OneIn(2) ? "rng_three_fry" : "rng_philox"));
      return true;
    case ShapeRule::kRngGetAndUpdateState:
      if (std::exchange(draws_, true)) return true;
      Add({kU64, {2}}, text, {}, StrCat("delta=", m));
      return true;
    default:
      return false;
  }
}

bool Generator::EmitControl(Opcode opcode) {
  const std::string_view text = TextOf(opcode);
  const Array array{random_.Of(kNumbers), RandomDims(0, 2)};
  const bool deep = nesting_ >= options_.max_nesting;
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kTuple: {
      const std::string tuple = Line(TupleText({array, array}), "tuple", {Need(array), Need(array)});
      TakeElement(tuple, random_.In(0, 1), array);
      return true;
    }
    case ShapeRule::kGetTupleElement: {
      const std::string inner = Line(TupleText({array}), "tuple", {Need(array)});
      const std::string tuple =
          Line(StrCat("(", TupleText({array}), ", ())"), "tuple", {inner, Line("()", "tuple", {})});
      TakeElement(Line(TupleText({array}), "get-tuple-element", {tuple}, "index=0"), 0, array);
      return true;
    }
    case ShapeRule::kToken:
    case ShapeRule::kInfeed:
    case ShapeRule::kSend:
    case ShapeRule::kRecv:
    case ShapeRule::kRecvDone: {
      const std::string token = Line("token[]", "after-all", {});
      if (opcode == Opcode::kInfeed) {
        const std::string fed = Line(StrCat("((", Text(array), "), token[])"), "infeed", {token});
        TakeElement(Line(TupleText({array}), "get-tuple-element", {fed}, "index=0"), 0, array);
      } else if (opcode == Opcode::kOutfeed) {
        Line("token[]", "outfeed", {Need(array), token}, StrCat("outfeed_shape=", Text(array)));
      } else if (opcode != Opcode::kAfterAll) {
        const std::string channel = StrCat("channel_id=", ++names_);
        const std::string shape = StrCat("(", Text(array), ", u32[], token[])");
        const std::string sent = Line(shape, "send", {Need(array), token}, channel);
        const std::string received = Line(shape, "recv", {token}, channel);
        Line("token[]", "send-done", {sent}, channel);
        TakeElement(Line(StrCat("(", Text(array), ", token[])"), "recv-done", {received}, channel), 0, array);
      }
      return true;
    }
    case ShapeRule::kCall: {
      if (deep) return true;
      const Array result{random_.Of(kNumbers), RandomDims(0, 2)};
      const std::string operand = Need(array);
      Add(result, text, {operand}, StrCat("to_apply=", Body({array}, result)));
      return true;
    }
    case ShapeRule::kWhile: {
      if (deep) return true;
      const std::string init = Need(array);
      const std::string body = Body({array}, array);
      const std::string state = StrCat("(s32[], ", Text(array), ")");
      const std::string condition = NewName("condition");
      StrAppend(&computations_, condition, " {\n  s = ", state,
                " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(", random_.In(0, 3),
                ")\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n\n");
      const std::string loop = NewName("loop");
      StrAppend(
          &computations_, loop, " {\n  s = ", state,
          " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  one = s32[] constant(1)\n  j = s32[] add(i, "
          "one)\n  x = ",
          Text(array), " get-tuple-element(s), index=1\n  y = ", Text(array), " call(x), to_apply=", body,
          "\n  ROOT r = ", state, " tuple(j, y)\n}\n\n");
      const std::string zero = Line("s32[]", "constant", {"0"});
      const std::string begin = Line(state, "tuple", {zero, init});
      TakeElement(Line(state, text, {begin}, StrCat("condition=", condition, ", body=", loop)), 1, array);
      return true;
    }
    case ShapeRule::kConditional: {
      if (deep) return true;
      const Array result{random_.Of(kNumbers), RandomDims(0, 2)};
      const std::string a = Need(array);
      const std::string x = Body({array}, result);
      const std::string y = Body({array}, result);
      if (random_.OneIn(2)) {
        Add(result, text, {Scalar(kPred), a, a}, StrCat("true_computation=", x, ", false_computation=", y));
      } else {
        Add(result, text, {Scalar(kS32), a, a}, StrCat("branch_computations={", x, ", ", y, "}"));
      }
      return true;
    }
    case ShapeRule::kAsyncStart:
    case ShapeRule::kAsyncUpdate:
    case ShapeRule::kAsyncDone: {
      const std::string name = NewName("wrapped");
      StrAppend(&computations_, name, " {\n  p = ", Text(array), " parameter(0)\n  ROOT r = ", Text(array),
                " negate(p)\n}\n\n");
      const std::string shape = StrCat("((", Text(array), "), ", Text(array), ", s32[])");
      const std::string start = Line(shape, "async-start", {Need(array)}, StrCat("calls=", name));
      const std::string update = Line(shape, "async-update", {start});
      Add(array, "async-done", {update});
      return true;
    }
    case ShapeRule::kCopyStart:
    case ShapeRule::kCopyDone:
      Add(array, "copy-done",
          {Line(StrCat("(", Text(array), ", ", Text(array), ", u32[])"), "copy-start", {Need(array)})});
      return true;
    case ShapeRule::kSetDimensionSize:
    case ShapeRule::kGetDimensionSize: {
      const int64_t bound = random_.In(1, 4);
      const std::string from = Need({array.type, {bound}});
      const std::string size = Line("s32[]", "constant", {StrCat(random_.In(0, bound))});
      const std::string set =
          Line(StrCat(TextOf(array.type), "[<=", bound, "]"), "set-dimension-size", {from, size}, "dimensions={0}");
      Add({kS32, {}}, "get-dimension-size", {set}, "dimensions={0}");
      return true;
    }
    default:
      return false;
  }
}

bool Generator::EmitDevices(Opcode opcode) {
  const Array array{random_.Of(kNumbers), FullDims(1, 2)};
  const std::string text = Text(array);
  const std::string groups = "replica_groups={{0}}";
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kReplicaId:
      Add({kU32, {}}, TextOf(opcode), {});
      return true;
    case ShapeRule::kAllGather:
      Add(array, "all-gather", {Need(array)}, StrCat(groups, ", dimensions={0}"));
      return true;
    case ShapeRule::kAllReduce:
      if (opcode == Opcode::kAllReduce) {
        Add(array, "all-reduce", {Need(array)}, StrCat(groups, ", to_apply=", Function(array.type)));
        return true;
      }
      Add(array, "all-reduce-done",
          {Line(text, "all-reduce-start", {Need(array)}, StrCat(groups, ", to_apply=", Function(array.type)))});
      return true;
    case ShapeRule::kAllGatherStart:
      Add(array, "all-gather-done",
          {Line(StrCat("(", text, ", ", text, ")"), "all-gather-start", {Need(array)},
                StrCat(groups, ", dimensions={0}"))});
      return true;
    case ShapeRule::kAllToAll:
      Add(array, "all-to-all", {Need(array)}, StrCat(groups, ", dimensions={0}"));
      return true;
    case ShapeRule::kReduceScatter:
      Add(array, "reduce-scatter", {Need(array)}, StrCat(groups, ", dimensions={0}, to_apply=", Function(array.type)));
      return true;
    case ShapeRule::kCollectiveBroadcast:
      Add(array, "collective-broadcast", {Need(array)}, groups);
      return true;
    case ShapeRule::kCollectivePermute:
      Add(array, "collective-permute", {Need(array)}, "source_target_pairs={{0,0}}");
      return true;
    case ShapeRule::kCollectivePermuteStart:
      Add(array, "collective-permute-done",
          {Line(StrCat("(", text, ", ", text, ")"), "collective-permute-start", {Need(array)},
                "source_target_pairs={{0,0}}")});
      return true;
    case ShapeRule::kRaggedAllToAll: {
      const auto one = [&](int64_t v) { return Line("s32[1]", "constant", {StrCat("{", v, "}")}); };
      const std::vector<std::string> operands = {Need(array), Need(array), one(0), one(1), one(0), one(1)};
      Add(array, "ragged-all-to-all", operands, groups);
      return true;
    }
    case ShapeRule::kDone: {
      const Opcode start = opcode == Opcode::kAllReduceDone   ? Opcode::kAllReduceStart
                           : opcode == Opcode::kAllGatherDone ? Opcode::kAllGatherStart
                                                              : Opcode::kCollectivePermuteStart;
      return EmitDevices(start);
    }
    default:
      return false;
  }
}

void Generator::Emit(Opcode opcode) {
  if (opcode == Opcode::kDomain) {
    const Array array{random_.Of(kTypes), RandomDims()};
    Add(array, "domain", {Need(array)},
        "domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=0}}");
    return;
  }
  if (EmitElementwise(opcode) || EmitMovement(opcode) || EmitCombination(opcode) || EmitLinearAlgebra(opcode) ||
      EmitControl(opcode) || EmitDevices(opcode)) {
    return;
  }
  // No rule to infer shapes with.
  const Array array{random_.Of(kNumbers), RandomDims()};
  if (opcode == Opcode::kConstant) {
    Constant(random_.Of(kTypes));
  } else if (opcode == Opcode::kIota && !array.dims.empty()) {
    Add(array, "iota", {}, "iota_dimension=0");
  } else if (opcode == Opcode::kFusion) {
    const std::string name = NewName("fused");
    StrAppend(&computations_, name, " {\n  p = ", Text(array), " parameter(0)\n  ROOT r = ", Text(array),
              " maximum(p, p)\n}\n\n");
    Add(array, "fusion", {Need(array)}, StrCat("kind=kLoop, calls=", name));
  } else if (opcode == Opcode::kBitcast) {
    Add(array, "bitcast", {Need(array)});
  } else if (opcode == Opcode::kCustomCall) {
    Add(array, "custom-call", {Need(array)}, "custom_call_target=\"Sharding\", sharding={replicated}");
  } else if (opcode == Opcode::kDynamicReshape) {
    const int64_t n = random_.In(1, 4);
    const std::string size = Line("s32[]", "constant", {std::to_string(n)});
    const std::string reshaped =
        Line(StrCat(TextOf(array.type), "[<=", n, "]"), "dynamic-reshape", {Need({array.type, {n}}), size});
    Add({kS32, {}}, "get-dimension-size", {reshaped}, "dimensions={0}");
  } else {
    Need(array);  // parameters
  }
}

}  // namespace

std::string RandomModule(const RandomModuleOptions& options) { return Generator(options).Make(); }

}  // namespace hlokit::random_test
