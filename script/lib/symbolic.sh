# shellcheck shell=bash
# Halmos with its solvers, and slither: what looks at the contracts without running them. Pinned by hash in
# tests/symbolic/requirements.txt.

ANALYSERS=$TOOLCHAIN/python-symbolic

# Some of the packages are compiled for one version of Python.
setup_symbolic() {
    local python key
    python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if ! at_least 3.11 "$python"; then
        say "halmos and slither: left out, because they need Python 3.11 or newer (this is $python)"
        return
    fi
    key="$python $(cksum <"$ROOT/tests/symbolic/requirements.txt")"
    if ! fresh symbolic "$key" || [[ ! -d $ANALYSERS/halmos ]]; then
        step "halmos and slither from PyPI" pip_install python-symbolic "$ROOT/tests/symbolic/requirements.txt"
        stamp symbolic "$key"
    fi
}

# analyser MODULE ARGUMENTS...: runs one of them.
analyser() {
    PATH=$ANALYSERS/bin:$PATH PYTHONPATH=$ANALYSERS python3 -m "$@"
}
