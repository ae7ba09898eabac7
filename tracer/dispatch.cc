#include "tracer/dispatch.h"

#include <chrono>
#include <mutex>

#include "ir/str_cat.h"
#include "tracer/autograd/function.h"
#include "tracer/call.h"
#include "tracer/device_state.h"
#include "tracer/encoded_args.h"
#include "tracer/functions.h"
#include "tracer/promotion.h"
#include "tracer/tracer.h"

namespace hlokit::lazy {
namespace {

// What keeps an argument from being taken, or null.
const char* Mismatch(const ArgSpec& spec, const Value& value) {
  if (value.none()) return spec.optional ? nullptr : "is missing";
  switch (spec.type) {
    case ArgType::kTensor:
      return value.get<Tensor>() != nullptr ? nullptr : "is no tensor";
    case ArgType::kTensorList:
      return value.get<Tensors>() != nullptr ? nullptr : "is no list of tensors";
    case ArgType::kScalar:
    case ArgType::kInt:
    case ArgType::kFloat:
    case ArgType::kBool:
      return value.get<Scalar>() != nullptr ? nullptr : "is no number";
    case ArgType::kIntList:
      return value.get<IntList>() != nullptr ? nullptr : "is no list of integers";
    case ArgType::kFloatList:
      return value.get<std::vector<double>>() != nullptr ? nullptr : "is no list of numbers";
    case ArgType::kString:
      return value.get<std::string>() != nullptr ? nullptr : "is no text";
    case ArgType::kDtype:
      return value.get<ElementType>() != nullptr ? nullptr : "is no element type";
  }
  return nullptr;
}

}  // namespace

namespace {

// Times one of sixteen calls as LazyTracing, so that measuring does not cost as much as what is measured.
class SampledTiming {
 public:
  SampledTiming() : due_((++calls_ & 15) == 1) {
    if (due_) start_ = std::chrono::steady_clock::now();
  }
  void Done(Tracer* tracer) {
    if (!due_) return;
    const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - start_;
    tracer->metrics().AddSample("LazyTracing", runtime::MetricKind::kTime, static_cast<double>(passed.count()));
  }

 private:
  static inline thread_local uint32_t calls_ = 0;
  const bool due_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

Outputs Dispatch(Op op, Args&& args) {
  SampledTiming timing;
  const OpInfo& info = InfoOf(op);
  const Schema& schema = SchemaOf(op);
  DeviceState* device = nullptr;
  const auto failed = [&] { return Outputs(static_cast<size_t>(schema.outputs)); };
  const auto fail = [&](const std::string& message) {
    DeviceState* d = device != nullptr ? device : CurrentDevice();
    if (d != nullptr) {
      d->tracer()->SetError(absl::InvalidArgumentError(StrCat(schema.full_name(), ": ", message)));
    }
    return failed();
  };
  if (args.size() > schema.args.size()) return fail("too many arguments");
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (i >= args.size()) {
      if (!spec.has_default && !spec.optional) return fail(StrCat("argument ", spec.name, " is missing"));
      args.push_back(spec.default_value);
      continue;
    }
    if (args[i].none() && !spec.optional && spec.has_default) args[i] = spec.default_value;
    // One number stands for a list of them.
    if (spec.type == ArgType::kIntList) {
      if (const Scalar* s = args[i].get<Scalar>()) {
        args[i] = IntList(static_cast<size_t>(std::max(spec.list_size, 1)), s->ToInt());
      }
    }
    if (const char* problem = Mismatch(spec, args[i])) {
      // What an earlier error left undefined passes through in silence.
      if (spec.type == ArgType::kTensor && CurrentDevice() != nullptr && !CurrentDevice()->tracer()->status().ok()) {
        return failed();
      }
      return fail(StrCat("argument ", spec.name, " ", problem));
    }
    if (const Tensor* t = args[i].get<Tensor>()) {
      if (t->impl()->view != nullptr) RefreshView(*t);
      DeviceState* const at = t->impl()->data->device;
      if (device == nullptr) device = at;
      if (at != device) return fail("tensors on different devices");
    } else if (const Tensors* list = args[i].get<Tensors>()) {
      for (const Tensor& t : *list) {
        if (!t.defined()) {
          if (!spec.optional_items) return failed();
          continue;
        }
        RefreshView(t);
        if (device == nullptr) device = t.device();
        if (t.device() != device) return fail("tensors on different devices");
      }
    }
  }
  if (device == nullptr) device = CurrentDevice();
  if (device == nullptr) return failed();
  device->tracer()->CountOp(op);

