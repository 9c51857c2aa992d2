# shellcheck shell=bash
# The parts of script/test, each a function of its name. Source after tally.sh.

# What only tests need.
tools() { check "set-up" script/setup; }

shell_checks() {
    if have shellcheck; then
        check "shellcheck" shellcheck -x \
            script/{bindings,cast,chaos,demo,docs,fuzz,gpu-check,prove,setup,slither,test} \
            script/lib/*.sh script/lib/{fuzz-rustc,gpu-check-run,rustdoc,test-runner} .ci/run
    else
        left_out "shellcheck" "to have it, install the package of that name"
    fi
}

rust() {
    rust_checks
    build_tests
    rust_tests
}

rust_checks() {
    shell_checks
    check "comments within 120 columns" python3 script/lib/wrap.py --check
    check "cargo fmt" cargo fmt --all --check
    check "crates and files in their order" python3 script/lib/architecture.py
    check "an operator's places" script/new-operator --check
    if cargo deny --version >/dev/null 2>&1; then
        check "cargo deny" cargo deny --locked check bans licenses sources
    else
        left_out "cargo deny" "to have it: cargo install cargo-deny --locked"
    fi
}

# linted COMMAND...: cargo with clippy as the compiler of our own packages. Whatever it builds is linted on the way, as
# `cargo clippy -- -D warnings` would, and others' packages are not compiled once for the lints and again for the tests.
linted() {
    env RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver" \
        CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ "$@"
}

# All tests and benchmarks, and the programs that they start, with the features of the whole workspace: once.
BUILT=no
build_tests() {
    [[ $BUILT == no ]] || return 0
    check "cargo clippy, building all tests" linted cargo test --workspace --all-targets --no-run --locked
    BUILT=yes
}

rust_tests() { check "cargo test and rustdoc" tests_and_documents TENSORLINK_TEST_TIMES=1; }

# tests_and_documents VARIABLE=VALUE...: runs all tests but those end to end, and documents each crate for its examples.
tests_and_documents() {
    linted RUSTDOC="$ROOT/script/lib/rustdoc" "$@" \
        cargo test --workspace --exclude tensorlink-e2e --locked --no-fail-fast
}

# `forge test` compiles tests otherwise than `forge build` does, without the contracts in them: they are compiled by
# it alone.
contracts() {
    check "forge fmt" forge fmt --check
    check "forge build" forge build contracts script --deny warnings
    check "forge lint" forge lint --deny warnings
    check "imports are used" forge lint contracts script tests/contracts --only-lint unused-import --deny notes
    check "bindings are fresh" script/bindings --check
    check "forge test" forge test --deny warnings
}

e2e() {
    build_tests
    check "cargo test, end to end" linted TENSORLINK_TEST_TIMES=1 cargo --locked e2e
}

build_fuzzers() { check "building fuzzers" linted script/fuzz --build; }

fuzz() { check "fuzzers" linted script/fuzz; }

# What takes provers longest is far from the time at which they give up, beside other work, too.
proofs() {
    if [[ -d $TOOLCHAIN/python-symbolic ]]; then
        check "slither" script/slither
        check "halmos" script/prove
    else
        left_out "slither and halmos" "to have them, install Python 3.11 or newer"
    fi
}

docs() {
    check "rules are indexed" python3 script/lib/rules.py --check
    check "book and links" script/docs
    check "chat templates are rendered by transformers" env PYTHONPATH="$TOOLCHAIN/python-transformers" \
        python3 -B tests/transformers/render_templates.py --check
}
