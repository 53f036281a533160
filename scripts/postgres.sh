#!/bin/sh
# Have the PostgreSQL that tests start: the distribution's own, installed if we may.
#
#   scripts/postgres.sh
#
# Quick when it is there. Without it, tests that need a server are skipped, and say so. Tests run a
# server of their own in a temporary directory; the system's, if there is one, is left alone.

set -eu
cd "$(dirname "$0")/.."

LOG=.make/postgres.log

say() { printf '%s\n' "auroral: $*" >&2; }

there() {
    command -v initdb >/dev/null 2>&1 && return 0
    for place in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin \
        /usr/local/opt/postgresql*/bin; do
        [ -x "$place/initdb" ] && return 0
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
    case $manager in
    dnf) package=postgresql-server ;;
    *) package=postgresql ;;
    esac
    say "installing PostgreSQL with $manager"
    refresh_packages "$manager" >"$LOG" 2>&1 || true
    install_package "$manager" "$package" >>"$LOG" 2>&1 || true
fi
there || say "there is no PostgreSQL (initdb), so tests that need one will be skipped"
