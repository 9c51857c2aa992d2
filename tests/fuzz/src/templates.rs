//! Chat templates of others.

use tensorlink_folder::{ChatTemplate, TemplateError};

/// Longest conversation in a model's form, bytes.
const MAX_RENDERED: usize = 16 << 20;
/// The tokens that templates write.
const CONFIG: &[u8] = br#"{"bos_token": "<s>", "eos_token": {"content": "</s>"}}"#;

/// A template, and what was said: each message after a byte of 0 and the first letter of its role.
///
/// # Panics
/// Where a rule is broken.
pub fn template(bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    let source = parts.next().unwrap_or_default();
    let Ok(Some(template)) = ChatTemplate::read(Some(CONFIG), Some(source)) else { return };
    let said: Vec<(&str, &str)> = parts.filter_map(message).collect();
    obeys(&template, &said, source.windows(8).any(|part| part == b"strftime"));
}

fn message(part: &[u8]) -> Option<(&str, &str)> {
    let (role, content) = part.split_first()?;
    let role = match role {
        b's' => "system",
        b'a' => "assistant",
        b't' => "tool",
        _ => "user",
    };
    Some((role, std::str::from_utf8(content).ok()?))
}

/// Renders a conversation, or refuses it; the same each time, unless it tells what time it is.
pub(crate) fn obeys(template: &ChatTemplate, said: &[(&str, &str)], tells_time: bool) {
    let rendered = template.render(said.iter().copied());
    match &rendered {
        Ok(text) => assert!(text.len() <= MAX_RENDERED, "{} bytes", text.len()),
        Err(TemplateError::Refused(_) | TemplateError::Failed { .. }) => {}
        Err(error) => panic!("a template that was read renders or refuses: {error}"),
    }
    assert!(tells_time || rendered == template.render(said.iter().copied()), "a conversation renders to one text");
}
