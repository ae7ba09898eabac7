#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no function has more than 100 lines, so that each can be read as one thought.

  function_length.py [--all=LINES] [SOURCE_DIR]    # --all: prints every function longer than LINES, exits with 0
  function_length.py --self-test

A function's lines are those from the first of its declaration to its closing brace; lambdas and local classes are part of it. A
lambda that initializes a variable outside of functions counts as a function with the name of the variable. TABLES lists
functions that consist of rows, with the reason. Exits with 1 and the offending functions, also for rows of TABLES that are not
needed, and for files whose braces do not match. Before all that it tries itself on a few sources with known functions.
"""

import argparse
import pathlib
import re
import sys
import tempfile

import folders

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = (*folders.PROGRAMS, "bench")
MAX_LINES = 100

TABLES: dict[tuple[str, str], str] = {
    # Rows: a statement of the same form for each pass, flag.
    ("tools/ir_dump/model_flags.cc", "ModelFlags::AddTo"): "a row for each flag",
}

# What is replaced by blanks: comments, raw strings, strings, characters, preprocessor lines. Numbers with digit separators are
# matched too, as they contain what looks like the beginning of a character.
OPAQUE = re.compile(r"""
    //(?:[^\\\n]|\\.|\\\n)*
  | /\*.*?\*/
  | R"(?P<delimiter>[^\s()\\"]{0,16})\(.*?\)(?P=delimiter)"
  | "(?:[^"\\\n]|\\.|\\\n)*"
  | '(?:[^'\\\n]|\\.)+'
  | ^[ \t]*\#(?:/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\\\n|[^\n])*
  | (?<!\w)\d[\w.]*'[\w.']*
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
BRACE = re.compile(r"[{}]")
TOKEN = re.compile(r"\s*(::|->|==|!=|<=|>=|[A-Za-z_~]\w*|\d[\w.]*|\S)")
CLASS_KEYS = {"class", "struct", "union"}
ACCESS = {"public", "protected", "private"}
# Words before a parenthesis that is no parameter list.
NOT_NAMES = {"alignas", "decltype", "noexcept", "explicit", "requires", "__attribute__", "sizeof", "throw", "__declspec"}


class Unbalanced(Exception):
    """The braces of a file do not match; the argument is the position."""


def blank(match: re.Match) -> str:
    """As many lines as the text had: strings and characters stay as tokens, numbers lose their separators."""
    text = match[0]
    if text[0].isdigit():
        return "0"
    return ('""' if text[0] in "\"'R" else " ") + "\n" * text.count("\n")


def matching_braces(text: str) -> dict[int, int]:
    ends, opened = {}, []
    for match in BRACE.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif not opened:
            raise Unbalanced(match.start())
        else:
            ends[opened.pop()] = match.start()
    if opened:
        raise Unbalanced(opened[-1])
    return ends


def without_angles(head: list[str], i: int) -> int:
    """The index behind the `<…>` at head[i]."""
    depth = 0
    while i < len(head):
        depth += {"<": 1, ">": -1}.get(head[i], 0)
        i += 1
        if depth == 0:
            break
    return i


def declaration_words(head: list[str]) -> list[str]:
    """The head without `template <…>` and `[[…]]`."""
    words, i = [], 0
    while i < len(head):
        if head[i] == "template" and head[i + 1:i + 2] == ["<"]:
            i = without_angles(head, i + 1)
        elif head[i] == "[" and head[i + 1:i + 2] == ["["]:
            i = next((k for k in range(i, len(head) - 1) if head[k] == "]" and head[k + 1] == "]"), len(head)) + 2
        else:
            words.append(head[i])
            i += 1
    return words


def name_before(words: list[str], i: int) -> str:
    """The qualified name that ends before words[i], without template arguments."""
    parts, k = [], i - 1
    operator = next((j for j in range(max(0, i - 4), i) if words[j] == "operator"), None)
    if operator is not None:
        parts, k = [re.sub(r"operator(?=\w)", "operator ", "operator" + "".join(words[operator + 1:i]))], operator - 1
    else:
        parts, k = [words[i - 1]], i - 2
    while k >= 1 and words[k] == "::":
        k -= 1
        if words[k] == ">":
            depth = 0
            while k >= 0:
                depth += {">": 1, "<": -1}.get(words[k], 0)
                k -= 1
                if depth == 0:
                    break
        if k < 0 or not re.match(r"\w", words[k]):
            break
        parts.append(words[k])
        k -= 1
    return "::".join(reversed(parts))


