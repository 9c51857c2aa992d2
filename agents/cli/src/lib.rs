//! The `tensorlink` program as a library, so that tests can run its roles with parts exchanged.
//!
//! | module | what lives there |
//! |---|---|
//! | [`args`], [`config`] | command line; configuration from flags, environment and file |
//! | [`commands`] | one file a command |
//! | [`node`], [`origin`] | a node put together from its adapters; which chain its data folder belongs to |
//! | [`native`] | libtorch behind the trait of native mode |
//! | [`keys`], [`device`], [`amount`] | key, device, amounts and sizes as people write them |
//! | [`profile`], [`disk`] | how fast this machine computes; room on its disk |
//! | [`owner`] | whether other programs use this machine |
//! | [`watch`], [`report`], [`output`] | live view of a job; what it came to; printing |
//! | [`signs`], [`tiers`] | when each worker was heard of last, and by when it must act; how fast it said it is |
//! | [`live`], [`when`] | what is said beside the live view; times as people read them |
//! | [`mod@dispute`] | challenges and convictions, in facts and in words |
//! | [`quantized`] | model folders in integers, and how far they are from their floats |
//! | [`hf_tokenizer`] | what a model folder knows of texts, behind the gateway's port |
//! | [`advice`] | what to do when a contract refuses |
//! | [`process`] | logging, signals, exit code |
//!
//! Amounts and sizes are parsed exactly, and shown as they were written:
//!
//! ```
//! use tensorlink::amount::{Wei, parse_amount, parse_size};
//!
//! let price = parse_amount("0.001")?;
//! assert_eq!(price.to_string(), "1000000000000000");
//! assert_eq!(Wei(price).to_string(), "0.001");
//! assert_eq!(parse_size("8GiB")?, 8 << 30);
//! assert!(parse_amount("1e5").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Both panic where nobody reads any more: data goes through [`output`], what is said through [`live`].
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod advice;
pub mod amount;
pub mod args;
pub mod commands;
pub mod config;
pub mod device;
pub mod disk;
pub mod dispute;
pub mod hf_tokenizer;
pub mod keys;
pub mod live;
pub mod native;
pub mod node;
pub mod origin;
pub mod output;
pub mod owner;
mod peers;
pub mod process;
pub mod profile;
pub mod quantized;
#[cfg(test)]
mod reference;
pub mod report;
pub mod signs;
pub mod tiers;
pub mod watch;
pub mod when;
