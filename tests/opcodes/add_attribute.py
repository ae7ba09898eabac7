#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds attributes to a copy of the sources: how much a new attribute takes.

usage: add_attribute.py [--build] [--keep DIR] [--build-dir DIR] SOURCE_DIR

A plain attribute, of a type that there is, must take 2 files: its row, which also says its field in XLA's messages and its place
in StableHLO, and the row of an opcode that has it. All else follows: the sources with tables of attributes, and those with a case
for each, compile. --build: builds the parsers of a whole copy, and a module with the attributes must come back from each format."""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import added  # noqa: E402

ROWS = 'ir/ops/attributes.def'
OPCODES = 'ir/ops/opcodes.def'
REVERSE = 'Reverse, "reverses the order of elements in the given dimensions", R(Dimensions)'
# By kind: where its row goes, the row, and its mention by an opcode. One of each plain type, in fields of messages and as text.
KINDS = {
    'bool': ('IsStable', 'IsSampled, "is_sampled", kBool, None, kDropFalse, kSemantic, (FLAG, is_stable), Text'),
    'int64': ('Scatter', 'SampleCount, "sample_count", kInt64, None, kDropZero, kSemantic, (COUNT, delta), Text'),
    'list': ('Scatter', 'SampleLanes, "sample_lanes", kInt64List, None, kDropEmpty, kSemantic, (TEXT), Text'),
    'string': ('Scatter', 'SampleLabel, "sample_label", kString, None, kDropEmpty, kAnnotation, (TEXT), Text'),
}
# By file: a text that stands there once, what goes before it, what goes after it.
ATTRIBUTES = {
    kind: {ROWS: [(f'ATTRIBUTE({before},', f'ATTRIBUTE({row})\n')],
           OPCODES: [(', Moved, ' + REVERSE, None, f' O({row.split(",")[0]})')]}
    for kind, (before, row) in KINDS.items()
}
PROGRAM = '''HloModule attributes

ENTRY main {
  x = f32[2,5] parameter(0)
  y = f32[2,5] reverse(x), dimensions={1}, frontend_attributes={key="value"}
  z = f32[2,5] reverse(y), dimensions={0}, sample_label="a \\"b\\"", sample_lanes={4,-1}, sample_count=3, is_sampled=true
  ROOT w = f32[2,5] reverse(z), dimensions={0}, sample_lanes={7}, frontend_attributes={other="1"}
}
'''
WANTED = ['dimensions={1}, frontend_attributes={key="value"}',
          'dimensions={0}, sample_label="a \\"b\\"", sample_lanes={4,-1}, sample_count=3, is_sampled=true\n',
          'dimensions={0}, sample_lanes={7}, frontend_attributes={other="1"}']
# Of a source with a column of the table, or a case for each attribute.
TABLE = re.compile(r'attributes\.def|attribute_fields\.def|kAttrInfo\b|case Attr::k')


def add_all(source, root):
    """Adds the attributes to a copy, one after the other, and counts the files of each."""
    for kind, edits in ATTRIBUTES.items():
        before = {path: open(os.path.join(root, path)).read() for path in edits}
        added.apply(root, edits)
        touched = [path for path, text in before.items() if open(os.path.join(root, path)).read() != text]
        added.expect(len(touched) <= 2, f'a plain attribute ({kind}) touches {len(touched)} files: {", ".join(touched)}')
    both = added.changed(source, root)
    added.expect(both == sorted([ROWS, OPCODES]), f'all touch {", ".join(both)}; docs/ops.md is written from the tables')


def build_and_run(root, work):
    with open(os.path.join(root, 'CMakeLists.txt'), 'a') as lists:
        lists.write('add_executable(attribute_round_trips tests/opcodes/attribute_round_trips.cc)\n'
                    'target_link_libraries(attribute_round_trips PRIVATE hlokit::parser)\n')
    added.run(['cmake', '--preset', 'tools', '-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG'], cwd=root)  # few modules, much to compile
    added.run(['cmake', '--build', 'build/release', '--target', 'attribute_round_trips'], cwd=root)
    program = os.path.join(work, 'attributes.hlo')
    open(program, 'w').write(PROGRAM)
    built = [path for path in pathlib.Path(root, 'build/release').rglob('attribute_round_trips') if path.is_file()]
    texts = dict(part.split('\n', 1) for part in added.run([str(built[0]), program]).split('== ')[1:])
    added.expect(len(texts) >= 7, f'written and read: {", ".join(texts)}')
    for name, text in texts.items():
        lost = [line for line in WANTED if line.rstrip() not in text]
        added.expect(not lost, f'{name} keeps the attributes' + ''.join(f'\n  lost: {line}' for line in lost) + (text if lost else ''))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source')
    parser.add_argument('--build', action='store_true', help='build the parsers and run a module')
    parser.add_argument('--keep', help='work there, and leave it')
    parser.add_argument('--build-dir', help='a configured build; SOURCE_DIR/build/release unless given')
    args = parser.parse_args()
    work = args.keep or tempfile.mkdtemp(prefix='hlokit-attributes-')
    try:
        root = os.path.join(work, 'source')
        files = added.run(['git', 'ls-files'], cwd=args.source).splitlines() if args.build else [ROWS, OPCODES]
        added.copy(args.source, root, files)
        add_all(args.source, root)
        if args.build:
            build_and_run(root, work)
        else:
            added.compile_changed(os.path.abspath(args.source), root, [],
                                  args.build_dir or os.path.join(args.source, 'build/release'), TABLE, 'attributes')
    finally:
        if not args.keep:
            shutil.rmtree(work)


main()
