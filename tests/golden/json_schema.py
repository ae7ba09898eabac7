#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates JSON against a schema of docs/schemas: json_schema.py NAME [--lines] < FILE.

With --lines each line is a document. Prints the number of documents; the first error of each that is not valid, and
exit code 1.
"""
import json
import pathlib
import sys

import jsonschema


def main():
    name, lines = sys.argv[1], "--lines" in sys.argv[2:]
    directory = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
    schema = json.loads((directory / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    text = sys.stdin.read()
    documents = [json.loads(part) for part in (text.splitlines() if lines else [text])]
    failed = False
    for document in documents:
        for error in validator.iter_errors(document):
            print(f"{error.json_path}: {error.message[:200]}")
            failed = True
            break
    print(f"{len(documents)} valid" if documents and not failed else "not valid")
    return 1 if failed or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
