//! The engine on libtorch against the scalar reference, loops over doubles, and other people's floats.

mod attention;
mod decode;
mod device;
mod exact;
mod float;
mod huggingface;
mod minilm;
mod reference;
mod tch_links;
mod training;
mod transformer;
