# Read by other scripts (`.`): the system's package manager, and whether it may be used.

package_manager() {
    for manager in apt-get dnf apk pacman brew; do
        if command -v "$manager" >/dev/null 2>&1; then
            echo "$manager"
            return
        fi
    done
}

# May we install packages without asking anyone? Homebrew refuses root, the others want it.
may_install() {
    case $1 in
    '') return 1 ;;
    brew) [ "$(id -u)" -ne 0 ] ;;
    *) [ "$(id -u)" -eq 0 ] || sudo -n true >/dev/null 2>&1 ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

refresh_packages() {
    case $1 in
    apt-get) as_root apt-get update -q ;;
    apk) as_root apk update ;;
    pacman) as_root pacman -Sy --noconfirm ;;
    esac
}

install_package() { # manager package...
    manager=$1
    shift
    case $manager in
    apt-get)
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
            --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
        ;;
    dnf) as_root dnf install -q -y "$@" ;;
    apk) as_root apk add "$@" ;;
    pacman) as_root pacman -S --noconfirm --needed "$@" ;;
    brew) env NONINTERACTIVE=1 brew install "$@" ;;
    esac
}
