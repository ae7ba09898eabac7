# SPDX-License-Identifier: Apache-2.0
"""Reads an XSpace by the public field numbers only (xplane.proto, hlo.proto) and checks the requirements of XProf.

  xplane_check.py FILE.xplane.pb REPORT.json DEVICES STEPS

Prints a line for each property that holds; raises otherwise.
"""
import json
import struct
import sys


def fields(data):
    """(number, value) of each field of a message: ints, bytes, doubles of the wire."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
        elif kind == 1:
            yield tag >> 3, struct.unpack("<d", data[at:at + 8])[0]
            at += 8
        elif kind == 2:
            size = varint()
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind}")


def group(data):
    result = {}
    for number, value in fields(data):
        result.setdefault(number, []).append(value)
    return result


def one(message, number, default=None):
    return message.get(number, [default])[0]


def numbers(message, number):
    """A repeated integer, packed or not."""
    for value in message.get(number, []):
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            result = shift = 0
            while True:
                byte = value[at]
                at += 1
                result |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            yield result


class Plane:
    def __init__(self, data):
        self.raw = group(data)
        self.id = one(self.raw, 1)
        self.name = one(self.raw, 2).decode()
        self.stat_names = {}
        for entry in self.raw.get(5, []):
            metadata = group(one(group(entry), 2))
            self.stat_names[one(metadata, 1)] = one(metadata, 2).decode()
        self.events = {}
        for entry in self.raw.get(4, []):
            metadata = group(one(group(entry), 2))
            self.events[one(metadata, 1)] = metadata
        self.lines = {}
        for line in self.raw.get(3, []):
            line = group(line)
            self.lines[one(line, 2).decode()] = [group(event) for event in line.get(4, [])]

    def stats(self, message, number):
        result = {}
        for stat in message.get(number, []):
            stat = group(stat)
            value = next((stat[n][0] for n in (2, 3, 4, 5, 6, 7) if n in stat), 0)
            result[self.stat_names[one(stat, 1)]] = value
        return result


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print("holds:", what)


def check_steps_apart(plane):
    """The begin and end of each step: none touches the next, and each has its module."""
    spans = [(one(e, 2, 0), one(e, 2, 0) + one(e, 3, 0)) for e in plane.lines["Steps"]]
    assert all(a[1] < b[0] for a, b in zip(spans, spans[1:])), "steps apart"
    modules = [(one(e, 2, 0), one(e, 2, 0) + one(e, 3, 0)) for e in plane.lines["XLA Modules"]]
    assert all(s[0] <= m[0] and m[1] <= s[1] for s, m in zip(spans, modules)), "a module in each step"
    for event, (begin, end) in zip(plane.lines["Steps"], spans):
        assert 0 <= plane.stats(event, 4)["step_idle_time_ps"] <= end - begin
    return spans


def check_links(host, planes, steps):
    """Follows producers and consumers from the roots of steps to the modules of devices, as XProf does."""
    inner = {}  # calls in a root, by the root's number
    for line in host.lines.values():
        roots = [(one(e, 2, 0), one(e, 2, 0) + one(e, 3, 0), host.stats(e, 4)) for e in line]
        roots = [(a, b, stats["step_num"]) for a, b, stats in roots if "_r" in stats]
        for event in line:
            stats, start = host.stats(event, 4), one(event, 2, 0)
            for begin, end, step in roots:
                if begin <= start and start + one(event, 3, 0) <= end and stats.get("_pt") == 5:
                    inner[stats["_p"]] = step
    assert len(set(inner.values())) == steps, "each step calls"
    executions = {}
    for line in host.lines.values():
        taken = [(one(e, 2, 0), one(e, 2, 0) + one(e, 3, 0), host.stats(e, 4)) for e in line]
        for event in line:
            stats, start = host.stats(event, 4), one(event, 2, 0)
            for begin, end, outer in taken:
                if stats.get("_pt") == 7 and outer.get("_ct") == 5 and begin <= start < end + 1:
                    executions.setdefault(stats["_p"], inner[outer["_c"]])
    for plane in planes:
        modules = [plane.stats(e, 4) for e in plane.lines["XLA Modules"]]
        assert all(stats["_ct"] == 7 for stats in modules)
        assert [executions[stats["_c"]] for stats in modules] == list(range(steps)), "modules are of the host's steps"
    check(True, "producers and consumers lead from each step to its modules")


def check_no_groups(planes):
    names = {name for plane in planes for name in plane.stat_names.values()}
    check("group_id" not in names and "counter_value" not in names, "groups are XProf's, and counters no hardware's")


def check_device(plane, devices, steps, report):
    peaks = plane.stats(plane.raw, 6)
    for name in ("peak_teraflops_per_second", "peak_hbm_bw_gigabytes_per_second", "peak_vmem_rd_bw_gigabytes_per_second"):
        assert isinstance(peaks[name], float) and peaks[name] > 0, name
    for name in ("has_megacore", "has_merged_vmem", "device_type_string", "device_id", "core_details", "clock_rate", "core_count",
                 "memory_bandwidth", "memory_size"):
        assert name in peaks, name
    assert len(plane.lines["Steps"]) == steps, "steps"
    # XProf counts an event to each step that it touches.
    step_ends = check_steps_apart(plane)
    ops = plane.lines["XLA Ops"] + plane.lines["Async XLA Ops"]
    names = set()
    for event in ops:
        metadata = plane.events[one(event, 1)]
        stats = plane.stats(metadata, 5)
        if stats["hlo_category"] not in (b"while", b"call", b"conditional"):
            names.add(one(metadata, 4, b"").decode())
        assert stats["program_id"] and stats["symbol_id"], "an event without them is dropped"
        for name in ("hlo_category", "flops", "model_flops", "bytes_accessed", "memory_access_breakdown",
                     "deduplicated_name", "shape_with_layout"):
            assert name in stats, name
        assert stats.get("tf_op", b"x:").endswith(b":") and stats.get("source", b"x") != b"", "XProf parses them"
        own = plane.stats(event, 4)
        assert own["run_id"] > 0
        start, end = one(event, 2, 0), one(event, 2, 0) + one(event, 3, 0)
        assert sum(begin <= end and start <= stop for begin, stop in step_ends) == 1, "an operation of two steps"
        assert own["device_offset_ps"] == one(event, 2, 0) and own["device_duration_ps"] == one(event, 3, 0)
    open_until = []
    for event in plane.lines["XLA Ops"]:
        start = one(event, 2, 0)
        end = start + one(event, 3, 0)
        while open_until and open_until[-1] <= start:
            open_until.pop()
        assert not open_until or end <= open_until[-1], "operations follow or hold each other"
        open_until.append(end)
    assert devices == 1 or any("all-reduce" in one(plane.events[one(e, 1)], 2).decode() for e in ops), "all-reduce"
    assert {op["name"] for op in report["ops"]} >= names


def check_memory_viewer(allocations, sizes, buffers, report):
    """Memory viewer adds allocations of arguments and of what is alive at the end to the peak of the trace."""
    fixed = sum(one(a, 2, 0) for a in allocations if one(a, 8, 0) == 0 and any(one(a, n, 0) for n in (3, 5, 7, 12)))
    alive = peak = 0
    for event in map(group, group(one(buffers, 4)).get(1, [])):
        alive += sizes[one(event, 2)] * (1 if one(event, 1, 0) == 0 else -1)
        peak = max(peak, alive)
    check(fixed + peak == report["memory"]["peak_bytes"], "memory viewer's peak is that of the report")


def check_program(plane, report):
    (metadata,) = plane.events.values()
    stats = plane.stats(metadata, 5)
    proto = group(stats["Hlo Proto"])
    module = group(one(proto, 1))
    check(one(module, 1).decode() == report["module"] and one(module, 2), "the program is there, by name and entry")
    instructions = {}
    entry = None
    sequences = {one(group(s), 1, 0): group(one(group(s), 2, b"")) for s in group(one(module, 7, b"")).get(1, [])}
    for computation in module[3]:
        computation = group(computation)
        members = [one(group(i), 35, 0) for i in computation[2]]
        scheduled = list(numbers(sequences.get(one(computation, 5, 0), {}), 1))
        assert sorted(scheduled) == ([] if one(computation, 7, 0) else sorted(members)), "a sequence of all instructions"
        if one(computation, 5, 0) == one(module, 6, 0):
            entry = computation
        for instruction in computation[2]:
            instruction = group(instruction)
            operands = list(numbers(instruction, 36))
            assert all(operand in instructions for operand in operands), "operands come first"
            instructions[one(instruction, 35, 0)] = one(instruction, 1).decode()
    check(one(entry, 6, 0) in instructions, "operands before users, and a root")
    buffers = group(one(proto, 3))
    sizes = {one(group(b), 1): one(group(b), 2, 0) for b in buffers[1]}
    places = [one(group(one(group(b), 3)), 4, 0) for b in buffers[1]]
    check(all(place in instructions for place in places), "buffers are defined by instructions")
    allocations = [group(a) for a in buffers[3]]
    check_memory_viewer(allocations, sizes, buffers, report)
    trace = group(one(buffers, 4))
    heap_index = one(trace, 3, 0)
    standing = sum(one(a, 2, 0) for a in allocations if one(a, 1, 0) != heap_index and one(a, 8, 0) == 0)
    alive = peak = 0
    live = set()
    for event in trace.get(1, []):
        event = group(event)
        buffer = one(event, 2)
        if one(event, 1, 0) == 0:
            live.add(buffer)
            alive += sizes[buffer]
        else:
            live.remove(buffer)
            alive -= sizes[buffer]
        peak = max(peak, alive)
    check(standing + peak == report["memory"]["peak_bytes"], "replaying the heap gives the peak of the report")
    heap = allocations[heap_index]
    check(one(heap, 2, 0) >= peak, "the heap holds its peak")
    for allocation in allocations:
        for place in allocation.get(9, []):
            place = group(place)
            assert one(place, 2, 0) + one(place, 3, 0) <= one(allocation, 2, 0)
    for trace in buffers[4][1:]:
        trace = group(trace)
        allocation = allocations[one(trace, 3)]
        assert one(allocation, 8) == 1, "vector memory"
        colors = {one(group(b), 1): one(group(b), 4, 0) for b in buffers[1]}
        live = set()
        highest = 0
        for event in map(group, trace[1]):
            assert colors[one(event, 2)] == 1
            (live.add if one(event, 1, 0) == 0 else live.remove)(one(event, 2))
            highest = max(highest, sum(sizes[buffer] for buffer in live))
        check(not live and 0 < highest <= report["memory"]["vmem"]["peak_bytes"], "arrays come and go in vector memory")


def check_memory(plane, report):
    """Replays the allocator's events."""
    (events,) = [events for name, events in plane.lines.items() if name.startswith("allocator")]
    alive = {}
    peak = last = 0
    for event in events:
        stats = plane.stats(event, 4)
        time = one(event, 2, 0)
        assert time >= last, "in the order of time"
        last = time
        name = one(plane.events[one(event, 1)], 2).decode()
        size = stats["allocation_bytes"]
        if name == "MemoryAllocation":
            assert all(a + s <= stats["addr"] or stats["addr"] + size <= a for a, s in alive.items()), "blocks apart"
            alive[stats["addr"]] = size
        else:
            assert name == "MemoryDeallocation" and alive.pop(stats["addr"]) == size
        in_use = sum(alive.values())
        assert in_use == stats["bytes_reserved"] + stats["bytes_allocated"], "in use"
        peak = max(peak, in_use)
        assert stats["peak_bytes_in_use"] == peak
        for stat in ("index_on_host", "bytes_available", "fragmentation", "requested_bytes", "tf_op", "region_type",
                     "data_type", "shape"):
            assert stat in stats, stat
    check(peak == report["memory"]["peak_bytes"], "the allocator's peak is that of the report")


