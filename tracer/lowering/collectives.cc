// Ops that join the replicas of a program.
#include "ir/replica_groups.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {

void ReplicaSum(NodeLowering& n) {
  const Hlo x = n.in(0);
  Emitter& e = n.emitter();
  if (!x.ok()) return n.Return(x);
  Context& context = e.module().context();
  // No groups: all replicas.
  const ListId groups = EncodeReplicaGroups(&context, ReplicaGroups::List({}));
  const AttrValue attrs[] = {{Attr::kReplicaGroups, groups.value},
                             {Attr::kToApply, e.Reducer(Opcode::kAdd, x.type()).value}};
  const InstructionId operands[] = {x.id()};
  n.Return(e.Take(e.builder().Add(Opcode::kAllReduce, operands, attrs)));
}

}  // namespace hlokit::lazy::lower
