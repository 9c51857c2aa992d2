//! The gateway to exact models, by the official client, and as a command.

#[cfg(unix)]
mod command;
mod decoder;
mod exact;
mod openai;
