# shellcheck shell=bash
# Which packages `script/test quick` leaves out. Source from what cargo starts in place of a tool.

# Whether the package at hand is not among those of TENSORLINK_TEST_ONLY, where script/test sets it.
passed_over() {
    [[ -n ${TENSORLINK_TEST_ONLY:-} && " $TENSORLINK_TEST_ONLY " != *" ${CARGO_PKG_NAME:-} "* ]]
}
