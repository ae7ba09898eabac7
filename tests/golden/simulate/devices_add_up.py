# SPDX-License-Identifier: Apache-2.0
"""Checks the times of devices with one straggler: devices_add_up.py REPORT.json SLOW_DEVICE FACTOR

The program computes, sums over all devices and computes again, as long as before. So the straggler computes FACTOR
times as long as the others, which wait for it half of the difference in the sum and are idle for the other half at the
end; the work and waiting of a device add up to the device time.
"""
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
slow, factor = int(sys.argv[2]), float(sys.argv[3])
devices = report["workers"]["devices"]
assert [d["device"] for d in devices] == list(range(report["workers"]["count"]))


def near(actual, expected, what):
    assert abs(actual - expected) <= 1e-6 * abs(report["device_time_us"]), f"{what}: {actual}, expected {expected}"


least = min(d["compute_us"] for d in devices)
for d in devices:
    own = least * (factor if d["device"] == slow else 1)
    near(d["compute_us"], own, f"compute of device {d['device']}")
    late = (least * factor - own) / 2
    near(d["sync_wait_us"], late, f"sync of device {d['device']}")
    near(d["idle_us"], late, f"idle of device {d['device']}")
    parts = ("compute_us", "exposed_communication_us", "sync_wait_us", "other_wait_us", "idle_us")
    near(sum(d[part] for part in parts), report["device_time_us"], f"time of device {d['device']}")
