// SPDX-License-Identifier: Apache-2.0
// Statements of scripts other than assignments, calls, jumps and captures.
#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"
#include "tracer/step/execution_log.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"

namespace hlokit::lazy::script {
namespace {

void AppendNumber(Scalar number, std::string* out) {
  if (number.kind() == Scalar::Kind::kBool) {
    out->append(number.ToBool() ? "true" : "false");
  } else if (!number.is_float()) {
    StrAppend(out, number.ToInt());
  } else {
    char buffer[40];
    const char* const end = std::to_chars(buffer, buffer + sizeof(buffer), number.ToDouble()).ptr;
    const std::string_view text(buffer, static_cast<size_t>(end - buffer));
    out->append(text);
    if (text.find_first_not_of("-0123456789") == std::string_view::npos) out->append(".0");
  }
}

// Returns a value other than a tensor as text.
std::string TextOfValue(const Value& value) {
  std::string out;
  // Lists are at most List::kMaxDepth deep.
  struct Position {
    const List* list;
    size_t next;
  };
  std::vector<Position> open;
  const auto append = [&](const Value& v) {
    if (const Scalar* number = v.get<Scalar>()) {
      AppendNumber(*number, &out);
    } else if (const std::string* text = TextOf(v)) {
      StrAppend(&out, "\"", *text, "\"");
    } else if (v.list() != nullptr) {
      out.push_back('[');
      open.push_back({v.list(), 0});
    } else {
      out.append(v.KindName());
    }
  };
  append(value);
  while (!open.empty()) {
    Position& at = open.back();
    if (at.next == at.list->values.size()) {
      out.push_back(']');
      open.pop_back();
      continue;
    }
    if (at.next > 0) out.append(", ");
    const Value& member = at.list->values[at.next++];
    append(member);
  }
  return out;
}

}  // namespace

bool ScriptRunner::Open(const Instruction& i) {
  const Block& block = program_.blocks[i.a];
  if (frame().blocks.size() >= kMaxBlocks) return Error(i.range, "blocks are nested too deeply");
  OpenBlock opened;
  switch (block.kind) {
    case Block::Kind::kNoGrad:
      opened.grad_mode = std::make_unique<AutoGradMode>(false);
      break;
    case Block::Kind::kAutocast:
      opened.autocast = std::make_unique<AutocastGuard>(block.type);
      break;
    case Block::Kind::kScope:
      opened.scope = std::make_unique<ScopedTrace>(block.name);
      break;
    case Block::Kind::kCompile: {
      RegionOptions region;
      region.name = block.name;
      region.full_graph = block.full_graph;
      DynamicShapeDetector* detector = nullptr;
      if (block.max_different_graphs > 0) {
        std::unique_ptr<DynamicShapeDetector>& known = detectors_[block.name];
        if (known == nullptr) known = std::make_unique<DynamicShapeDetector>(block.max_different_graphs);
        detector = known.get();
      }
      const OthersRun others(context_);
      opened.region = std::make_unique<CompileRegion>(&tracer_, std::move(region), detector);
      break;
    }
  }
  frame().blocks.push_back(std::move(opened));
  return true;
}

bool ScriptRunner::Close(const Instruction& i) {
  for (uint32_t k = 0; k < i.a; ++k) {
    OpenBlock& block = frame().blocks.back();
    absl::Status s;
    if (block.region != nullptr) {
      const OthersRun others(context_);
      s = block.region->End();
    }
    frame().blocks.pop_back();
    if (!s.ok()) return Fail(i.range, s);
  }
  return true;
}

bool ScriptRunner::TensorsOf(const std::vector<Value>& values, SourceRange range, Tensors* tensors) {
  for (const Value& value : values) {
    if (const std::shared_ptr<Module> module = value.single().object<Module>()) {
      for (const nn::NamedTensor& p : module->Parameters()) tensors->push_back(p.tensor);
      continue;
    }
    if (value.get<Tensor>() == nullptr && value.list() == nullptr) {
      return Error(range, StrCat("expected tensors, found ", value.KindName()));
    }
    AppendTensors(value, tensors);
  }
  return true;
}

bool ScriptRunner::RequiresGrad(const Instruction& i) {
  Tensors tensors;
  if (!TensorsOf(PopMany(i.a), i.range, &tensors)) return false;
  for (Tensor& t : tensors) {
    if (!t.is_leaf()) return Error(i.range, "you can only change requires_grad flags of leaf variables.");
    if (!IsFloat(t.dtype())) return Error(i.range, "only Tensors of floating point dtype can require gradients");
    t.set_requires_grad(true);
  }
  return true;
}

bool ScriptRunner::Backward(const Instruction& i) {
  const Value value = Pop();
  const Tensor* const t = value.single().get<Tensor>();
  if (t == nullptr) return Error(i.range, StrCat("expected a tensor, found ", value.KindName()));
  if (absl::Status s = t->Backward(Tensor(), i.a != 0); !s.ok()) return Fail(i.range, s);
  return CheckStatus(i.range);
}

bool ScriptRunner::ZeroGrad(const Instruction& i) {
  for (const Value& value : PopMany(i.a)) {
    if (const auto optimizer = value.single().object<OptimizerObject>()) {
      optimizer->optimizer->ZeroGrad();
      continue;
    }
    Tensors tensors;
    if (!TensorsOf({value}, i.range, &tensors)) return false;
    for (const Tensor& t : tensors) t.set_grad(Tensor());
  }
  return true;
}

bool ScriptRunner::StepOptimizers(const Instruction& i) {
  for (const Value& value : PopMany(i.a)) {
    if (const auto optimizer = value.single().object<OptimizerObject>()) {
      optimizer->optimizer->Step();
    } else if (const auto schedule = value.single().object<SchedulerObject>()) {
      schedule->scheduler.Step();
    } else {
      return Error(i.range, StrCat("expected an optimizer or a learning rate schedule, found ", value.KindName()),
                   "a step of the device is mark_step");
    }
    if (!CheckStatus(i.range)) return false;
  }
  return true;
}

bool ScriptRunner::Train(const Instruction& i) {
  for (const Value& value : PopMany(i.a)) {
    const std::shared_ptr<Module> module = value.single().object<Module>();
    if (module == nullptr) return Error(i.range, StrCat("expected a module, found ", value.KindName()));
    module->SetTraining(i.b != 0);
  }
  return true;
}

bool ScriptRunner::MarkStep(const Instruction& i) {
  absl::Status s;
  {
    const OthersRun others(context_);
    s = tracer_.MarkStep(context_.device);
  }
  return s.ok() || Fail(i.range, s);
}

bool ScriptRunner::Wait(const Instruction& i) {
  absl::Status s;
  {
    const OthersRun others(context_);
    s = tracer_.Wait(context_.turn != nullptr ? context_.device : nullptr);
  }
  return s.ok() || Fail(i.range, s);
}

bool ScriptRunner::ManualSeed(const Instruction& i) {
  const Value value = Pop();
  const Scalar* const seed = value.single().get<Scalar>();
  if (seed == nullptr || seed->is_float()) return Error(i.range, "expected manual_seed N");
  if (tracing_ != nullptr) {
    return Error(i.range, "a captured block uses the seed of the step; set it before the block");
  }
  DeviceLock lock(context_.device->mutex());
  context_.device->SetSeed(seed->ToInt());
  return true;
}

bool ScriptRunner::Print(const Instruction& i) {
  const Value given = Pop();
  const Value& value = given.single();
  const Tensor* const t = value.get<Tensor>();
  if (value.unset()) return Error(i.range, StrCat("`", TextAt(program_.literals[i.a]), "` has no value"));
  if (t == nullptr) {
    const bool label = TextOf(value) == nullptr;
    if (label) out_ << TextAt(program_.literals[i.a]) << " = ";
    out_ << (label ? TextOfValue(value) : *TextOf(value)) << "\n";
    return true;
  }
  absl::StatusOr<Literal> literal = Literal();
  {
    const OthersRun others(context_);
    literal = t->ToLiteral();
  }
  if (!literal.ok()) return Fail(i.range, literal.status());
  LiteralTextOptions text;
  text.with_shape = true;
  text.with_layout = false;
  out_ << TextAt(program_.literals[i.a]) << " = ";
  PrintLiteral(out_, *literal, text);
  out_ << "\n";
  return true;
}

bool ScriptRunner::PrintItem(const Instruction& i) {
  const Value given = Pop();
  const Value& value = given.single();
  const Tensor* const t = value.get<Tensor>();
  if (t == nullptr) return Error(i.range, StrCat("expected a tensor, found ", value.KindName()));
  absl::StatusOr<Literal> literal = Literal();
  {
    const OthersRun others(context_);
    literal = t->ItemLiteral();
  }
  if (!literal.ok()) return Fail(i.range, literal.status());
  const size_t bytes = literal->size_bytes();
  Literal number = Literal::Zeros(context_.device->ScalarShape(t->dtype()));
  std::copy_n(literal->data(), std::min(bytes, number.size_bytes()), number.data());
  out_ << TextAt(program_.literals[i.a]) << " = ";
  PrintLiteral(out_, number);
  out_ << "\n";
  return true;
}

bool ScriptRunner::DumpText(std::string_view kind, const Tensors& tensors, SourceRange range) {
  if (kind == "lazy") {
    out_ << TensorsToString(tensors, options_.text);
    return true;
  }
  if (kind == "lazy-dot") {
    out_ << TensorsDot(tensors, options_.text);
    return true;
  }
  if (kind == "metrics") {
    tracer_.client().StartDeferred();
    tracer_.PublishCounters();
    out_ << tracer_.metrics().Report();
    return true;
  }
  if (kind == "graphs") {
    out_ << GraphReport(tracer_.execution_log().executions()) << CaptureReport();
    return true;
  }
  DeviceState& device = *context_.device;
  DeviceLock lock(device.mutex());
  const PendingSubgraph slice = CollectSubgraphOfTensors(tensors);
  if (kind == "hash") {
    out_ << ToString(HashOf(device, slice, {})) << "\n";
    return true;
  }
  absl::StatusOr<std::unique_ptr<hlokit::Module>> module = LowerSubgraph(device, slice, "IrToHlo.1");
  if (!module.ok()) return Fail(range, module.status());
  PrintModule(out_, **module, PrintOptions::Lossless());
  out_ << "\n";
  return true;
}

bool ScriptRunner::Dump(const Instruction& i) {
  Tensors tensors;
  if (i.b == 0) {
    const std::vector<Value>& variables = frame().variables;
    for (size_t v = 0; v < variables.size(); ++v) {
      if (!function().variables[v].empty()) AppendTensors(variables[v], &tensors);
    }
  } else if (!TensorsOf(PopMany(i.b), i.range, &tensors)) {
    return false;
  }
  return DumpText(DumpKinds()[i.a], tensors, i.range);
}

}  // namespace hlokit::lazy::script
