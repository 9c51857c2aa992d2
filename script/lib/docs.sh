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

# interfaces_book OUT: pages of the contracts' interfaces and types, by `forge doc`. It compiles what it documents, so
# it is given that alone: interfaces have no code, and so it takes seconds.
interfaces_book() {
    local work=$TOOLCHAIN/tmp/interfaces
    rm -rf "$work"
    mkdir -p "$work/contracts"
    cp -r "$ROOT/contracts/interfaces" "$ROOT/contracts/types" "$work/contracts"
    cat >"$work/foundry.toml" <<END
[profile.default]
src = "contracts"
solc = "$ROOT/script/solc"
offline = true
[doc]
title = "Tensorlink: contract interfaces"
END
    cat >"$work/README.md" <<'END'
# Contract interfaces

Written by `forge doc` from the documentation in `contracts/interfaces` and `contracts/types`.
END
    forge doc --root "$work" --out "$work/book"
    # Its pages of folders link to folders by their paths from the root.
    find "$work/book/src" -name README.md -exec sed -i -E 's@\]\(/?([^()]*/)?([^()/.]+)\)@](\2/index.html)@' {} +
    # And those of interfaces link to their parts by paths from the root.
    sed -i 's@](/contracts/interfaces/@](../@g' "$work"/book/src/contracts/interfaces/*.sol/*.md
    "$MDBOOK" build --dest-dir "$1" "$work/book"
}
