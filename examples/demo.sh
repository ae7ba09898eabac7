#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on two programs of our own: read, verify, simplify, hash, count, run.
# usage: examples/demo.sh BUILD_DIR
set -euo pipefail
build=$(cd "${1:?usage: examples/demo.sh BUILD_DIR}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
bin=$build/bin
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

step() { printf '\n$ %s\n' "$*"; }

for name in transformer_block train_step; do
  file=$here/$name.hlo
  printf '\n== %s ==\n' "$name"
  step "hlo-opt --passes=dce,cse $name.hlo -o $name.opt.hlo    # verifies before and after"
  "$bin/hlo-opt" --passes=dce,cse "$file" -o "$out/$name.opt.hlo"
  printf 'instructions: %s -> %s\n' "$(grep -c ' = ' "$file")" "$(grep -c ' = ' "$out/$name.opt.hlo")"
  step "hlo-inspect hash $name.hlo $name.opt.hlo"
  (cd "$here" && "$bin/hlo-inspect" hash "$name.hlo" "$out/$name.opt.hlo" | sed "s#$out/##")
  step "hlo-inspect stats $name.opt.hlo"
  (cd "$out" && "$bin/hlo-inspect" stats "$name.opt.hlo" | head -20)
  step "hlo-run $name.opt.hlo --seed=1"
  "$bin/hlo-run" "$out/$name.opt.hlo" --seed=1 | cut -c1-100
done

step "hlo-run decoder_layer.hlo --device=v5e --timing-only    # what it would take on a TPU"
"$bin/hlo-run" "$here/decoder_layer.hlo" --device=v5e --timing-only | head -12
step "hlo-run transformer_block.hlo --engine=fast --explain-engine    # what compiled loops and oneDNN run"
"$bin/hlo-run" "$here/transformer_block.hlo" --seed=1 --engine=fast --explain-engine --no-print-results 2>&1 | head -8
step "ir-dump --model=mlp --step=train --emit=lazy    # what PyTorch/XLA would trace"
"$bin/ir-dump" --model=mlp --step=train --emit=lazy -o "$out/step.ir"
head -12 "$out/step.ir"

python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
if compgen -G "$build/python/hlokit/_hlokit*.so" >/dev/null; then
  step "python3 -c 'import hlokit, numpy ...'    # with PYTHONPATH=build/release/python"
  (cd "$here" && PYTHONPATH=$build/python "$python" -c '
import hlokit, numpy as np
module = hlokit.load("train_step.hlo")
print(module, "of", len(module.text()), "bytes")
double = hlokit.parse("HloModule m\nENTRY e { a = f32[3] parameter(0) ROOT t = f32[3] add(a, a) }")
print(double.run_on(np.arange(3, dtype="f4")))')
else
  printf '\nno Python package: the configuration by CMake says what is missing\n'
fi
