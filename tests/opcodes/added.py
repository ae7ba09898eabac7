# SPDX-License-Identifier: Apache-2.0
"""What add_opcode.py, add_attribute.py and add_pass.py share: rows added to a copy of the sources, and what compiles then."""
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../check'))
import folders  # noqa: E402
import includes  # noqa: E402

ROOMS = folders.PROGRAMS


def apply(root, edits):
    """Edits by file: a text that stands there once, what goes before it (None: it goes), and maybe what goes after it."""
    for path, changes in edits.items():
        path = os.path.join(root, path)
        text = open(path).read()
        for where, before, *after in changes:
            if text.count(where) != 1:
                sys.exit(f'{path}: `{where}` stands there {text.count(where)} times, not once')
            if after:
                text = text.replace(where, (before or '') + where + after[0])
            else:
                text = text.replace(where, '' if before is None else before + where)
        open(path, 'w').write(text)


def changed(source, root):
    """The files of the copy that differ from their originals."""
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if not filecmp.cmp(os.path.join(root, path), os.path.join(source, path), shallow=False):
                found.append(path)
    return sorted(found)


def run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        sys.exit(f'{" ".join(command)} failed:\n{result.stdout[-4000:]}')
    return result.stdout


def expect(condition, what):
    print(('ok: ' if condition else 'FAILED: ') + what)
    if not condition:
        sys.exit(1)


def copy(source, root, paths):
    for path in paths:
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.join(source, path), target, follow_symlinks=False)


def compile_changed(source, root, changed_files, build, table, what):
    """Checks the changed sources and those with tables (regex), as one translation unit where their names allow that."""
    generated = os.path.join(root, 'generated')
    for macro, stem in (('OPCODE', 'opcode'), ('SHAPE_RULE', 'shape_rule')):
        os.makedirs(os.path.join(generated, 'ir/ops'), exist_ok=True)
        files = {kind: os.path.join(generated, f'ir/ops/{stem}_{kind}.inc') for kind in ('names', 'columns')}
        run(['cmake', '-D', f'table={root}/ir/ops/opcodes.def', '-D', f'macro={macro}', '-D', f'names={files["names"]}',
             '-D', f'columns={files["columns"]}', '-P', os.path.join(source, 'cmake/TableHeaders.cmake')])
    sources = {path for path in changed_files if path.endswith('.cc')}
    for room in ROOMS:
        for path in pathlib.Path(source, room).rglob('*.cc'):
            if table.search(path.read_text()):
                sources.add(str(path.relative_to(source)))
    compiler, flags = includes.settings(pathlib.Path(build))
    # What changed is found before the file that it replaces.
    flags = [f'-I{root}', f'-I{generated}', *(flag for flag in flags if not flag.startswith('-D')), '-DNDEBUG']
    command = [compiler, *flags, '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-xc++', '-']
    # The name of most tables, in namespaces without names.
    lines = [f'#define kRows kRows_{k}\n#include "{path}"\n#undef kRows\n' for k, path in enumerate(sorted(sources))]
    if subprocess.run(command, input=''.join(lines), text=True, stderr=subprocess.DEVNULL).returncode != 0:
        for line in lines:
            run(command, input=line)
    print(f'ok: {len(sources)} sources compile: those that changed, and those with tables of {what}')
