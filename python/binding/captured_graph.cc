// SPDX-License-Identifier: Apache-2.0
// Graphs that PyTorch captured, recorded with lazy tensors: the pending graph as a module with the arguments of the
// captured one, in its order and by its names.
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "python/binding/bindings.h"
#include "python/binding/handles.h"
#include "python/binding/torch_tensor.h"
#include "tracer/autograd/node.h"
#include "tracer/capture/recorded_graph.h"
#include "tracer/dispatch/functions.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/text/ir_text.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

using BufferPtr = std::shared_ptr<runtime::DeviceBuffer>;

// The value of a tensor on the device, which later writes to the tensor do not change.
struct CapturedValue {
  BufferPtr buffer;
  ElementType type;
  std::vector<int64_t> sizes;
};

CapturedValue ValueOf(py::handle object) {
  const lazy::TensorData& data = *LazyTensorOf(object).tensor.impl()->data;
  if (data.buffer == nullptr) throw py::value_error("the tensor is not on the device yet");
  const absl::Span<const int64_t> sizes = data.shape.dims();
  return {data.buffer, data.shape.element_type(), {sizes.begin(), sizes.end()}};
}

// Replaces the parameters of the entry, one for each buffer of the graph, by those of the captured graph, and the
// numbers that the tracer uploads by constants.
class Signature {
 public:
  Signature(Module* module, const std::vector<BufferPtr>& buffers)
      : module_(module), entry_(module->entry().id()), builder_(module, entry_, FirstOf(module)) {
    const Computation entry = module->entry();
    // Graphs with very many parameters have one, a tuple of all.
    const bool wrapped = entry.parameter_count() == 1 && entry.parameter(0).shape().IsTuple();
    values_.resize(buffers.size());
    if (!wrapped) {
      for (size_t i = 0; i < buffers.size(); ++i) values_[i] = entry.parameter(static_cast<int64_t>(i)).id();
      return;
    }
    tuple_ = entry.parameter(0).id();
    for (const Instruction element : entry.parameter(0).users()) {
      values_[static_cast<size_t>(element.int_attr(Attr::kIndex))] = element.id();
    }
  }

  // Returns a new parameter. `label`: what it is in the program.
  InstructionId AddParameter(const CapturedValue& value, const std::string& name, const std::string& label) {
    Metadata metadata;
    metadata.op_name = builder_.context().strings.Intern(label);
    const MetadataId outer = builder_.SetMetadata(builder_.context().metadata.Intern(metadata));
    const auto number = static_cast<uint32_t>(parameters_.size());
    parameters_.push_back(builder_.WithName(name).Make(Opcode::kParameter, ShapeOf(value), {}, {}, number));
    builder_.SetMetadata(outer);
    return parameters_.back();
  }
  InstructionId AddConstant(Shape shape, const std::byte* data, const std::string& name) {
    const LiteralId literal = builder_.context().literals.AddArray(shape, data, static_cast<size_t>(ByteSize(shape)));
    return builder_.WithName(name).Make(Opcode::kConstant, shape, {}, {}, literal.value);
  }
  Shape ShapeOf(const CapturedValue& value) const { return builder_.shapes().Array(value.type, value.sizes); }
  void Use(size_t value, InstructionId by) { module_->ReplaceAllUses(values_[value], by); }

  void Finish() {
    for (const InstructionId value : values_) module_->Erase(value);
    if (tuple_.valid()) module_->Erase(tuple_);
    EntryLayout layout;
    for (const InstructionId p : parameters_) layout.parameters.push_back(builder_.shape_of(p));
    layout.result = module_->entry().root().shape();
    module_->SetParameters(entry_, std::move(parameters_));
    module_->header().entry_layout = std::move(layout);
  }

 private:
  static InstructionId FirstOf(Module* module) { return module->record(module->entry().id()).first; }

