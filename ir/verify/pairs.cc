// SPDX-License-Identifier: Apache-2.0
// Verifies pairs of start and done, and channels: one value of a start goes to one done, and the users of a channel
// agree.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/graph/instruction_queries.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kPairKind = DiagnosticKind::kAsyncPair;

struct Pair {
  Opcode start;
  Opcode done;
  Opcode carrier;  // opcode that may forward the value (kTuple after a send, kGetTupleElement before a done)
};

constexpr Pair kPairs[] = {
    {Opcode::kAllGatherStart, Opcode::kAllGatherDone, Opcode::kUnknown},
    {Opcode::kAllReduceStart, Opcode::kAllReduceDone, Opcode::kUnknown},
    {Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone, Opcode::kUnknown},
    {Opcode::kCopyStart, Opcode::kCopyDone, Opcode::kUnknown},
    {Opcode::kRecv, Opcode::kRecvDone, Opcode::kTuple},
    {Opcode::kSend, Opcode::kSendDone, Opcode::kTuple},
};

const Pair& PairOf(Opcode opcode) {
  const Pair* found = kPairs;
  while (found->start != opcode && found->done != opcode) ++found;
  return *found;
}

// Returns true for a custom call that only orders instructions.
bool IsControlDependency(Instruction i) { return IsCustomCall(i, "control_dep"); }

// Returns the only user, or reports an error and returns an invalid instruction.
Instruction OnlyUser(VerifierContext& v, Instruction i, const Pair& pair) {
  Instruction user;
  int64_t count = 0;
  for (const auto use : i.uses()) {
    if (IsControlDependency(use.user) || (user.valid() && use.user == user)) continue;
    user = use.user;
    ++count;
  }
  if (count != 1) {
    v.Report(i, kPairKind,
             StrCat("has ", Counted(count, "user"), "; ", ToString(pair.start), " must have exactly one, a ",
                    ToString(pair.done)));
    return Instruction();
  }
  if (user.opcode() != pair.done && user.opcode() != pair.carrier) {
    v.Report(i, kPairKind,
             StrCat("is used by `", user.name(), "`, ", user.opcode_text(), "; only ", ToString(pair.done), " may use ",
                    ToString(pair.start)));
    return Instruction();
  }
  return user;
}

// Returns true if `a` and `b` are equal except for names and operands.
bool SameTransfer(Instruction a, Instruction b) {
  if (a.opcode() != b.opcode() || a.shape() != b.shape() || a.operand_count() != b.operand_count()) return false;
  for (int64_t n = 0; n < a.operand_count(); ++n) {
    if (a.operand(n).shape() != b.operand(n).shape()) return false;
  }
  const auto counts = [](const AttrValue& value) {
    const AttrCategory meaning = InfoOf(value.attr).category;
    return value.attr != Attr::kControlPredecessors &&
           (meaning == AttrCategory::kSemantic || meaning == AttrCategory::kFrontend);
  };
  const auto covers = [&counts](Instruction x, Instruction y) {
    return std::all_of(x.attrs().begin(), x.attrs().end(), [&](const AttrValue& value) {
      return !counts(value) || y.payload(value.attr) == value.payload;
    });
  };
  return covers(a, b) && covers(b, a);
}

}  // namespace

void CheckStart(VerifierContext& v, Instruction i) { OnlyUser(v, i, PairOf(i.opcode())); }

void CheckDone(VerifierContext& v, Instruction i) {
  const Pair& pair = PairOf(i.opcode());
  const Instruction operand = i.operand(0);
  const bool carried = pair.carrier != Opcode::kUnknown && operand.opcode() == Opcode::kGetTupleElement;
  if (operand.opcode() == pair.start || carried) return;
  v.Report(
      i, kPairKind,
      StrCat("its operand `", operand.name(), "` is ", operand.opcode_text(), "; ", "expected ", ToString(pair.start)));
}

void CheckSendRecv(VerifierContext& v, Instruction i) {
  const std::optional<uint32_t> channel = i.payload(Attr::kChannelId);
  const bool host = i.bool_attr(Attr::kIsHostTransfer);
  if (host && channel) v.host_transfers.push_back(i.id());
  // In an async-start, the outer async-done takes the value.
  if (i.is_root() && v.IsAsync(i.parent())) return;
  const Pair& pair = PairOf(i.opcode());
  const Instruction user = OnlyUser(v, i, pair);
  if (!user.valid() || user.opcode() != pair.done || !channel) return;
  if (user.payload(Attr::kChannelId) != channel) {
    v.Report(user, DiagnosticKind::kChannel, StrCat("has a different channel_id than `", i.name(), "`"));
  }
  if (user.bool_attr(Attr::kIsHostTransfer) != host) {
    v.Report(user, DiagnosticKind::kChannel, StrCat("differs from `", i.name(), "` in is_host_transfer"));
  }
}

void CheckChannels(VerifierContext& v) {
  // Sorted by channel, then in text order, which is the order of the reports.
  const auto channel_of = [&v](InstructionId id) { return v.module.instruction(id).int_attr(Attr::kChannelId); };
  std::vector<InstructionId>& transfers = v.host_transfers;
  std::stable_sort(transfers.begin(), transfers.end(),
                   [&](InstructionId a, InstructionId b) { return channel_of(a) < channel_of(b); });
  for (size_t n = 1, first = 0; n < transfers.size(); ++n) {
    if (channel_of(transfers[n]) != channel_of(transfers[first])) {
      first = n;
      continue;
    }
    const Instruction a = v.module.instruction(transfers[first]);
    const Instruction b = v.module.instruction(transfers[n]);
    if (SameTransfer(a, b)) continue;
    v.Report(b, DiagnosticKind::kChannel,
             StrCat("shares channel ", channel_of(b.id()), " with `", a.name(),
                    "`, but differs in shape or attributes; host transfers of one channel must match"));
  }
  if (v.all_reduces.empty()) return;
  const Instruction reference = v.module.instruction(v.all_reduces[0]);
  for (InstructionId id : v.all_reduces) {
    const Instruction i = v.module.instruction(id);
    if (i.bool_attr(Attr::kConstrainLayout) == reference.bool_attr(Attr::kConstrainLayout)) continue;
    v.Report(
        i, DiagnosticKind::kCollective,
        StrCat("differs from `", reference.name(), "` in constrain_layout; the all-reduces of a module must agree"));
    return;
  }
}

}  // namespace hlokit::verify_internal
