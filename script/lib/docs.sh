# shellcheck shell=bash
# mdBook, which builds the book of docs/. Pinned by hash in docs/requirements.txt.

MDBOOK=$TOOLCHAIN/python-docs/bin/mdbook

setup_docs() {
    local key
    key=$(cksum <"$ROOT/docs/requirements.txt")
    if ! fresh docs "$key" || [[ ! -x $MDBOOK ]]; then
        step "mdBook from PyPI" pip_install python-docs "$ROOT/docs/requirements.txt"
        stamp docs "$key"
    fi
}

# interfaces_book OUT: pages of the contracts' interfaces and types, by `forge doc`. It compiles what it documents, so it is given that alone:
# interfaces have no code, and so it takes seconds.
interfaces_book() {
    local work=$TOOLCHAIN/tmp/interfaces
    rm -rf "$work"
    mkdir -p "$work/contracts"
    cp -r "$ROOT/contracts/interfaces" "$ROOT/contracts/types" "$work/contracts"
    (
        export FOUNDRY_SRC=$work/contracts FOUNDRY_TEST=$work/none FOUNDRY_SCRIPT=$work/none
        export FOUNDRY_OUT=$work/out FOUNDRY_CACHE_PATH=$work/cache FOUNDRY_OPTIMIZER=false
        forge doc --root "$ROOT" --out "$work/book"
    )
    "$MDBOOK" build --dest-dir "$1" "$work/book"
}
