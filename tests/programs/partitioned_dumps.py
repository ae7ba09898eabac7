#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partitions programs with shardings, and shows what their devices send each other.

usage: partitioned_dumps.py BIN DIR [--device=v5e] [--markdown]

Each program of DIR that is for several partitions, has shardings and no collectives is partitioned (hlo-opt --passes=spmd),
which must give a valid program, and simulated (hlo-run). Printed for each, of one device and one execution, with loops
counted as often as they run: operations as a multiple of an equal share of those of the whole program, runs and bytes of
each kind of collective, and the arrays that every device gathers although it has and needs only a part of them. Exit code
1 if a program cannot be partitioned or is not valid then.
"""
import glob, json, os, re, subprocess, sys, tempfile

KINDS = ['all-gather', 'all-reduce', 'reduce-scatter', 'all-to-all', 'collective-permute']


def size(b):
    for unit in ('B', 'KB', 'MB', 'GB'):
        if b < 1000:
            return f'{b:.3g} {unit}'
        b /= 1000
    return f'{b:.3g} TB'


def milliseconds(x):
    return f'{x:.0f}' if x >= 100 else f'{x:.3g}'


def main():
    flags = [a for a in sys.argv[1:] if a.startswith('--')]
    arguments = [a for a in sys.argv[1:] if not a.startswith('--')]
    if len(arguments) != 2:
        sys.exit(__doc__)
    tools, folder = arguments
    device = next((f.split('=')[1] for f in flags if f.startswith('--device=')), 'v5e')
    rows, failed = [], []
    for path in sorted(glob.glob(os.path.join(folder, '**', '*.hlo'), recursive=True)):
        text = open(path, errors='replace').read()
        if not re.search(r'^HloModule[^\n]*num_partitions=([2-9]|[1-9]\d)', text) or 'sharding' not in text:
            continue
        name = re.sub(r'\.module_\d+\.jit_+', ' ', os.path.basename(path).removesuffix('.hlo'))
        with tempfile.NamedTemporaryFile(suffix='.hlo') as out:
            made = subprocess.run([f'{tools}/hlo-opt', '--passes=spmd', '--diagnostics=json', '--print=lossless', path, '-o', out.name],
                                  capture_output=True, text=True)
            if made.returncode == 0 and 'spmd_partitioned="true"' not in open(out.name).read():
                continue  # nothing is divided
            report = subprocess.run([f'{tools}/hlo-run', out.name, f'--device={device}', '--timing-only', '--json'],
                                    capture_output=True, text=True)
        if made.returncode != 0 or report.returncode != 0:
            failed.append(f'{name}: {(made.stderr + report.stderr)[:2000]}')
            continue
        warnings = [d for d in json.loads(made.stderr or '[]') if d.get('kind') == 'sharding' and d['severity'] == 'warning']
        report = json.loads(report.stdout)
        cost = json.loads(subprocess.run([f'{tools}/hlo-inspect', 'cost', '--json', '--top=0', path], capture_output=True, text=True).stdout)
        share = report['flops'] * report['devices'] / max(cost[0]['total']['flops'], 1)
        used = {c['kind']: (c['runs'], c['bytes']) for c in report['collectives']}
        cells = [f'{used[k][0]:.0f}, {size(used[k][1])}' if k in used else '' for k in KINDS]
        rows.append([name, str(report['devices']), f'{share:.2f}', *cells, str(len(warnings)), milliseconds(report['step_time_us'] / 1000)])
    header = ['program', 'devices', 'operations', *KINDS, 'full gathers', f'{device}, ms']
    if '--markdown' in flags:
        print('| ' + ' | '.join(header) + ' |\n|' + '---|' * len(header))
        for row in rows:
            print('| ' + ' | '.join(row) + ' |')
    else:
        widths = [max(len(r[i]) for r in rows + [header]) for i in range(len(header))]
        for row in [header] + rows:
            print('  '.join(c.ljust(w) for c, w in zip(row, widths)).rstrip())
    for failure in failed:
        print(failure, file=sys.stderr)
    print(f'{len(rows)} passed, {len(failed)} failed')
    return 1 if failed or not rows else 0


if __name__ == '__main__':
    sys.exit(main())
