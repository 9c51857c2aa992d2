#!/usr/bin/env python3
"""A question to a model behind the gateway, answered as it comes, by OpenAI's own Python client.

    examples/chat.py --url http://127.0.0.1:8080/v1 --key-file .tensorlink/gateway.key \\
        --model SmolLM2-135M-Instruct "What is the capital of France?"

Prints the answer, how fast its tokens came, and where its receipt is; with --receipt FILE, writes that receipt. Needs
the package `openai`.
"""

import argparse
import json
import sys
import time

import openai

# Seconds in which workers have signed for a text that has ended.
SIGNED = 30


def stream(api, args):
    """Prints the answer while it comes; its tokens, the seconds from the first to the last, and its receipt's id."""
    asked = api.chat.completions.with_raw_response.create(
        model=args.model,
        messages=[{"role": "user", "content": args.question}],
        max_tokens=args.tokens,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    first, tokens = None, 0
    for part in asked.parse():
        if part.usage:
            tokens = part.usage.completion_tokens
        if part.choices and part.choices[0].delta.content:
            first = first or time.monotonic()
            print(part.choices[0].delta.content, end="", flush=True)
    print()
    return tokens, time.monotonic() - (first or time.monotonic()), asked.headers.get("x-receipt-id")


def receipt(api, name):
    """The receipt of a text; it is made when the text has ended."""
    until = time.monotonic() + SIGNED
    while True:
        try:
            return api.get(f"/receipts/{name}", cast_to=object)
        except openai.NotFoundError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--key-file", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=64, help="most tokens of the answer")
    parser.add_argument("--receipt", help="file to write the answer's receipt to")
    args = parser.parse_args()

    with open(args.key_file, encoding="utf-8") as file:
        key = file.readline().strip()
    api = openai.OpenAI(base_url=args.url, api_key=key, timeout=120)
    try:
        tokens, seconds, name = stream(api, args)
        # The first token came with the reading of the question.
        if tokens > 1 and seconds > 0:
            print(f"{tokens} tokens, {(tokens - 1) / seconds:.1f} a second after the first")
        if name:
            print(f"receipt {name}")
            if args.receipt:
                with open(args.receipt, "w", encoding="utf-8") as file:
                    json.dump(receipt(api, name), file)
        elif args.receipt:
            sys.exit("the gateway computed this itself: there is no receipt")
    except openai.APIStatusError as refused:
        sys.exit(f"the gateway refuses: {refused}")
    except openai.APIConnectionError as failed:
        sys.exit(f"the gateway does not answer at {args.url}: {failed}")


if __name__ == "__main__":
    main()
