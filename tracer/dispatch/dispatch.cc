// SPDX-License-Identifier: Apache-2.0
#include "tracer/dispatch/dispatch.h"

#include <chrono>
#include <mutex>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/autocast.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

// Returns the error text for an argument of the wrong kind.
std::string_view Mismatch(IValue::Kind wanted) {
  switch (wanted) {
    case IValue::Kind::kNone:
      return "expected none";
    case IValue::Kind::kTensor:
      return "expected a tensor";
    case IValue::Kind::kTensors:
      return "expected a list of tensors";
    case IValue::Kind::kScalar:
      return "expected a number";
    case IValue::Kind::kInts:
      return "expected a list of integers";
    case IValue::Kind::kFloats:
      return "expected a list of numbers";
    case IValue::Kind::kString:
      return "expected a string";
    case IValue::Kind::kType:
      return "expected an element type";
  }
  return "unexpected value";
}

// Times one of sixteen calls as LazyTracing, so that measuring does not dominate the cost.
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

Outputs Dispatch(const LocatedOp& call, Args&& args) {
  const Op op = call.op;
  const ScopedSourceLocation site(call.location);
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
  for (size_t i = 0; i < schema.kinds.size(); ++i) {
    if (i >= args.size()) {
      const ArgSpec& spec = schema.args[i];
      if (!spec.has_default && !spec.optional) return fail(StrCat("missing argument `", spec.name, "`"));
      args.push_back(spec.default_value);
      continue;
    }
    IValue& arg = args[i];
    if (arg.kind() != schema.kinds[i]) {
      const ArgSpec& spec = schema.args[i];
      if (arg.none() && !spec.optional && spec.has_default) arg = spec.default_value;
      // One number represents a list of equal numbers.
      if (const Scalar* s = arg.get<Scalar>(); s != nullptr && spec.type == ArgType::kIntList) {
        arg = IntList(static_cast<size_t>(std::max(spec.list_size, 1)), s->ToInt());
      }
      if (arg.none() ? !spec.optional : arg.kind() != schema.kinds[i]) {
        // Arguments that an earlier error left undefined are not reported again.
        if (spec.type == ArgType::kTensor && CurrentDevice() != nullptr && !CurrentDevice()->tracer()->status().ok()) {
          return failed();
        }
        return fail(arg.none() ? StrCat("missing argument `", spec.name, "`")
                               : StrCat("argument `", spec.name, "`: ", Mismatch(schema.kinds[i])));
      }
    }
    if (const Tensor* t = arg.get<Tensor>()) {
      if (t->impl()->view != nullptr) RefreshView(*t);
      DeviceState* const at = t->impl()->data->device;
      if (device == nullptr) device = at;
      if (at != device) return fail("tensors on different devices");
    } else if (const Tensors* list = arg.get<Tensors>()) {
      for (const Tensor& t : *list) {
        if (!t.defined()) {
          if (!schema.args[i].optional_items) return failed();
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
  // Ops that compose others leave the conversions to them, unless they have a policy or a derivative of their own.
  std::optional<AutocastGuard> no_autocast;
  if (AutocastEnabled() && (CastArguments(op, &args) || info.derivative != nullptr)) no_autocast.emplace(std::nullopt);

  // Nodes without a derivative are recorded too: differentiating them is an error. Composed ops rely on their parts.
  const bool note = GradEnabled() && (info.derivative != nullptr ||
                                      (info.kernel == &kernel::Record && (info.flags & kNotDifferentiable) == 0));
  Outputs outputs;
  OpKernelContext context(op, &args, device, &outputs);
  {
    DeviceLock lock(device->mutex());
    const DeviceGuard guard(device);  // tensors that the kernel creates are on the device of its arguments
    const AutoGradMode mode(GradEnabled() && info.derivative == nullptr);
    std::optional<runtime::TraceMe> span;
    if ((info.flags & kFallback) != 0) {
      span.emplace(SymbolOf(op));
      span->Add("fallback", 1);
    }
    info.kernel(context);
  }
  if (context.failed() || outputs.empty()) return failed();
  for (const Tensor& t : outputs) {
    if (!t.defined() && !device->tracer()->status().ok()) return failed();
  }
  if ((info.flags & kView) != 0 && args[0].get<Tensor>() != nullptr) AttachViews(op, args, outputs);
  if (note) SetHistory(op, std::move(args), outputs);
  timing.Done(device->tracer());
  return outputs;
}

void OpKernelContext::Fail(std::string_view message) {
  failed_ = true;
  device_->tracer()->SetError(absl::InvalidArgumentError(StrCat(SchemaOf(op_).full_name(), ": ", message)));
}

int64_t OpKernelContext::Dim(int64_t dim, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  if (dim < -n || dim >= n) {
    Fail(StrCat("Dimension out of range (expected to be in range of [", -n, ", ", n - 1, "], but got ", dim, ")"));
    return 0;
  }
  return dim < 0 ? dim + n : dim;
}

void kernel::Record(OpKernelContext& c) { RecordInto(c.device(), c.op(), c.args(), &c.outputs()); }

Outputs Record(DeviceState* device, Op op, absl::Span<const IValue> args) {
  Outputs outputs;
  RecordInto(device, op, args, &outputs);
  return outputs;
}

void RecordInto(DeviceState* device, Op op, absl::Span<const IValue> args, Outputs* outputs) {
  ArgEncoder encoder;
  absl::InlinedVector<NodeOutput, 8> operands;
  for (size_t i = 0; i < args.size(); ++i) {
    const IValue& value = args[i];
    switch (value.kind()) {
      case IValue::Kind::kNone:
        encoder.None();
        break;
      case IValue::Kind::kTensor:
        encoder.Operand();
        operands.push_back(device->ValueOf(value.get<Tensor>()->impl()->data.get()));
        break;
      case IValue::Kind::kTensors: {
        absl::InlinedVector<int64_t, 8> present;
        for (const Tensor& member : *value.get<Tensors>()) {
          present.push_back(member.defined());
          if (member.defined()) operands.push_back(device->ValueOf(member.impl()->data.get()));
        }
        encoder.OperandList(present);
        break;
      }
      case IValue::Kind::kScalar: {
        const Scalar number = *value.get<Scalar>();
        const uint8_t flags = InfoOf(op).flags;
        const ArgType type = SchemaOf(op).args[i].type;
        if (type == ArgType::kScalar && (flags & kScalarAttrs) == 0) {
          ResultTypeState promotion;
          for (const IValue& other : args) {
            if (const Tensor* tensor = other.get<Tensor>()) promotion.Add(tensor->shape());
          }
          if ((flags & kSelfType) == 0) promotion.Add(number);
          encoder.Operand();
          operands.push_back(device->ScalarNode(number, promotion.result()));
        } else {
          encoder.Number(AttributeNumber(op, type, number));
        }
        break;
      }
      case IValue::Kind::kInts: {
        const IntList& list = *value.get<IntList>();
        const ArgSpec& spec = SchemaOf(op).args[i];
        // One number stands for all dimensions, except in sizes.
        const bool repeated = list.size() == 1 && spec.list_size > 1 && !ListsSizes(spec);
        encoder.Ints(repeated ? IntList(static_cast<size_t>(spec.list_size), int64_t{list[0]}) : list);
        break;
      }
      case IValue::Kind::kFloats:
        encoder.Floats(*value.get<std::vector<double>>());
        break;
      case IValue::Kind::kString:
        encoder.String(*value.get<std::string>());
        break;
      case IValue::Kind::kType:
        encoder.Dtype(*value.get<ElementType>());
        break;
    }
  }
  const NodeId id = device->AddNode(NodeOpOf(op), device->context().lists.Intern(encoder.words()), operands);
  outputs->clear();
  if (id == kNoNode) {
    outputs->resize(static_cast<size_t>(SchemaOf(op).outputs));
    return;
  }
  const Shape shape = device->context().shape(device->graph().node(id).shape);
  if (!shape.IsTuple()) {
    outputs->push_back(device->NewTensor(NodeOutput{id, 0}, shape));
    return;
  }
  for (uint32_t k = 0; k < static_cast<uint32_t>(shape.tuple_size()); ++k) {
    outputs->push_back(device->NewTensor(NodeOutput{id, k}, shape.element(k)));
  }
}

}  // namespace hlokit::lazy
