# SPDX-License-Identifier: Apache-2.0
"""Checks the report of a partitioned simulation, on standard input: a device does an eighth of the operations of the whole
program, and what its collective moves is counted.
usage: unpartitioned_check.py PROGRAM
"""
import json, subprocess, sys

report = json.load(sys.stdin)
cost = subprocess.run(['hlo-inspect', 'cost', '--json', sys.argv[1]], capture_output=True, text=True, check=True).stdout
whole = json.loads(cost)[0]['total']['flops']
assert whole / 8 <= report['flops'] <= 1.05 * whole / 8, (whole, report['flops'])
kinds = {c['kind']: c['bytes'] for c in report['collectives']}
assert kinds.get('all-reduce', 0) > 0, kinds
assert not any('partition' in str(u) for u in report['unmodeled']), report['unmodeled']
