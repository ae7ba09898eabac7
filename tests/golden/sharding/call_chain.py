# SPDX-License-Identifier: Apache-2.0
"""Writes a chain of computations, each of which calls the next twice.

The entry calls the first outside and inside of a manual region. With --axes, the second call of each computation is in
a region of an axis of its own.
"""

import argparse

ARRAY = 'f32[8]'


def conversion(name, operand, target, shardings, axis):
    return (
        f'  {name} = {ARRAY} custom-call({operand}), custom_call_target="xla.sdy.{target}", '
        f'frontend_attributes={{xla.sdy.{shardings}="#sdy.sharding_per_value<[<@mesh, [{{}}]>]>",'
        f'xla.sdy.manual_axes="#sdy<manual_axes{{\\"{axis}\\"}}>"}}'
    )


def body(callee, axis):
    """The lines that call `callee` outside of a region and, with an axis, inside."""
    lines = [f'  p = {ARRAY} parameter(0)', f'  a = {ARRAY} call(p), to_apply={callee}']
    if axis is None:
        return lines + [f'  ROOT b = {ARRAY} call(a), to_apply={callee}']
    return lines + [
        conversion('l', 'a', 'GlobalToLocalShape', 'in_shardings', axis),
        f'  b = {ARRAY} call(l), to_apply={callee}',
        conversion('ROOT g', 'b', 'LocalToGlobalShape', 'out_shardings', axis),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('length', type=int)
    parser.add_argument('--axes', action='store_true')
    args = parser.parse_args()
    mesh = ', '.join(f'"a{n}"=2' for n in range(args.length + 1 if args.axes else 1))
    print(f'HloModule chain, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[{mesh}]>}}}}')
    computations = [(f'c{args.length}', [f'  p = {ARRAY} parameter(0)', f'  ROOT n = {ARRAY} negate(p)'])]
    for n in reversed(range(args.length)):
        computations.append((f'c{n}', body(f'c{n + 1}', f'a{n + 1}' if args.axes else None)))
    computations.append(('ENTRY e', body('c0', 'a0')))
    for name, lines in computations:
        print('\n'.join(['', name + ' {'] + lines + ['}']))


if __name__ == '__main__':
    main()
