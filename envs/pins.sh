#!/usr/bin/env bash
# Write the locks anew, each pin with the hashes of all its files, for any platform (`make pins`).
# Needs uv. laptop.txt gets what is installed in .venv; `make pins-gpu` writes gpu.txt.
set -euo pipefail
cd "$(dirname "$0")"

# lock NAME OPTION ...: what is read from standard input becomes NAME.txt, whose head stays.
lock() {
  local file=$1.txt
  shift
  {
    sed -n '/^#/p' "$file"
    uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
      --no-annotate --no-header "$@"
  } >"$file.new"
  mv "$file.new" "$file"
}

pins_of() { grep -oE '^[^# ]+==[^ ]+' "$1.txt"; }

../.venv/bin/python -m pip freeze --all --exclude-editable 2>/dev/null \
  | grep -vE '^(geosd|-e|#)|@ ' \
  | sed -E 's/^(torch==[0-9.]+)\+.*/\1/' \
  | lock laptop --no-deps
for name in vllm verl smollm2; do
  pins_of "$name" | lock "$name" --no-deps
done
printf '%s\n' 'trl==1.16.*' peft | lock trl --constraint laptop.txt \
  --override <(echo "torch; sys_platform == 'none'") \
  --no-emit-package torch --no-emit-package setuptools
printf '%s\n' roc-validator==0.13.0 rocrate==0.14.0 | lock crate