def function_name(words: list[str]) -> str | None:
    """The name before the parameter list; None if there is no parameter list. words has `()` for each parenthesis."""
    found = None
    for i, word in enumerate(words):
        if word in ("->", ":") and found is not None:
            break
        if word != "()" or i == 0:
            continue
        before = words[i - 1]
        if "operator" in words[max(0, i - 3):i] or before == "operator":
            return name_before(words, i + 1 if before == "operator" else i)
        if not re.match(r"[A-Za-z_~]", before) or before in NOT_NAMES:
            continue
        if re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", before) and found is None:
            macro = before
            found = macro if i + 1 == len(words) else None
            continue
        if found is None:
            found = name_before(words, i)
    return found


class Scanner:
    """The functions of a file: a list of (line, name, lines)."""

    def __init__(self, source: str):
        self.text = OPAQUE.sub(blank, source)
        self.ends = matching_braces(self.text)
        self.functions: list[tuple[int, str, int]] = []
        self.scan_all()

    def line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def scan_all(self) -> None:
        scopes = [(0, len(self.text), "")]
        while scopes:
            begin, end, prefix = scopes.pop()
            position = begin
            while position < end:
                position, inner = self.declaration(position, end, prefix)
                scopes.extend(inner)
        self.functions.sort()

    def declaration(self, position: int, end: int, prefix: str):
        """Reads to the end of a declaration. Returns where the next one begins, and the scopes in this one."""
        head: list[str] = []  # tokens outside parentheses, `()` for each of these
        depth, start, initializer_list, assigned = 0, None, False, False
        while True:
            match = TOKEN.match(self.text, position)
            if match is None or match.start(1) >= end:
                return end, []
            token, position = match[1], match.end()
            at = match.start(1)
            if depth:
                if token == "{":
                    position = self.ends[at] + 1
                depth += (token == "(") - (token == ")")
                continue
            if start is None:
                start = at
            if token == "(":
                depth = 1
                head.append("()")
            elif token in (";", "}"):
                return position, []
            elif token == ":" and head and head[-1] in ACCESS:
                return position, []
            elif token == "{":
                words = declaration_words(head)
                close = self.ends[at]
                kind = self.kind(words, assigned, initializer_list)
                if kind == "namespace":
                    return close + 1, [(position, close, prefix)]
                if kind == "class":
                    return close + 1, [(position, close, prefix + self.class_name(words) + "::")]
                if kind in ("function", "lambda"):
                    name = function_name(words) if kind == "function" else self.variable_name(words)
                    first, last = self.line(start), self.line(close)
                    self.functions.append((first, prefix + name, last - first + 1))
                    if kind == "function":
                        return close + 1, []
                position = close + 1
                head.append("{}")
            else:
                if token == "=" and "operator" not in head[-2:]:
                    assigned = assigned or "operator" not in head[-1:]
                if token == ":" and "()" in head and not assigned:
                    initializer_list = True
                head.append(token)

    @staticmethod
    def kind(words: list[str], assigned: bool, initializer_list: bool) -> str:
        """What a brace after `words` begins."""
        if words and (words[0] == "namespace" or words[:2] == ["inline", "namespace"] or words == ["extern", '"', '"']):
            return "namespace"
        if assigned and "=" in words:
            value = words[words.index("=") + 1:]
            return "lambda" if value[:1] == ["["] else "value"
        if "enum" in words[:2]:
            return "value"
        last = words[-1] if words else ""
        if last == "requires" or words[-2:] == ["requires", "()"]:
            return "value"
        if initializer_list:
            return "value" if re.match(r"\w", last) or last == ">" else "function"
        key = next((i for i, word in enumerate(words) if word in CLASS_KEYS), None)
        if key is not None and all(words[i - 1] in NOT_NAMES for i, word in enumerate(words) if word == "()"):
            return "class"
        return "function" if function_name(words) is not None else "value"

    @staticmethod
    def class_name(words: list[str]) -> str:
        key = next(i for i, word in enumerate(words) if word in CLASS_KEYS)
        name = ""
        for i in range(key + 1, len(words)):
            if words[i] in (":", "<", "final"):
                break
            if re.match(r"\w", words[i]) and words[i] not in NOT_NAMES:
                name = words[i]
        return name or "(unnamed)"

    @staticmethod
    def variable_name(words: list[str]) -> str:
        return words[words.index("=") - 1]