def main():
    path, report_path, devices, steps = sys.argv[1:5]
    with open(path, "rb") as file:
        space = group(file.read())
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    planes = {plane.name: plane for plane in map(Plane, space[1])}
    check(one(space, 4).decode() != "", "a host name")
    for device in range(int(devices)):
        plane = planes[f"/device:TPU:{device}"]
        assert 1 <= plane.id <= 500
        check_device(plane, int(devices), int(steps), report)
    check(True, f"{devices} devices with peaks, {steps} steps and operations")
    host = planes["/host:CPU"]
    roots = [host.stats(e, 4) for line in host.lines.values() for e in line if "_r" in host.stats(e, 4)]
    check([root.get("step_num", 0) for root in roots] == list(range(int(steps))), "steps have roots on the host")
    calls = {host.stats(e, 4)["_p"] for line in host.lines.values() for e in line if host.stats(e, 4).get("_pt") == 7}
    runs = {p.stats(e, 4)["_c"] for p in planes.values() if p.name.startswith("/device") for e in p.lines["XLA Modules"]}
    check(calls == runs and calls, "each execution has its call")
    check_links(host, [plane for plane in planes.values() if plane.name.startswith("/device")], int(steps))
    check_no_groups(planes.values())
    utilization = host.stats(host.raw, 6)
    check(all(0 < utilization[name] <= 100 for name in ("matrix_unit_utilization_percent", "hbm_utilization_percent")),
          "utilization of the matrix unit and HBM")
    check_memory(host, report)
    task = planes["Task Environment"]
    stats = task.stats(task.raw, 6)
    check(stats["profile_stop_time"] > stats["profile_start_time"], "start and stop")
    check_program(planes["/host:metadata"], report)


if __name__ == "__main__":
    main()
