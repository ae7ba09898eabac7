// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/record/ir_builder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/string_split.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/device_state.h"
#include "tracer/text/ir_values.h"

namespace hlokit::lazy {
namespace {

// Tags that are not attributes of the op.
bool IsGraphTag(std::string_view name) {
  static constexpr std::string_view kNames[] = {"num_outputs", "scope",    "location",    "xla_shape",
                                                "ROOT",        "device",   "parameter",   "donated",
                                                "absent",      "NodeType", "dynamic_dims"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool IsOperand(Op op, const ArgSpec& spec) {
  return spec.type == ArgType::kTensor || (spec.type == ArgType::kScalar && (InfoOf(op).flags & kScalarAttrs) == 0);
}

// An operand of a line: its tensor, and its number if the text or the data have it.
struct Operand {
  Tensor tensor;
  std::optional<Scalar> number;
};

class GraphBuilder {
 public:
  GraphBuilder(const TextDump& dump, const TextGraph& graph, Tracer* tracer, const ParameterSource& parameters,
               DiagnosticSink* sink)
      : text_(dump.source->text()),
        graph_(graph),
        tracer_(*tracer),
        device_(CurrentDevice() != nullptr ? *CurrentDevice() : *tracer->device()),
        parameters_(parameters),
        sink_(*sink) {}

  bool Build(Tensors* roots) {
    const NoGradGuard no_grad;
    const std::vector<int64_t> numbers = graph_.Parameters();
    results_.resize(graph_.nodes.size());
    numbers_.resize(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!BuildNode(i, numbers[i])) return false;
    }
    return FindRoots(roots);
  }

 private:
  bool Fail(const TextNode& node, std::string_view at, std::string message, std::string hint = "") {
    const bool inside = at.data() >= text_.data() && at.data() + at.size() <= text_.data() + text_.size();
    const SourceRange range =
        inside ? SourceRange{static_cast<uint32_t>(at.data() - text_.data()), static_cast<uint32_t>(at.size())}
               : SourceRange{node.line_offset, 0};
    sink_.Error(DiagnosticKind::kUnexpectedToken, range, std::move(message), std::move(hint));
    return false;
  }

  bool BuildNode(size_t place, int64_t parameter) {
    const TextNode& node = graph_.nodes[place];
    const std::optional<std::vector<TextShape>> shapes = ParseTextShapes(node.shape);
    if (!shapes) return Fail(node, node.shape, "expected the shapes of arrays: f32[2,3]{1,0} or [Float[2,3]]");
    Tensors& results = results_[place];
    if (parameter >= 0) {
      if (!AddParameter(node, parameter, (*shapes)[0], &results)) return false;
    } else if (node.op == "prim::Constant" && node.tag("sizes").empty()) {
      if (!AddConstant(node, place, (*shapes)[0], &results)) return false;
    } else if (!AddOp(node, *shapes, &results)) {
      return false;
    }
    if (results.size() != shapes->size()) {
      return Fail(node, node.shape, StrCat(node.op, " has ", results.size(), " results here, not ", shapes->size()));
    }
    for (size_t k = 0; k < results.size(); ++k) {
      const Shape found = results[k].shape();
      const TextShape& declared = (*shapes)[k];
      if (found.element_type() == declared.type && found.dims() == absl::MakeConstSpan(declared.dims)) continue;
      return Fail(node, node.shape, StrCat("the result of ", node.op, " is ", ToString(found, false)));
    }
    if (parameter >= 0) numbers_[place] = NumberOf(results[0]);
    return true;
  }

  bool AddParameter(const TextNode& node, int64_t number, const TextShape& shape, Tensors* results) {
    const auto known = values_.find(number);
    if (known != values_.end()) {
      // A node of its own with the same data.
      TensorData* const data = known->second.impl()->data.get();
      results->push_back(device_.NewTensor(data->buffer, data->shape));
      return true;
    }
    const SourceRange where = {static_cast<uint32_t>(node.op.data() - text_.data()),
                               static_cast<uint32_t>(node.op.size())};
    const Tensor value = parameters_(number, device_.ArrayShape(shape.type, shape.dims), where);
    if (!value.defined()) return false;
    values_.emplace(number, value);
    results->push_back(value);
    return true;
  }

  bool AddConstant(const TextNode& node, size_t place, const TextShape& shape, Tensors* results) {
    const std::string_view text = node.tag("value");
    if (text.empty()) {
      return Fail(node, node.op, "the constant has no value=, which PyTorch/XLA omits since 2.2");
    }
    const std::optional<IValue> value = ParseTextValue(SchemaOf(Op::constant).args[0], text);
    if (!value || !shape.dims.empty()) return Fail(node, text, "expected a number as the value of a scalar constant");
    numbers_[place] = *value->get<Scalar>();
    const NodeOutput constant = device_.ConstantNode(*numbers_[place], shape.type);
    results->push_back(device_.NewTensor(constant, device_.ArrayShape(shape.type, {})));
    return true;
  }

  // Returns the number that a parameter of rank 0 has.
  std::optional<Scalar> NumberOf(const Tensor& value) {
    const std::shared_ptr<runtime::DeviceBuffer>& buffer = value.impl()->data->buffer;
    if (value.dim() != 0 || IsComplex(value.dtype()) || buffer == nullptr) return std::nullopt;
    buffer->Generate();
    if (!buffer->IsReady()) return std::nullopt;
    return LoadScalar(value.dtype(), buffer->literal().data());
  }

  bool AddOp(const TextNode& node, const std::vector<TextShape>& shapes, Tensors* results) {
    std::vector<Operand> operands;
    for (const TextOperand& operand : node.operands) {
      const size_t output = static_cast<size_t>(std::max(operand.output, 0));
      if (output >= results_[operand.node].size()) {
        return Fail(node, node.op, StrCat("%", graph_.nodes[operand.node].id, " has no output ", operand.output));
      }
      operands.push_back({results_[operand.node][output], numbers_[operand.node]});
    }
    bool known = false;
    std::string missing;
    // A line of torch's own backend is a call, with the shapes in brackets.
    if (!node.shape.starts_with("[")) {
      for (size_t i = 0; i < kOpCount; ++i) {
        const Op op = static_cast<Op>(i);
        if (SymbolOf(op) != node.op || InfoOf(op).lower == nullptr || NodeOpOf(op) != op) continue;
        known = true;
        ArgEncoder encoder;
        if (!Encode(op, node, shapes, operands.size(), &encoder, &missing)) continue;
        absl::InlinedVector<NodeOutput, 8> refs;
        for (const Operand& operand : operands) refs.push_back(device_.ValueOf(operand.tensor.impl()->data.get()));
        const NodeId id = device_.AddNode(op, device_.context().lists.Intern(encoder.words()), refs);
        if (id == kNoNode) return FailOfTracer(node);
        const Shape shape = device_.context().shape(device_.graph().node(id).shape);
        const uint32_t count = shape.IsTuple() ? static_cast<uint32_t>(shape.tuple_size()) : 1;
        for (uint32_t k = 0; k < count; ++k) {
          results->push_back(device_.NewTensor(NodeOutput{id, k}, shape.IsTuple() ? shape.element(k) : shape));
        }
        return true;
      }
    }
    if (known) {
      return Fail(node, node.op,
                  missing.empty() ? StrCat(node.op, " has no form with these attributes and operands")
                                  : StrCat(node.op, " has no ", missing, "=, which PyTorch/XLA omits since 2.2"));
    }
    std::vector<Op> ops = Overloads(node.op);
    // Copying forms of views, and functional forms of ops that write, that are not ops of their own here.
    if (ops.empty() && node.op.ends_with("_copy")) ops = Overloads(node.op.substr(0, node.op.size() - 5));
    if (ops.empty() && !operands.empty()) {
      ops = Overloads(StrCat(node.op, "_"));
      if (!ops.empty()) operands[0].tensor = InvokeOp(Op::clone, operands[0].tensor);
    }
    if (ops.empty()) {
      return Fail(node, node.op, StrCat("unknown op `", node.op, "`", DidYouMeanOp(node.op)));
    }
    for (const Op op : ops) {
      std::optional<Args> args = ArgsOf(op, node, operands);
      if (!args) continue;
      const int mask = SchemaOf(op).Find("output_mask");
      const IValue needed = mask < 0 ? IValue() : (*args)[static_cast<size_t>(mask)];
      Outputs outputs = Dispatch(op, *std::move(args));
      if (!tracer_.status().ok()) return FailOfTracer(node);
      results->assign(outputs.begin(), outputs.end());
      FillUnneeded(needed.get<IntList>(), shapes, results);
      return true;
    }
    return Fail(node, node.op, StrCat(node.op, " has no overload with these attributes and operands"));
  }

  // Results that are not computed have the declared shapes; nothing uses them.
  static void FillUnneeded(const IntList* mask, const std::vector<TextShape>& shapes, Tensors* results) {
    for (size_t k = 0; k < std::min(results->size(), shapes.size()); ++k) {
      Tensor& result = (*results)[k];
      if (result.defined() && (mask == nullptr || k >= mask->size() || (*mask)[k] != 0)) continue;
      result = InvokeOp(Op::zeros, IntList(shapes[k].dims.begin(), shapes[k].dims.end()), shapes[k].type);
    }
  }

  bool FailOfTracer(const TextNode& node) {
    const std::string message(tracer_.status().message());
    tracer_.ClearStatus();
    return Fail(node, node.op, message);
  }

  // Encodes the arguments of a node. Returns false if the attributes or operands do not fit; `missing` is then the
  // attribute that is not there, if that is all.
  static bool Encode(Op op, const TextNode& node, const std::vector<TextShape>& shapes, size_t operands,
                     ArgEncoder* encoder, std::string* missing) {
    const Schema& schema = SchemaOf(op);
    const std::vector<std::string>& names = AttrNames(op);
    std::string_view absent = node.tag("absent");
    if (absent.starts_with("(") && absent.ends_with(")")) absent = absent.substr(1, absent.size() - 2);
    const std::vector<std::string_view> absences = SplitTopLevel(absent);
    const auto is_absent = [&](std::string_view name) {
      return std::find(absences.begin(), absences.end(), name) != absences.end();
    };
    for (const auto& [name, value] : node.tags) {
      if (IsGraphTag(name)) continue;
      bool found = false;
      for (size_t i = 0; i < schema.args.size(); ++i)
        found = found || (!IsOperand(op, schema.args[i]) && names[i] == name);
      if (!found) return false;
    }
    // Optional operands that an older dump does not list are None, from the end.
    size_t single = 0;
    bool list = false;
    for (const ArgSpec& spec : schema.args) {
      single += IsOperand(op, spec) && !is_absent(spec.name);
      list = list || spec.type == ArgType::kTensorList;
    }
    std::vector<bool> none(schema.args.size());
    for (size_t i = schema.args.size(); i-- > 0 && single > operands;) {
      if (!IsOperand(op, schema.args[i]) || !schema.args[i].optional || is_absent(schema.args[i].name)) continue;
      none[i] = true;
      --single;
    }
    if (list ? single > operands : single != operands) return false;
    size_t members = operands - single;
    for (size_t i = 0; i < schema.args.size(); ++i) {
      const ArgSpec& spec = schema.args[i];
      if (spec.type == ArgType::kTensorList) {
        std::vector<int64_t> present;
        while (members > 0 || is_absent(StrCat(spec.name, ".", present.size()))) {
          present.push_back(!is_absent(StrCat(spec.name, ".", present.size())));
          if (present.back() != 0) --members;
        }
        encoder->OperandList(present);
        continue;
      }
      if (IsOperand(op, spec)) {
        none[i] || is_absent(spec.name) ? encoder->None() : encoder->Operand();
        continue;
      }
      if (spec.type == ArgType::kScalar && is_absent(spec.name)) {
        encoder->None();
        continue;
      }
      const auto tag =
          std::find_if(node.tags.begin(), node.tags.end(), [&](const auto& t) { return t.first == names[i]; });
      std::optional<IValue> value;
      if (tag != node.tags.end()) {
        value = ParseTextValue(spec, tag->second);
        if (!value) return false;
      } else if (op == Op::view_node || op == Op::expand_node) {
        value = IntList(shapes[0].dims.begin(), shapes[0].dims.end());
      } else if (op == Op::cast) {
        value = shapes[0].type;
      } else {
        if (missing->empty()) *missing = names[i];
        return false;
      }
      EncodeAttribute(op, spec, *value, encoder);
    }
    return true;
  }

  static void EncodeAttribute(Op op, const ArgSpec& spec, const IValue& value, ArgEncoder* encoder) {
    if (value.none()) return encoder->None();
    if (const Scalar* number = value.get<Scalar>()) {
      encoder->Number(AttributeNumber(op, spec.type, *number));
    } else if (const IntList* ints = value.get<IntList>()) {
      encoder->Ints(*ints);
    } else if (const std::vector<double>* floats = value.get<std::vector<double>>()) {
      encoder->Floats(*floats);
    } else if (const std::string* text = value.get<std::string>()) {
      encoder->String(*text);
    } else if (const ElementType* type = value.get<ElementType>()) {
      encoder->Dtype(*type);
    }
  }

  // Returns the arguments of a call: attributes by name, the operands for the others in order.
  static std::optional<Args> ArgsOf(Op op, const TextNode& node, const std::vector<Operand>& operands) {
    const Schema& schema = SchemaOf(op);
    const auto tag_of = [&](std::string_view name) {
      return std::find_if(node.tags.begin(), node.tags.end(), [&](const auto& t) { return t.first == name; });
    };
    for (const auto& [name, value] : node.tags) {
      if (!IsGraphTag(name) && schema.Find(name) < 0) return std::nullopt;
    }
    size_t open = 0;
    std::vector<bool> omitted(schema.args.size());
    bool list = false;
    for (const ArgSpec& spec : schema.args) {
      open += tag_of(spec.name) == node.tags.end() && spec.type != ArgType::kTensorList;
      list = list || spec.type == ArgType::kTensorList;
    }
    for (size_t i = schema.args.size(); i-- > 0 && open > operands.size();) {
      const ArgSpec& spec = schema.args[i];
      if (tag_of(spec.name) != node.tags.end() || (!spec.optional && !spec.has_default)) continue;
      omitted[i] = true;
      --open;
    }
    if (list ? open > operands.size() : open != operands.size()) return std::nullopt;
    size_t members = operands.size() - open, next = 0;
    Args args;
    for (size_t i = 0; i < schema.args.size(); ++i) {
      const ArgSpec& spec = schema.args[i];
      if (const auto tag = tag_of(spec.name); tag != node.tags.end()) {
        std::optional<IValue> value = ParseTextValue(spec, tag->second);
        if (!value) return std::nullopt;
        args.push_back(*std::move(value));
      } else if (omitted[i]) {
        args.push_back(spec.default_value);
      } else if (spec.type == ArgType::kTensorList) {
        Tensors tensors;
        for (; members > 0; --members) tensors.push_back(operands[next++].tensor);
        args.push_back(std::move(tensors));
      } else if (spec.type == ArgType::kTensor) {
        args.push_back(operands[next++].tensor);
      } else {
        // Numbers that are nodes there.
        const std::optional<Scalar> number = operands[next++].number;
        if (!number || KindOf(spec.type) != IValue::Kind::kScalar) return std::nullopt;
        args.push_back(*number);
      }
    }
    return args;
  }

  bool FindRoots(Tensors* roots) {
    for (const TextOperand& root : graph_.Roots()) {
      const size_t output = static_cast<size_t>(std::max(root.output, 0));
      const TextNode& node = graph_.nodes[root.node];
      if (output >= results_[root.node].size()) {
        return Fail(node, node.tag("ROOT"), StrCat("%", node.id, " has no output ", root.output));
      }
      roots->push_back(results_[root.node][output]);
    }
    if (!roots->empty()) return true;
    std::vector<bool> used(graph_.nodes.size());
    for (const TextNode& node : graph_.nodes) {
      for (const TextOperand& operand : node.operands) used[operand.node] = true;
    }
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) roots->insert(roots->end(), results_[i].begin(), results_[i].end());
    }
    return true;
  }

