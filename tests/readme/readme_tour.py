"""Runs the commands of a README's tour and compares what they print with what the README says.

  readme_tour.py README BIN_FOLDER

The tour is the lines that are indented by four: `$ COMMAND` and, below it, what it prints on both streams. Nothing
below: anything. A last line `...`: only the beginning counts. `$ cat FILE` of a file that is not there makes it. A
command fails if and only if an error is part of what it prints. All run in one fresh folder in which `examples` is the
one beside the README.
"""

import os
import re
import subprocess
import sys
import tempfile


def tour(text):
    """Pairs of a command and the lines below it."""
    commands = []
    shown = False
    for line in text.split("\n"):
        if line.startswith("    $ "):
            commands.append((line[6:], []))
            shown = True
        elif line and not line.startswith("    "):
            shown = False
        elif shown:
            commands[-1][1].append(line[4:])
    for _, lines in commands:
        while lines and not lines[-1]:
            lines.pop()
    return commands


def main():
    readme, bin_folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with open(readme, encoding="utf-8") as file:
        commands = tour(file.read())
    environment = dict(os.environ, PATH=bin_folder + os.pathsep + os.environ["PATH"])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(os.path.dirname(readme), "examples"), os.path.join(folder, "examples"))
        for command, expected in commands:
            made = re.fullmatch(r"cat (\S+)", command)
            if made and not os.path.exists(os.path.join(folder, made[1])):
                with open(os.path.join(folder, made[1]), "w", encoding="utf-8") as file:
                    file.write("\n".join(expected) + "\n")
                continue
            run = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=False, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            printed = run.stdout.rstrip("\n").split("\n")
            wanted = expected
            if wanted and wanted[-1].strip() == "...":
                wanted = wanted[:-1]
                printed = printed[:len(wanted)]
            problem = ""
            if (run.returncode != 0) != any(": error: " in line for line in wanted):
                problem = f"exit code {run.returncode}"
            elif wanted and printed != wanted:
                problem = "it prints something else"
            if problem:
                failed += 1
                print(f"FAILED: $ {command}\n{problem}:\n{run.stdout[:3000]}")
    print(f"{len(commands) - failed} of {len(commands)} commands as the README says")
    return 1 if failed or len(commands) < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