  Module* module_;
  const ComputationId entry_;
  Builder builder_;
  std::vector<InstructionId> values_;  // by buffer
  InstructionId tuple_;
  std::vector<InstructionId> parameters_;
};

// Returns "Net/layer/aten__relu" for "Net.1/layer.7/aten__relu": scopes are numbered by their uses in the process.
std::string WithoutNumbers(std::string_view name) {
  std::string result;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t slash = name.find('/', begin);
    const bool last = slash == std::string_view::npos;
    std::string_view part = name.substr(begin, last ? std::string_view::npos : slash - begin);
    if (!last) part = part.substr(0, part.rfind('.'));
    result.append(part);
    if (last) break;
    result += '/';
    begin = slash + 1;
  }
  return result;
}

// Also removes lines without a file.
void CleanMetadata(Module* module) {
  Context& context = module->context();
  for (const Computation c : module->computations()) {
    for (const Instruction i : c.instructions()) {
      if (!i.metadata_id().valid()) continue;
      Metadata metadata = i.metadata();
      metadata.op_name = context.strings.Intern(WithoutNumbers(context.str(metadata.op_name)));
      if (context.str(metadata.source_file).empty()) metadata.source_line = 0;
      module->SetMetadata(i.id(), context.metadata.Intern(metadata));
    }
  }
}

// An argument of the captured graph: a parameter, or with `bytes` a constant.
struct Argument {
  CapturedValue value;
  std::string name, label;
  std::optional<py::buffer> bytes;
};

InstructionId Add(const Argument& argument, Signature* signature) {
  if (!argument.bytes) return signature->AddParameter(argument.value, argument.name, argument.label);
  const py::buffer_info info = argument.bytes->request();
  const Shape shape = signature->ShapeOf(argument.value);
  if (info.size * info.itemsize != ByteSize(shape))
    throw py::value_error("the array has not the bytes of the constant");
  return signature->AddConstant(shape, static_cast<const std::byte*>(info.ptr), argument.name);
}

// Returns the graph of the tensors as a module. arguments: (value, name, what it is in the program, bytes of a
// constant); a value that is none of them, and no number, is an error.
ModulePtr CapturedModule(
    const py::list& roots,
    const std::vector<std::tuple<CapturedValue, std::string, std::string, std::optional<py::buffer>>>& arguments,
    const std::string& name) {
  if (roots.empty()) throw py::value_error("expected results");
  lazy::Tensors tensors;
  for (const py::handle root : roots) tensors.push_back(LazyTensorOf(root).tensor);
  for (const lazy::Tensor& tensor : tensors) lazy::RefreshView(tensor);
  lazy::DeviceState& device = *tensors[0].device();
  lazy::DeviceLock lock(device.mutex());
  const lazy::PendingSubgraph slice = lazy::CollectSubgraphOfTensors(tensors);
  std::unique_ptr<Module> module = ValueOrThrow(lazy::LowerSubgraph(device, slice, name), "RunError");
  CleanMetadata(module.get());

  Signature signature(module.get(), slice.inputs);
  std::unordered_map<const runtime::DeviceBuffer*, InstructionId> known;
  for (const auto& [value, argument_name, label, bytes] : arguments) {
    known[value.buffer.get()] = Add({value, argument_name, label, bytes}, &signature);
  }
  for (size_t i = 0; i < slice.inputs.size(); ++i) {
    const BufferPtr& buffer = slice.inputs[i];
    const auto found = known.find(buffer.get());
    if (found != known.end()) {
      signature.Use(i, found->second);
    } else if (buffer->IsReady()) {
      const Shape shape = buffer->literal().shape();
      const absl::Span<const int64_t> sizes = shape.dims();
      const CapturedValue number{buffer, shape.element_type(), {sizes.begin(), sizes.end()}};
      signature.Use(i, signature.AddConstant(signature.ShapeOf(number), buffer->literal().data(), "number"));
    } else {
      Throw("RunError", "the graph reads a value that is none of its inputs");
    }
  }
  signature.Finish();
  return std::make_shared<ModuleState>(std::move(module), nullptr);
}

