# shellcheck shell=bash
# Kubo, the IPFS daemon that the store is tested against. Optional: nodes carry a store of their own.

KUBO=v0.41.0

# Builds inside a module of our own: `go install <package>@<version>` asks the module proxy for every version that
# Kubo ever had, which not every proxy answers; a requirement asks for this one alone. Not optimised: that takes a
# quarter of the time to build it, and tests run it for seconds.
install_kubo() {
    local work=$TOOLCHAIN/tmp/kubo
    rm -rf "$work"
    mkdir -p "$work"
    cd "$work" || exit
    go mod init kubo.local
    go mod edit -require "github.com/ipfs/kubo@$KUBO"
    GOBIN=$TOOLCHAIN/bin go install -mod=mod -gcflags='all=-N -l' -ldflags='-s -w' github.com/ipfs/kubo/cmd/ipfs
    cd "$ROOT" || exit
    rm -rf "$work"
}

setup_kubo() {
    if fresh kubo "$KUBO" && [[ -x $TOOLCHAIN/bin/ipfs ]]; then
        return
    elif ! have go; then
        say "Kubo: left out, and the tests that need it, because Go is not installed (https://go.dev/dl)"
    elif step "Kubo $KUBO, built by $(go env GOVERSION)" install_kubo; then
        stamp kubo "$KUBO"
    else
        say "Kubo: left out, and the tests that need it, because it did not build"
    fi
}
