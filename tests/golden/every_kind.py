# SPDX-License-Identifier: Apache-2.0
"""Runs the tools over all golden inputs and lists the kinds of diagnostics that none of them produces.
usage: every_kind.py GOLDEN_DIR
"""
import glob, json, os, re, subprocess, sys

golden = sys.argv[1]
table = open(os.path.join(golden, '..', '..', 'ir', 'core', 'diagnostics.def')).read()
missing = set(re.findall(r'^DIAGNOSTIC\(\w+, "([a-z-]+)"\)', table, re.M))
paths = glob.glob(os.path.join(golden, '**', '*.hlo'), recursive=True)
paths += glob.glob(os.path.join(golden, '**', 'inputs', '*.json'), recursive=True)
for path in sorted(paths):
    text = open(path).read()
    flags = re.findall(r'--max-[a-z-]+=\d+|--layout-sensitive', text)
    commands = [['hlo-opt', '--split-input-file', '--diagnostics=json', '--print=none', *flags, path]]
    if 'RUN: not hlo-run' in text:
        commands += [['hlo-run', path, '--diagnostics=json'], ['hlo-run', path, '--seed=1', '--max-steps=1', '--diagnostics=json']]
    for command in commands:
        err = subprocess.run(command, capture_output=True, text=True).stderr
        missing -= set(re.findall(r'"kind": "([a-z-]+)"', err))
if missing:
    sys.exit('no golden test produces: ' + ', '.join(sorted(missing)))
