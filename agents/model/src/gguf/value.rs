//! What a key of the metadata may hold.

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    /// Of any width, with sign or without.
    Whole(i128),
    Float(f32),
    Double(f64),
    Flag(bool),
    Text(&'a str),
    List(List<'a>),
}

/// Values of one type.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Texts(Vec<&'a str>),
    Numbers {
        /// Their type, as the file numbers it.
        kind: u32,
        bytes: &'a [u8],
    },
}
