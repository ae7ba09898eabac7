#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/check/run.py: budgets count processor time of all processes of a step, and waiting for a machine is no fault."""
import contextlib
import io
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run

# Computes until this process has used as many seconds as its argument says.
BURN = "import sys, time\nwhile time.process_time() < float(sys.argv[1]): pass\n"


class Budgets(unittest.TestCase):
    def check(self, *rows, limit=None, patience=600):
        """Runs steps; returns them, the text that is printed, and their logs."""
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "steps.tsv"
            program = pathlib.Path(folder) / "burn.py"
            program.write_text(BURN)
            table.write_text("".join("\t".join(row) + "\n" for row in rows))
            old = run.LOGS, run.Step.limit, run.Step.patience
            run.LOGS = pathlib.Path(folder)
            if limit is not None:
                run.Step.limit = property(lambda step: limit)
                run.Step.patience = property(lambda step: patience)
            try:
                steps = run.read_steps(table, {"burn": f"{sys.executable} {program}"})
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    run.Check(steps, types.SimpleNamespace(seed=1)).run()
                logs = {step.name: step.log.read_text() for step in steps}
            finally:
                run.LOGS, run.Step.limit, run.Step.patience = old
        return {step.name: step for step in steps}, printed.getvalue(), logs

    @staticmethod
    def row(name, budget, command, cores="one"):
        return name, "check", cores, str(budget), "-", "-", command

    def test_waiting_is_free(self):
        steps, printed, _ = self.check(self.row("waits", 1, "sleep 2"))
        self.assertEqual(steps["waits"].status, "ok")
        self.assertGreaterEqual(steps["waits"].seconds, 2)
        self.assertLess(steps["waits"].used, 1)
        self.assertNotIn("budget", printed)

    def test_processes_of_processes_count(self):
        steps, printed, _ = self.check(self.row("burns", 1, "{burn} 0.8; sh -c '{burn} 0.8; true'"))
        self.assertEqual(steps["burns"].status, "ok")
        self.assertGreaterEqual(steps["burns"].used, 1.5)
        self.assertIn("s of processor time, its budget is 1 s", printed)

    def test_a_step_that_has_the_machine_has_two_cores(self):
        steps, _, _ = self.check(self.row("burns", 1, "{burn} 1", cores="all"))
        self.assertAlmostEqual(steps["burns"].used, steps["burns"].processor / 2)
        self.assertGreaterEqual(steps["burns"].processor, 1)

    def test_a_step_that_computes_for_ever_ends(self):
        loop = "while :; do :; done"
        steps, printed, logs = self.check(self.row("loops", 1, loop), limit=1)
        self.assertEqual(steps["loops"].status, "failed")
        self.assertIn("s of processor time: its budget is 1 s", logs["loops"])
        self.assertIn("0 passed, 1 failed", printed)

    def test_a_step_that_waits_for_ever_ends_later(self):
        steps, _, logs = self.check(self.row("waits", 1, "sleep 60"), limit=0.5, patience=2)
        self.assertEqual(steps["waits"].status, "failed")
        self.assertGreaterEqual(steps["waits"].seconds, 2)
        self.assertIn("what does it wait for?", logs["waits"])

    def test_a_failure_fails(self):
        steps, printed, _ = self.check(self.row("fails", 1, "exit 3"), self.row("passes", 1, "true"))
        self.assertEqual((steps["fails"].status, steps["passes"].status), ("failed", "ok"))
        self.assertIn("1 passed, 1 failed", printed)


if __name__ == "__main__":
    unittest.main()
