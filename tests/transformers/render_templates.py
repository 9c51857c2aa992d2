"""Renders the chat templates beside this file, written in the manner of published ones, by Hugging Face's transformers:
writes templates.json, which agents/folder/src/template holds its own rendering to. Needs transformers and jinja2.

    render_templates.py            writes it
    render_templates.py --check    fails where it would be another
"""

import json
import sys
from pathlib import Path

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template as compiled

HERE = Path(__file__).parent
OUT = HERE / "templates.json"
FUNCTIONS = [
    {
        "name": "weather",
        "description": "Tells the weather <now> & then.",
        "parameters": {
            "properties": {
                "places": {"items": {"type": "string"}, "type": "array"},
                "unit": {"enum": ["°C", "°F"], "type": "string"},
                "when": {"nullable": True, "type": "number"},
            },
            "required": ["places"],
        },
    }
]


def said(*texts):
    """Messages of roles that are told by their first letters."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": roles[text[0]], "content": text[2:]} for text in texts]


CONVERSATIONS = {
    "one": said("u Hi"),
    "turns": said("u Hi ", "a \nHello, you\n", "u <b>'&\"</b> \\n 日本"),
    "system": said("s  Be brief.\n", "u Two\nlines\n", "a <think>\nhm\n</think>\n\nYes", "u why, then, my dear friend"),
    "no_think": said("s Be kind. /no_think", "u  "),
    "answered": said("u Hi", "a It's"),
    "twice": said("u a", "u b"),
    "late_system": said("u a", "a b", "s c", "u d"),
}
VARIABLES = {
    "none": {},
    "some": {
        "builtin_tools": ["code_interpreter", "search"],
        "controls": {"length": "short", "x": 1e-05},
        "custom_tools": FUNCTIONS,
        "date_string": "1 Jan 2026",
        "enable_thinking": False,
        "extra": {"ä": [1, 2.5, None, True], "b": {"z": "\"é\"", "y": "日/😀"}},
        "functions": FUNCTIONS,
        "max_turns": "3",
        "thinking": True,
        "tools_in_user_message": False,
    },
}


def rendered(template, messages, variables):
    """What comes of it: a text, the template's own refusal, or that it fails."""
    known = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "tools": None, "documents": None}
    try:
        return {"text": compiled(template).render(messages=messages, **variables, **known)}
    except jinja2.exceptions.TemplateError as error:
        return {"refused": error.message} if type(error) is jinja2.exceptions.TemplateError else {"fails": True}
    except Exception:
        return {"fails": True}


def vectors():
    cases = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = path.read_text()
        for conversation, messages in CONVERSATIONS.items():
            for named, variables in VARIABLES.items():
                case = {"template": path.stem, "conversation": conversation, "variables": named}
                cases.append(case | rendered(template, messages, variables))
    return {"conversations": CONVERSATIONS, "variables": VARIABLES, "cases": cases}


def main():
    text = json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if OUT.read_text() == text else f"{OUT} is not what transformers renders: write it again")
    OUT.write_text(text)


if __name__ == "__main__":
    main()
