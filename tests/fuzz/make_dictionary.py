#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a libFuzzer dictionary of HLO text tokens, or of those of StableHLO in MLIR text and bytecode, from the tables.
usage: make_dictionary.py SOURCE_DIR > parser.dict
       make_dictionary.py SOURCE_DIR stablehlo > parser_stablehlo.dict
"""
import os, re, sys

def strings(path, macro, column):
    for line in open(path):
        if line.startswith(macro + '('):
            yield re.findall(r'"((?:[^"\\]|\\.)*)"', line)[column]

def hlo(root):
    words = set()
    words.update(strings(os.path.join(root, 'ir/ops/opcodes.def'), 'OPCODE', 0))
    words.update(w + '=' for w in strings(os.path.join(root, 'ir/ops/attributes.def'), 'ATTRIBUTE', 0) if w)
    words.update(strings(os.path.join(root, 'ir/ops/enums.def'), 'ENUM_VALUE', 0))
    words.update(w + '[' for w in strings(os.path.join(root, 'ir/types/element_types.def'), 'ELEMENT_TYPE', 0))
    words.update(['HloModule ', 'ENTRY ', 'ROOT ', ' -> ', '{...}', '<=', ':T(8,128)', 'S(1)', 'devices=[2]<=[2]', 'T(1,0)',
                  'maximal device=0', 'replicated', 'mesh[', '// -----', '/*', '*/', '%', '#0', 'nan', '-inf', '(0, {})'])
    return words

def stablehlo(root):
    operations = os.path.join(root, 'parser/mlir/operations.def')
    words = set(strings(operations, 'OP', 0))
    for attributes in strings(operations, 'OP', 2):
        words.update(re.split('[?=:]', word)[0] + ' = ' for word in attributes.split())
    words.update(f' {word} ' for word in re.findall("'([a-z_]+)'", ' '.join(strings(operations, 'OP', 5))))
    words.update(strings(os.path.join(root, 'parser/bytecode/vhlo_operations.def'), 'VHLO', 0))
    words.update(['func.func @main(', 'private ', 'module {', 'module attributes {', ' -> ', ' : ', '^bb0(', '%arg0', '%0:2', '#0',
                  'return', 'dense<', 'dense_resource<', 'array<i64: ', 'array<i1: true>', '"0x', 'tensor<4xf32>', 'tensor<f32>',
                  'tensor<?xf32>', 'tensor<*xf32>', 'tensor<2xi1>', 'complex<f32>', 'tuple<', 'memref<', '!stablehlo.token',
                  '!stablehlo.future<', '!quant.uniform<i8:f32, 0.5:-3>', '#stablehlo<precision HIGH>', '#stablehlo.dot<',
                  '#stablehlo.gather<', '#stablehlo.scatter<', '#stablehlo.conv<[b, f]x[i, o]->[b, f]>', '#stablehlo.conv<raw ',
                  '#stablehlo.channel_handle<handle = 1, type = 0>', '#stablehlo.bounds<4>', '#sdy.sharding<@mesh, [{"x"}]>',
                  'sdy.mesh @mesh = <["x"=2]>', 'loc(', 'loc("a":1:2)', 'callsite(', 'fused[', 'unknown', ' at ', '{-#', '#-}',
                  'dialect_resources', 'unit', 'true', 'applies ', ' across ', ' cond ', ' do ', 'init: ', 'mhlo.sharding = ',
                  'tf.aliasing_output = ', 'jax.buffer_donor = true', 'mhlo.frontend_attributes = {', '// -----', '({', '})', '<{', '}>'])
    words.update(['ML\xefR', 'StableHLO_v1.20.0\0', 'StableHLO_v0.9.0\0', 'builtin\0vhlo\0module\0func_v1\0return_v1\0'])
    return words

def main():
    words = stablehlo(sys.argv[1]) if sys.argv[2:] == ['stablehlo'] else hlo(sys.argv[1])
    for word in sorted(words):
        print('"%s"' % ''.join(c if ' ' <= c <= '~' and c not in '\\"' else '\\x%02x' % ord(c) if c not in '\\"' else '\\' + c
                               for c in word))

main()