  // A node without a derivative is noted too: that there is none is an error when somebody asks for it. Ops that are
  // made of others leave it to those.
  const bool note = GradEnabled() && (info.derivative != nullptr ||
                                      (info.kernel == &kernel::Record && (info.flags & kNotDifferentiable) == 0));
  Call call(op, &args, device);
  {
    std::lock_guard<std::recursive_mutex> lock(device->mutex());
    const GradMode mode(GradEnabled() && info.derivative == nullptr);
    info.kernel(call);
  }
  Outputs outputs = std::move(call.outputs());
  if (call.failed() || outputs.empty()) return failed();
  for (const Tensor& t : outputs) {
    if (!t.defined() && !device->tracer()->status().ok()) return failed();
  }
  if ((info.flags & kView) != 0 && args[0].get<Tensor>() != nullptr) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (SameTensor(outputs[k], *args[0].get<Tensor>())) continue;
      auto view = std::make_unique<ViewInfo>(ViewInfo{*args[0].get<Tensor>(), op, args, static_cast<int>(k)});
      const TensorImpl* base = view->parent.impl();
      while (base->view != nullptr) base = base->view->parent.impl();
      outputs[k].impl()->generation = base->generation;
      outputs[k].impl()->view = std::move(view);
    }
  }
  if (note) NoteCall(op, std::move(args), outputs);
  timing.Done(device->tracer());
  return outputs;
}

void Call::Fail(std::string_view message) {
  failed_ = true;
  device_->tracer()->SetError(absl::InvalidArgumentError(StrCat(SchemaOf(op_).full_name(), ": ", message)));
}

int64_t Call::Dim(int64_t dim, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  if (dim < -n || dim >= n) {
    Fail(StrCat("Dimension out of range (expected to be in range of [", -n, ", ", n - 1, "], but got ", dim, ")"));
    return 0;
  }
  return dim < 0 ? dim + n : dim;
}

void kernel::Record(Call& c) { c.Return(lazy::Record(c.device(), c.op(), c.args())); }

Outputs Record(DeviceState* device, Op op, absl::Span<const Value> args) {
  const Schema& schema = SchemaOf(op);
  const uint8_t flags = InfoOf(op).flags;
  ArgEncoder encoder;
  absl::InlinedVector<IrRef, 8> operands;
  absl::InlinedVector<int64_t, 8> present;
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& value = args[i];
    if (value.none()) {
      encoder.None();
    } else if (const Tensor* t = value.get<Tensor>()) {
      encoder.Operand();
      operands.push_back(device->ValueOf(t->impl()->data.get()));
    } else if (const Tensors* list = value.get<Tensors>()) {
      present.clear();
      for (const Tensor& member : *list) {
        present.push_back(member.defined());
        if (member.defined()) operands.push_back(device->ValueOf(member.impl()->data.get()));
      }
      encoder.OperandList(present);
    } else if (const Scalar* s = value.get<Scalar>()) {
      if (schema.args[i].type == ArgType::kScalar && (flags & kScalarAttrs) == 0) {
        Promotion promotion;
        for (const Value& other : args) {
          if (const Tensor* tensor = other.get<Tensor>()) promotion.Add(tensor->shape());
        }
        if ((flags & kSelfType) == 0) promotion.Add(*s);
        encoder.Operand();
        operands.push_back(device->ScalarNode(*s, promotion.result()));
      } else {
        encoder.Number(*s);
      }
    } else if (const IntList* ints = value.get<IntList>()) {
      encoder.Ints(*ints);
    } else if (const std::vector<double>* floats = value.get<std::vector<double>>()) {
      encoder.Floats(*floats);
    } else if (const std::string* text = value.get<std::string>()) {
      encoder.String(*text);
    } else if (const ElementType* type = value.get<ElementType>()) {
      encoder.Dtype(*type);
    }
  }
  const NodeId id = device->AddNode(op, device->context().lists.Intern(encoder.words()), operands);
  if (id == kNoNode) return Outputs(static_cast<size_t>(schema.outputs));
  const Shape shape = device->context().shape(device->graph().node(id).shape);
  Outputs outputs;
  if (!shape.IsTuple()) {
    outputs.push_back(device->NewTensor(IrRef{id, 0}));
  } else {
    for (uint32_t k = 0; k < static_cast<uint32_t>(shape.tuple_size()); ++k) {
      outputs.push_back(device->NewTensor(IrRef{id, k}));
    }
  }
  return outputs;
}

}  // namespace hlokit::lazy
