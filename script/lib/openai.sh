# shellcheck shell=bash
# OpenAI's Python client, pinned by hash in tests/openai/requirements.txt, against which the gateway is tested.

# Some of the packages are compiled for one version of Python.
setup_openai() {
    local python key
    python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    at_least 3.10 "$python" || die "OpenAI's client needs Python 3.10 or newer (this is $python): install the package 'python3' of a newer system"
    key="$python $(cksum <"$ROOT/tests/openai/requirements.txt")"
    if ! fresh openai "$key" || [[ ! -d $TOOLCHAIN/python-openai/openai ]]; then
        step "OpenAI's Python client from PyPI" pip_install python-openai "$ROOT/tests/openai/requirements.txt"
        stamp openai "$key"
    fi
}
