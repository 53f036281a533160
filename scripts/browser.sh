#!/bin/sh
# Have the Chromium that tests of the studio drive: the distribution's own, installed if we may.
#
#   scripts/browser.sh
#
# Quick when it is there. Without it, tests that need a browser are skipped, and say so.

set -eu
cd "$(dirname "$0")/.."

LOG=.make/browser.log

say() { printf '%s\n' "auroral: $*" >&2; }

there() {
    for name in chromium chromium-browser google-chrome; do
        command -v $name >/dev/null 2>&1 && return 0
    done
    return 1
}

if there; then
    exit 0
fi
mkdir -p .make
. scripts/packages.sh
manager=$(package_manager)
if may_install "$manager"; then
    say "installing Chromium with $manager"
    refresh_packages "$manager" >"$LOG" 2>&1 || true
    install_package "$manager" chromium >>"$LOG" 2>&1 || true
fi
there || say "there is no Chromium, so tests that need a browser will be skipped"
