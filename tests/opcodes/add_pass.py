#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds a pass to a copy of the sources: how much a new pass takes.

usage: add_pass.py [--build-dir DIR] SOURCE_DIR

A pass must take a source with its row, a golden test, and for other programs a header; docs/passes.md is written by the tool. The
build must find the row, and the source and the registry must compile. CONTRIBUTING.md has what each file holds."""
import argparse
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from added import copy, expect, includes, run  # noqa: E402

SOURCE = '''// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/sign_remover.h"

#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// sign(sign(x)) becomes sign(x).
bool SignOfSign(PatternRewriter& rewriter, Instruction sign) {
  const Instruction inner = sign.operand(0);
  return inner.opcode() == Opcode::kSign && rewriter.Replace(sign, inner.id());
}

}  // namespace

void AddSignRemoverRules(RewritePatternSet* rules) { rules->Add({Opcode::kSign}, "repeated signs removed", SignOfSign); }

HLOKIT_PASS(SignRemover) {
  return {.name = "sign-remover",
          .category = "simplify",
          .summary = "remove signs of signs",
          .example = R"(ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] sign(x)
  ROOT z = f32[4] sign(y)
})",
          .create = MakePass<RulesOf<AddSignRemoverRules>>};
}

}  // namespace hlokit
'''
HEADER = '''// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_SIGN_REMOVER_H_
#define HLOKIT_PASSES_SIMPLIFY_SIGN_REMOVER_H_

#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

void AddSignRemoverRules(RewritePatternSet* rules);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_SIGN_REMOVER_H_
'''
FILES = {'passes/simplify/sign_remover.cc': SOURCE, 'passes/simplify/sign_remover.h': HEADER}


def passes_of(list_file):
    return re.findall(r'^PASS\((\w+)\)$', open(list_file).read(), re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source')
    parser.add_argument('--build-dir', help='a configured build; SOURCE_DIR/build/release unless given')
    args = parser.parse_args()
    source = os.path.abspath(args.source)
    build = args.build_dir or os.path.join(source, 'build/release')
    with tempfile.TemporaryDirectory(prefix='hlokit-passes-') as work:
        root, generated = os.path.join(work, 'source'), os.path.join(work, 'generated')
        copy(source, root, [str(path.relative_to(source)) for path in pathlib.Path(source, 'passes').rglob('*.cc')])
        listed = os.path.join(generated, 'passes/core/pass_list.inc')
        script = ['cmake', '-D', f'folder={root}/passes', '-D', f'list={listed}', '-P', f'{source}/cmake/PassList.cmake']
        run(script)
        before = passes_of(listed)
        for path, text in FILES.items():
            open(os.path.join(root, path), 'w').write(text)
        run(script)
        after = passes_of(listed)
        expect(len(before) > 100 and len(set(before)) == len(before), f'{len(before)} passes have rows, each its own name')
        expect([name for name in after if name != 'SignRemover'] == before and after.count('SignRemover') == 1,
               'the build finds the row of the new pass, and keeps the order of the others')
        rows = sum(text.count('\nHLOKIT_PASS(') for text in (path.read_text() for path in pathlib.Path(root, 'passes').rglob('*.cc')))
        expect(rows == len(after), 'every row is listed')

        compiler, flags = includes.settings(pathlib.Path(build))
        flags = [f'-I{root}', f'-I{generated}', *(flag for flag in flags if not flag.startswith('-D')), '-DNDEBUG']
        for path in ('passes/simplify/sign_remover.cc', 'passes/core/registry.cc'):
            run([compiler, *flags, '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-xc++', '-'], input=f'#include "{path}"\n')
        print('ok: the pass compiles, and the registry with the list')


main()
