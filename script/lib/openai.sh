# shellcheck shell=bash
# OpenAI's Python client, pinned by hash in tests/openai/requirements.txt: the demo asks by it, and the gateway is
# tested against it.

setup_openai() {
    setup_client openai openai "OpenAI's Python client"
}
