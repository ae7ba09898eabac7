// SPDX-License-Identifier: Apache-2.0
// The module and its computations in JSON.
#include "parser/json/json_parser.h"

#include <algorithm>
#include <utility>

#include "ir/core/suggest.h"
#include "ir/graph/call_walk.h"
#include "ir/json/json_printer.h"
#include "parser/json/json_module_parser.h"

namespace hlokit {

JsonModuleParser::JsonModuleParser(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                   const ParseOptions& options, DiagnosticSink* sink, std::shared_ptr<Context> context)
    : sink_(sink),
      options_(options),
      in_(text, sink, static_cast<uint32_t>(text.data() - source->text().data()), options.max_nesting),
      context_(std::move(context)),
      module_(std::make_unique<Module>(context_)),
      text_in_("", &local_, 0),
      shape_parser_(&text_in_, context_.get(), options_.max_nesting, "--max-nesting"),
      attribute_parser_(&text_in_, context_.get(), &shape_parser_, &literal_budget_),
      names_(module_.get()),
      rules_(module_.get(), &local_) {
  literal_budget_.bytes = ByteLimit(options_.max_literal_bytes);
  // An instruction of a dump takes about 400 bytes of JSON.
  const size_t guess = text.size() / 400;
  module_->Reserve(guess, guess * 3 / 2, guess);
}

std::unique_ptr<Module> JsonModuleParser::Run() {
  bool broken = false;
  if (!Member(&broken, [this] { return ReadModule(); }) || failed_) return nullptr;
  if (!in_.in().AtEnd()) {
    in_.Expected("the end of the text after the module");
    return nullptr;
  }
  if (!ResolveComputations() || !CheckCalls()) return nullptr;
  FinishModule();
  return failed_ ? nullptr : std::move(module_);
}

bool JsonModuleParser::ReadModule() {
  const SourceRange start = in_.Next();
  bool broken = false;
  JsonObject object(in_, "a module: an object");
  JsonString key;
  while (object.Next(&key)) {
    if (!Member(&broken, [&] { return ReadModuleMember(key); })) return false;
  }
  if (!object.ok()) return false;
  if ((seen_ & 1) == 0) {
    return Error(DiagnosticKind::kMissingAttribute, start, "missing key `format` in the module",
                 StrCat("a module begins with {\"format\":\"", kJsonFormat, "\",\"version\":", kJsonVersion, "}"));
  }
  if (finished_.empty() && !failed_) {
    return Error(DiagnosticKind::kMissingAttribute, start, "expected at least one computation in the module");
  }
  return !broken;
}

bool JsonModuleParser::ReadModuleMember(const JsonString& key) {
  static constexpr std::string_view kKeys[] = {"format",       "version", "name",        "header",
                                               "stack_frames", "entry",   "computations"};
  bool ok;
  switch (FindKey(key, "a module", kKeys, &seen_, &ok)) {
    case 0:
      return ReadFormat();
    case 1:
      return ReadVersion();
    case 2: {
      Reference name;
      if (!ReadName(&name, "the name of the module")) return false;
      module().header().name = name.name;
      return true;
    }
    case 3:
      return ReadHeader();
    case 4:
      return ReadStackFrames();
    case 5:
      return ReadName(&entry_, "the name of the entry computation");
    case 6:
      return ReadComputations();
  }
  return ok;
}

bool JsonModuleParser::ReadFormat() {
  JsonString s;
  if (!in_.String(&s, "the format in a string")) return false;
  if (s.value == kJsonFormat) return true;
  return Error(DiagnosticKind::kBadHeader, s.range,
               StrCat("expected format `", kJsonFormat, "`, found `", s.value, "`"));
}

bool JsonModuleParser::ReadVersion() {
  const SourceRange range = in_.Next();
  int64_t version;
  if (!in_.Int(&version, "the version of the format")) return false;
  if (version == kJsonVersion) return true;
  return Error(DiagnosticKind::kBadHeader, range,
               StrCat("unsupported format version ", version, "; expected version ", kJsonVersion));
}

// ---- computations ----

bool JsonModuleParser::ReadComputations() {
  bool broken = false;
  JsonArray array(in_, "a list of computations");
  while (array.Next()) {
    if (!Member(&broken, [this] { return ReadComputation(); })) return false;
  }
  return array.ok() && !broken;
}

bool JsonModuleParser::ReadComputation() {
  static constexpr std::string_view kKeys[] = {"name", "execution_thread", "root", "instructions"};
  const SourceRange start = in_.Next();
  Reference name, root;
  StringId thread;
  ComputationId id;
  uint32_t instructions_at = SourceRange::kNoOffset;
  uint32_t seen = 0;
  computation_broken_ = false;
  const auto member = [&](const JsonString& key) {
    JsonString s;
    bool ok;
    switch (FindKey(key, "a computation", kKeys, &seen, &ok)) {
      case 0:
        if (!ReadName(&name, "the name of the computation")) return false;
        id = DefineComputation(name);
        return id.valid();
      case 1:
        if (!in_.String(&s, "the name of a thread")) return false;
        thread = InternString(s);
        return true;
      case 2:
        return ReadName(&root, "the name of the root instruction");
      case 3:
        if (id.valid()) return ReadInstructions(id);
        instructions_at = in_.Offset();
        return in_.Skip();
    }
    return ok;
  };
  JsonObject object(in_, "a computation: an object");
  JsonString key;
  while (object.Next(&key)) {
    if (!Member(&computation_broken_, [&] { return member(key); })) return false;
  }
  if (!object.ok()) return false;
  for (size_t required : {0, 3}) {
    if ((seen >> required & 1) != 0) continue;
    return Error(DiagnosticKind::kMissingAttribute, {start.offset, 1},
                 StrCat("missing key `", kKeys[required], "` in a computation"));
  }
  if (!id.valid()) return false;
  if (instructions_at != SourceRange::kNoOffset) {
    const uint32_t end = in_.Offset();
    in_.Seek(instructions_at);
    if (!Member(&computation_broken_, [&] { return ReadInstructions(id); })) return false;
    in_.Seek(end);
  }
  if (thread.valid() && context().str(thread) != "main") module().SetExecutionThread(id, thread);
  FinishComputation(id, root);
  return true;
}

bool JsonModuleParser::ReadInstructions(ComputationId computation) {
  order_.clear();
  deferred_.clear();
  JsonArray array(in_, "a list of instructions");
  while (array.Next()) {
    pending_.Reset();
    pending_.draft.computation = computation;
    if (!Member(&pending_.broken, [this] { return ReadInstruction(&pending_); })) return false;
    AddOrDefer();
    if (stopped_) return false;
  }
  if (!array.ok()) return false;
  AddDeferred();
  return !stopped_;
}

void JsonModuleParser::FinishComputation(ComputationId id, const Reference& root) {
  const SourceRange range{module().record(id).source_offset,
                          static_cast<uint32_t>(module().computation(id).name().size())};
  if (!computation_broken_ && order_.empty()) {
    computation_broken_ = true;
    Error(DiagnosticKind::kUnexpectedToken, range, "expected at least one instruction in the computation");
  }
  InstructionId root_id;
  if (!computation_broken_ && root.name.valid()) {
    root_id = names_.Find(root.name, id);
    if (!root_id.valid()) {
      computation_broken_ = true;
      Error(DiagnosticKind::kUndefinedOperand, root.range,
            StrCat("use of undefined instruction `", context().str(root.name), "`"));
    }
  }
  if (computation_broken_) return;
  if (!deferred_.empty()) {
    // Deferred instructions were appended last; restore the order of the list.
    for (InstructionId instruction : order_) module().MoveBefore(instruction, InstructionId());
  }
  rules_.FinishComputation(id, root_id);
  finished_.push_back(id);
  ForwardDiagnostics();
}

ComputationId JsonModuleParser::DefineComputation(const Reference& name) {
  const bool again = computations_.contains(name.name.value) && !mentions_.contains(name.name.value);
  if (again) {
    Error(DiagnosticKind::kDuplicateName, name.range,
          StrCat("redefinition of computation `", context().str(name.name), "`"));
    return ComputationId();
  }
  const ComputationId id = ComputationByName(name);
  mentions_.erase(name.name.value);
  module().SetSource(id, name.range.offset + 1);
  return id;
}

ComputationId JsonModuleParser::ComputationByName(const Reference& reference) {
  const auto [slot, added] = computations_.insert({reference.name.value, ComputationId()});
  if (added) {
    slot->second = module().AddComputation(reference.name);
    mentions_.insert({reference.name.value, reference});
  }
  return slot->second;
}

// ---- the end ----

bool JsonModuleParser::ResolveComputations() {
  if (entry_.name.valid()) module().SetEntry(ComputationByName(entry_));
  if (mentions_.empty()) return true;
  std::vector<std::string_view> names;
  for (ComputationId known : finished_) {
    names.push_back(module().computation(known).name());
    if (names.size() == 4096) break;
  }
  std::vector<Reference> missing;
  for (const auto& [name, reference] : mentions_) missing.push_back(reference);
  std::sort(missing.begin(), missing.end(),
            [](const Reference& a, const Reference& b) { return a.range.offset < b.range.offset; });
  for (const Reference& reference : missing) {
    if (sink_->limit_reached()) break;
    const std::string_view name = context().str(reference.name);
    Error(DiagnosticKind::kUndefinedComputation, reference.range, StrCat("use of undefined computation `", name, "`"),
          DidYouMean(name, names));
  }
  return false;
}

// Checks that no computation calls itself. HLO text cannot express that, since callees come first, and other code
// relies on it; JSON allows any order.
bool JsonModuleParser::CheckCalls() {
  std::vector<std::vector<ComputationId>> callees(module().computation_id_bound());
  for (ComputationId caller : finished_) {
    for (Instruction i : module().computation(caller).instructions()) {
      i.ForEachCallee([&](Computation callee) { callees[caller.value].push_back(callee.id()); });
    }
  }
  CallWalk walk(callees.size(), [&](ComputationId id, uint32_t k) {
    const std::vector<ComputationId>& all = callees[id.value];
    return k < all.size() ? all[all.size() - 1 - k] : ComputationId();
  });
  const auto report = [&](ComputationId callee) {
    const ComputationId caller = walk.path().back().id;
    const std::string_view name = module().computation(caller).name();
    return Error(DiagnosticKind::kCyclicCalls,
                 {module().record(caller).source_offset, static_cast<uint32_t>(name.size())},
                 StrCat("recursive calls: computation `", name, "` calls `", module().computation(callee).name(),
                        "`, which calls it"));
  };
  for (ComputationId root : finished_) {
    if (!walk.From(
            root, [](ComputationId) {}, report))
      return false;
  }
  return true;
}

// Completes members that HLO text may omit too.
void JsonModuleParser::FinishModule() {
  if (!entry_.name.valid()) module().SetEntry(finished_.back());
  module().SetComputationOrder(finished_);
  const Computation entry = module().entry();
  ModuleHeader& h = module().header();
  if (!h.name.valid()) h.name = context().strings.Intern(StrCat("module_", entry.name()));
  if (!h.entry_layout) {
    EntryLayout layout;
    for (int64_t i = 0; i < entry.parameter_count(); ++i) layout.parameters.push_back(entry.parameter(i).shape());
    layout.result = entry.root().shape();
    h.entry_layout = std::move(layout);
  }
}

// ---- public ----

bool LooksLikeJson(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (char_class::Is(c, char_class::kWhitespace)) continue;
    const std::string_view rest = text.substr(i);
    if (rest.substr(0, 2) == "//") {
      i = std::min(text.find('\n', i), text.size() - 1);
    } else if (rest.substr(0, 2) == "/*") {
      const size_t end = text.find("*/", i + 2);
      if (end == std::string_view::npos) return false;
      i = end + 1;
    } else {
      return c == '{';
    }
  }
  return false;
}

std::unique_ptr<Module> ParseJsonModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                            const ParseOptions& options, DiagnosticSink* sink,
                                            std::shared_ptr<Context> context) {
  if (source->text().size() >= SourceRange::kNoOffset) {
    sink->Error(DiagnosticKind::kTooLarge, {}, "the input is too large: texts of 4 GiB and more are not supported");
    return nullptr;
  }
  if (context == nullptr) context = std::make_shared<Context>();
  context->Keep(source);
  return JsonModuleParser(source, text, options, sink, std::move(context)).Run();
}

std::unique_ptr<Module> ParseJsonModule(std::shared_ptr<const SourceBuffer> source, const ParseOptions& options,
                                        DiagnosticSink* sink, std::shared_ptr<Context> context) {
  const std::string_view text = source->text();
  return ParseJsonModulePart(std::move(source), text, options, sink, std::move(context));
}

}  // namespace hlokit
