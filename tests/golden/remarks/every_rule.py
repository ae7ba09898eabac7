# SPDX-License-Identifier: Apache-2.0
"""Checks that each rule of remarks is expected by a golden test of this directory, and that docs/remarks.md has the
table that hlo-opt prints.
usage: every_rule.py REMARKS_DIR TABLE
"""
import pathlib
import re
import sys

here = pathlib.Path(sys.argv[1])
root = here.parents[2]
rules = re.findall(r'^REMARK_RULE\(\w+, "([a-z-]+)"', (root / "passes/remarks/remark_rules.def").read_text(), re.M)
expected = ""
for path in sorted(here.iterdir()):
    if path.suffix in (".hlo", ".test"):
        for line in path.read_text().splitlines():
            if re.match(r"(//|#) [A-Z]+(-[A-Z]+)?: ", line) and not re.match(r"(//|#) RUN", line):
                expected += line + "\n"
missing = [rule for rule in rules if not re.search(rf"(?<![a-z-]){rule}(?![a-z-])", expected)]
if missing:
    sys.exit("no golden test produces: " + ", ".join(missing))
table = pathlib.Path(sys.argv[2]).read_text()
if table not in (root / "docs/remarks.md").read_text():
    sys.exit("docs/remarks.md does not have the table of hlo-opt --list-remarks")
