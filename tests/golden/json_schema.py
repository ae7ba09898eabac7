#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates files of JSON against schemas of docs/schemas: json_schema.py NAME=FILE...

A file FILE.jsonl has a document in each line. Prints NAME and the number of documents, or the first error of each file
that is not valid, and then exits with code 1.
"""
import json
import pathlib
import sys

import jsonschema


def check(name, path):
    directory = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
    schema = json.loads((directory / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    text = pathlib.Path(path).read_text()
    documents = [json.loads(part) for part in (text.splitlines() if path.endswith(".jsonl") else [text])]
    for document in documents:
        for error in validator.iter_errors(document):
            print(f"{name}: not valid: {error.json_path}: {error.message[:200]}")
            return False
    print(f"{name}: {len(documents)} valid")
    return bool(documents)


def main():
    return 0 if all([check(*argument.split("=", 1)) for argument in sys.argv[1:]]) else 1


if __name__ == "__main__":
    sys.exit(main())
