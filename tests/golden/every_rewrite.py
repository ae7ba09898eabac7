# SPDX-License-Identifier: Apache-2.0
"""Runs the pipelines of all golden tests over those of their modules that have metadata, and lists the rewrites, as
counted by `--stats`, that none of them performs. (annotation_properties then checks the metadata.)
usage: every_rewrite.py GOLDEN_DIR
"""
import glob, json, os, re, subprocess, sys

golden = sys.argv[1]
missing = {}  # what is counted: where
for path in glob.glob(os.path.join(golden, '..', '..', 'passes', '**', '*.cc'), recursive=True):
    for name in re.findall(r'\b(?:Count|\w*[rR]ules->Add|AddToElementwise)\([^";]*"([^"]+)"', open(path).read()):
        missing[name] = os.path.basename(path)
if len(missing) < 100:
    sys.exit('every_rewrite.py does not find the names of rewrites in passes/ any more')
paths = [p for kind in ('*.hlo', '*.test') for p in glob.glob(os.path.join(golden, '**', kind), recursive=True)]
for path in sorted(paths):
    text = open(path).read()
    pipelines = {quoted or plain for quoted, plain in re.findall(r"RUN:.*?--passes=(?:'([^']*)'|(\S+))", text)}
    modules = re.split(r'^(?:// -----|//--- .*)\n', text, flags=re.M)
    annotated = '// -----\n'.join(m for m in modules if re.search(r'^[^/]*metadata=\{', m, re.M))
    for passes in sorted(pipelines if annotated else ()):
        command = ['hlo-opt', '--split-input-file', '--passes=' + passes, '--stats=json', '--print=none', '-']
        ran = subprocess.run(command, input=annotated, capture_output=True, text=True)
        report = re.search(r'^\[\n(.*\n)*?\]$', ran.stderr, re.M)
        for row in json.loads(report.group(0)) if report else ():
            for name, count in row['counts'].items():
                if count:
                    missing.pop(name, None)
for name, where in sorted(missing.items(), key=lambda row: (row[1], row[0])):
    print('%s: "%s" is not shown' % (where, name))
sys.exit(1 if missing else 0)
