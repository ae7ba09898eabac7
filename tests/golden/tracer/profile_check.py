# SPDX-License-Identifier: Apache-2.0
"""Checks the events of a profile of data-parallel training: profile_check.py DEVICES FILE.xplane.pb

Every step has its scopes on the host and on each device, and its all-reduce on all of them at the same time.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "simulate"))
from xplane_check import Plane, group, one  # noqa: E402

SCOPES = ("forward", "backward", "optimizer")


def span_of(event):
    return one(event, 2, 0), one(event, 2, 0) + one(event, 3, 0)


def host_steps(plane):
    """A function that returns the step of a span of the host: that of the root around it, or of the call it comes from."""
    spans = [(span_of(e), plane.stats(e, 4)) for line in ("main",) for e in plane.lines[line]]
    roots = [(span, stats["step_num"]) for span, stats in spans if "_r" in stats]
    around = lambda span: next((step for (begin, end), step in roots if begin <= span[0] and span[1] <= end), None)
    calls = {stats["_p"]: around(span) for span, stats in spans if stats.get("_pt") == 5}

    def step_of(event):
        stats = plane.stats(event, 4)
        return calls.get(stats["_c"]) if stats.get("_ct") == 5 else around(span_of(event))

    return step_of


def device_steps(plane):
    """The same for an operation: the number of the step around it."""
    steps = [(span_of(e), k) for k, e in enumerate(plane.lines["Steps"])]
    return lambda event: next((k for (begin, end), k in steps if begin <= one(event, 2, 0) <= end), None)


def steps_of(plane, line, wanted, step_of):
    """For each wanted name: the steps in which an event has it, by name or scope, and its start times."""
    found = {name: {} for name in wanted}
    for event in plane.lines[line]:
        metadata = plane.events[one(event, 1)]
        text = one(metadata, 2, b"").decode() + " " + plane.stats(metadata, 5).get("tf_op", b"").decode()
        for name in wanted:
            if name in text and (step := step_of(event)) is not None:
                found[name].setdefault(step, one(event, 2, 0))
    return found


def main():
    devices = int(sys.argv[1])
    with open(sys.argv[2], "rb") as file:
        planes = {plane.name: plane for plane in map(Plane, group(file.read())[1])}
    step_of = host_steps(planes["/host:CPU"])
    host = steps_of(planes["/host:CPU"], "main", ("StepMarker",) + SCOPES, step_of)
    host.update(steps_of(planes["/host:CPU"], "TPU:0 runtime", ("RunExecutable",), step_of))
    steps = set(host["StepMarker"])
    assert len(steps) >= 4, steps
    for name, found in host.items():
        assert set(found) == steps, f"{name}: in steps {sorted(found)} of {sorted(steps)}"
    first = None
    for device in range(devices):
        plane = planes[f"/device:TPU:{device}"]
        within = device_steps(plane)
        for scope, found in steps_of(plane, "XLA Ops", SCOPES, within).items():
            assert set(found) == steps, f"device {device}, {scope}: {sorted(found)}"
        reduced = steps_of(plane, "Async XLA Ops", ("all-reduce",), within)["all-reduce"]
        assert set(reduced) == steps, f"device {device}: all-reduce in {sorted(reduced)}"
        first = first or reduced
        assert reduced == first, f"device {device} begins its all-reduce alone"
    assert f"/device:TPU:{devices}" not in planes
    print(f"{devices} devices, each with forward, backward, optimizer and an all-reduce in every step")
    print("host: a step marker, a call and three scopes in every step; the runtime's thread runs each call")


main()
