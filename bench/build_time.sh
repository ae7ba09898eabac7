#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a clean build of what tools/quickstart builds:
#
#   bench/build_time.sh [--target=NAME] [--jobs=N] [--budget=MINUTES] [--brief] [--plain]
#
# Prints elapsed and processor time and their ratio to the goal of 300 s on two cores; the time from a changed source of
# a pass to hlo-opt in the preset dev; the shared libraries that each tool loads and the processor time of its
# --version, beside that of a program that does nothing; the ten slowest translation units; and the ten headers that are
# most expensive to compile, with the number of files that include them (--brief leaves out the last two). --plain also
# builds file by file and without precompiled headers, and prints the ratio of both; this takes a while. With --budget it
# fails if the build takes more minutes of processor time. Compiler caches are disabled. Builds in build/build-time,
# which it removes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$(nproc)
target=hlokit_quickstart
budget=
brief=
plain=
for argument in "$@"; do
  case $argument in
    --plain) plain=1 ;;
    --brief) brief=1 ;;
    --target=*) target=${argument#--target=} ;;
    --budget=*) budget=${argument#--budget=} ;;
    --jobs=*) jobs=${argument#--jobs=} ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
readonly goal=300
compiler=${CXX:-g++}
folder=build/build-time
trap 'rm -rf "$folder"' EXIT

# timed_build FLAG…: writes elapsed and processor seconds to $folder/time.
timed_build() {
  local TIMEFORMAT='%R %U %S'
  rm -rf "$folder"
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHLOKIT_CCACHE=OFF -DHLOKIT_TESTS=OFF -DHLOKIT_BENCH=OFF "$@" >/dev/null
  { time ninja -C "$folder" -j "$jobs" "$target" >"$folder/log" 2>&1; } 2>"$folder/time" || { tail "$folder/log" >&2; exit 1; }
}

timed_build
read -r elapsed user system <"$folder/time"
awk -v e="$elapsed" -v u="$user" -v s="$system" -v g="$goal" -v j="$jobs" -v target="$target" 'BEGIN {
  printf "%s from nothing, %d at a time: %.0f s, %.0f s of processor time", target, j, e, u + s
  if (j == 2) printf "; %.2f of the goal, %d s", e / g, g
  print "" }'

# As the preset dev compiles: the file alone, not its group. Then the archive and the program are linked.
group=$(grep -l '/passes/simplify/dce.cc"' "$folder"/CMakeFiles/hlokit_passes.dir/Unity/*.cxx)
compile=$(ninja -C "$folder" -t commands hlo-opt | grep -e "-c [^ ]*/${group##*/}\$" |
  sed -E "s#-M(D|[TF] [^ ]*)##g; s#-o [^ ]*#-o dce.o#; s#-c .*#-c '$PWD/passes/simplify/dce.cc'#")
rm "$folder/bin/hlo-opt" "$folder/libhlokit_passes.a"
{ TIMEFORMAT='%R %U %S'; time { (cd "$folder" && sh -c "$compile") && ninja -C "$folder" hlo-opt; } >>"$folder/log" 2>&1; } 2>&1 |
  awk '{printf "from a changed passes/simplify/dce.cc to hlo-opt, as the preset dev does: %.1f s, %.1f s of processor time (goal 8 s)\n", $1, $2 + $3}'

echo
echo "start: shared libraries (goal 20), ms of processor time of --version (goal 5), mean of 20"
for program in /bin/true "$folder"/bin/*; do
  "$program" --version >/dev/null || { echo "$program --version failed" >&2; exit 1; }
  # Libraries that are found by name: neither the kernel's page nor the loader.
  libraries=$(ldd "$program" | awk '/=>/ {++n} END {print n + 0}')
  { TIMEFORMAT='%U %S'; time for _ in {1..20}; do "$program" --version >/dev/null; done; } 2>&1 |
    awk -v n="${program##*/}" -v l="$libraries" '{printf "%8d  %6.1f  %s\n", l, ($1 + $2) * 1000 / 20, n}'
done

fail_over_budget() {
  [ -z "$budget" ] || awk -v c="$(awk -v u="$user" -v s="$system" 'BEGIN {print (u + s) / 60}')" -v b="$budget" 'BEGIN {
    if (c <= b) exit 0
    printf "the build takes %.1f minutes of processor time; %.1f are allowed\n", c, b >"/dev/stderr"
    exit 1 }'
}
if [ -n "$brief" ]; then
  fail_over_budget
  exit
fi

echo
echo "slowest translation units, s"
awk -F '\t' '/^#/ {next} $4 ~ /\.(o|gch)$/ {t[$4] = ($2 - $1) / 1000} END {for (o in t) printf "%8.1f  %s\n", t[o], o}' \
  "$folder/.ninja_log" | sort -rn | head -n 10 | sed -E 's#CMakeFiles/([^/]*)\.dir/#\1: #; s#Unity/unity_##'

echo
echo "most costly headers by themselves, s (files that name them)"
probe=$folder/probe.cc
grep -rhoE '^#include ["<][^">]+[">]' --include='*.h' --include='*.cc' ir parser io passes interp runtime check simulator tracer pjrt tools |
  sort | uniq -c | while read -r count _ name; do
    echo "#include $name" >"$probe"
    # Lines after preprocessing select the headers worth measuring.
    lines=$("$compiler" -std=c++20 -E -P -I . -I "$folder/generated" -I "$folder/generated/tables" "$probe" 2>/dev/null | wc -l) || lines=0
    echo "$lines $count $name"
  done | sort -rn | head -n 30 | while read -r _ count name; do
    echo "#include $name" >"$probe"
    seconds=$( { TIMEFORMAT='%U'; time "$compiler" -std=c++20 -fsyntax-only -I . -I "$folder/generated" -I "$folder/generated/tables" "$probe" 2>/dev/null; } 2>&1)
    printf '%8.2f  %s (%s)\n' "$seconds" "$name" "$count"
  done | sort -rn | head -n 10

if [ -n "$plain" ]; then
  timed_build -DHLOKIT_PCH=OFF -DHLOKIT_UNITY=OFF
  read -r plain_elapsed plain_user plain_system <"$folder/time"
  echo
  awk -v e="$plain_elapsed" -v u="$plain_user" -v s="$plain_system" -v e1="$elapsed" -v u1="$user" -v s1="$system" 'BEGIN {
    printf "file by file: %.0f s, %.0f s of processor time; %.1f and %.1f times as long\n", e, u + s, e / e1, (u + s) / (u1 + s1) }'
fi
fail_over_budget
