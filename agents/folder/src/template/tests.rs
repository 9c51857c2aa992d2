use serde_json::json;

use super::*;

const CHATML: &str = "{%- for message in messages %}\n{{- '<|im_start|>' + message.role + '\\n' + message['content'].strip() + '<|im_end|>\\n' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n{{- '<|im_start|>assistant\\n' }}\n{%- endif %}";
/// As Llama 3.1's, without its tools.
const LLAMA3: &str = r#"{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"#;
/// As Llama 2's and Mistral's: roles must alternate.
const MISTRAL: &str = "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}";

/// As Gemma 3's: a system message begins the first user's, roles must alternate.
const GEMMA3: &str = r#"{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
"#;

fn config(template: impl Into<serde_json::Value>) -> Vec<u8> {
    let special = json!({"content": "</s>", "lstrip": false});
    json!({"bos_token": "<s>", "eos_token": special, "chat_template": template.into()}).to_string().into_bytes()
}

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::read(Some(&config(source)), None).unwrap().unwrap()
}

const TALK: [(&str, &str); 3] = [("user", "Hi "), ("assistant", "Hello"), ("user", "<b>'&\"</b>")];

#[test]
fn published_templates_render_as_their_publishers_say() {
    let chatml = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\n<b>'&\"</b><|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(template(CHATML).render(TALK).unwrap(), chatml);
    let today = template("{{ strftime_now('%d %b %Y') }}").render(TALK).unwrap();
    let llama = "<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: TODAY\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n";
    assert_eq!(
        template(LLAMA3).render([("system", " Be brief."), ("user", "Hi")]).unwrap(),
        llama.replace("TODAY", &today)
    );
    let mistral = "<s>[INST] Hi  [/INST]Hello</s>[INST] <b>'&\"</b> [/INST]";
    assert_eq!(template(MISTRAL).render(TALK).unwrap(), mistral);
    let gemma = "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n<start_of_turn>user\n<b>'&\"</b><end_of_turn>\n<start_of_turn>model\n";
    assert_eq!(template(GEMMA3).render(TALK).unwrap(), gemma);
    let gemma = "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n";
    assert_eq!(template(GEMMA3).render([("system", "Be brief."), ("user", "Hi")]).unwrap(), gemma);
}

#[test]
fn jinja_is_taken_as_huggingface_takes_it() {
    for (source, expected) in [
        ("{% if true %}\nx\n{% endif %}\n", "x\n"),
        ("a\n    {% if true %}b{% endif %}\n", "a\nb"),
        (
            "{% for m in messages[::-1] %}{{ m.content[:2] }}{% if loop.first %}{% continue %}{% endif %},{% endfor %}",
            "<bHe,Hi,",
        ),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "3"),
        ("{{ messages[0].content.rstrip().upper().split('I') | length }}", "2"),
        ("{% macro say(x) %}[{{ x }}]{% endmacro %}{{ say(messages | length) }}", "[3]"),
        ("{{ undefined_name }}{{ documents is none }}{{ messages[0].get('tool_calls') is none }}", "truetrue"),
    ] {
        assert_eq!(template(source).render(TALK).unwrap().to_lowercase(), expected.to_lowercase(), "{source}");
    }
}

