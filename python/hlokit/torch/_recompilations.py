# SPDX-License-Identifier: Apache-2.0
"""Why a program compiled again: all differences between the graph and the known one that it is nearest to."""

import difflib
import os
import re
from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence

_LINE = re.compile(r"\s*%(\d+)(?:\.\d+)? = (.+?) ([A-Za-z_0-9]+::[A-Za-z_0-9]+)\((.*?)\)(?:, (.*))?$")
_TAGS = re.compile(r"(scope|location|xla_shape|device|num_outputs|ROOT|donated|parameter)=(\([^)]*\)|[^,\[(]*(?:\[[^\]]*\](?:\{[^}]*\})?)?)(?:, )?")
_MOST = 12  # differences that are listed
_ALIGNED = 6000  # nodes up to which different sequences of ops are aligned


class Node(NamedTuple):
    number: int
    shape: str
    op: str
    operands: str
    location: str
    rest: str  # attributes

    @property
    def is_input(self) -> bool:
        return self.op == "xla::device_data"


def nodes_of(text: str) -> List[Node]:
    """The nodes of lazy IR."""
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            tags = match[5] or ""
            location = re.search(r"location=([^,]*)", tags)
            rest = _TAGS.sub("", tags).strip(", ")
            found.append(Node(int(match[1]), match[2], match[3], match[4], location[1] if location else "", rest))
    return found


def _short(shape: str) -> str:
    return re.sub(r"\{[\d,]*\}", "", shape)


def _users(nodes: Sequence[Node]) -> Dict[int, Node]:
    """The first user of each node."""
    users: Dict[int, Node] = {}
    for node in nodes:
        for operand in re.findall(r"%(\d+)", node.operands):
            users.setdefault(int(operand), node)
    return users


def _place(node: Node, users: Dict[int, Node]) -> str:
    """Where a node is recorded; of an input: what uses it first."""
    if node.is_input:
        user = users.get(node.number)
        return f" of {user.op}{_at(user.location)}" if user is not None else ""
    return _at(node.location)


def _at(location: str) -> str:
    return f", at {location}" if location else ""


def differences(new: str, old: str) -> List[str]:
    """All differences of shape and attributes between two graphs in lazy IR, or of their ops; the first ones, where others
    follow from them."""
    after, before = nodes_of(new), nodes_of(old)
    if [n.op for n in after] != [n.op for n in before]:
        return _of_ops(after, before)
    users = _users(after)
    found: Dict[str, int] = {}
    derived = 0
    changed = set()
    for a, b in zip(after, before):
        same_shape = a.shape == b.shape
        if same_shape and a.rest == b.rest and a.operands == b.operands:
            continue
        operands = {int(n) for n in re.findall(r"%(\d+)", a.operands)}
        if not same_shape:
            changed.add(a.number)
        if operands & changed:
            derived += 1
            continue
        kind = "input" if a.is_input else a.op
        if not same_shape:
            text = f"{kind} {_short(a.shape)} was {_short(b.shape)}{_place(a, users)}"
        elif a.rest != b.rest:
            text = f"{kind} has {a.rest or 'no attributes'}, it had {b.rest or 'none'}{_place(a, users)}"
        else:
            text = f"{kind} takes other operands{_place(a, users)}"
        found[text] = found.get(text, 0) + 1
    lines = [text if count == 1 else f"{text}: {count} times" for text, count in found.items()]
    if len(lines) > _MOST:
        lines = [*lines[:_MOST], f"and {len(lines) - _MOST} more"]
    if derived:
        lines.append(f"{derived} {'node follows' if derived == 1 else 'nodes follow'} from {'this' if len(found) == 1 else 'these'}")
    return lines or ["the same ops and shapes: donation, results or the order of inputs differ"]


def _of_ops(after: Sequence[Node], before: Sequence[Node]) -> List[str]:
    """The ops that one graph has and the other has not."""
    new_ops, old_ops = [n.op for n in after], [n.op for n in before]
    start = next((i for i, (a, b) in enumerate(zip(new_ops, old_ops)) if a != b), min(len(new_ops), len(old_ops)))
    added, removed = Counter(new_ops) - Counter(old_ops), Counter(old_ops) - Counter(new_ops)
    first: Optional[Node] = None
    if len(after) + len(before) <= _ALIGNED:
        for tag, i, j, k, m in difflib.SequenceMatcher(None, old_ops, new_ops, autojunk=False).get_opcodes():
            if tag != "equal" and first is None:
                candidates = [n for n in (*after[k:m], *before[i:j]) if n.location]
                first = candidates[0] if candidates else None
    if first is None:
        first = next((n for n in after[start:] if n.location), None)

    def listed(ops: "Counter[str]") -> str:
        parts = [name if count == 1 else f"{count} {name}" for name, count in ops.most_common(6)]
        return ", ".join(parts) + (f" and {len(ops) - 6} other ops" if len(ops) > 6 else "")

    lines = []
    created = min(added["xla::device_data"], removed["prim::Constant"])
    if created and created >= sum(removed.values()) / 3:
        lines.append(f"{created} constants became inputs: tensors that the graph before it made, such as an optimizer's state")
    if added:
        lines.append(f"it has also {listed(added)}")
    if removed:
        lines.append(f"it has not {listed(removed)}")
    if not lines:
        lines.append("the same ops in another order")
    if first is not None:
        lines[0] += f"; first {first.op}{_at(first.location)}"
    users = _users(after)
    inputs = Counter(_short(n.shape) for n in after if n.is_input) - Counter(_short(n.shape) for n in before if n.is_input)
    for node in after:
        shape = _short(node.shape)
        if node.is_input and inputs.get(shape, 0) > 0 and len(lines) < _MOST and not shape.endswith("[]"):
            lines.append(f"new input {shape}{_place(node, users)}")
            inputs[shape] = 0
    return lines


def base_name(location: str) -> str:
    """A location without the folder of its file."""
    function, at, file = location.rpartition("@")
    return function + at + os.path.basename(file)
