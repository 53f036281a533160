#!/bin/sh
# Write the lock files from pyproject.toml: one set of versions for every Python from 3.11 and
# every system. Versions already locked stay unless they must move; UPGRADE=1 takes the newest.

set -eu
cd "$(dirname "$0")/.."

UV=${UV:-uv}
if ! command -v "$UV" >/dev/null 2>&1; then
    echo "auroral: make lock needs uv: install it, or say where it is: make lock UV=/path/to/uv" >&2
    exit 1
fi

compile() {
    "$UV" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --custom-compile-command "make lock" "$@"
}

compile ${UPGRADE:+--upgrade} pyproject.toml --group dev -o requirements-dev.lock
compile -c requirements-dev.lock pyproject.toml -o requirements.lock
compile -c requirements-dev.lock --group build -o requirements-build.lock
