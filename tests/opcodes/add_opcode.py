#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds two opcodes to a copy of the sources: how much a new opcode takes.

usage: add_opcode.py [--build] [--keep DIR] [--build-dir DIR] SOURCE_DIR

An elementwise opcode must take at most 3 files, one that moves elements, with a shape rule of its own, at most 7. All else, from
parsing to the op reference, must follow: every table of opcodes is complete, so the sources with tables and those that change
compile. --build: builds the tools from a whole copy and runs programs with both opcodes; then the description of an opcode
changes, and at most 3 files may compile again."""
import argparse
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from added import apply, changed, compile_changed, copy, expect, run  # noqa: E402

# Of each opcode, by file: a text that stands there once, and what goes before it.
ELEMENTWISE = {
    'ir/ops/opcodes.def': [(
        'OPCODE(Expm1,',
        'OPCODE(Exp2, "exponential-base-two", 1, 1, Unary, Float, kElementwise | kInferable, Computed, Elementwise, '
        '"two to the power of the operand",)\n')],
    'interp/reference/elementwise.cc': [(
        '    {Opcode::kExpm1, REAL', '    {Opcode::kExp2, REAL(std::exp2(a))},\n')],
    'interp/exact/kernels/elementwise/element_math.cc': [
        ('template <typename T>\nvoid Register(ElementFnTable* t, ElementType type) {',
         'struct Exp2 {\n  template <typename T>\n  static T Apply(T a) {\n    return std::exp2(a);\n  }\n};\n\n'),
        ('  t->Set(Opcode::kErf, type,', '  t->Set(Opcode::kExp2, type, UnaryLoop<Exp2, T>, 8);\n')],
}
STRUCTURAL = {
    'ir/ops/opcodes.def': [
        ('SHAPE_RULE(Reverse,', 'SHAPE_RULE(Decimate, false, false, "the dimensions of the operand, halved where `dimensions` says")\n'),
        ('OPCODE(Divide,',
         'OPCODE(Decimate, "decimate", 1, 1, Decimate, Any, kInferable, Moved, Decimate, '
         '"every second element along `dimensions`", R(Dimensions))\n')],
    'ir/inference/data_movement.cc': [(
        'absl::Status InferReverse(',
        'absl::Status InferDecimate(const InferenceContext& in, InferredShape* out) {\n'
        '  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));\n'
        '  const Shape a = in.operand(0);\n'
        '  DimSet halved(a.rank());\n'
        '  HLOKIT_RETURN_IF_ERROR(halved.Take(in.attrs.list_attr(Attr::kDimensions), "`dimensions`"));\n'
        '  out->SetArray(a.element_type());\n'
        '  for (int64_t d = 0; d < a.rank(); ++d) {\n'
        '    if (halved.Has(d)) {\n'
        '      out->AddDim((a.dim(d) + 1) / 2, a.is_dynamic(d));\n'
        '    } else {\n'
        '      out->AddDimOf(a, d);\n'
        '    }\n'
        '  }\n'
        '  return absl::OkStatus();\n'
        '}\n\n')],
    'passes/analysis/opcode_costs.def': [('OPCODE_COST(Domain,', 'OPCODE_COST(Decimate, Plain)\n')],
    'passes/sharding/opcode_sharding_rules.def': [
        ('OPCODE_SHARDING_RULE(Domain,', 'OPCODE_SHARDING_RULE(Decimate, Slice)\n')],
    'passes/target/opcode_work.def': [('OPCODE_WORK(Divide,', 'OPCODE_WORK(Decimate, Movement, 1, 0)\n')],
    'interp/reference/data_movement.cc': [(
        '// `reverse`\nvoid Reverse(Op& op) {',
        '// `decimate`\nvoid Decimate(Op& op) {\n'
        '  MoveElements(op, op.in(0), [&](Index index) {\n'
        '    for (int64_t d : op.instruction.list_attr(Attr::kDimensions)) index[static_cast<size_t>(d)] *= 2;\n'
        '    return index;\n  });\n}\n\n')],
    'interp/exact/kernels/movement/views.cc': [(
        'void PrepareReverse(',
        'void PrepareDecimate(CompiledComputationBuilder& b) {\n'
        '  View view = b.operand(0);\n'
        '  Dims strides = StridesOf(view);\n'
        '  for (int64_t d : b.instruction().list_attr(Attr::kDimensions)) strides[d] *= 2;\n'
        '  view.shape = b.shape();\n'
        '  view.strides = b.NewStrides(strides, view.dims());\n'
        '  b.SetResult(view);\n'
        '}\n\n')],
}
PROGRAM = '''HloModule both

ENTRY main {
  x = f32[2,5] parameter(0)
  y = exponential-base-two(x)
  ROOT z = f32[2,3] decimate(y), dimensions={1}
}
'''


# Of a source whose code depends on which opcodes there are.
TABLE = re.compile(r'MakeOpcodeTable|ir/ops/(opcodes.def|opcode_names.inc|opcode_columns.inc)')


def add_both(source, root):
    """Adds the opcodes to a copy, and counts the files of each."""
    apply(root, ELEMENTWISE)
    touched = changed(source, root)
    expect(len(touched) <= 3, f'an elementwise opcode touches {len(touched)} files: {", ".join(touched)}')
    apply(root, STRUCTURAL)
    both = changed(source, root)
    apply(root, {path: [(added, None) for _, added in edits] for path, edits in ELEMENTWISE.items()})
    touched = changed(source, root)
    expect(len(touched) <= 7, f'an opcode that moves elements touches {len(touched)} files: {", ".join(touched)}')
    apply(root, ELEMENTWISE)
    expect(changed(source, root) == both, f'both touch {len(both)} files; docs/ops.md is written from the tables')
    return both


def build_and_run(source, root, work):
    run(['cmake', '--preset', 'tools'], cwd=root)
    build = ['cmake', '--build', 'build/release', '--target', 'hlo-opt', 'hlo-run', 'hlo-inspect']
    run(build, cwd=root)
    print('ok: the copy builds')

    def tool(name, *arguments):
        return run([os.path.join(root, 'build/release/bin', name), *arguments])

    program = os.path.join(work, 'both.hlo')
    open(program, 'w').write(PROGRAM)
    printed = tool('hlo-opt', program)
    expect('decimate(' in printed and ', dimensions={1}' in printed and 'exponential-base-two(' in printed, 'both print')
    as_json = os.path.join(work, 'both.json')
    open(as_json, 'w').write(tool('hlo-opt', '--print=json', program))
    expect(tool('hlo-opt', as_json) == printed, 'JSON reads back to the same text')
    expect('halved where' in tool('hlo-inspect', 'ops', 'decimate'), 'the reference has the shape rule')
    expect('f32[2,3]' in tool('hlo-opt', '--passes=tpu', program), 'the TPU pipeline takes both')
    arguments = os.path.join(work, 'arguments.txt')
    open(arguments, 'w').write('f32[2,5] {{0, 1, 2, 3, 4}, {-1, 0.5, 3, 1, 5}}\n')
    values = {}
    for engine in ('reference', 'exact'):
        values[engine] = tool('hlo-run', f'--engine={engine}', f'--args={arguments}', program)
    numbers = [float(v) for v in re.findall(r'-?\d+(?:\.\d+)?(?:e[+-]?\d+)?', values['exact'].split('{', 1)[1])]
    expect(numbers == [1, 4, 16, 0.5, 8, 32], f'the exact engine computes both: {numbers}')
    expect(values['reference'] == values['exact'], 'the reference computes the same')

    table = os.path.join(root, 'ir/ops/opcodes.def')
    text = open(table).read()
    open(table, 'w').write(text.replace('"two to the power of the operand"', '"2 to the power of the operand"'))
    compiled = [line for line in run(build, cwd=root).splitlines() if 'Building CXX object' in line]
    expect(0 < len(compiled) <= 3, f'a changed description compiles {len(compiled)} files')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source')
    parser.add_argument('--build', action='store_true', help='build the tools and run programs')
    parser.add_argument('--keep', help='work there, and leave it')
    parser.add_argument('--build-dir', help='a configured build; SOURCE_DIR/build/release unless given')
    args = parser.parse_args()
    build = args.build_dir or os.path.join(args.source, 'build/release')
    work = args.keep or tempfile.mkdtemp(prefix='hlokit-opcodes-')
    try:
        root = os.path.join(work, 'source')
        all_files = run(['git', 'ls-files'], cwd=args.source).splitlines() if args.build else [*ELEMENTWISE, *STRUCTURAL]
        copy(args.source, root, all_files)
        both = add_both(args.source, root)
        if args.build:
            build_and_run(args.source, root, work)
        else:
            compile_changed(os.path.abspath(args.source), root, both, build, TABLE, 'opcodes')
    finally:
        if not args.keep:
            shutil.rmtree(work)


main()
