#!/usr/bin/env python3
"""Semantic search through the gateway: which sentences mean what a question means?

    examples/search.py --url http://127.0.0.1:8080/v1 --key-file .tensorlink/gateway.key \\
        --model all-MiniLM-L6-v2 "How do I get a stain out?" examples/sentences.txt

Prints the closest sentences and where the receipt of the question is; with --receipt FILE, writes that receipt. The standard
library is enough; OpenAI's own client works as well.
"""

import argparse
import json
import sys
import urllib.error
import urllib.request

BATCH = 32


def call(url, key, body=None):
    """Answer of the gateway and its headers; ends the program with the gateway's own words if it refuses."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer), answer.headers
    except urllib.error.HTTPError as refused:
        sys.exit(f"the gateway refuses {url}: {refused.read().decode(errors='replace')}")
    except urllib.error.URLError as failed:
        sys.exit(f"the gateway does not answer at {url}: {failed.reason}")


def embed(args, key, texts):
    answer, headers = call(f"{args.url}/embeddings", key, {"model": args.model, "input": texts})
    return [item["embedding"] for item in answer["data"]], headers.get("x-receipt-id")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question")
    parser.add_argument("sentences", help="file with one sentence a line")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--key-file", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--most", type=int, default=3, help="sentences to print")
    parser.add_argument("--limit", type=int, help="look at so many sentences only")
    parser.add_argument("--receipt", help="file to write the question's receipt to")
    args = parser.parse_args()

    with open(args.key_file, encoding="utf-8") as file:
        key = file.readline().strip()
    with open(args.sentences, encoding="utf-8") as file:
        sentences = [line.strip() for line in file if line.strip()][: args.limit]

    vectors = []
    for start in range(0, len(sentences), BATCH):
        vectors += embed(args, key, sentences[start : start + BATCH])[0]
    [asked], receipt = embed(args, key, [args.question])
    # Vectors have length 1: their dot product is the cosine of their angle.
    score = [sum(a * b for a, b in zip(asked, vector)) for vector in vectors]
    for place in sorted(range(len(score)), key=score.__getitem__, reverse=True)[: args.most]:
        print(f"{score[place]:.3f}  {sentences[place]}")
    if receipt:
        print(f"receipt {receipt}")
        if args.receipt:
            with open(args.receipt, "w", encoding="utf-8") as file:
                json.dump(call(f"{args.url}/receipts/{receipt}", key)[0], file)
    elif args.receipt:
        sys.exit("the gateway computed this itself: there is no receipt")


if __name__ == "__main__":
    main()
