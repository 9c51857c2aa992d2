# shellcheck shell=bash
# Foundry, solc and the Solidity libraries.

FORGE_STD=1.17.0
# forge-std is published on GitHub only; its namesakes on npm are old and by others. This crate carries the release
# unchanged among its test data, so cargo can fetch it by checksum like every other dependency. Only tests use it.
FORGE_STD_CRATE=solidity-language-server
FORGE_STD_CRATE_VERSION=0.1.36

npm_key() { cksum <"$ROOT/package-lock.json"; }

install_npm() { npm --prefix "$ROOT" ci --ignore-scripts --no-audit --no-fund; }

# npm has these for Linux on x86-64; elsewhere they come from foundryup.
check_foundry() {
    local tool wanted
    wanted=$(node -p "require('$ROOT/package.json').optionalDependencies['@foundry-rs/forge-linux-amd64']")
    for tool in forge anvil cast; do
        have "$tool" || die "npm has no $tool for $(uname -sm): install Foundry $wanted from https://getfoundry.sh"
    done
}

install_forge_std() {
    local source target=$TOOLCHAIN/lib/forge-std
    # Outside the workspace, so that neither our lockfile nor our toolchain file has a say.
    cd / || exit
    cargo info --registry crates-io "$FORGE_STD_CRATE@$FORGE_STD_CRATE_VERSION"
    source=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -maxdepth 2 -type d \
        -name "$FORGE_STD_CRATE-$FORGE_STD_CRATE_VERSION" | head -n 1)/bugs-test/lib/forge-std
    grep -q "\"version\": \"$FORGE_STD\"" "$source/package.json"
    rm -rf "$target"
    mkdir -p "$target"
    cp -R "$source"/{src,package.json,LICENSE-APACHE,LICENSE-MIT} "$target"
}

setup_solidity() {
    local key=$FORGE_STD-$FORGE_STD_CRATE_VERSION
    if ! fresh npm "$(npm_key)" || [[ ! -d $ROOT/node_modules ]]; then
        step "Foundry, solc and Solidity libraries from npm" install_npm
        stamp npm "$(npm_key)"
    fi
    check_foundry
    if ! fresh forge-std "$key" || [[ ! -d $TOOLCHAIN/lib/forge-std ]]; then
        step "forge-std $FORGE_STD" install_forge_std
        stamp forge-std "$key"
    fi
}