  const std::string_view text_;
  const TextGraph& graph_;
  Tracer& tracer_;
  DeviceState& device_;
  const ParameterSource& parameters_;
  DiagnosticSink& sink_;
  std::vector<Tensors> results_;                // by node
  std::vector<std::optional<Scalar>> numbers_;  // by node, of constants and parameters of rank 0
  std::map<int64_t, Tensor> values_;            // by parameter
};

}  // namespace

Tensor SyntheticParameter(Tracer& tracer, int64_t number, Shape shape) {
  return tracer.FromGenerator(shape, [shape, number](Literal* out) {
    const ElementType type = shape.element_type();
    const size_t width = static_cast<size_t>(BytesOf(type));
    const auto stream = static_cast<uint32_t>(number);
    const bool one = type == ElementType::kPred || (shape.rank() == 0 && IsInteger(type));
    for (int64_t i = 0; i < out->element_count(); ++i) {
      const bool whole = IsInteger(type) || type == ElementType::kPred;
      const Scalar value = whole ? Scalar(int64_t{one}) : Scalar(HashedValue(stream, static_cast<uint32_t>(i)));
      StoreScalar(type, value, out->data() + static_cast<size_t>(i) * width);
    }
  });
}

bool BuildGraph(const TextDump& dump, const TextGraph& graph, Tracer& tracer, const ParameterSource& parameters,
                Tensors* roots, DiagnosticSink* sink) {
  const ScopedSourceLocation none({});  // no line of a program
  return GraphBuilder(dump, graph, &tracer, parameters, sink).Build(roots);
}

}  // namespace hlokit::lazy
