"""OpenAI's Python client against models that continue texts.

"tiny-llama" is a tiny exact Llama with untrained weights, 32 tokens of context and a chat template that refuses system messages.
"speaker" is made up: its tokens are bytes, 64 of context, and it does what its prompt says ("say X", "repeat X", "fail X").
"""

import asyncio
import unittest

import openai

from test_gateway import KEY, MODEL, URL, client

TINY, SPEAKER = "tiny-llama", "speaker"


def user(text: str) -> list:
    return [{"role": "user", "content": text}]


class Completions(unittest.TestCase):
    def test_a_text_is_continued(self) -> None:
        with client() as api:
            answer = api.completions.create(model=SPEAKER, prompt="say hello", max_tokens=20)
        self.assertEqual((answer.object, answer.model), ("text_completion", SPEAKER))
        self.assertTrue(answer.id.startswith("cmpl-") and answer.system_fingerprint.startswith("fp_"))
        choice = answer.choices[0]
        self.assertEqual((choice.text, choice.index, choice.finish_reason, choice.logprobs), ("hello", 0, "stop", None))
        usage = answer.usage
        self.assertEqual((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (9, 6, 15))

    def test_prompts_keep_their_order(self) -> None:
        with client() as api:
            texts = api.completions.create(model=SPEAKER, prompt=["say longer", "say b"])
            tokens = api.completions.create(model=SPEAKER, prompt=[list(b"say longer"), list(b"say b")])
        for answer in (texts, tokens):
            self.assertEqual([(c.index, c.text) for c in answer.choices], [(0, "longer"), (1, "b")])

    def test_stops_and_lengths(self) -> None:
        with client() as api:
            stopped = api.completions.create(model=SPEAKER, prompt="say one two", stop=["wo", "x"]).choices[0]
            cut = api.completions.create(model=SPEAKER, prompt="repeat ab", max_tokens=3).choices[0]
        self.assertEqual((stopped.text, stopped.finish_reason), ("one t", "stop"))
        self.assertEqual((cut.text, cut.finish_reason), ("aba", "length"))

    def test_a_stream_says_what_a_whole_answer_says(self) -> None:
        asked = {"model": TINY, "prompt": "the cat", "max_tokens": 10, "seed": 7, "extra_body": {"top_k": 9}}
        with client() as api:
            whole = api.completions.create(**asked)
            parts = list(api.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(part.choices[0].text for part in parts[:-1]), whole.choices[0].text)
        self.assertEqual(parts[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual((parts[-1].choices, parts[-1].usage), ([], whole.usage))
        self.assertEqual(len({part.id for part in parts}), 1)

    def test_many_at_once(self) -> None:
        async def ask() -> list[str]:
            async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=5, timeout=20) as api:

                async def one(number: int) -> str:
                    stream = await api.completions.create(model=SPEAKER, prompt=f"say text {number}", stream=True)
                    return "".join([part.choices[0].text async for part in stream])

                return await asyncio.gather(*(one(number) for number in range(40)))

        self.assertEqual(asyncio.run(ask()), [f"text {number}" for number in range(40)])

    def test_a_stream_may_be_left(self) -> None:
        with client() as api:
            with api.completions.create(model=SPEAKER, prompt="repeat abc", max_tokens=50, stream=True) as stream:
                self.assertEqual(next(iter(stream)).choices[0].text, "a")
            self.assertEqual(api.completions.create(model=SPEAKER, prompt="say x").choices[0].text, "x")


class Chats(unittest.TestCase):
    def test_a_chat_is_answered(self) -> None:
        with client() as api:
            messages = [{"role": "system", "content": "Be brief."}, *user("say hello")]
            answer = api.chat.completions.create(model=SPEAKER, messages=messages)
            # An answer may be sent back as it came.
            messages = [answer.choices[0].message, *user("say x")]
            again = api.chat.completions.create(model=SPEAKER, messages=messages, max_completion_tokens=2)
        self.assertEqual((answer.object, answer.choices[0].finish_reason), ("chat.completion", "stop"))
        self.assertEqual((answer.choices[0].message.role, answer.choices[0].message.content), ("assistant", "hello"))
        self.assertTrue(answer.id.startswith("chatcmpl-"))
        self.assertEqual(answer.usage.completion_tokens, 6)
        self.assertEqual(again.choices[0].message.content, "x")

    def test_a_chat_in_parts(self) -> None:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        with client() as api:
            parts = list(api.chat.completions.create(model=SPEAKER, messages=user("say h\u00e9"), **options))
        deltas = [part.choices[0].delta for part in parts[:-1]]
        self.assertEqual(deltas[0].role, "assistant")
        self.assertEqual([delta.content for delta in deltas], ["", "h", "\u00e9", None])
        self.assertEqual(parts[-2].choices[0].finish_reason, "stop")
        self.assertEqual((parts[-1].choices, parts[-1].usage.completion_tokens), ([], 4))

    def test_the_clients_own_stream_helper(self) -> None:
        with client() as api, api.chat.completions.stream(model=SPEAKER, messages=user("say hello")) as stream:
            kinds = [event.type for event in stream]
            answer = stream.get_final_completion()
        self.assertEqual(answer.choices[0].message.content, "hello")
        self.assertIn("content.done", kinds)

    def test_a_seed_repeats_an_exact_text(self) -> None:
        with client() as api:

            def text(seed: int) -> str:
                answer = api.chat.completions.create(
                    model=TINY, messages=user("the dog"), seed=seed, temperature=2, max_tokens=6
                )
                return answer.choices[0].message.content

            texts = [[text(seed) for seed in range(8)] for _ in range(2)]
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(len(set(texts[0])), 1)


class Errors(unittest.TestCase):
    def test_bad_requests_say_what_is_wrong(self) -> None:
        tools = [{"type": "function", "function": {"name": "f"}}]
        system = [{"role": "system", "content": "the"}]
        long = "context_length_exceeded"
        with client() as api:
            chat, complete = api.chat.completions.create, api.completions.create
            for ask, fields, param, code, part in [
                (complete, {"model": SPEAKER, "prompt": "x" * 65}, "prompt", long, "65 tokens"),
                (complete, {"model": SPEAKER, "prompt": "say a", "n": 2}, "n", None, "one continuation"),
                (complete, {"model": SPEAKER, "prompt": "say a", "echo": True}, "echo", None, "echo"),
                (chat, {"model": SPEAKER, "messages": []}, "messages", None, "at least one"),
                (chat, {"model": SPEAKER, "messages": user("a"), "temperature": 3}, "temperature", None, "0 to 2"),
                (chat, {"model": SPEAKER, "messages": user("a"), "tools": tools}, "tools", None, "tools"),
                (chat, {"model": TINY, "messages": user("cat " * 40)}, "messages", long, "32 tokens"),
                (chat, {"model": TINY, "messages": system}, "messages", None, "no system"),
            ]:
                with self.subTest(part), self.assertRaises(openai.BadRequestError) as raised:
                    ask(**fields)
                self.assertEqual((raised.exception.param, raised.exception.code), (param, code))
                self.assertIn(part, raised.exception.message)

    def test_models_answer_at_their_own_address(self) -> None:
        with client() as api:
            for ask, fields in (
                (api.completions.create, {"model": MODEL, "prompt": "a"}),
                (api.chat.completions.create, {"model": MODEL, "messages": user("a")}),
                (api.embeddings.create, {"model": SPEAKER, "input": "a"}),
            ):
                with self.assertRaises(openai.NotFoundError) as raised:
                    ask(**fields)
                self.assertEqual(raised.exception.param, "model")

    def test_a_failure_within_a_stream_is_raised(self) -> None:
        with client() as api:
            stream, texts = api.completions.create(model=SPEAKER, prompt="fail abc", stream=True), []
            with self.assertRaises(openai.APIError) as raised:
                for part in stream:
                    texts.append(part.choices[0].text)
            self.assertEqual((texts, raised.exception.code), (["a", "b", "c"], "internal_error"))
            with self.assertRaises(openai.InternalServerError):
                api.completions.create(model=SPEAKER, prompt="fail abc")


if __name__ == "__main__":
    unittest.main()