// A graph to be appended to the graphs of devices. It keeps nothing of the session of the recording.
using RecordedGraphPtr = std::shared_ptr<lazy::RecordedGraph>;

// Returns what computes the roots, which are of the session of a recording, as a graph of these arguments; `seed` is
// what stands for the seed of random numbers.
RecordedGraphPtr RecordGraph(const py::list& roots, const std::vector<CapturedValue>& arguments,
                             const CapturedValue& seed, py::handle home) {
  lazy::Tensors results;
  for (const py::handle root : roots) results.push_back(LazyTensorOf(root).tensor);
  std::vector<lazy::RecordedGraph::Argument> given;
  for (const CapturedValue& value : arguments) given.push_back({value.buffer, value.type, value.sizes});
  lazy::DeviceState& device = *LazyTensorOf(home).tensor.device();
  return ValueOrThrow(lazy::RecordedGraph::Make(device, results, given, seed.buffer), "RunError");
}

// Appends the graph to that of a device, and returns its results as lazy tensors.
py::list AppendGraph(const lazy::RecordedGraph& graph, const TracerPtr& session, int ordinal,
                     const py::list& arguments) {
  lazy::Tensors given;
  for (const py::handle argument : arguments) given.push_back(LazyTensorOf(argument).tensor);
  lazy::DeviceState& device = DeviceOf(session, ordinal);
  const lazy::NoGradGuard no_grad;
  const lazy::DeviceGuard guard(&device);
  absl::StatusOr<lazy::Tensors> results = graph.Append(device, given);
  if (!results.ok()) {
    const absl::Status first = session->status();
    session->ClearStatus();
    Throw("RunError", first.ok() ? results.status() : first);
  }
  py::list values;
  for (lazy::Tensor& result : *results) values.append(LazyObject(std::move(result), session));
  return values;
}

// Lets results of the entry take the memory of parameters: (result, parameter).
void SetAliases(const ModulePtr& state, const std::vector<std::pair<int64_t, int64_t>>& aliases) {
  Module& module = state->edit();
  const Computation entry = module.entry();
  const Shape results = entry.root().shape();
  std::vector<InputOutputAlias>& all = module.header().input_output_alias;
  all.clear();
  for (const auto& [result, parameter] : aliases) {
    if (parameter < 0 || parameter >= entry.parameter_count() || !results.IsTuple() || result < 0 ||
        result >= results.tuple_size()) {
      throw py::index_error("there is no such result or parameter");
    }
    ListPool& lists = module.context().lists;
    all.push_back({lists.Intern({result}), parameter, lists.Intern({}), false});
  }
}

}  // namespace

void BindCapturedGraph(py::module_& m) {
  py::class_<CapturedValue>(m, "_CapturedValue", "The value of a lazy tensor that is a parameter of a captured graph.");
  m.def("_captured_value", &ValueOf, py::arg("lazy"));
  m.def("_captured_module", &CapturedModule, py::arg("roots"), py::arg("arguments"), py::arg("name"));
  py::class_<lazy::RecordedGraph, RecordedGraphPtr>(m, "_RecordedGraph",
                                                    "A graph that is appended to those of devices.")
      .def_property_readonly("node_count", &lazy::RecordedGraph::node_count)
      .def_property_readonly("draws_random_numbers", &lazy::RecordedGraph::draws_random_numbers)
      .def("append", &AppendGraph, py::arg("session"), py::arg("ordinal"), py::arg("arguments"));
  m.def("_record_graph", &RecordGraph, py::arg("roots"), py::arg("arguments"), py::arg("seed"), py::arg("home"));
  m.def("_set_aliases", &SetAliases, py::arg("module"), py::arg("aliases"));
}

}  // namespace hlokit::python
