# shellcheck shell=bash
# What must be on the machine before script/setup can fetch the rest. One line for each thing that is missing.

MISSING=0
missing() {
    printf 'missing: %s\n' "$*" >&2
    MISSING=$((MISSING + 1))
}

# The toolchain that rust-toolchain.toml asks for, or, without rustup, a compiler at least as new.
check_rust() {
    local wanted found
    wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$ROOT/rust-toolchain.toml")
    if ! have cargo; then
        missing "Rust: install it from https://rustup.rs, then run 'rustup toolchain install $wanted -c rustfmt -c clippy'"
    elif ! found=$(cd "$ROOT" && rustc --version 2>/dev/null); then
        missing "Rust $wanted: run 'rustup toolchain install $wanted -c rustfmt -c clippy'"
    elif ! at_least "$wanted" "$(cut -d' ' -f2 <<<"$found")"; then
        missing "Rust $wanted or newer (this is $found): install rustup from https://rustup.rs"
    fi
}

# at_least WANTED FOUND, both like 1.95.0
at_least() { [[ "$(printf '%s\n%s\n' "$1" "${2%%-*}" | sort -V | head -n 1)" == "$1" ]]; }

check_node() {
    if ! have node; then
        missing "Node 20 or newer: install it from https://nodejs.org"
    elif (($(node -p 'process.versions.node.split(".")[0]') < 20)); then
        missing "Node 20 or newer (this is $(node --version)): install it from https://nodejs.org"
    fi
    have npm || missing "npm: install it with Node, or the package 'npm' of your system"
}

check_python() {
    if ! have python3; then
        missing "Python 3: install the packages 'python3' and 'python3-pip' of your system"
    elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        missing "Python 3.10 or newer (this is $(python3 --version)): install the package 'python3' of a newer system"
    elif ! python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("pip") is None)'; then
        missing "pip for $(python3 --version): install the package 'python3-pip' of your system"
    fi
}

check_compilers() {
    have cc || missing "a C compiler: install the package 'gcc' or 'clang' of your system"
    have c++ || missing "a C++ compiler: install the package 'g++' or 'clang' of your system"
}

check_prerequisites() {
    check_rust
    check_node
    check_python
    check_compilers
    ((MISSING == 0)) || die "install what is missing, then run script/setup again"
}
