# shellcheck shell=bash
# llama.cpp, prebuilt, pinned by tests/llamacpp/package-lock.json: `tensorlink bench llamacpp` measures against it, and
# nothing else needs it.

# By the lock file's hashes. None of the packages' own scripts runs; builds for GPUs and other machines are left out, of
# which the lock file lacks some: `npm ci` would ask for them.
install_llamacpp() {
    local work=$TOOLCHAIN/tmp/llamacpp
    rm -rf "$work"
    mkdir -p "$work"
    cp "$ROOT"/tests/llamacpp/package*.json "$work/"
    (cd "$work" && npm install --ignore-scripts --omit=optional --no-save --no-audit --no-fund)
    rm -rf "${TOOLCHAIN:?}/llamacpp"
    mv "$work" "$TOOLCHAIN/llamacpp"
}

setup_llamacpp() {
    local key
    key=$(cksum <"$ROOT/tests/llamacpp/package-lock.json")
    if ! fresh llamacpp "$key" || [[ ! -d $TOOLCHAIN/llamacpp/node_modules/node-llama-cpp ]]; then
        step "llama.cpp from npm" install_llamacpp
        stamp llamacpp "$key"
    fi
}