#[test]
fn a_file_of_its_own_comes_first_and_lists_have_a_default() {
    let listed = json!([{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]);
    let read = |config: &[u8], own: Option<&[u8]>| {
        ChatTemplate::read(Some(config), own).map(|found| found.map(|template| template.render(TALK).unwrap()))
    };
    assert_eq!(read(&config(listed.clone()), None), Ok(Some("plain".into())));
    assert_eq!(read(&config(listed), Some(b"{{ bos_token }}own")), Ok(Some("<s>own".into())));
    assert_eq!(read(&config(json!([{"name": "rag", "template": "one"}])), None), Ok(Some("one".into())));
    let two = json!([{"name": "rag", "template": "one"}, {"name": "tool_use", "template": "two"}]);
    assert_eq!(read(&config(two), None), Ok(None));
    assert_eq!(read(b"{}", None), Ok(None));
    assert_eq!(ChatTemplate::read(None, None).map(|found| found.is_none()), Ok(true));
}

#[test]
fn what_cannot_be_read_is_named() {
    let refused = |config: &[u8], own: Option<&[u8]>| ChatTemplate::read(Some(config), own).unwrap_err();
    assert!(matches!(refused(b"{", None), TemplateError::Config(_)));
    assert!(matches!(refused(b"{\"chat_template\": 1}", None), TemplateError::Config(_)));
    let error = refused(&config("{% for %}"), None);
    assert!(matches!(&error, TemplateError::Syntax { file: "tokenizer_config.json", .. }), "{error}");
    let error = refused(b"{}", Some(b"line\n{{ oops"));
    assert!(matches!(&error, TemplateError::Syntax { file: "chat_template.jinja", .. }), "{error}");
    assert!(error.to_string().contains(":2"), "{error}");
    assert!(matches!(refused(b"{}", Some(b"\xff")), TemplateError::Syntax { .. }));
    let long = "x".repeat((1 << 20) + 1);
    assert!(matches!(refused(&config(long), None), TemplateError::TooLong { .. }));
}

#[test]
fn a_template_refuses_in_its_own_words() {
    let error = template(MISTRAL).render([("assistant", "Hi")]).unwrap_err();
    let expected = "Conversation roles must alternate user/assistant/user/assistant/...";
    assert_eq!(error, TemplateError::Refused(expected.into()));
    let within = template("{% macro no() %}{{ raise_exception('no') }}{% endmacro %}{{ no() }}").render(TALK);
    assert_eq!(within.unwrap_err(), TemplateError::Refused("no".into()));
}

#[test]
fn a_template_is_bounded_and_reaches_nothing() {
    let failed = |source: &str| template(source).render(TALK).unwrap_err().to_string();
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% set x = c %}{% endfor %}{% endfor %}{% endfor %}";
    assert!(failed(endless).contains("too many steps"), "{}", failed(endless));
    let wordy = "{% set ns = namespace(x='x') %}{% for a in range(20) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{% for a in range(20) %}{{ ns.x }}{% endfor %}";
    assert!(failed(wordy).contains("writes too much"), "{}", failed(wordy));
    let deep = "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}";
    assert!(failed(deep).contains("tokenizer_config.json"), "{}", failed(deep));
    for source in
        ["{% include '/etc/passwd' %}", "{{ open('/etc/passwd') }}", "{{ messages.__class__.mro() }}", "{{ 1 // 0 }}"]
    {
        assert!(failed(source).contains("fails over the conversation"), "{source}");
    }
}

#[test]
fn what_a_request_adds_is_seen_and_replaces_nothing() {
    let added = |value: serde_json::Value| serde_json::from_value(value).unwrap();
    let source = "{{ enable_thinking }} {{ messages | length }} {{ add_generation_prompt }} {{ deep.a[0] }}";
    let variables: Variables = added(serde_json::json!({
        "enable_thinking": false, "messages": [], "add_generation_prompt": false, "deep": {"a": [7]}
    }));
    let rendered = template(source).render_with([("user", "Hi")], &variables).unwrap();
    assert_eq!(rendered.to_lowercase(), "false 1 true 7");
}

#[test]
fn what_transformers_renders_renders_here() {
    let source = "{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}{{ message.content }}\
                  {% endgeneration %}{% else %}{{ message.content | tojson }}{% endif %}{% endfor %}{{ strftime_now('%%') }}";
    let rendered = template(source).render([("user", "a <b> é"), ("assistant", "c")]).unwrap();
    assert_eq!(rendered, "\"a <b> é\"c%");
}

/// What `transformers` makes of templates in the manner of published ones; tests/transformers/render_templates.py
/// writes it.
#[derive(serde::Deserialize)]
struct Rendered {
    conversations: BTreeMap<String, Vec<Said>>,
    variables: BTreeMap<String, Variables>,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Said {
    role: String,
    content: String,
}

#[derive(serde::Deserialize)]
struct Case {
    template: String,
    conversation: String,
    variables: String,
    text: Option<String>,
    refused: Option<String>,
}

#[test]
fn published_kinds_of_templates_render_as_transformers_renders_them() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transformers");
    let rendered = std::fs::read(folder.join("templates.json")).unwrap();
    let Rendered { conversations, variables, cases } = serde_json::from_slice(&rendered).unwrap();
    let mut names = std::collections::BTreeSet::new();
    for Case { template: name, conversation, variables: added, text, refused } in cases {
        let source = std::fs::read_to_string(folder.join(format!("templates/{name}.jinja"))).unwrap();
        let said = conversations[&conversation].iter().map(|said| (said.role.as_str(), said.content.as_str()));
        let made = template(&source).render_with(said, &variables[&added]);
        let case = format!("{name}, {conversation}, {added}");
        match (made, text, refused) {
            (Ok(made), Some(text), None) => assert_eq!(made, text, "{case}"),
            (Err(TemplateError::Refused(made)), None, Some(refused)) => assert_eq!(made, refused, "{case}"),
            (Err(TemplateError::Failed { .. }), None, None) => {}
            (made, text, refused) => panic!("{case}: {made:?}, not {text:?} {refused:?}"),
        }
        names.insert(name);
    }
    assert!(names.len() >= 36 && std::fs::read_dir(folder.join("templates")).unwrap().count() == names.len());
}

#[test]
fn a_panic_of_the_engine_is_an_error_of_one_conversation() {
    let reversed = template("{{ messages[0].content[::-1] }}");
    assert_eq!(reversed.render([("user", "abc")]).unwrap(), "cba");
    assert!(matches!(reversed.render([("user", "")]), Err(TemplateError::Failed { .. })));
}
