# SPDX-License-Identifier: Apache-2.0
"""Checks that the training step of a model over a mesh, partitioned, has at most LIMIT times an equal share of the operations
of the whole one, and that nothing is warned of.
usage: mesh_check.py LIMIT MESH IR_DUMP_ARGUMENTS...
"""
import json, math, subprocess, sys

limit, mesh, arguments = float(sys.argv[1]), sys.argv[2], sys.argv[3:]


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def flops(text):
    return json.loads(run(['hlo-inspect', 'cost', '--json', '-'], text).stdout)[0]['total']['flops']


whole = run(['ir-dump', *arguments, '--step=train', '--emit=hlo', f'--mesh={mesh}']).stdout
part = run(['hlo-opt', '--passes=spmd', '-'], whole)
assert 'warning' not in part.stderr, part.stderr
devices = math.prod(int(axis.split(':')[1]) for axis in mesh.split(','))
share = flops(part.stdout) * devices / flops(whole)
assert 0.95 <= share <= limit, share
print(share)
