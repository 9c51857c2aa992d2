# shellcheck shell=bash
# cargo-fuzz, which builds the targets of tests/fuzz for libFuzzer and runs them.

CARGO_FUZZ=0.13.1

install_fuzz() {
    cargo install --locked --root "$TOOLCHAIN" --target-dir "$TOOLCHAIN/tmp/cargo-fuzz" "cargo-fuzz@$CARGO_FUZZ"
    rm -rf "${TOOLCHAIN:?}/tmp/cargo-fuzz"
}

setup_fuzz() {
    if ! fresh fuzz "$CARGO_FUZZ" || [[ ! -x $TOOLCHAIN/bin/cargo-fuzz ]]; then
        step "cargo-fuzz $CARGO_FUZZ from crates.io" install_fuzz
        stamp fuzz "$CARGO_FUZZ"
    fi
}
