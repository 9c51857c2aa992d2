"""OpenAI's Python client against a gateway with the model "words": 16 tokens of context, vectors of 8 elements.

The gateway has two more models, which continue texts: see test_generation.py.

Started by agents/cli/tests/it/gateway/openai.rs, which says in the environment where the gateway is.
"""

import asyncio
import os
import unittest

import openai

URL, LIMITED_URL = os.environ["GATEWAY"], os.environ["GATEWAY_LIMITED"]
KEY, OTHER_KEY = os.environ["GATEWAY_KEY"], os.environ["GATEWAY_OTHER_KEY"]
MODEL = "words"


def client(url: str = URL, key: str = KEY, retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key=key, max_retries=retries, timeout=20)


class Models(unittest.TestCase):
    def test_models_are_listed(self) -> None:
        with client() as api:
            self.assertEqual([model.id for model in api.models.list()], [MODEL, "tiny-llama", "speaker"])

    def test_a_model_is_found(self) -> None:
        with client() as api:
            model = api.models.retrieve(MODEL)
        self.assertEqual((model.id, model.object, model.created), (MODEL, "model", 1_700_000_000))

    def test_an_unknown_model_is_not_found(self) -> None:
        with client() as api:
            with self.assertRaises(openai.NotFoundError) as raised:
                api.models.retrieve("gpt-5")
            self.assertEqual(raised.exception.code, "model_not_found")
            with self.assertRaises(openai.NotFoundError) as raised:
                api.embeddings.create(model="gpt-5", input="a")
        self.assertEqual((raised.exception.code, raised.exception.param), ("model_not_found", "model"))


class Embeddings(unittest.TestCase):
    def test_vectors_agree_in_both_encodings(self) -> None:
        with client() as api:
            # The client asks for base64 when nothing is said, and decodes it.
            packed = api.embeddings.create(model=MODEL, input="good morning")
            floats = api.embeddings.create(model=MODEL, input="good morning", encoding_format="float")
            raw = api.embeddings.create(model=MODEL, input="good morning", encoding_format="base64")
        self.assertEqual(len(packed.data[0].embedding), 8)
        for a, b in zip(packed.data[0].embedding, floats.data[0].embedding, strict=True):
            self.assertAlmostEqual(a, b, places=6)
        self.assertIsInstance(raw.data[0].embedding, str)
        self.assertEqual((packed.model, packed.object), (MODEL, "list"))

    def test_texts_keep_their_order_and_are_counted(self) -> None:
        texts = ["one", "one two", "one two three"]
        with client() as api:
            together = api.embeddings.create(model=MODEL, input=texts, dimensions=8, user="somebody")
            alone = [api.embeddings.create(model=MODEL, input=text).data[0].embedding for text in texts]
        self.assertEqual([item.index for item in together.data], [0, 1, 2])
        self.assertEqual([item.embedding for item in together.data], alone)
        self.assertEqual((together.usage.prompt_tokens, together.usage.total_tokens), (6, 6))

    def test_token_ids_are_taken(self) -> None:
        with client() as api:
            one = api.embeddings.create(model=MODEL, input=[1, 2, 3])
            many = api.embeddings.create(model=MODEL, input=[[1, 2, 3], [4]])
        self.assertEqual(one.data[0].embedding, many.data[0].embedding)
        self.assertEqual((one.usage.total_tokens, many.usage.total_tokens), (3, 4))

    def test_bad_requests_say_what_is_wrong(self) -> None:
        with client() as api:
            for wrong, param, part in [
                ({"input": "word " * 17}, "input", "17 tokens"),
                ({"input": ""}, "input", "empty"),
                ({"input": ["a"] * 2049}, "input", "2049"),
                ({"input": "a", "dimensions": 4}, "dimensions", "8"),
                ({"input": [1, 5000]}, "input", "5000"),
            ]:
                with self.subTest(wrong), self.assertRaises(openai.BadRequestError) as raised:
                    api.embeddings.create(model=MODEL, **wrong)
                self.assertEqual((raised.exception.type, raised.exception.param), ("invalid_request_error", param))
                self.assertIn(part, raised.exception.message)
                self.assertTrue((raised.exception.request_id or "").startswith("req_"))

    def test_fields_of_other_servers_change_nothing(self) -> None:
        with client() as api:
            plain = api.embeddings.create(model=MODEL, input="a")
            other = api.embeddings.create(model=MODEL, input="a", extra_body={"colour": "red", "truncate": None})
        self.assertEqual(plain.data[0].embedding, other.data[0].embedding)

    def test_too_large_a_body_is_refused(self) -> None:
        with client() as api, self.assertRaises(openai.APIStatusError) as raised:
            api.embeddings.create(model=MODEL, input="a" * (5 << 20))
        self.assertEqual((raised.exception.status_code, raised.exception.code), (413, "request_too_large"))

    def test_many_at_once(self) -> None:
        async def ask() -> list[int]:
            async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=5, timeout=20) as api:
                asked = (api.embeddings.create(model=MODEL, input=["a"] * count) for count in range(1, 41))
                return [len(answer.data) for answer in await asyncio.gather(*asked)]

        self.assertEqual(asyncio.run(ask()), list(range(1, 41)))


class Access(unittest.TestCase):
    def test_a_wrong_key_is_refused(self) -> None:
        with client(key="tl-wrong-key-0123456789") as api, self.assertRaises(openai.AuthenticationError) as raised:
            api.models.list()
        self.assertEqual(raised.exception.code, "invalid_api_key")

    def test_what_is_not_offered_is_not_found(self) -> None:
        with client() as api, self.assertRaises(openai.NotFoundError) as raised:
            api.responses.create(model=MODEL, input="hello")
        self.assertEqual(raised.exception.code, "unknown_url")

    def test_the_rate_limit_says_when_to_come_back(self) -> None:
        with client(LIMITED_URL) as api, self.assertRaises(openai.RateLimitError) as raised:
            for _ in range(3):
                api.models.list()
        self.assertEqual(raised.exception.code, "rate_limit_exceeded")
        self.assertGreaterEqual(int(raised.exception.response.headers["retry-after"]), 1)

    def test_the_client_comes_back_by_itself(self) -> None:
        with client(LIMITED_URL, OTHER_KEY, retries=2) as api:
            self.assertEqual([len(list(api.models.list())) for _ in range(2)], [1, 1])


if __name__ == "__main__":
    unittest.main()
