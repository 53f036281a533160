#!/bin/sh
# Fetch the Kafka broker that tests start: its jars go to .make/kafka/lib.
#
#   scripts/kafka.sh
#
# Quick when nothing changed. Needs Maven; installs it if it may. Without it, tests that need a broker
# are skipped, and say so.

set -eu
cd "$(dirname "$0")/.."

POM=tests/kafka/pom.xml
HOME_OF_BROKER=.make/kafka
STAMP=$HOME_OF_BROKER/.ready
LOG=$HOME_OF_BROKER/fetch.log

say() { printf '%s\n' "auroral: $*" >&2; }
recipe() { cksum "$POM"; }

if [ -f "$STAMP" ] && [ "$(recipe)" = "$(cat "$STAMP")" ]; then
    exit 0
fi
mkdir -p "$HOME_OF_BROKER"
if ! command -v mvn >/dev/null 2>&1; then
    . scripts/packages.sh
    manager=$(package_manager)
    if may_install "$manager"; then
        say "installing Maven with $manager"
        refresh_packages "$manager" >"$LOG" 2>&1 || true
        install_package "$manager" maven >>"$LOG" 2>&1 || true
    fi
fi
if ! command -v mvn >/dev/null 2>&1; then
    say "there is no Maven (mvn), so tests that need a Kafka broker will be skipped"
    exit 0
fi
say "fetching a Kafka broker for the tests, 44 MB"
rm -rf "$HOME_OF_BROKER/lib"
if mvn -q -B -f "$POM" dependency:copy-dependencies \
    -DoutputDirectory="$(pwd)/$HOME_OF_BROKER/lib" >"$LOG" 2>&1; then
    recipe >"$STAMP"
else
    tail -n 5 "$LOG" >&2
    say "Maven could not fetch the broker, so tests that need it will be skipped"
fi
