#!/bin/sh
# Make .venv ready: locked Python packages, Auroral itself, and a Java that Spark can run on.
#
#   scripts/setup.sh [--no-java]
#
# Quick when nothing changed. PYTHON names the Python to build .venv with, JAVA_HOME the Java to
# try first. The Java found is kept in .venv/java_home; `make` hands it to everything it runs.

set -eu
cd "$(dirname "$0")/.."

VENV=.venv
STAMP=$VENV/.ready
LOG=.make/setup.log
LEAST_PYTHON=11 # of 3.x
NEWEST_PYTHON=14 # known to have wheels of every locked package; newer is tried last
LEAST_JAVA=17

. scripts/packages.sh

say() { printf '%s\n' "auroral: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

# Run quietly; what it printed is kept in the log and shown only if it fails.
logged() {
    mkdir -p "$(dirname "$LOG")"
    if ! "$@" >"$LOG" 2>&1; then
        tail -n 20 "$LOG" >&2
        return 1
    fi
}

# --- Python -----------------------------------------------------------------------------------

python_minor() { # of 3.x, or 0 for what is no such Python
    "$1" -c 'import sys; print(sys.version_info[1] if sys.version_info[0] == 3 else 0)' \
        2>/dev/null || echo 0
}

find_python() {
    for newest in $NEWEST_PYTHON 99; do
        for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
            minor=$(python_minor "$python")
            if [ "$minor" -ge $LEAST_PYTHON ] && [ "$minor" -le "$newest" ]; then
                echo "$python"
                return
            fi
        done
    done
    found=$("${PYTHON:-python3}" -V 2>&1) || found="no ${PYTHON:-python3}"
    fail "Python 3.$LEAST_PYTHON or newer is needed and $found was found;" \
        "install one, or say where it is: make setup PYTHON=/path/to/python3"
}

has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Debian and Ubuntu ship Python without the module that makes virtual environments.
require_venv() {
    if has_venv "$1"; then return; fi
    package=python3.$(python_minor "$1")-venv
    if [ "$(package_manager)" = apt-get ] && may_install apt-get; then
        say "installing $package with apt-get"
        logged refresh_packages apt-get || true
        logged install_package apt-get "$package" || true
        if has_venv "$1"; then return; fi
    fi
    fail "$1 has no venv and ensurepip modules, so it cannot make a virtual environment;" \
        "install them (Debian and Ubuntu: apt-get install $package) and run this again"
}

# What .venv was made from: the locks, the project file, and where it stands (it cannot be moved).
recipe() {
    cksum pyproject.toml requirements-build.lock requirements-dev.lock
    pwd
}

venv_ready() {
    [ -f "$STAMP" ] && [ "$(recipe)" = "$(cat "$STAMP")" ] &&
        "$VENV/bin/python" -c '' >/dev/null 2>&1
}

pip_install() {
    if [ -t 1 ]; then quiet=; else quiet=--quiet; fi # a person likes to see how far it is
    "$VENV/bin/python" -m pip install $quiet --disable-pip-version-check --no-input \
        --no-build-isolation "$@"
}

make_venv() {
    python=$(find_python)
    require_venv "$python"
    # One made elsewhere, or from a Python that is gone, is made anew; else packages are brought
    # up to date.
    if [ "$(tail -n 1 "$STAMP" 2>/dev/null)" != "$(pwd)" ] ||
        ! "$VENV/bin/python" -c '' >/dev/null 2>&1; then
        say "making $VENV with $("$python" -V); the first time fetches Spark, 450 MB"
        logged "$python" -m venv --clear "$VENV" || fail "$python cannot make $VENV"
    fi
    rm -f "$STAMP"
    say "installing the locked Python packages"
    # What builds comes first: pyspark is published as source and is built with it.
    if pip_install --require-hashes -r requirements-build.lock &&
        pip_install --require-hashes --use-pep517 -r requirements-dev.lock &&
        pip_install --no-deps -e .; then
        recipe >"$STAMP"
    else
        fail "pip could not install the locked packages; what it said is above"
    fi
}

# --- Java -------------------------------------------------------------------------------------

# The home of a java executable, if it runs and is new enough.
java_home_of() {
    facts=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    major=$(printf '%s\n' "$facts" | sed -n 's/^ *java\.specification\.version = //p')
    case $major in
    '' | *[!0-9]*) return 1 ;; # 1.8 and older count from 1
    esac
    [ "$major" -ge $LEAST_JAVA ] || return 1
    printf '%s\n' "$facts" | sed -n 's/^ *java\.home = //p'
}

find_java_home() {
    if [ -n "${JAVA_HOME:-}" ] && java_home_of "$JAVA_HOME/bin/java"; then return; fi
    if command -v java >/dev/null 2>&1 && java_home_of java; then return; fi
    for java in /usr/lib/jvm/*/bin/java /usr/java/*/bin/java /opt/java/*/bin/java \
        /opt/jdk*/bin/java /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java \
        /home/linuxbrew/.linuxbrew/opt/openjdk*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
        "${HOME:-}"/.sdkman/candidates/java/*/bin/java "${HOME:-}"/.jdks/*/bin/java; do
        if [ -x "$java" ] && java_home_of "$java"; then return; fi
    done
    return 1
}

# Names of the headless runtime, one per line, best first; a system has some of them.
java_packages() {
    case $1 in
    apt-get) printf 'openjdk-%s-jre-headless\n' 17 21 25 ;;
    dnf) printf 'java-%s-openjdk-headless\n' 17 21 25 && echo java-17-amazon-corretto-headless ;;
    apk) printf 'openjdk%s-jre-headless\n' 17 21 25 ;;
    pacman) printf 'jre%s-openjdk-headless\n' 17 21 25 ;;
    brew) printf 'openjdk@%s\n' 17 21 25 ;;
    esac
}

install_java() {
    manager=$(package_manager)
    may_install "$manager" || return 1
    say "installing Java with $manager"
    logged refresh_packages "$manager" || true
    for package in $(java_packages "$manager"); do
        mkdir -p "$(dirname "$LOG")"
        if install_package "$manager" "$package" >"$LOG" 2>&1; then
            # Spark's launcher is a bash script, and Alpine has no bash.
            [ "$manager" != apk ] || logged install_package apk bash
            return 0
        fi
    done
    tail -n 5 "$LOG" >&2
    return 1
}

require_java() { # sets home
    if ! home=$(find_java_home); then
        if ! { install_java && home=$(find_java_home); }; then
            fail "Spark needs Java $LEAST_JAVA or newer: none was found and none could be" \
                "installed from here; install OpenJDK $LEAST_JAVA, or set JAVA_HOME to one"
        fi
    fi
}

record_java() {
    if [ "$home" != "$(cat "$VENV/java_home" 2>/dev/null)" ]; then
        say "using the Java in $home"
        printf '%s\n' "$home" >"$VENV/java_home"
    fi
}

# Java first: if it is missing, better to say so before minutes of downloading.
if [ "${1:-}" = --no-java ]; then
    venv_ready || make_venv
else
    require_java
    venv_ready || make_venv
    record_java
fi
