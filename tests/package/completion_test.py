#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in real shells: types lines, presses the tab key, and compares the resulting line.

  completion_test.py --bin=DIR --completions=DIR bash|zsh|fish
  completion_test.py --bin=DIR tools    the tools accept what they offer, without a shell

Exit code 77, with the reason, if there is no such shell.
"""
import argparse
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

# Typed text, and the line after the tab key. A trailing space: the word is complete.
LINES = [
    ("hlo-opt --pas", "hlo-opt --passes="),
    ("hlo-opt --passes=dce,cs", "hlo-opt --passes=dce,cse"),
    ("hlo-opt --passes dce,cs", "hlo-opt --passes dce,cse"),
    ("hlo-opt --print=sh", "hlo-opt --print=short "),
    ("hlo-opt --print sh", "hlo-opt --print short "),
    ("hlo-opt --split", "hlo-opt --split-input-file "),
    ("hlo-opt --passes=dce --split", "hlo-opt --passes=dce --split-input-file "),
    ("hlo-opt modu", "hlo-opt module.hlo "),
    ("hlo-opt -o fold", "hlo-opt -o folder/"),
    ("hlo-opt folder/in", "hlo-opt folder/inner.hlo "),
    ("hlo-opt --output=modu", "hlo-opt --output=module.hlo "),
    ("hlo-run --device=v6", "hlo-run --device=v6e "),
    ("hlo-run --device=v6e --scale=hbm_r", "hlo-run --device=v6e --scale=hbm_rate="),
    ("hlo-run --results-npy=fold", "hlo-run --results-npy=folder/"),
    ("hlo-run --host=profile:modu", "hlo-run --host=profile:module.hlo "),
    ("hlo-inspect ha", "hlo-inspect hash "),
    ("hlo-inspect ops gath", "hlo-inspect ops gather "),
    ("hlo-inspect hash --include=layout,sha", "hlo-inspect hash --include=layout,sharding"),
    ("hlo-profile mon", "hlo-profile monitor "),
    ("ir-dump --model=squ", "ir-dump --model=squeezenet1_1 "),
    ("ir-dump --op=aten::nll_loss_f", "ir-dump --op=aten::nll_loss_forward "),
    ("ir-dump --emit=lazy,opt", "ir-dump --emit=lazy,optimized-hlo"),
    ("hlo-opt --no-such-flag", "hlo-opt --no-such-flag"),
]
# Cases with quoted words.
QUOTED_LINES = [
    ("hlo-opt --passes='inline,clean(algsi", "hlo-opt --passes='inline,clean(algsimp"),
    ("hlo-opt --passes='fusion{max-op", "hlo-opt --passes='fusion{max-operands="),
]


class Terminal:
    """A shell on a separate terminal."""

    def __init__(self, command, folder, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, path, seconds=100):
        """The contents of a file that the shell writes, which is then removed."""
        end = time.monotonic() + seconds
        output = b""
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.01)[0]:
                try:
                    output += os.read(self.fd, 65536)
                except OSError:
                    break
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                if text.endswith("\n"):
                    os.remove(path)
                    return text[:-1]
        raise TimeoutError(f"the shell does not answer; it wrote {output!r}")

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def completed_by_terminal(shell, completions, folder, environment, lines):
    """The line after the tab key, for each of them. ctrl-t writes it to a file and clears it."""
    answer = os.path.join(folder, ".answer")
    if shell == "bash":
        terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], folder, environment)
        setup = [f". {completions}/bash/{tool}" for tool in sorted(os.listdir(f"{completions}/bash"))]
        setup.append("bind 'set bell-style none'; bind 'set completion-query-items 0'; bind 'set page-completions off'")
        setup.append(f"""__show() {{ printf '%s\\n' "$READLINE_LINE" >.new; mv .new {answer}; READLINE_LINE=; }}""")
        setup.append("bind -x '\"\\C-t\": __show'")
    else:
        terminal = Terminal(["zsh", "-f", "-i"], folder, environment)
        setup = [f"fpath=({completions}/zsh $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep"]
        setup.append(f"""__show() {{ print -r -- "$BUFFER" >.new; command mv .new {answer}; BUFFER=; }}""")
        setup.append("zle -N __show; bindkey '^T' __show; bindkey '^I' complete-word; unsetopt auto_remove_slash")
    terminal.send("; ".join(setup) + f"; echo ready >.new; mv .new {answer}\n")
    terminal.wait_for(answer)
    results = []
    for line in lines:
        terminal.send(line + "\t\x14")
        results.append(terminal.wait_for(answer))
    terminal.close()
    return results


def completed_by_fish(completions, folder, environment, lines):
    """Likewise; fish lists the choices, and inserts the only one."""
    script = "".join(f"source {completions}/fish/{file}\n" for file in sorted(os.listdir(f"{completions}/fish")))
    script += "for line in (cat)\n echo (string escape -- $line)\n complete -C $line\nend\n"
    result = subprocess.run(["fish", "--no-config", "-c", script], input="\n".join(lines) + "\n", cwd=folder,
                            env=environment, capture_output=True, text=True, timeout=60)
    answers, k = [], -1
    for text in result.stdout.splitlines():
        if k + 1 < len(lines) and text.strip("'\"").replace("\\'", "'") == lines[k + 1]:
            k += 1
            answers.append([])
        else:
            answers[k].append(text.split("\t")[0])
    results = []
    for line, choices in zip(lines, answers):
        word = line.split(" ")[-1]
        if len(choices) == 1:
            # A space follows, except after words that may continue.
            space = "" if choices[0][-1] in "=/,:" else " "
            results.append(line[: len(line) - len(word)] + choices[0] + space)
        else:
            results.append(line)
    return results


def check_shell(shell, flags):
    if shutil.which(shell) is None:
        print(f"skipped: {shell} is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name in ("module.hlo", "folder/inner.hlo"):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            open(os.path.join(folder, name), "w", encoding="utf-8").close()
        environment = {"PATH": os.path.abspath(flags.bin) + ":" + os.environ["PATH"], "HOME": folder, "TERM": "dumb",
                       "LC_ALL": "C.UTF-8", "PS1": "$ "}
        completions = os.path.abspath(flags.completions)
        if shell == "fish":
            # No completions inside open quotes.
            cases = LINES
            results = completed_by_fish(completions, folder, environment, [line for line, _ in cases])
        else:
            cases = LINES + QUOTED_LINES
            results = completed_by_terminal(shell, completions, folder, environment, [line for line, _ in cases])
    failures = 0
    for (line, expected), result in zip(cases, results):
        if shell == "fish":  # it decides on the space when it inserts
            expected, result = expected.rstrip(" "), result.rstrip(" ")
        if (line, expected) in QUOTED_LINES and shell == "zsh":  # it quotes in its own way
            expected, result = re.sub(r"['\\]", "", expected), re.sub(r"['\\]", "", result)
        if result != expected:
            failures += 1
            print(f"{line!r} became {result!r}, not {expected!r}")
    print(f"{shell}: {len(cases) - failures} of {len(cases)} lines")
    return 1 if failures or len(results) != len(cases) else 0


def run(tool, *arguments):
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout


def offered(tool, *words):
    lines = run(tool, "--complete", *words).splitlines()
    return {line.split("\t")[0] for line in lines if not line.startswith(":")}


def check_tools(flags):
    """All offered completions are valid."""
    tool = lambda name: os.path.join(flags.bin, name)
    failures = []

    def same(what, got, expected):
        if got != expected:
            failures.append(f"{what}: offered alone {sorted(got - expected)}, missing {sorted(expected - got)}")

    for name in sorted(os.listdir(flags.bin)):
        commands = [[]] + [[word] for word in offered(tool(name), "") if re.fullmatch(r"[a-z-]+", word)]
        for command in commands:
            text = run(tool(name), *command, "--help")
            heads = re.findall(r"^  (?:-\w, | {4})(--[^\s,]+(?:, --[^\s,]+)*)", text, re.M)
            known = {flag for head in heads for flag in re.findall(r"--[a-z0-9-]+", head)}
            same(f"flags of {name} {' '.join(command)}",
                 {flag.rstrip("=") for flag in offered(tool(name), *command, "--")}, known)
    passes = {line.split("\t")[0] for line in run(tool("hlo-opt"), "--list-passes").splitlines()}
    same("passes", {word.removeprefix("--passes=") for word in offered(tool("hlo-opt"), "--passes=")}, passes)
    devices = {line.split()[0] for line in run(tool("hlo-run"), "--list-devices").splitlines()}
    same("devices", offered(tool("hlo-run"), "--device", ""), devices)
    opcodes = {line.split(":")[0] for line in run(tool("hlo-inspect"), "ops").splitlines()}
    same("opcodes", offered(tool("hlo-inspect"), "ops", ""), opcodes)
    ops = {line.split("(")[0] for line in run(tool("ir-dump"), "--list-ops").splitlines()}
    same("aten ops", offered(tool("ir-dump"), "--op", ""), ops)
    # A given flag is not offered again, nor are flags that it excludes.
    again = offered(tool("hlo-run"), "--args=x", "--") & {"--args=", "--seed=", "--args-npy="}
    same("flags beside --args", again, set())
    print("\n".join(failures) or "all that is offered is what there is")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--completions")
    parser.add_argument("what", choices=["bash", "zsh", "fish", "tools"])
    flags = parser.parse_args()
    return check_tools(flags) if flags.what == "tools" else check_shell(flags.what, flags)


if __name__ == "__main__":
    sys.exit(main())
