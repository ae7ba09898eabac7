#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a libFuzzer dictionary of HLO text tokens, taken from the tables.
usage: make_dictionary.py SOURCE_DIR > parser.dict
"""
import os, re, sys

def strings(path, macro, column):
    for line in open(path):
        if line.startswith(macro + '('):
            yield re.findall(r'"((?:[^"\\]|\\.)*)"', line)[column]

def main():
    root = sys.argv[1]
    words = set()
    words.update(strings(os.path.join(root, 'ir/ops/opcodes.def'), 'OPCODE', 0))
    words.update(w + '=' for w in strings(os.path.join(root, 'ir/ops/attributes.def'), 'ATTRIBUTE', 0) if w)
    words.update(strings(os.path.join(root, 'ir/ops/enums.def'), 'ENUM_VALUE', 0))
    words.update(w + '[' for w in strings(os.path.join(root, 'ir/types/element_types.def'), 'ELEMENT_TYPE', 0))
    words.update(['HloModule ', 'ENTRY ', 'ROOT ', ' -> ', '{...}', '<=', ':T(8,128)', 'S(1)', 'devices=[2]<=[2]', 'T(1,0)',
                  'maximal device=0', 'replicated', 'mesh[', '// -----', '/*', '*/', '%', '#0', 'nan', '-inf', '(0, {})'])
    for word in sorted(words):
        print('"%s"' % word.replace('\\', '\\\\').replace('"', '\\"'))

main()
