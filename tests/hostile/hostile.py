#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs hlo-opt, hlo-inspect and hlo-view on hostile inputs: each run must exit with code 0 or 1, in time, on a 256 KiB stack, in
bounded memory.
usage: hostile.py BIN_DIR [--full] [--seed N]
Without --full the sizes and numbers are a tenth, for sanitizer builds and quick runs.
"""
import argparse, os, random, resource, subprocess, sys, tempfile, time

def shape_nest(n): return 'HloModule m\nENTRY e { p = ' + '(' * n + 'f32[]' + ')' * n + ' parameter(0) }\n'
def operand_nest(n): return 'HloModule m\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] ' + 'negate(f32[] ' * n + 'p' + ')' * n + ' }\n'
def literal_nest(n): return 'HloModule m\nENTRY e { c = f32[] constant(' + '{' * n + '1' + '}' * n + ') }\n'
def tuple_literal_nest(n): return 'HloModule m\nENTRY e { c = ' + '(' * n + 's32[]' + ')' * n + ' constant(' + '(' * n + '1' + ')' * n + ') }\n'
def computation_nest(n):
    return ('HloModule m\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=' +
            '{ q = f32[] parameter(0) ROOT s = f32[] call(q), to_apply=' * n + '{ q = f32[] parameter(0) ROOT s = f32[] negate(q) }' +
            ' }' * n + ' }\n')
def json_nest(n): return '{"format":' + '[' * n + ']' * n + '}'
def backend_config_nest(n): return 'HloModule m\nENTRY e { ROOT p = f32[] parameter(0), backend_config=' + '{"a":' * n + '1' + '}' * n + ' }\n'
def sharding_nest(n): return 'HloModule m\nENTRY e { ROOT p = f32[] parameter(0), sharding=' + '{' * n + 'replicated' + '}' * n + ' }\n'
def origin_nest(n): return 'HloModule m\nENTRY e { ROOT p = f32[] parameter(0), origin={' + '(' * n + '{"a"}' + ')' * n + '} }\n'
def comment_nest(n): return 'HloModule m ' + '/*' * n + '\n'
def chain(n):
    rows = ['HloModule chain', '', 'ENTRY e {', '  x0 = f32[] parameter(0)']
    rows += ['  x%d = f32[] negate(x%d)' % (i + 1, i) for i in range(n)]
    return '\n'.join(rows) + '\n}\n'
def call_chain(n):
    rows = ['HloModule calls', 'c0 { p = f32[] parameter(0) ROOT r = f32[] negate(p) }']
    rows += ['c%d { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c%d }' % (i + 1, i) for i in range(n)]
    return '\n'.join(rows) + '\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c%d }\n' % n
def doubling_tuples(n):
    rows = ['HloModule m', 'ENTRY e {', '  t0 = f32[] parameter(0)']
    rows += ['  t%d = tuple(t%d, t%d)' % (i + 1, i, i) for i in range(n)]
    return '\n'.join(rows) + '\n}\n'
def async_chain(n):
    rows = ['HloModule m', 'w { p = f32[4] parameter(0) ROOT r = f32[4] negate(p) }', 'ENTRY e {', '  p = f32[4] parameter(0)',
            '  u0 = ((f32[4]), f32[4], s32[]) async-start(p), calls=w']
    rows += ['  u%d = ((f32[4]), f32[4], s32[]) async-update(u%d)' % (i + 1, i) for i in range(n)]
    return '\n'.join(rows) + '\n  ROOT d = f32[4] async-done(u%d)\n}\n' % n
def late_operands(n):
    rows = ['HloModule m', 'ENTRY e {', '  p = f32[] parameter(0)', '  u0 = ((f32[]), (), s32[]) tuple-start(p)']
    rows += ['  u%d = ((f32[]), (), s32[]) tuple-update(u%d, p)' % (i + 1, i) for i in range(n)]
    return '\n'.join(rows) + '\n  ROOT d = (f32[]) tuple-done(u%d)\n}\n' % n
def many_wrappers(n):
    rows = ['HloModule m', 'ENTRY e {', '  x0 = f32[4] parameter(0)']
    rows += ['  s%d = ((f32[4]), f32[4], s32[]) negate-start(x%d)\n  x%d = f32[4] negate-done(s%d)' % (i, i, i + 1, i) for i in range(n)]
    return '\n'.join(rows) + '\n}\n'
def wide_tuple(n): return 'HloModule m\nENTRY e { p = f32[] parameter(0)\n ROOT t = tuple(' + ', '.join(['p'] * n) + ') }\n'
def many_parameters(n): return 'HloModule m\nENTRY e {\n' + '\n'.join(' p%d = f32[] parameter(%d)' % (i, n - 1 - i) for i in range(n)) + '\n}\n'
def control_edges(n):
    rows = ['HloModule m', 'ENTRY e {', '  p = f32[] parameter(0)'] + ['  x%d = f32[] negate(p)' % i for i in range(n)]
    return '\n'.join(rows) + '\n  ROOT r = f32[] negate(p), control-predecessors={' + ', '.join('x%d' % i for i in range(n)) + '}\n}\n'
def same_names(n): return 'HloModule m\nENTRY e {\n' + ' x = f32[] parameter(0)\n' * n + '}\n'
def wide_branches(n):
    return ('HloModule m\nb { p = f32[] parameter(0) ROOT r = f32[] negate(p) }\nENTRY e { i = s32[] parameter(0) p = f32[] parameter(1)\n ROOT c = f32[] conditional(i' +
            ', p' * n + '), branch_computations={' + ', '.join(['b'] * n) + '} }\n')
def while_nest(n):
    rows = ['HloModule m', 'c { p = f32[] parameter(0) ROOT r = pred[] constant(true) }', 'b0 { p = f32[] parameter(0) ROOT r = f32[] negate(p) }']
    rows += ['b%d { p = f32[] parameter(0) ROOT r = f32[] while(p), condition=c, body=b%d }' % (i + 1, i) for i in range(n)]
    return '\n'.join(rows) + '\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] while(p), condition=c, body=b%d }\n' % n

SMALL = {
    'giant parameter number': 'HloModule m\nENTRY e { p = f32[] parameter(4000000000) }\n',
    'large parameter number': 'HloModule m\nENTRY e { p = f32[] parameter(2000000000) }\n',
    'giant name number': 'HloModule m\nENTRY e { x.4000000000 = f32[] parameter(0) ROOT y.99999999999999999999 = f32[] negate(x.4000000000) }\n',
    'giant channel': 'HloModule m\na { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] all-reduce(p), channel_id=9223372036854775807, to_apply=a }\n',
    'dimension product': 'HloModule m\nENTRY e { p = f32[9223372036854775807,9223372036854775807] parameter(0) ROOT r = f32[9223372036854775807,9223372036854775807] negate(p) }\n',
    'giant constant': 'HloModule m\nENTRY e { ROOT c = f32[1000000000000] constant({1}) }\n',
    'giant scalar constant': 'HloModule m\nENTRY e { ROOT c = f32[4000000000] constant(1) }\n',
    'giant iota sharding': 'HloModule m\nENTRY e { ROOT p = f32[8] parameter(0), sharding={devices=[1000000000000]<=[1000000000000]} }\n',
    'giant replica groups': 'HloModule m\na { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] all-reduce(p), replica_groups=[1,4000000000]<=[4000000000], to_apply=a }\n',
    'giant mesh': "HloModule m\nENTRY e { ROOT p = f32[8] parameter(0), sharding={mesh['a'=4000000000,'b'=4000000000], [{'a'}]} }\n",
    'integer overflow': 'HloModule m\nENTRY e { ROOT p = f32[99999999999999999999] parameter(0) }\n',
    'window overflow': 'HloModule m\na { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }\nENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) ROOT r = reduce-window(p, z), window={size=9223372036854775807 pad=9223372036854775807_9223372036854775807}, to_apply=a }\n',
    'pad overflow': 'HloModule m\nENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) ROOT r = pad(p, z), padding=9223372036854775807_9223372036854775807_9223372036854775807 }\n',
    'zero stride': 'HloModule m\nENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] slice(p), slice={[0:4:0]} }\n',
    'missing computation': 'HloModule m\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply={%nope} }\n',
    'itself as callee': 'HloModule m\nc { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c }\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c }\n',
    'no text': '', 'one brace': '{', 'one quote': '"', 'nul': 'HloModule m\0\nENTRY e { p = f32[] parameter(0) }', 'bytes': ''.join(chr(c) for c in range(256)),
}

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('bin'); ap.add_argument('--full', action='store_true'); ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--no-memory-limit', action='store_true', help='for builds with a sanitizer')
    a = ap.parse_args()
    scale = 10 if a.full else 1
    passed = failed = 0
    tmp = tempfile.TemporaryDirectory()
    def run(name, text, args, seconds=60, quiet=False):
        nonlocal passed, failed
        data = text.encode('latin-1', errors='replace') if isinstance(text, str) else text
        path = os.path.join(tmp.name, 'input.hlo')
        open(path, 'wb').write(data)
        limit = 512 * 2**20 + 1000 * len(data)
        def prepare():
            resource.setrlimit(resource.RLIMIT_STACK, (256 * 1024, 256 * 1024))
            # Processor time: a busy machine is no hang. A process that waits for ever is ended all the same.
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            if not a.no_memory_limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        start = time.time()
        try:
            p = subprocess.run([os.path.join(a.bin, args[0]), *args[1:], path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               timeout=20 * seconds, preexec_fn=prepare)
            code, err = p.returncode, p.stderr
        except subprocess.TimeoutExpired:
            code, err = 'timeout', b''
        ok = code in (0, 1) and bool(code == 0 or err)
        passed += ok; failed += not ok
        if not ok:
            print('FAILED %s: %s: exit %s %s' % (name, ' '.join(args), code, err[-300:].decode(errors='replace')))
        elif not quiet:
            print('%-28s %-40s exit %s, %.1f s' % (name, ' '.join(args), code, time.time() - start))
    small = [['hlo-opt', '-o', '/dev/null']]
    for name, text in SMALL.items():
        for args in small: run(name, text, args, quiet=True)
    n, m = 10**4 * scale, 10**5 * scale
    deep = {f.__name__: f(n) for f in (shape_nest, operand_nest, literal_nest, tuple_literal_nest, computation_nest, json_nest,
                                       backend_config_nest, sharding_nest, origin_nest, comment_nest, call_chain)}
    for f in (chain, async_chain, late_operands, many_wrappers, wide_tuple, many_parameters, control_edges, same_names, wide_branches, while_nest):
        deep[f.__name__] = f(m)
    deep['doubling_tuples'] = doubling_tuples(100)
    for name, text in deep.items():
        run(name, text, ['hlo-opt', '-o', '/dev/null'])
        run(name, text, ['hlo-opt', '--print=json', '--no-verify', '-o', '/dev/null'])
        run(name, text, ['hlo-inspect', 'hash'])
        run(name, text, ['hlo-view', '--format=json', '--no-verify', '-o', '/dev/null'])
    run('chain', deep['chain'], ['hlo-opt', '--passes=dce,cse', '-o', '/dev/null'])
    # Truncated at every byte (in steps), and mutated. One process reads many: chunks in one file.
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'examples')
    rng = random.Random(a.seed)
    alphabet = '{}[](),=%:0123456789-"<>_ \n#*?ax\\\''
    for f in sorted(os.listdir(here)):
        if not f.endswith('.hlo'): continue
        text = open(os.path.join(here, f)).read()
        cuts = range(0, len(text), 1 if a.full else 7)
        for i in range(0, len(cuts), 200):
            run('cut ' + f, '\n// -----\n'.join(text[:c] for c in cuts[i:i + 200]), ['hlo-opt', '--split-input-file', '-o', '/dev/null'], quiet=True)
        for i in range(5 * scale):
            group = []
            for _ in range(100):
                t = list(text)
                for _ in range(rng.randint(1, 8)):
                    k = rng.randrange(len(t)); what = rng.random()
                    if what < .5: t[k] = rng.choice(alphabet)
                    elif what < .7: del t[k]
                    elif what < .9: t.insert(k, rng.choice(alphabet))
                    else: j = rng.randrange(len(t)); t[k:k] = t[j:j + rng.randint(1, 60)]
                group.append(''.join(t))
            run('mutated ' + f, '\n// -----\n'.join(group), ['hlo-opt', '--split-input-file', '-o', '/dev/null'], quiet=True)
    print('%d passed, %d failed' % (passed, failed))
    sys.exit(1 if failed else 0)

main()