# Each: a source, and the names and lines of its functions; None: the braces do not match. LONG is 99 lines, SHORT 98.
SELF_TEST = (
    ("void F() {\nLONG}", {"F": 101}),
    ("void F() {\nSHORT}", {"F": 100}),
    (r"""class A : public B<C> {
 public:
  A(int a,
    int b)
      : a_{a}, b_<int>{b}, c_(b) {
LONG  }
  int a_{1};
  void G() const override ABSL_LOCKS_EXCLUDED(mutex_) { a_ = 1; }
};""", {"A::A": 103, "A::G": 1}),
    ("A::A(int a) try : a_({1}) {\nSHORT}", {"A::A": 100}),
    (r"""template <typename T, int N = (1 > 0)>
requires std::integral<T>
T A<T>::B::operator()(T x) const {
SHORT}""", {"A::B::operator()": 102}),
    (r"""bool operator==(const A& a, const A& b) {
}
A& A::operator=(A&& a) noexcept(true) {
}
A::operator bool() const {
}
A::~A() {
}""", {"operator==": 2, "A::operator=": 2, "A::operator bool": 2, "A::~A": 2}),
    (r"""[[nodiscard]] auto F(std::function<void()> f = [] { G(); }, A a = {}) -> std::vector<int> {
SHORT}""", {"F": 100}),
    (r"""namespace a::b {
namespace {
extern "C" {
// } {
enum class E : int { kA, kB };
E F(struct S* s) {
}
}
}
}""", {"F": 2}),
    (r"""constexpr A kTable[] = {
LONG};
int x{1};
const auto kF = [](int a) -> int {
LONG};""", {"kF": 101}),
    (r"""void F() {  // }
  /* } */ G("}}\"}", '}', '\'', R"x(}
")x", 1'000'000, 0x1'f);
}
void H() {}""", {"F": 4, "H": 1}),
    (r"""#define A(x) \
  void x() {
A(b) }""", None),
    (r"""#define A(x) \
  void x() {
#if X  // it's {
void F() {
  const auto g = [] {
LONG  };
}
#endif""", {"F": 103}),
    (r"""TEST(A, B) {
SHORT}
PYBIND11_MODULE(a, m) {
}
HLOKIT_TARGET("avx2") static int F() {
}""", {"TEST": 100, "PYBIND11_MODULE": 2, "F": 2}),
    (r"""struct {
  int F() { return 1; }
} a;
union alignas(8) U {
  U() {}
};""", {"(unnamed)::F": 1, "U::U": 1}),
)


def self_test() -> list[str]:
    found = []
    for template, expected in SELF_TEST:
        source = template.replace("LONG", "  G();\n" * 99).replace("SHORT", "  G();\n" * 98)
        try:
            functions = {name: lines for _, name, lines in Scanner(source).functions}
        except Unbalanced:
            functions = None
        if functions != expected:
            found.append(f"--self-test: {functions} instead of {expected} in\n{source}")
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory)
        (source / "ir").mkdir()
        short, long = ("{\n" + "  G();\n" * (MAX_LINES - k) + "}\n" for k in (2, 1))
        (source / "ir/a.cc").write_text(f"void Long() {long}void Table() {long}void Short() {short}")
        (source / "ir/b.cc").write_text("void F() {\n")
        tables = {("ir/a.cc", "Table"): "", ("ir/a.cc", "Short"): ""}
        reports = list(problems(source, MAX_LINES, tables))
    if reports != ["ir/a.cc:1: Long has 101 lines, more than 100", "ir/b.cc: braces do not match, at character 9",
                   "function_length.py: ir/a.cc has no function Short of more than 100 lines; remove the row"]:
        found.append(f"--self-test: reports {reports}")
    return found


def problems(source: pathlib.Path, most: int, tables: dict[tuple[str, str], str]):
    needed = set()
    for folder in FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix not in (".h", ".cc") or "node_modules" in path.parts:
                continue
            file = str(path.relative_to(source))
            text = path.read_text()
            try:
                functions = Scanner(text).functions
            except Unbalanced as error:
                yield f"{file}: braces do not match, at character {error}"
                continue
            for line, name, lines in functions:
                if lines <= most:
                    continue
                if (file, name) in tables:
                    needed.add((file, name))
                else:
                    yield f"{file}:{line}: {name} has {lines} lines, more than {most}"
    for file, name in tables.keys() - needed:
        yield f"{pathlib.Path(__file__).name}: {file} has no function {name} of more than {most} lines; remove the row"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", type=int)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("source", nargs="?", type=pathlib.Path, default=TOP)
    options = parser.parse_args()
    if options.all is not None:
        found = list(problems(options.source, options.all, {}))
    else:
        found = self_test()
        if not options.self_test:
            found += problems(options.source, MAX_LINES, TABLES)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found and options.all is None else 0


if __name__ == "__main__":
    sys.exit(main())
