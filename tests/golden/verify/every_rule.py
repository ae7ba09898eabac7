# SPDX-License-Identifier: Apache-2.0
"""Lists the rules of the verifier and of shape inference that no golden test violates.
usage: every_rule.py VERIFY_DIR

A rule is a call in the sources that creates an error message. Its arguments form a pattern, with wildcards for
non-literal text; hlo-opt runs over all golden inputs of VERIFY_DIR, and each message counts for the rule that it
matches best. A rule of one opcode's inference needs a message about that opcode. every_rule_exceptions.txt lists
rules that text cannot violate, with the unit test that does; unneeded exceptions are errors too.
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys

folder = sys.argv[1]
root = os.path.join(folder, '..', '..', '..')
# `rule` is the rest of a function name that begins with Infer. A `part` is the call of a local helper that returns a
# part of a message to a rule of the same file.
Site = collections.namedtuple('Site', 'file rule text pattern part header')
# The prefix of a rule's message, unless it is about the header. Other messages are the parser's.
PREFIX = re.compile(r'(?:computation )?`[^`]*`: |cannot infer the result shape: ')


def end_of_call(source, begin):
    """The index of the parenthesis that closes the one before `begin`."""
    depth = 1
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//[^\n]*|[()]', source[begin:]):
        depth += {'(': 1, ')': -1}.get(token.group(), 0)
        if depth == 0:
            return begin + token.start()
    raise ValueError('a call is not closed: ' + source[begin:begin + 60])


def split(expression, separators):
    """The operands of `expression` between separators outside of parentheses and strings."""
    parts, depth, begin = [], 0, 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|::|[][(){}]|[' + separators + ']', expression):
        text = token.group()
        if text in '([{':
            depth += 1
        elif text in ')]}':
            depth -= 1
        elif depth == 0 and text in separators:
            parts.append(expression[begin:token.start()])
            begin = token.end()
    return parts + [expression[begin:]]


def pattern_of(expression):
    """A regular expression for the text of `expression`, an argument of StrCat or of an error function."""
    expression = expression.strip()
    if re.fullmatch(r'(?:"(?:[^"\\]|\\.)*"\s*)+', expression):
        return ''.join(re.escape(json.loads(s)) for s in re.findall(r'"(?:[^"\\]|\\.)*"', expression))
    call = re.match(r'(?:StrCat|std::string)?\(', expression)
    if call and end_of_call(expression, call.end()) == len(expression) - 1:
        return ''.join(pattern_of(part) for part in split(expression[call.end():-1], ','))
    ternary = split(expression, '?:')
    if len(ternary) > 2 and '"' in expression:
        return '(?:' + '|'.join(pattern_of(part) for part in ternary[1:]) + ')'
    return '(.*)'


def sites_of(path):
    source = open(path).read()
    functions = [(m.start(), m[1]) for m in re.finditer(r'^(?!//)\S.*?\b(\w+)\([^;]*?\{$', source, re.M)]
    for call in re.finditer(r'(?<!sink_->)\b(Error|[Rr]eport\w*)\(', source):
        if source.rfind('//', source.rfind('\n', 0, call.start()) + 1, call.start()) >= 0:
            continue
        text = source[call.end():end_of_call(source, call.end())]
        literals = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
        if not any(len(s) > 2 for s in literals):
            continue
        arguments = [pattern_of(part) for part in split(text, ',')]
        pattern = re.sub(r'(?:\(\.\*\))+', '(.*)', ''.join(arguments))
        function = next((name for at, name in reversed(functions) if at < call.start()), '')
        rule = function[5:] if function.startswith('Infer') else ''
        yield Site(os.path.relpath(path, os.path.join(root, 'ir')), rule, ' '.join(re.sub(r'\s+', ' ', text).split()), re.compile(pattern),
                   call[1] not in ('Error', 'Report', 'ReportHeader'), call[1] == 'ReportHeader')


def opcode_at(line):
    match = re.search(r'= .*?\b(?!b\()([a-z][a-z0-9-]*)\(|"opcode":"([a-z0-9-]+)"', line)
    return (match[1] or match[2] or '') if match else ''


def messages_of(path):
    """Pairs of opcode ('' if the message is about no instruction) and message."""
    lines = open(path).read().split('\n')
    flags = re.findall(r'--limit-[a-z-]+=\d+|--layout-sensitive|--no-allow-unbounded-dynamism', '\n'.join(lines))
    command = ['hlo-opt', '--split-input-file', '--diagnostics=json', '--print=none', *flags, path]
    err = subprocess.run(command, capture_output=True, text=True).stderr
    found = []
    for diagnostic in json.loads(err or '[]'):
        if diagnostic['severity'] == 'error':
            line = diagnostic.get('line', 0)
            found.append((opcode_at(lines[line - 1]) if line else '', diagnostic['message']))
    return found


sources = sorted(p for room in ('inference', 'verify') for p in glob.glob(os.path.join(root, 'ir', room, '*.cc')))
sites = [site for path in sources for site in sites_of(path)]
inputs = sorted(glob.glob(os.path.join(folder, '*.hlo')) + glob.glob(os.path.join(folder, 'inputs', '*.json')))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    messages = {m for found in pool.map(messages_of, inputs) for m in found}

# Files shared by all shape rules.
SHARED = ('inference/checks.cc', 'inference/shape_inference.cc')

# The function that infers the shape of each opcode, and its file.
table = open(os.path.join(root, 'ir', 'ops', 'opcodes.def')).read()
rule_of = dict(re.findall(r'^OPCODE\(\w+, "([a-z0-9-]+)", \w+, \w+, (\w+),', table, re.M))
rules = set(rule_of.values())
file_of = {name: os.path.relpath(path, os.path.join(root, 'ir')) for path in sources
           for name in re.findall(r'^absl::Status Infer(\w+)\(const InferenceContext& ?\w*, InferredShape\* out\) \{$', open(path).read(), re.M)}


def concerns(site, opcode):
    rule = rule_of.get(opcode)
    if rule is None or not site.file.startswith('inference/') or site.file in SHARED:
        return True
    return file_of[rule] == site.file and (site.rule not in rules or site.rule == rule)


def literal_length(match):
    return match.end() - match.start() - sum(len(group or '') for group in match.groups())


broken = set()
for opcode, message in messages:
    prefix = PREFIX.match(message)
    text = message[prefix.end():] if prefix else message
    fits = [(s, literal_length(m)) for s in sites
            if (s.part or s.header == (prefix is None)) and concerns(s, opcode) and (m := s.pattern.search(text))]
    best = max((length for s, length in fits if not s.part), default=0)
    said = {s for s, length in fits if not s.part and length == best}
    broken |= said | {s for s, _ in fits if s.part and s.file in {t.file for t in said}}

exceptions = open(os.path.join(folder, 'every_rule_exceptions.txt')).read().split('\n')
tests = ''.join(open(p).read() for p in glob.glob(os.path.join(root, 'tests', 'unit', '**', '*.cc'), recursive=True))
excepted = set()
wrong = []
for line in exceptions:
    if not line or line.startswith('#'):
        continue
    file, fragment, test, _ = (part.strip() for part in line.split('|'))
    meant = [s for s in sites if s.file == file and fragment in s.text]
    suite, _, name = test.partition('.')
    if len({s.text for s in meant}) != 1:
        wrong.append(f'exception: {len(meant)} rules of {file} say "{fragment}"')
    elif broken.intersection(meant):
        wrong.append(f'exception: {file}, "{fragment}": a golden test does break it')
    elif f'({suite}, {name})' not in tests:
        wrong.append(f'exception: {file}, "{fragment}": there is no unit test {test}')
    excepted.update(meant)
wrong += [f'no golden test breaks: {s.file}: {s.text}' for s in sites if s not in broken and s not in excepted]
if not sites or not messages:
    wrong.append('nothing found to check')
if wrong:
    sys.exit('\n'.join(wrong))
print(f'{len(sites)} rules, {len(excepted)} of them excepted')
